//! `nack`: gives back messages in flight.

use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::command;
use crate::cli::NackArgs;
use crate::text::{millis, MessageId, QueueName};
use dq_client::Cmd;
use serde_json::{json, Value as Json};

/// What may follow if a message is taken from its consumer.
pub const WORKED_ON_TWICE: &str = "; a consumer that still works on it does the work twice";

impl Change for NackArgs {
    fn words(&self) -> Words {
        Words { verb: "Give back", done: "given back" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Ids(&self.ids)
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        command("DQ.NACK", queue)
            .ids(part)
            .number("DELAY", self.delay.map(millis))
            .option("ERROR", self.error.as_ref())
            .flag("DEAD", self.dead)
            .flag("NOCOUNT", self.no_count)
            .build()
    }

    fn line(&self, id: &MessageId, answer: Option<String>) -> (String, Json) {
        match answer {
            Some(state) => (state.clone(), json!({ "id": id, "state": state })),
            None => (id.to_string(), json!({ "id": id, self.words().done: true })),
        }
    }

    fn consequence(&self, _: Option<u64>, _: &str) -> String {
        WORKED_ON_TWICE.to_owned()
    }
}

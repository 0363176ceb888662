//! `bury`: makes messages dead.

use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::command;
use crate::board::Among;
use crate::cli::{BuryArgs, ManyArgs};
use crate::server::{Failure, Message};
use crate::text::{MessageId, QueueName};
use dq_client::{Cmd, Resend, State};
use serde_json::{json, Value as Json};

impl Change for BuryArgs {
    fn words(&self) -> Words {
        Words { verb: "Bury", done: "buried" }
    }

    fn queue(&self) -> &QueueName {
        &self.target.queue
    }

    fn scope(&self) -> Scope<'_> {
        if self.target.ids.is_empty() {
            Scope::Selected(self.target.filter(Among::State(self.state)))
        } else {
            Scope::Ids(&self.target.ids)
        }
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        command("DQ.BURY", queue).ids(part).option("ERROR", self.error.as_ref()).build()
    }

    fn check(&self) -> Result<(), Failure> {
        if matches!(self.state, State::Dead | State::Done) {
            return Err(Failure::usage("only ready, delayed and inflight messages are buried"));
        }
        Ok(())
    }

    fn many(&self) -> Option<&ManyArgs> {
        Some(&self.target.many)
    }

    fn fits(&self, message: &Message) -> bool {
        !matches!(message.state(), Some(State::Dead | State::Done))
    }

    fn needed(&self) -> &'static str {
        "alive"
    }

    fn resend(&self) -> Resend {
        Resend::Harmless
    }

    fn is_done_to(&self, message: &Message) -> bool {
        message.state() == Some(State::Dead)
    }

    fn line(&self, id: &MessageId, answer: Option<String>) -> (String, Json) {
        match answer {
            Some(was) => (id.to_string(), json!({ "id": id, "was": was })),
            None => (id.to_string(), json!({ "id": id, self.words().done: true })),
        }
    }
}

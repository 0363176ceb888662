//! `complete`: acknowledges a message in flight.

use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::command;
use crate::cli::CompleteArgs;
use crate::text::{millis, QueueName};
use dq_client::{Cmd, Raw};
use std::slice;

impl Change for CompleteArgs {
    fn words(&self) -> Words {
        Words { verb: "Complete", done: "completed" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Ids(slice::from_ref(&self.id))
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        command("DQ.COMPLETE", queue)
            .ids(part)
            .option("RESULT", self.result.as_ref().map(|result| &result.0))
            .number("RETAIN", self.retain.map(millis))
            .build()
    }

    fn input(&mut self) -> Option<&mut Option<Raw>> {
        self.result.is_some().then_some(&mut self.result)
    }
}

//! `reschedule`: changes the due time or the priority of a message.

use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::command;
use crate::cli::RescheduleArgs;
use crate::text::{millis, unix_ms, QueueName};
use dq_client::Cmd;
use std::slice;

impl Change for RescheduleArgs {
    fn words(&self) -> Words {
        Words { verb: "Reschedule", done: "rescheduled" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Ids(slice::from_ref(&self.id))
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        command("DQ.RESCHEDULE", queue)
            .ids(part)
            .number("DELAY", self.delay.map(millis))
            .number("AT", self.at.map(unix_ms))
            .number("PRIORITY", self.priority)
            .build()
    }

    fn needed(&self) -> &'static str {
        "delayed or ready"
    }
}

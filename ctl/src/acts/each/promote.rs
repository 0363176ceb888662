//! `promote`: makes delayed messages due now.

use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::command;
use crate::cli::{ManyArgs, PromoteArgs};
use crate::server::Message;
use crate::text::QueueName;
use dq_client::{Cmd, State};

impl Change for PromoteArgs {
    fn words(&self) -> Words {
        Words { verb: "Promote", done: "promoted" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        if self.ids.is_empty() {
            Scope::States(vec![State::Delayed])
        } else {
            Scope::Ids(&self.ids)
        }
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        match part {
            Part::Ids(_) => command("DQ.RESCHEDULE", queue).ids(part).number("DELAY", Some(0)).build(),
            Part::Whole | Part::Count(_) => command("DQ.PROMOTE", queue).count(part).build(),
        }
    }

    fn many(&self) -> Option<&ManyArgs> {
        Some(&self.many)
    }

    fn limit(&self) -> Option<u32> {
        self.count
    }

    fn fits(&self, message: &Message) -> bool {
        message.state() == Some(State::Delayed)
    }

    fn needed(&self) -> &'static str {
        "delayed"
    }

    /// The server would also give a new due time to a message that is ready.
    fn must_look_first(&self) -> bool {
        true
    }
}

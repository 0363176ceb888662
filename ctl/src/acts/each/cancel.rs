//! `cancel`: removes messages.

use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::command;
use crate::cli::{among, CancelArgs, ManyArgs};
use crate::text::QueueName;
use dq_client::Cmd;

impl Change for CancelArgs {
    fn words(&self) -> Words {
        Words { verb: "Cancel", done: "cancelled" }
    }

    fn queue(&self) -> &QueueName {
        &self.target.queue
    }

    fn scope(&self) -> Scope<'_> {
        if self.target.ids.is_empty() {
            Scope::Selected(self.target.filter(among(self.letters, self.state)))
        } else {
            Scope::Ids(&self.target.ids)
        }
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        command("DQ.CANCEL", queue).ids(part).build()
    }

    fn many(&self) -> Option<&ManyArgs> {
        Some(&self.target.many)
    }

    fn needed(&self) -> &'static str {
        "there"
    }

    fn is_one_by_one(&self) -> bool {
        false
    }

    fn consequence(&self, _: Option<u64>, copy: &str) -> String {
        format!(" for good{copy}")
    }
}

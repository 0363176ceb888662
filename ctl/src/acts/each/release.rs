//! `release`: takes back the messages that a consumer holds.

use super::nack::WORKED_ON_TWICE;
use crate::acts::change::{Change, Part, Scope, Words};
use crate::acts::command::command;
use crate::cli::{ManyArgs, ReleaseArgs};
use crate::text::QueueName;
use dq_client::Cmd;

impl Change for ReleaseArgs {
    fn words(&self) -> Words {
        Words { verb: "Release", done: "released" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Consumer(&self.consumer)
    }

    fn command(&self, queue: &[u8], part: Part) -> Cmd {
        command("DQ.RELEASE", queue).arg(&self.consumer).count(part).flag("NOCOUNT", self.no_count).build()
    }

    fn many(&self) -> Option<&ManyArgs> {
        Some(&self.many)
    }

    fn limit(&self) -> Option<u32> {
        self.count
    }

    fn consequence(&self, _: Option<u64>, _: &str) -> String {
        WORKED_ON_TWICE.to_owned()
    }
}

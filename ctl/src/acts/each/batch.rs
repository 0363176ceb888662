//! `batch`: closes a batch, or cancels it.

use crate::acts::change::{Change, ChangeQueue, Part, Scope, Words};
use crate::acts::command::command;
use crate::acts::report::Report;
use crate::acts::site::Site;
use crate::cli::{BatchArgs, ConfirmArgs};
use crate::server::{reply::int, reply::unexpected, Failure};
use crate::text::{millis, visible, QueueName};
use dq_client::{Cmd, Raw};
use serde_json::json;

fn name(args: &BatchArgs) -> &str {
    args.name.as_deref().unwrap_or_default()
}

impl Change for BatchArgs {
    fn words(&self) -> Words {
        if self.cancel {
            Words { verb: "Cancel", done: "cancelled" }
        } else {
            Words { verb: "Close", done: "closed" }
        }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        if self.cancel {
            Scope::Batch(name(self))
        } else {
            Scope::Queue(self)
        }
    }

    fn command(&self, queue: &[u8], _: Part) -> Cmd {
        let command = command("DQ.BATCH", queue).args(&self.name);
        let Some(then) = &self.then else { return command.arg("CANCEL").build() };
        let command = command.arg("THEN").arg(&then.0).option("ID", self.id.as_ref());
        command.number("DELAY", self.delay.map(millis)).message(&self.message).build()
    }

    fn input(&mut self) -> Option<&mut Option<Raw>> {
        self.then.is_some().then_some(&mut self.then)
    }

    fn confirm(&self) -> Option<&ConfirmArgs> {
        Some(&self.confirm)
    }

    fn takes_pattern(&self) -> bool {
        false
    }

    fn object(&self, place: &str) -> String {
        format!("the batch {} of {place}", visible(name(self)))
    }

    fn consequence(&self, _: Option<u64>, _: &str) -> String {
        if self.cancel { " for good" } else { "" }.to_owned()
    }
}

impl ChangeQueue for BatchArgs {
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure> {
        if site.is_missing() {
            return Ok(None);
        }
        let answer = self.send(site, Part::Whole)?;
        let left = int(&answer).ok_or_else(|| unexpected(&answer))?;
        let report = Report::line(left.to_string(), json!({ "batch": self.name, "left": left }));
        Ok(Some(match left {
            0 => report.note("no message of the batch is left: the payload was pushed at once"),
            _ => report,
        }))
    }
}

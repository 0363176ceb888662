//! `delete`: deletes a queue.

use crate::acts::change::{Change, ChangeQueue, Part, Scope, Words};
use crate::acts::command::script;
use crate::acts::report::Report;
use crate::acts::site::Site;
use crate::cli::{DeleteArgs, ManyArgs};
use crate::server::{reply::int, Failure};
use crate::text::{messages, QueueName};
use dq_client::Cmd;
use serde_json::json;

/// Deletes the key if it is a queue: in one step, so that no other key of this name is lost.
const DELETE: &str = "if redis.call('DQ.INFO', KEYS[1]) then return redis.call('UNLINK', KEYS[1]) end return 0";
const RIGHTS: &str = "to delete a queue, a user needs +eval +dq.info +unlink";

impl Change for DeleteArgs {
    fn words(&self) -> Words {
        Words { verb: "Delete", done: "deleted" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Queue(self)
    }

    fn command(&self, queue: &[u8], _: Part) -> Cmd {
        script(DELETE, queue).build()
    }

    fn many(&self) -> Option<&ManyArgs> {
        Some(&self.many)
    }

    fn is_of_many(&self) -> bool {
        true
    }

    fn takes_pattern(&self) -> bool {
        false
    }

    fn consequence(&self, number: Option<u64>, _: &str) -> String {
        let held = number.map_or_else(|| "all its messages".to_owned(), messages);
        format!(" for good, with its settings, its schedules and {held}")
    }
}

impl ChangeQueue for DeleteArgs {
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure> {
        if site.is_missing() {
            return Ok(None);
        }
        let answer = self.call(site, Part::Whole).result.map_err(|error| Failure::script(error, RIGHTS))?;
        let is_deleted = int(&answer) != Some(0);
        Ok(is_deleted.then(|| Report::line("deleted", json!({ "queue": site.queue, "deleted": true }))))
    }
}

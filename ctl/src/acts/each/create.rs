//! `create`: creates a queue.

use crate::acts::change::{Change, ChangeQueue, Part, Scope, Words};
use crate::acts::command::command;
use crate::acts::report::Report;
use crate::acts::site::Site;
use crate::cli::CreateArgs;
use crate::server::Failure;
use crate::text::QueueName;
use dq_client::{Cmd, Resend};
use serde_json::json;

impl Change for CreateArgs {
    fn words(&self) -> Words {
        Words { verb: "Create", done: "created" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Queue(self)
    }

    fn command(&self, queue: &[u8], _: Part) -> Cmd {
        command("DQ.CREATE", queue).args(&self.settings.0).build()
    }

    fn resend(&self) -> Resend {
        Resend::Harmless
    }
}

impl ChangeQueue for CreateArgs {
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure> {
        let exists = site.info_if_allowed().is_some();
        self.send(site, Part::Whole)?;
        let text = if exists { "exists already, with these settings" } else { "created" };
        Ok(Some(Report::line(text, json!({ "queue": site.queue, "created": !exists }))))
    }
}

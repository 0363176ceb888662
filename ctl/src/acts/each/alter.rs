//! `alter`: changes the settings of queues.

use crate::acts::change::{Change, ChangeQueue, Part, Scope, Words};
use crate::acts::command::command;
use crate::acts::report::Report;
use crate::acts::site::Site;
use crate::board::setting;
use crate::cli::{AlterArgs, ConfirmArgs};
use crate::server::{Failure, QueueInfo};
use crate::text::QueueName;
use dq_client::{Cmd, Resend};
use serde_json::json;

impl Change for AlterArgs {
    fn words(&self) -> Words {
        Words { verb: "Alter", done: "altered" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Queue(self)
    }

    fn command(&self, queue: &[u8], _: Part) -> Cmd {
        command("DQ.ALTER", queue).flag("MKQUEUE", self.create).args(&self.settings.0).build()
    }

    fn check(&self) -> Result<(), Failure> {
        if self.settings.0.is_empty() && !self.create {
            let text = "nothing to change: give a setting, such as --lease 1m; see dqctl alter --help";
            return Err(Failure::usage(text));
        }
        Ok(())
    }

    fn confirm(&self) -> Option<&ConfirmArgs> {
        Some(&self.confirm)
    }

    fn takes_pattern(&self) -> bool {
        !self.create
    }

    fn resend(&self) -> Resend {
        Resend::Harmless
    }

    fn object(&self, place: &str) -> String {
        format!("settings of {place}")
    }
}

impl ChangeQueue for AlterArgs {
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure> {
        let before = site.info_if_allowed();
        self.send(site, Part::Whole)?;
        Ok(Some(altered(site.queue, before, site.info_if_allowed())))
    }
}

/// Which settings are different now.
fn altered(queue: &QueueName, before: Option<QueueInfo>, after: Option<QueueInfo>) -> Report {
    let (Some(before), Some(after)) = (before, after) else {
        return Report::line("altered", json!({ "queue": queue, "altered": true }));
    };
    let (before, after) = (before.settings_fields(), after.settings_fields());
    let differing = after.0.iter().filter(|(name, value)| before.get(name) != Some(value));
    let change = |(name, _): &(String, _)| format!("{name} {} -> {}", setting(&before, name), setting(&after, name));
    let changes: Vec<String> = differing.map(change).collect();
    let text = if changes.is_empty() {
        "has these settings already".to_owned()
    } else {
        format!("altered: {}", changes.join(", "))
    };
    Report::line(text, json!({ "queue": queue, "altered": !changes.is_empty() }))
}

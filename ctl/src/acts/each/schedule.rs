//! `schedule`: declares a recurring message.

use crate::acts::change::{Change, ChangeQueue, Part, Scope, Words};
use crate::acts::command::command;
use crate::acts::report::Report;
use crate::acts::site::Site;
use crate::cli::ScheduleArgs;
use crate::server::{reply::text, reply::unexpected, Failure, Message};
use crate::text::{millis, shown, unix_ms, QueueName};
use dq_client::{Cmd, Raw};
use serde_json::json;

impl Change for ScheduleArgs {
    fn words(&self) -> Words {
        Words { verb: "Declare", done: "declared" }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Queue(self)
    }

    fn command(&self, queue: &[u8], _: Part) -> Cmd {
        command("DQ.SCHEDULE", queue)
            .args(&self.id)
            .arg(self.payload.as_ref().map_or(&[][..], |payload| &payload.0))
            .number("EVERY", self.every.map(millis))
            .number("OFFSET", self.offset.map(millis))
            .option("CRON", self.cron.as_ref())
            .option("TZ", self.tz.as_ref())
            .number("AT", self.at.map(unix_ms))
            .number("UNTIL", self.until.map(unix_ms))
            .number("TIMES", self.times)
            .message(&self.message)
            .build()
    }

    fn check(&self) -> Result<(), Failure> {
        self.payload.as_ref().map(|_| ()).ok_or_else(|| Failure::usage("the payload is missing"))
    }

    fn input(&mut self) -> Option<&mut Option<Raw>> {
        Some(&mut self.payload)
    }

    fn object(&self, place: &str) -> String {
        format!("the schedule {} in {place}", self.id.as_ref().map(ToString::to_string).unwrap_or_default())
    }
}

impl ChangeQueue for ScheduleArgs {
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure> {
        // A user may be allowed the change alone.
        let before = self.id.as_ref().and_then(|id| site.message(id.as_bytes()).ok().flatten());
        let answer = self.send(site, Part::Whole)?;
        let declared = text(&answer).ok_or_else(|| unexpected(&answer))?;
        let replaced = before.filter(|message| !message.recurs() && declared != "unchanged");
        let object = json!({ "id": self.id, "schedule": declared });
        Ok(Some(match replaced {
            Some(message) => with_replaced(site, &declared, object, &message),
            None => Report::line(declared, object),
        }))
    }
}

/// The report on a schedule that has taken the place of a message that did not recur.
fn with_replaced(site: &Site, declared: &str, mut object: serde_json::Value, message: &Message) -> Report {
    let (state, id) = (message.text("state"), shown(message.id()));
    if let Some(object) = object.as_object_mut() {
        object.insert("was".to_owned(), state.clone().into());
    }
    let queue = site.queue;
    let note = format!("the queue {queue} held a message {id}, {state}, whose place the schedule takes");
    Report::line(declared, object).note(note)
}

//! `pause` and `resume`: suspend what a queue delivers or accepts, and resume it.

use crate::acts::change::{Change, ChangeQueue, Part, Scope, Words};
use crate::acts::command::{command, CommandBuilder};
use crate::acts::report::Report;
use crate::acts::site::Site;
use crate::cli::{ConfirmArgs, FlowArg, PauseArgs, ResumeArgs};
use crate::server::{quoted, Failure, QueueInfo};
use crate::text::{instant, millis, visible, QueueName};
use dq_client::{Cmd, Resend};
use serde_json::{json, Map, Value as Json};

impl Change for PauseArgs {
    fn words(&self) -> Words {
        match self.flow {
            FlowArg::In => Words { verb: "Close", done: "closed" },
            FlowArg::Out | FlowArg::All => Words { verb: "Pause", done: "paused" },
        }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Queue(self)
    }

    fn command(&self, queue: &[u8], _: Part) -> Cmd {
        let command = flow_or_group(command("DQ.PAUSE", queue), self.flow, self.group.as_ref());
        command.number("FOR", self.time.map(millis)).build()
    }

    fn confirm(&self) -> Option<&ConfirmArgs> {
        Some(&self.confirm)
    }

    fn takes_pattern(&self) -> bool {
        true
    }

    fn resend(&self) -> Resend {
        Resend::Harmless
    }

    fn object(&self, place: &str) -> String {
        group_of(self.group.as_deref(), place)
    }

    fn consequence(&self, _: Option<u64>, _: &str) -> String {
        match self.flow {
            FlowArg::In => String::new(),
            FlowArg::Out | FlowArg::All => ", which delivers nothing until it is resumed".to_owned(),
        }
    }
}

impl ChangeQueue for PauseArgs {
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure> {
        if site.is_missing() {
            return Ok(None);
        }
        self.send(site, Part::Whole)?;
        let fields = suspended_fields(self.flow, self.group.is_some());
        let info = if self.group.is_none() { site.info_if_allowed() } else { None };
        let words: Vec<String> = fields.iter().map(|field| suspended(field, info.as_ref())).collect();
        Ok(Some(Report::line(words.join(", "), flow_json(site.queue, fields, self.group.as_ref(), 1))))
    }
}

impl Change for ResumeArgs {
    fn words(&self) -> Words {
        match self.flow {
            FlowArg::In => Words { verb: "Open", done: "opened" },
            FlowArg::Out | FlowArg::All => Words { verb: "Resume", done: "resumed" },
        }
    }

    fn queue(&self) -> &QueueName {
        &self.queue
    }

    fn scope(&self) -> Scope<'_> {
        Scope::Queue(self)
    }

    fn command(&self, queue: &[u8], _: Part) -> Cmd {
        flow_or_group(command("DQ.RESUME", queue), self.flow, self.group.as_ref()).build()
    }

    fn confirm(&self) -> Option<&ConfirmArgs> {
        Some(&self.confirm)
    }

    fn takes_pattern(&self) -> bool {
        true
    }

    fn resend(&self) -> Resend {
        Resend::Harmless
    }

    fn object(&self, place: &str) -> String {
        group_of(self.group.as_deref(), place)
    }
}

impl ChangeQueue for ResumeArgs {
    fn change_queue(&self, site: &Site) -> Result<Option<Report>, Failure> {
        if site.is_missing() {
            return Ok(None);
        }
        self.send(site, Part::Whole)?;
        let fields = suspended_fields(self.flow, self.group.is_some());
        let report = Report::line("resumed", flow_json(site.queue, fields, self.group.as_ref(), 0));
        let paused = if self.group.is_none() { site.info_if_allowed() } else { None };
        let paused = paused.map_or(0, |info| info.paused_groups);
        if paused == 0 {
            return Ok(Some(report));
        }
        let name = quoted(&site.queue.to_string());
        Ok(Some(report.note(format!("paused groups: {paused}; dqctl groups {name} --paused lists them"))))
    }
}

fn flow_or_group(command: CommandBuilder, flow: FlowArg, group: Option<&String>) -> CommandBuilder {
    match group {
        Some(group) => command.arg("GROUP").arg(group),
        None => command.arg(flow.word()),
    }
}

fn group_of(group: Option<&str>, place: &str) -> String {
    group.map_or_else(|| place.to_owned(), |group| format!("the group {} of {place}", visible(group)))
}

/// The fields of `DQ.INFO` that show what is suspended.
fn suspended_fields(flow: FlowArg, is_group: bool) -> &'static [&'static str] {
    match flow {
        FlowArg::In => &["closed"],
        FlowArg::All if !is_group => &["paused", "closed"],
        FlowArg::All | FlowArg::Out => &["paused"],
    }
}

fn suspended(field: &str, info: Option<&QueueInfo>) -> String {
    match info.and_then(|info| info.fields.int(&format!("{field}-until"))) {
        Some(until) => format!("{field} until {}", instant(until)),
        None => field.to_owned(),
    }
}

fn flow_json(queue: &QueueName, fields: &[&str], group: Option<&String>, is_set: u8) -> Json {
    let mut object = Map::from_iter([("queue".to_owned(), json!(queue))]);
    object.extend(group.map(|group| ("group".to_owned(), json!(group))));
    object.extend(fields.iter().map(|field| ((*field).to_owned(), json!(is_set))));
    Json::Object(object)
}

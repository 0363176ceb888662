//! Carries an act out on one queue. The server answers nobody else while it executes a command, so many messages are changed
//! in steps.

use super::command::Part;
use super::count::{count_recurring, held};
use super::letters::{refusal, Left};
use super::why::{self, no_such_queue, why_not};
use super::{Meant, Report};
use crate::board::batches;
use crate::board::dead::{pages, since, Among, Filter};
use crate::board::message::setting;
use crate::cli::Act;
use crate::server::failure::{Failure, Outcome};
use crate::server::reply;
use crate::server::reply::{int, text, unexpected, Fields};
use crate::server::transfer::get_all;
use crate::text::name::{shown, MessageId, QueueName};
use crate::text::number::messages;
use crate::text::time::{instant, now_ms};
use dq_client::blocking::Client;
use dq_client::{Cmd, State, Value};
use serde_json::{json, Map, Value as Json};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// How many messages one command changes of those in a state, and of those that were read.
const STEP: u64 = 10_000;
const READ: usize = 1_000;
/// How many are read again before they are changed.
const AGAIN: usize = 50;
const DELETE_RIGHTS: &str = "to delete a queue, a user needs +eval +dq.info +unlink";

impl Act {
    /// Changes at most so many messages of a queue.
    pub fn run(&self, client: &Client, queue: &QueueName, most: u64) -> Result<Report, Failure> {
        let report = match self.meant() {
            Meant::Queue => self.change_queue(client, queue)?,
            Meant::Ids(ids) => return self.change_ids(client, queue, ids),
            Meant::States(states) => self.change_states(client, queue, &states, most)?,
            Meant::Selected(filter) => self.change_selected(client, queue, &filter, most)?,
            Meant::Consumer(_) if most == 0 => Some(Report::of(0)),
            Meant::Consumer(_) | Meant::Batch(_) => {
                let has_batch = self.batch().is_some_and(|name| {
                    batches::info(client, queue.as_bytes(), name.as_bytes()).is_ok_and(|found| found.is_some())
                });
                let most = most.min(self.limit());
                let part = if most == u64::MAX { Part::Whole } else { Part::Count(most) };
                let number = changed(&self.send(client, queue, part)?)?;
                let exists = number > 0 || reply::info(client, queue.as_bytes())?.is_some();
                exists.then(|| Report::of(number).ended(number > 0 || has_batch))
            }
        };
        let Some(report) = report else { return Ok(Report::default().note(no_such_queue(queue))) };
        match (report.number, report.outcome) {
            (Some(0), Outcome::Nothing) => Ok(why::nothing(self, client, queue, report)),
            _ => Ok(report),
        }
    }

    /// The batch that is cancelled.
    fn batch(&self) -> Option<&str> {
        match self.meant() {
            Meant::Batch(name) => Some(name),
            _ => None,
        }
    }

    fn send(&self, client: &Client, queue: &QueueName, part: Part) -> Result<Value, Failure> {
        let command = self.command(queue.as_bytes(), part);
        client.call(&command, self.resend()).map_err(|error| match self {
            Act::Delete(_) => Failure::of_script(error, DELETE_RIGHTS),
            _ => error.into(),
        })
    }

    /// Changes messages one by one, so that it can be said which of them were left alone.
    fn change_ids(&self, client: &Client, queue: &QueueName, ids: &[MessageId]) -> Result<Report, Failure> {
        let (mut report, mut left, mut number) = (Report::default(), Left::default(), 0);
        for id in ids {
            let changed = self.change_id(client, queue, id, &mut left);
            match changed.map_err(|failure| failure.after_change(number, self.done()))? {
                Some(line) => {
                    number += 1;
                    report.lines.push(line);
                }
                None => report.notes.extend(why_not(self, client, queue, id)),
            }
        }
        report.notes.extend(left.notes());
        if matches!(self, Act::Redrive(_)) {
            (report.number, report.lines) = (Some(number), Vec::new());
        }
        Ok(report.ended(number == ids.len() as u64))
    }

    /// What was done to a message; `None` if it was left alone.
    fn change_id(
        &self,
        client: &Client,
        queue: &QueueName,
        id: &MessageId,
        left: &mut Left,
    ) -> Result<Option<(String, Json)>, Failure> {
        if matches!(self, Act::Promote(_)) {
            // The server would also give a new due time to one that is ready.
            let found = reply::message(client, queue.as_bytes(), id.as_bytes())?;
            if !found.is_some_and(|message| self.fits(&message)) {
                return Ok(None);
            }
        }
        let command = self.command(queue.as_bytes(), Part::Ids(&[id.as_bytes()]));
        let answer = client.call(&command, self.resend());
        if matches!(self, Act::Redrive(args) if args.letters) {
            let answer = answer.map_err(|error| refusal(client, queue.as_bytes(), id.as_bytes(), error))?;
            return Ok(left.count(&answer)?.then(|| (id.to_string(), Json::Null)));
        }
        let answer = answer?;
        Ok((changed(&answer)? > 0).then(|| match (self, text(&answer)) {
            (Act::Nack(_), Some(state)) => (state.clone(), json!({ "id": id, "state": state })),
            (Act::Bury(_), Some(was)) => (id.to_string(), json!({ "id": id, "was": was })),
            _ => (id.to_string(), json!({ "id": id, self.done(): true })),
        }))
    }

    /// Sends commands until as many messages as are there now were changed. What comes later is left alone.
    fn change_states(
        &self,
        client: &Client,
        queue: &QueueName,
        states: &[State],
        most: u64,
    ) -> Result<Option<Report>, Failure> {
        let Some(info) = reply::info(client, queue.as_bytes())? else { return Ok(None) };
        let limit = held(&info, states).min(most).min(self.limit());
        let mut total = 0;
        while total < limit {
            let wanted = STEP.min(limit - total);
            let step = self.send(client, queue, Part::Count(wanted)).and_then(|answer| changed(&answer));
            let step = step.map_err(|failure| failure.after_change(total, self.done()))?;
            total += step;
            if step < wanted {
                break;
            }
        }
        let mut report = Report::of(total);
        if let (Act::Purge(args), 0) = (self, total) {
            let recurring = count_recurring(client, queue.as_bytes(), &info, states).unwrap_or(0);
            if recurring > 0 && !args.recurring {
                let left = messages(recurring);
                report = report.note(format!("left alone, because they recur: {left}; --recurring removes them too"));
            }
        }
        Ok(Some(report))
    }

    /// Reads the messages, and changes those that are selected, page by page; or if only so many are meant, those that have been in their
    /// state for longest, which are known only when all have been read.
    fn change_selected(
        &self,
        client: &Client,
        queue: &QueueName,
        filter: &Filter,
        most: u64,
    ) -> Result<Option<Report>, Failure> {
        let (mut left, mut total) = (Left::default(), 0);
        let mut change = |ids: &[&[u8]]| {
            let step = self.change_these(client, queue, ids, filter, &mut left, &mut total);
            step.map_err(|failure| failure.after_change(total, self.done()))
        };
        let most = usize::try_from(most.min(filter.oldest.map_or(u64::MAX, u64::from))).unwrap_or(usize::MAX);
        // By the instant, and among those of one instant in the order of the queue.
        let (mut oldest, mut number) = (BTreeSet::<(i64, u64, Vec<u8>)>::new(), 0);
        let exists = pages(client, queue.as_bytes(), filter, |page| {
            if most == usize::MAX {
                change(&page.iter().map(|message| message.bytes("id")).collect::<Vec<_>>())?;
                return Ok(ControlFlow::Continue(()));
            }
            for message in page {
                number += 1;
                oldest.insert((since(&message).unwrap_or(0), number, message.bytes("id").to_vec()));
                if oldest.len() > most {
                    oldest.pop_last();
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let ids: Vec<&[u8]> = oldest.iter().map(|(_, _, id)| id.as_slice()).collect();
        ids.chunks(READ).try_for_each(change)?;
        let report = Report { notes: left.notes().collect(), ..Report::of(total) };
        Ok(exists.then_some(report))
    }

    /// Changes those of some messages that are still meant, and adds how many those were.
    fn change_these(
        &self,
        client: &Client,
        queue: &QueueName,
        ids: &[&[u8]],
        filter: &Filter,
        left: &mut Left,
        total: &mut u64,
    ) -> Result<(), Failure> {
        let name = queue.as_bytes();
        let is_letters = filter.among == Among::Letters && matches!(self, Act::Redrive(_));
        // The server redrives only what is dead. Others may have changed their state since they were read.
        let ids =
            if matches!(self, Act::Redrive(_)) { ids.to_vec() } else { still_selected(client, name, filter, ids)? };
        if !self.is_one_by_one() {
            if !ids.is_empty() {
                *total += changed(&self.send(client, queue, Part::Ids(&ids))?)?;
            }
            return Ok(());
        }
        let commands: Vec<Cmd> = ids.iter().map(|id| self.command(name, Part::Ids(slice(id)))).collect();
        for (id, answer) in ids.iter().zip(client.batch(&commands)) {
            let answer = answer.map_err(|error| match is_letters {
                true => refusal(client, name, id, error),
                false => error.into(),
            })?;
            *total += if is_letters { u64::from(left.count(&answer)?) } else { changed(&answer)? };
        }
        Ok(())
    }

    /// Changes the queue itself, or adds a message to it. `None` if there is no such queue.
    fn change_queue(&self, client: &Client, queue: &QueueName) -> Result<Option<Report>, Failure> {
        let name = queue.as_bytes();
        // What was there before. A user may be allowed the change alone.
        let before = reply::info(client, name);
        let needs_queue = matches!(self, Act::Batch(_) | Act::Pause(_) | Act::Resume(_) | Act::Delete(_));
        if needs_queue && matches!(before, Ok(None)) {
            return Ok(None);
        }
        let held = match self {
            Act::Schedule(args) => {
                args.id.as_ref().and_then(|id| reply::message(client, name, id.as_bytes()).ok().flatten())
            }
            _ => None,
        };
        let answer = self.send(client, queue, Part::Whole)?;
        let after = || reply::info(client, name).ok().flatten();
        Ok(Some(match self {
            Act::Push(args) => match answer {
                Value::Nil => {
                    let id = args.id.as_ref().map(ToString::to_string).unwrap_or_default();
                    let text = "a duplicate: the queue";
                    Report::default()
                        .note(format!("{text} {queue} has accepted {id} already; --replace takes its place"))
                }
                answer => {
                    let id = text(&answer).ok_or_else(|| unexpected(&answer))?;
                    let given = args.id.as_ref().map_or(json!(id), |id| json!(id));
                    Report::line(args.id.as_ref().map_or(id, ToString::to_string), json!({ "id": given }))
                }
            },
            Act::Schedule(args) => declared(queue, args.id.as_ref(), held.as_ref(), &answer)?,
            Act::Batch(args) => {
                let left = int(&answer).ok_or_else(|| unexpected(&answer))?;
                let report = Report::line(left.to_string(), json!({ "batch": args.name, "left": left }));
                match left {
                    0 => report.note("no message of the batch is left: the payload was pushed at once"),
                    _ => report,
                }
            }
            Act::Create(_) => {
                let exists = matches!(before, Ok(Some(_)));
                let text = if exists { "exists already, with these settings" } else { "created" };
                Report::line(text, json!({ "queue": queue, "created": !exists }))
            }
            Act::Alter(_) => altered(queue, before.ok().flatten(), after()),
            Act::Delete(_) if int(&answer) == Some(0) => return Ok(None),
            Act::Delete(_) => Report::line("deleted", json!({ "queue": queue, "deleted": true })),
            Act::Pause(args) => {
                let fields = flows(args.flow.word(), args.group.is_some());
                let info = after().filter(|_| args.group.is_none());
                let words: Vec<String> = fields.iter().map(|field| suspended(field, info.as_ref())).collect();
                Report::line(words.join(", "), flow_json(queue, fields, args.group.as_ref(), 1))
            }
            Act::Resume(args) => {
                let fields = flows(args.flow.word(), args.group.is_some());
                let report = Report::line("resumed", flow_json(queue, fields, args.group.as_ref(), 0));
                match after().map_or(0, |info| info.number("paused-groups")) {
                    paused @ 1.. if args.group.is_none() => {
                        let name = crate::server::advice::quoted(&queue.to_string());
                        report.note(format!("paused groups: {paused}; dqctl groups {name} --paused lists them"))
                    }
                    _ => report,
                }
            }
            _ => Report::default(),
        }))
    }
}

/// How many messages a command has changed: a number, a list with null for each that it left alone, or what became of one.
fn changed(reply: &Value) -> Result<u64, Failure> {
    match reply {
        Value::Nil => Ok(0),
        Value::Int(number) => u64::try_from(*number).map_err(|_| unexpected(reply)),
        Value::Array(states) => Ok(states.iter().filter(|state| **state != Value::Nil).count() as u64),
        _ => Ok(1),
    }
}

/// Those of some messages that the filter still selects: an id may be that of another message by now.
fn still_selected<'a>(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    ids: &[&'a [u8]],
) -> Result<Vec<&'a [u8]>, Failure> {
    let mut selected = Vec::new();
    for step in ids.chunks(AGAIN) {
        let messages = get_all(client, queue, step)?;
        let is_selected = |message: Option<Fields>| message.is_some_and(|one| filter.meets(one, now_ms()).is_some());
        selected.extend(step.iter().zip(messages).filter_map(|(id, message)| is_selected(message).then_some(*id)));
    }
    Ok(selected)
}

fn slice<'a>(id: &'a &'a [u8]) -> &'a [&'a [u8]] {
    std::slice::from_ref(id)
}

/// The fields of `DQ.INFO` that say what is suspended.
fn flows(flow: &str, is_group: bool) -> &'static [&'static str] {
    match flow {
        "IN" => &["closed"],
        "ALL" if !is_group => &["paused", "closed"],
        _ => &["paused"],
    }
}

fn suspended(field: &str, info: Option<&Fields>) -> String {
    match info.and_then(|info| info.int(&format!("{field}-until"))) {
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

/// Which settings are different now.
fn altered(queue: &QueueName, before: Option<Fields>, after: Option<Fields>) -> Report {
    let (Some(before), Some(after)) = (before.map(reply::settings), after.map(reply::settings)) else {
        return Report::line("altered", json!({ "queue": queue, "altered": true }));
    };
    let differ = after.0.iter().filter(|(name, value)| before.get(name) != Some(value));
    let differ: Vec<String> =
        differ.map(|(name, _)| format!("{name} {} -> {}", setting(&before, name), setting(&after, name))).collect();
    let text = match differ.is_empty() {
        true => "has these settings already".to_owned(),
        false => format!("altered: {}", differ.join(", ")),
    };
    Report::line(text, json!({ "queue": queue, "altered": !differ.is_empty() }))
}

/// What a declaration did, and to which message that was no schedule before.
fn declared(
    queue: &QueueName,
    id: Option<&MessageId>,
    held: Option<&Fields>,
    answer: &Value,
) -> Result<Report, Failure> {
    let declared = text(answer).ok_or_else(|| unexpected(answer))?;
    let mut object = json!({ "id": id, "schedule": declared });
    let was = held.filter(|message| !crate::board::message::recurs(message) && declared != "unchanged");
    let note = was.map(|message| {
        let (state, id) = (message.text("state"), shown(message.bytes("id")));
        format!("the queue {queue} held a message {id}, {state}, whose place the schedule takes")
    });
    if let (Some(message), Some(object)) = (was, object.as_object_mut()) {
        object.insert("was".to_owned(), message.text("state").into());
    }
    let mut report = Report::line(declared, object);
    report.notes.extend(note);
    Ok(report)
}

//! Carries an act out on one queue. The server answers nobody else while it executes a command, so many messages are changed
//! in steps.

use super::command::Part;
use super::count::{count_recurring, held};
use super::letters::{refusal, Left};
use super::why::{self, why_not};
use super::{Meant, Report};
use crate::board::{batches, pages, setting, since, Filter};
use crate::cli::{Act, PushArgs};
use crate::server::{get_all, reply, reply::int, reply::text, reply::unexpected, Failure, Fields, Outcome};
use crate::text::{instant, messages, now_ms, shown, MessageId, QueueName};
use dq_client::{blocking::Client, Cmd, Error, Resend, State, Value};
use serde_json::{json, Map, Value as Json};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// How many messages one command changes of those in a state, and of those that were read.
const STEP: u64 = 10_000;
const READ: usize = 1_000;
/// How many are read again before they are changed.
const AGAIN: usize = 50;
const DELETE_RIGHTS: &str = "to delete a queue, a user needs +eval +dq.info +unlink";

/// An act on one queue, and how many messages it has changed.
struct Steps<'a> {
    act: &'a Act,
    client: &'a Client,
    queue: &'a QueueName,
    name: &'a [u8],
    left: Left,
    total: u64,
}

impl Act {
    /// Changes at most so many messages of a queue.
    pub fn run(&self, client: &Client, queue: &QueueName, most: u64) -> Result<Report, Failure> {
        let name = queue.as_bytes();
        let mut steps = Steps { act: self, client, queue, name, left: Left::default(), total: 0 };
        let report = steps.run(most);
        let report = report.map_err(|failure| failure.after_change(steps.total, self.done()))?;
        let Some(mut report) = report else { return Ok(Report::default().note(reply::no_such_queue(queue))) };
        report.notes.extend(steps.left.notes());
        match (report.number, report.outcome) {
            (Some(0), Outcome::Nothing) => Ok(why::nothing(self, client, queue, report)),
            _ => Ok(report),
        }
    }
}

impl Steps<'_> {
    /// `None` if there is no such queue.
    fn run(&mut self, most: u64) -> Result<Option<Report>, Failure> {
        let exists = match self.act.meant() {
            Meant::Queue => return self.change_queue(),
            Meant::Ids(ids) => return self.change_ids(ids).map(Some),
            Meant::States(states) => return self.change_states(&states, most),
            Meant::Selected(filter) => self.change_selected(&filter, most)?,
            Meant::Consumer(_) if most == 0 => true,
            meant @ (Meant::Consumer(_) | Meant::Batch(_)) => {
                let has_batch = match meant {
                    Meant::Batch(batch) => batches::info(self.client, self.name, batch.as_bytes())?.is_some(),
                    _ => false,
                };
                let most = most.min(self.act.limit());
                self.total = changed(&self.send(if most == u64::MAX { Part::Whole } else { Part::Count(most) })?)?;
                let exists = self.total > 0 || reply::info(self.client, self.name)?.is_some();
                return Ok(exists.then(|| Report::of(self.total).ended(self.total > 0 || has_batch)));
            }
        };
        Ok(exists.then(|| Report::of(self.total)))
    }

    fn send(&self, part: Part) -> Result<Value, Failure> {
        self.refused(self.call(part).0)
    }

    fn refused(&self, answer: Result<Value, Error>) -> Result<Value, Failure> {
        answer.map_err(|error| match self.act {
            Act::Delete(_) => Failure::of_script(error, DELETE_RIGHTS),
            _ => error.into(),
        })
    }

    /// Sends a command, and sends it again if its reply was lost and a second execution does no harm. Returns whether
    /// it was sent again: the second one finds what the first one did.
    fn call(&self, part: Part) -> (Result<Value, Error>, bool) {
        let command = self.act.command(self.name, part);
        match self.client.call(&command, Resend::Never) {
            Err(Error::Lost(_)) if self.act.resend() == Resend::Harmless => {
                (self.client.call(&command, Resend::Harmless), true)
            }
            answer => (answer, false),
        }
    }

    /// Whether a message has become what a command makes of it, whose reply was lost.
    fn was_changed(&self, id: &[u8]) -> Result<bool, Failure> {
        let state = reply::message(self.client, self.name, id)?.map(|message| message.text("state"));
        Ok(matches!(self.act, Act::Bury(_)) && state.as_deref() == Some("dead"))
    }

    /// What a push was answered whose reply was lost, by what its repetition found: the id is taken, by the message that the
    /// first push made, even if that was delivered and is dead by now, or by another one.
    fn pushed_before(&self, args: &PushArgs, repetition: Result<Value, Error>) -> Result<Value, Failure> {
        let Some(id) = &args.id else { return self.refused(repetition) };
        let payload = args.payload.as_ref().map_or(&[][..], |payload| &payload.0);
        match reply::message(self.client, self.name, id.as_bytes()) {
            Ok(Some(held)) if held.bytes("payload") == payload => Ok(Value::BulkString(id.as_bytes().to_vec())),
            Ok(Some(_)) => self.refused(repetition),
            Ok(None) | Err(_) => Err(Failure::failed(format!(
                "the connection was lost, and it is unknown whether the message was pushed: the queue {} has accepted {id}, \
                 but does not show its payload any more",
                self.queue
            ))),
        }
    }

    /// How many messages an answer about one says were changed.
    fn count(&mut self, id: &[u8], answer: Result<Value, Error>) -> Result<u64, Failure> {
        if !matches!(self.act, Act::Redrive(args) if args.letters) {
            return changed(&answer?);
        }
        let answer = answer.map_err(|error| refusal(self.client, self.name, id, error))?;
        Ok(u64::from(self.left.count(&answer)?))
    }

    /// Changes messages one by one, so that it can be said which of them were left alone.
    fn change_ids(&mut self, ids: &[MessageId]) -> Result<Report, Failure> {
        let mut report = Report::default();
        for id in ids {
            // The server would also give a new due time to one that is ready.
            let is_due = |message: Option<Fields>| !message.is_some_and(|message| self.act.fits(&message));
            let (answer, is_repeated) = match self.act {
                Act::Promote(_) if is_due(reply::message(self.client, self.name, id.as_bytes())?) => {
                    (Ok(Value::Nil), false)
                }
                _ => self.call(Part::Ids(&[id.as_bytes()])),
            };
            let became = answer.as_ref().ok().and_then(text);
            if self.count(id.as_bytes(), answer)? == 0 && !(is_repeated && self.was_changed(id.as_bytes())?) {
                report.notes.extend(why_not(self.act, self.client, self.queue, id));
                continue;
            }
            self.total += 1;
            report.lines.push(match (self.act, became) {
                (Act::Nack(_), Some(state)) => (state.clone(), json!({ "id": id, "state": state })),
                (Act::Bury(_), Some(was)) => (id.to_string(), json!({ "id": id, "was": was })),
                _ => (id.to_string(), json!({ "id": id, self.act.done(): true })),
            });
        }
        if matches!(self.act, Act::Redrive(_)) {
            (report.number, report.lines) = (Some(self.total), Vec::new());
        }
        Ok(report.ended(self.total == ids.len() as u64))
    }

    /// Sends commands until as many messages as are there now were changed. What comes later is left alone.
    fn change_states(&mut self, states: &[State], most: u64) -> Result<Option<Report>, Failure> {
        let Some(info) = reply::info(self.client, self.name)? else { return Ok(None) };
        let limit = held(&info, states).min(most).min(self.act.limit());
        while self.total < limit {
            let wanted = STEP.min(limit - self.total);
            let step = changed(&self.send(Part::Count(wanted))?)?;
            self.total += step;
            if step < wanted {
                break;
            }
        }
        let report = Report::of(self.total);
        match self.act {
            Act::Purge(args) if self.total == 0 && !args.recurring => {
                let left = count_recurring(self.client, self.name, &info, states).unwrap_or(0);
                let note =
                    || format!("left alone, because they recur: {}; --recurring removes them too", messages(left));
                Ok(Some(if left > 0 { report.note(note()) } else { report }))
            }
            _ => Ok(Some(report)),
        }
    }

    /// Reads the messages, and changes those that are selected, page by page; or if only so many are meant, those that have been in their
    /// state for longest, which are known only when all have been read. Returns whether the queue exists.
    fn change_selected(&mut self, filter: &Filter, most: u64) -> Result<bool, Failure> {
        let most = usize::try_from(most.min(filter.oldest.map_or(u64::MAX, u64::from))).unwrap_or(usize::MAX);
        // By the instant, and among those of one instant in the order of the queue.
        let (mut oldest, mut number) = (BTreeSet::<(i64, u64, Vec<u8>)>::new(), 0);
        let exists = pages(self.client, self.name, filter, |page| {
            if most == usize::MAX {
                self.change_these(&page.iter().map(|message| message.bytes("id")).collect::<Vec<_>>(), filter)?;
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
        ids.chunks(READ).try_for_each(|ids| self.change_these(ids, filter))?;
        Ok(exists)
    }

    /// Changes those of some messages that are still meant.
    fn change_these(&mut self, ids: &[&[u8]], filter: &Filter) -> Result<(), Failure> {
        // The server redrives only what is dead. Others may have changed their state since they were read.
        let is_redrive = matches!(self.act, Act::Redrive(_));
        let ids = if is_redrive { ids.to_vec() } else { self.still_selected(ids, filter)? };
        if !self.act.is_one_by_one() {
            if !ids.is_empty() {
                self.total += changed(&self.send(Part::Ids(&ids))?)?;
            }
            return Ok(());
        }
        let command = |id| self.act.command(self.name, Part::Ids(std::slice::from_ref(id)));
        let commands: Vec<Cmd> = ids.iter().map(command).collect();
        let mut failed = Ok(());
        for (id, answer) in ids.iter().zip(self.client.batch(&commands)) {
            // Those after one that has failed were executed as well.
            if failed.is_ok() || answer.is_ok() {
                match self.count(id, answer) {
                    Ok(number) => self.total += number,
                    Err(failure) => failed = failed.and(Err(failure)),
                }
            }
        }
        failed
    }

    /// Those of some messages that the filter still selects: an id may be that of another message by now.
    fn still_selected<'b>(&self, ids: &[&'b [u8]], filter: &Filter) -> Result<Vec<&'b [u8]>, Failure> {
        let mut selected = Vec::new();
        for step in ids.chunks(AGAIN) {
            let messages = get_all(self.client, self.name, step)?;
            let is_selected =
                |message: Option<Fields>| message.is_some_and(|one| filter.meets(one, now_ms()).is_some());
            selected.extend(step.iter().zip(messages).filter_map(|(id, message)| is_selected(message).then_some(*id)));
        }
        Ok(selected)
    }

    /// Changes the queue itself, or adds a message to it. `None` if there is no such queue.
    fn change_queue(&self) -> Result<Option<Report>, Failure> {
        let Steps { act, client, queue, name, .. } = *self;
        // What was there before. A user may be allowed the change alone.
        let before = reply::info(client, name);
        let needs_queue = matches!(act, Act::Batch(_) | Act::Pause(_) | Act::Resume(_) | Act::Delete(_));
        if needs_queue && matches!(before, Ok(None)) {
            return Ok(None);
        }
        let held = match act {
            Act::Schedule(args) => {
                args.id.as_ref().and_then(|id| reply::message(client, name, id.as_bytes()).ok().flatten())
            }
            _ => None,
        };
        let answer = match (act, self.call(Part::Whole)) {
            (Act::Push(args), (answer @ (Ok(Value::Nil) | Err(Error::DeadId(_))), true)) => {
                self.pushed_before(args, answer)?
            }
            (_, (answer, _)) => self.refused(answer)?,
        };
        let after = || reply::info(client, name).ok().flatten();
        Ok(Some(match act {
            Act::Push(args) => match answer {
                Value::Nil => {
                    let id = args.id.as_ref().map(ToString::to_string).unwrap_or_default();
                    let duplicate = format!("a duplicate: the queue {queue} has accepted {id} already");
                    Report::default().note(format!("{duplicate}; --replace takes its place"))
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
                        let name = crate::server::quoted(&queue.to_string());
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

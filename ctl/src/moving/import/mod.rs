//! `dqctl import`: takes over the messages of another kind of queue.
//!
//! A page of elements is read, pushed under ids that follow from the elements, and only then, with `--move`, removed
//! from the source. So whatever interrupts an import, each element is in the source or in the queue, and the next run
//! continues: it does not push again what the queue has, but removes it from the source if that is still to be done.

mod bullmq;
mod ids;
mod jobs;
mod libraries;
mod plain;
mod score;
mod source;

use crate::board::names;
use crate::cli::{ImportArgs, Kind};
use crate::moving::push::{push_all, NewMessage, Pushed, Rule, BATCH};
use crate::output::{Output, Progress, Task, Unit};
use crate::server::{get_all, persistently, reply, Failure, Message, Outcome, BATCH_BYTES};
use crate::text::shown;
use dq_client::{blocking::Client, cmd, Cmd, Error, Resend, State};
use serde_json::json;
use source::{exists, Element, Reader};
use std::os::unix::ffi::OsStrExt;

/// How many elements are read first, before their size is known.
const FIRST_PAGE: u64 = 50;

const MOVE: Task = Task { done: "imported", unit: Unit::Messages, repeat: "the same command goes on from there" };
const IMPORT: Task = Task { done: "read", unit: Unit::Messages, repeat: "the same command goes on from there" };

/// A source consists of one or more keys.
type Parts = Vec<Box<dyn Reader>>;

pub fn import(client: &Client, args: &ImportArgs, output: &Output) -> Result<Outcome, Failure> {
    let (source, queue) = (args.source.as_bytes(), args.queue.as_bytes());
    if args.kind.has_the_key_of_its_name() && source == queue {
        return Err(Failure::usage("a key cannot be both: name another queue than the source"));
    }
    if !args.dry_run {
        // A source can be counted before dq is installed.
        names::check(client)?;
    }
    if args.kind == Kind::List && exists(client, source, "list")? {
        return list(client, args, source, output);
    }
    let parts = parts(client, args, source)?;
    if parts.is_empty() {
        return Err(Failure::nothing(format!("there is nothing to import: no key for {} exists", shown(source))));
    }
    let progress = Progress::begin(IMPORT, output);
    let (page, most, counts) = (FIRST_PAGE, BATCH as u64, Counts::default());
    let mut import = Import { client, args, page, most, counts, progress };
    for mut part in parts {
        import.part(part.as_mut())?;
    }
    let Import { counts, progress, .. } = import;
    drop(progress);
    counts.report(args, output)
}

/// The keys of the source that exist.
fn parts(client: &Client, args: &ImportArgs, source: &[u8]) -> Result<Parts, Failure> {
    let key = source.to_vec();
    Ok(match args.kind {
        Kind::Zset if exists(client, source, "zset")? => vec![Box::new(plain::sorted_set(key))],
        Kind::Stream if exists(client, source, "stream")? => vec![Box::new(plain::Stream { key, last: None })],
        Kind::Zset | Kind::List | Kind::Stream => Vec::new(),
        Kind::Sidekiq => libraries::sidekiq(client, source)?,
        Kind::Rq => jobs::rq(client, source)?,
        Kind::Laravel => libraries::laravel(client, source)?,
        Kind::Celery => libraries::celery(client, source)?,
        Kind::Bullmq => bullmq::bullmq(client, source)?,
    })
}

/// A list: its elements are moved, since nothing would distinguish equal ones if the import were repeated.
fn list(client: &Client, args: &ImportArgs, source: &[u8], output: &Output) -> Result<Outcome, Failure> {
    let mut counts = Counts::default();
    if args.dry_run {
        let length = client.call(cmd("LLEN").arg(source), Resend::Harmless)?;
        counts.imported = reply::int(&length).and_then(|length| u64::try_from(length).ok()).unwrap_or(0);
    } else if args.is_move {
        counts.imported =
            plain::move_list(client, source, args.queue.as_bytes(), args.from, &Progress::begin(MOVE, output))?;
        counts.removed = counts.imported;
    } else {
        return Err(Failure::usage("the elements of a list have no ids, so they can only be moved: add --move"));
    }
    counts.report(args, output)
}

#[derive(Default)]
struct Counts {
    imported: u64,
    later: u64,
    dead: u64,
    already: u64,
    removed: u64,
    failed: u64,
    /// The error of the first element that failed.
    first_problem: Option<String>,
}

impl Counts {
    fn fail(&mut self, why: String) {
        self.failed += 1;
        self.first_problem.get_or_insert(why);
    }

    fn report(&self, args: &ImportArgs, output: &Output) -> Result<Outcome, Failure> {
        let Counts { imported, later, dead, already, removed, failed, .. } = self;
        let dead_too = if *dead > 0 { format!(" and {dead} are dead") } else { String::new() };
        let (mut text, object) = if args.dry_run {
            let object =
                json!({ "would-import": imported, "later": later, "dead": dead, "already": already, "failed": failed });
            (format!("would import {imported}, of which {later} are due later{dead_too}"), object)
        } else {
            let object = json!({ "imported": imported, "already": already, "removed": removed, "failed": failed });
            (format!("imported {imported}"), object)
        };
        if *already > 0 {
            text.push_str(&format!("; {already} were there already"));
        }
        if args.is_move && !args.dry_run {
            text.push_str(&format!("; removed {removed} from the source"));
        }
        output.result(&text, object)?;
        match &self.first_problem {
            None => Ok(Outcome::Done),
            Some(first) => Err(Failure::failed(format!(
                "{failed} elements cannot be imported, and stay in the source; the first: {first}"
            ))),
        }
    }
}

struct Import<'a> {
    client: &'a Client,
    args: &'a ImportArgs,
    /// How many elements are read at a time.
    page: u64,
    /// The most whose reply the server lets through.
    most: u64,
    counts: Counts,
    progress: Progress,
}

impl Import<'_> {
    fn part(&mut self, part: &mut dyn Reader) -> Result<(), Failure> {
        let mut offset = 0;
        loop {
            let page = match part.page(self.client, offset, self.page) {
                Err(failure) if self.page > 1 && failure.is_cut() => {
                    self.page /= 2;
                    self.most = self.page;
                    continue;
                }
                page => page?,
            };
            let Some(page) = page else { return Ok(()) };
            let read = page.len() as u64;
            self.progress.done(read);
            let (mut messages, mut removals, mut schedules) = (Vec::new(), Vec::new(), Vec::new());
            for element in page {
                match element {
                    Element::Message { message, remove } => {
                        messages.push(*message);
                        removals.push(remove);
                    }
                    Element::Schedule { message, rule, remove } => schedules.push((*message, rule, remove)),
                    Element::Foreign => {}
                    Element::Broken(why) => self.counts.fail(why),
                }
            }
            // The larger the elements, the fewer are read at a time.
            let bytes: usize = messages.iter().map(NewMessage::size).sum();
            if let Some(average) = bytes.checked_div(messages.len()) {
                self.page = ((BATCH_BYTES / average.max(1)) as u64).clamp(1, self.most);
            }
            if self.args.dry_run {
                messages.extend(schedules.into_iter().map(|(message, ..)| message));
                self.count(&messages)?;
                offset += read;
            } else {
                let mut removed = self.take(&messages, removals)?;
                for schedule in schedules {
                    removed += self.declare(schedule)?;
                }
                offset += read - removed;
            }
        }
    }

    /// Counts the elements that the queue does not hold. Ids that are only known for `DEDUPE` cannot be seen without a
    /// push.
    fn count(&mut self, messages: &[NewMessage]) -> Result<(), Failure> {
        let now = crate::text::now_ms();
        let ids: Vec<&[u8]> = messages.iter().map(|message| message.id.as_slice()).collect();
        let held = get_all(self.client, self.args.queue.as_bytes(), &ids)?;
        for (message, held) in messages.iter().zip(held) {
            if held.is_some() {
                self.counts.already += 1;
                continue;
            }
            self.counts.imported += 1;
            self.counts.dead += u64::from(message.dead.is_some());
            self.counts.later += u64::from(message.due.is_some_and(|due| due > now));
        }
        Ok(())
    }

    /// Declares a schedule, unless the queue has it, and with `--move` removes it from the source. Returns how many
    /// were removed.
    fn declare(&mut self, (message, rule, removal): (NewMessage, Rule, Vec<Cmd>)) -> Result<u64, Failure> {
        let queue = self.args.queue.as_bytes();
        match get_all(self.client, queue, &[&message.id])?.pop().flatten() {
            // Its runs go on there, so its due time differs from that of the source.
            Some(held) if held.recurs() => self.counts.already += 1,
            Some(_) => {
                self.counts.fail(format!("{}: the queue has a message of this id", shown(&message.id)));
                return Ok(0);
            }
            None => match persistently(self.client, &[message.schedule(queue, &rule)]).pop() {
                // A rule that dq does not have.
                Some(Err(error @ Error::Server(_))) => {
                    self.counts.fail(format!("{}: {}", shown(&message.id), Failure::from(error)));
                    return Ok(0);
                }
                Some(Err(error)) => return Err(self.interrupted(error)),
                Some(Ok(_)) | None => self.counts.imported += 1,
            },
        }
        if !self.args.is_move {
            return Ok(0);
        }
        self.remove(&removal, 1)
    }

    /// Removes `number` elements from the source.
    fn remove(&mut self, commands: &[Cmd], number: u64) -> Result<u64, Failure> {
        for reply in persistently(self.client, commands) {
            reply?;
        }
        self.counts.removed += number;
        Ok(number)
    }

    fn interrupted(&self, error: Error) -> Failure {
        let (failure, imported) = (Failure::from(error), self.counts.imported);
        Failure::failed(format!("{failure}; {imported} were imported, and the same command goes on from there"))
    }

    /// Pushes messages, and with `--move` removes from the source what the queue has. Returns how many were removed.
    fn take(&mut self, messages: &[NewMessage], removals: Vec<Vec<Cmd>>) -> Result<u64, Failure> {
        let (pushed, refused) = push_all(self.client, self.args.queue.as_bytes(), messages);
        let known = self.known(messages, &pushed)?;
        let mut commands = Vec::new();
        let mut removed = 0;
        for (((message, pushed), known), removal) in messages.iter().zip(&pushed).zip(known).zip(removals) {
            match (pushed, known) {
                (Pushed::New, _) => self.counts.imported += 1,
                (_, None) => self.counts.already += 1,
                (_, Some(what)) => {
                    self.counts.fail(format!("{}: {what}", shown(&message.id)));
                    continue;
                }
            }
            commands.extend(removal);
            removed += 1;
        }
        if !self.args.is_move || commands.is_empty() {
            removed = 0;
        } else {
            self.remove(&commands, removed)?;
        }
        refused.map_or(Ok(removed), |error| Err(self.interrupted(error)))
    }

    /// For each message that the queue has already: why it may differ from the element of the source with the same id.
    fn known(&self, messages: &[NewMessage], pushed: &[Pushed]) -> Result<Vec<Option<&'static str>>, Failure> {
        let is_held = |(_, pushed): &(&NewMessage, &Pushed)| **pushed != Pushed::New;
        let held: Vec<&[u8]> =
            messages.iter().zip(pushed).filter(is_held).map(|(message, _)| message.id.as_slice()).collect();
        let mut held = get_all(self.client, self.args.queue.as_bytes(), &held)?.into_iter();
        // An id of these names one element of the source, and not a job that can be there again with another time.
        let is_certain = !self.args.is_move || matches!(self.args.kind, Kind::Zset | Kind::Stream);
        let known = messages.iter().zip(pushed).map(|both| {
            let held = is_held(&both).then(|| held.next().flatten())?;
            difference(both.0, held.as_ref(), is_certain)
        });
        Ok(known.collect())
    }
}

/// Describes the difference. A job is removed only if it is certain that the queue has this one, since a library can
/// put a job of the same id there again: it was not delivered since it was imported, and has the due time of the
/// source.
fn difference(message: &NewMessage, held: Option<&Message>, is_certain: bool) -> Option<&'static str> {
    let Some(held) = held else {
        return (!is_certain).then_some("the queue had a job of this id, which may be another one");
    };
    let state = held.state();
    if held.payload() != message.payload {
        return (!is_certain || state != Some(State::Done)).then_some("the queue has another message of this id");
    }
    let is_as_dead = message.dead.is_none() || state == Some(State::Dead);
    let is_waiting =
        matches!(state, Some(State::Delayed | State::Ready)) && held.attempt() == message.attempt.or(Some(0));
    let is_same = is_as_dead && (message.due.is_none() || (is_waiting && held.due() == message.due));
    (!is_certain && !is_same).then_some("the queue has it already, but in another state, or with another due time")
}

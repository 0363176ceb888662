//! Commands for all messages of a state: `promote`, `purge`, and `redrive` without ids.
//!
//! The server answers nobody else while it executes a command, so many messages are changed in steps.

use super::bulk::{Bulk, Counted, Tell};
use super::confirm::Question;
use super::why::not_in;
use super::{queues, where_no_dead_are};
use crate::board::scan;
use crate::cli::{PromoteArgs, PurgeArgs, RedriveArgs};
use crate::dead::{is_older, older_than};
use crate::failure::{Failure, Outcome};
use crate::message::recurs;
use crate::name::{MessageId, QueueName};
use crate::output::text::visible;
use crate::output::{separated, Output};
use crate::reply::{int, unexpected, Fields};
use crate::time::{millis, now_ms};
use crate::transfer::get_all;
use crate::wording::messages;
use dq_client::{cmd, Client, Cmd, Resend, State};
use serde_json::json;
use std::cell::Cell;
use std::ops::ControlFlow;

/// How many messages one command changes.
const STEP: u64 = 10_000;

pub fn promote(client: &Client, args: &PromoteArgs, output: &Output) -> Result<Outcome, Failure> {
    if !args.ids.is_empty() {
        return promote_these(client, &args.queue, &args.ids, output);
    }
    let (whole, recurring) = (Whole { client, states: &[State::Delayed], most: args.count }, Cell::new(0));
    let step = |queue: &QueueName, count| cmd("DQ.PROMOTE").arg(queue.as_bytes()).arg("COUNT").arg(count).clone();
    let change = Bulk {
        question: &|| Question { verb: "Promote", states: "delayed".to_owned(), which: started(recurring.get(), args) },
        done: "promoted",
        is_dry: args.dry_run,
        confirm: &args.confirm,
        count: &|queue, _| {
            whole.count_with(queue, |info| {
                // Only a question tells it.
                if !args.dry_run {
                    recurring.set(recurring.get() + known(count_recurring(client, queue, info, whole.states))?);
                }
                Ok(held(info, &[State::Delayed]))
            })
        },
        change: &|queue, most, tell| whole.in_steps(queue, most, tell, step),
        why_none: &|_| Ok(()),
    };
    change.run(client, &args.queue, output)
}

/// Makes these messages due now if they are delayed, and prints the id of each.
fn promote_these(client: &Client, queue: &QueueName, ids: &[MessageId], output: &Output) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Done;
    for id in ids {
        let held = get_all(client, queue.as_bytes(), &[id.as_bytes()])?;
        let is_delayed = held.into_iter().flatten().any(|message| message.text("state") == State::Delayed.as_str());
        let command = cmd("DQ.RESCHEDULE").arg(queue.as_bytes()).arg(id.as_bytes()).arg("DELAY").arg(0).clone();
        if is_delayed && int(&client.call(&command, Resend::Never)?) == Some(1) {
            output.result(&id.to_string(), json!({ "id": id, "promoted": true }))?;
        } else {
            not_in(client, queue, id, State::Delayed.as_str());
            outcome = Outcome::Nothing;
        }
    }
    Ok(outcome)
}

/// All dead messages, or the oldest.
pub fn redrive(client: &Client, args: &RedriveArgs, output: &Output) -> Result<Outcome, Failure> {
    let whole = Whole { client, states: &[State::Dead], most: args.count };
    let step = |queue: &QueueName, count| {
        let mut command = cmd("DQ.REDRIVE");
        command.arg(queue.as_bytes()).arg("COUNT").arg(count);
        if let Some(delay) = args.delay {
            command.arg("DELAY").arg(millis(delay));
        }
        command
    };
    let change = Bulk {
        question: &|| Question { verb: "Redrive", states: "dead".to_owned(), which: String::new() },
        done: "redriven",
        is_dry: args.dry_run,
        confirm: &args.confirm,
        count: &|queue, _| whole.count(queue),
        change: &|queue, most, tell| whole.in_steps(queue, most, tell, step),
        why_none: &|queue| where_no_dead_are(client, queue),
    };
    change.run(client, &args.queue, output)
}

pub fn purge(client: &Client, args: &PurgeArgs, output: &Output) -> Result<Outcome, Failure> {
    let states = if args.all { State::ALL.to_vec() } else { args.states.clone() };
    let whole = Whole { client, states: &states, most: args.count };
    let step = |queue: &QueueName, count| {
        let mut command = cmd("DQ.PURGE");
        command.arg(queue.as_bytes()).arg(states.iter().map(|state| state.as_str()).collect::<Vec<_>>());
        command.arg("COUNT").arg(count);
        if let Some(group) = &args.group {
            command.arg("GROUP").arg(group);
        }
        if let Some(age) = args.older {
            command.arg("OLDER").arg(millis(age));
        }
        if args.recurring {
            command.arg("RECURRING");
        }
        command
    };
    let change = Bulk {
        question: &|| about(args, &states),
        done: "purged",
        is_dry: args.dry_run,
        confirm: &args.confirm,
        count: &|queue, _| whole.count_with(queue, |info| to_purge(client, args, queue, &states, info)),
        change: &|queue, most, tell| whole.in_steps(queue, most, tell, step),
        why_none: &|queue| {
            if states.contains(&State::Dead) {
                where_no_dead_are(client, queue)?;
            }
            which_stay(client, args, queue, &states)
        },
    };
    change.run(client, &args.queue, output)
}

/// How many of the delayed messages begin a run of a schedule, for a question.
fn started(recurring: u64, args: &PromoteArgs) -> String {
    match (recurring, args.count) {
        (0, _) => String::new(),
        (recurring, None) => format!(", of which {} recurring", is_or_are(recurring)),
        (recurring, Some(count)) => format!(", of which up to {} recurring", is_or_are(recurring.min(count.into()))),
    }
}

fn is_or_are(number: u64) -> String {
    format!("{} {}", separated(&number.to_string()), if number == 1 { "is" } else { "are" })
}

/// Says on standard error how many messages a purge has left alone because they recur.
fn which_stay(client: &Client, args: &PurgeArgs, queue: &QueueName, states: &[State]) -> Result<(), Failure> {
    let Some(info) = queues::read(client, queue.as_bytes())?.filter(|_| !args.recurring) else { return Ok(()) };
    let recurring = known(count_recurring(client, queue, &info, states))?;
    if recurring > 0 {
        say!("dqctl: left alone, because they recur: {}; --recurring removes them too", messages(recurring));
    }
    Ok(())
}

/// A number that is not necessary: zero if the user may not read it.
pub fn known(number: Result<u64, Failure>) -> Result<u64, Failure> {
    match number {
        Err(failure) if failure.is_denied() => Ok(0),
        number => number,
    }
}

/// How many messages of these states recur.
pub fn count_recurring(client: &Client, queue: &QueueName, info: &Fields, states: &[State]) -> Result<u64, Failure> {
    let is_meant = |message: &&Fields| states.iter().any(|state| message.text("state") == state.as_str());
    let mut recurring = 0;
    scan::pages(client, queue.as_bytes(), info, &["RECURRING"], |page| {
        recurring += page.iter().filter(is_meant).count() as u64;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(recurring)
}

/// What a purge asks.
fn about<'a>(args: &PurgeArgs, states: &[State]) -> Question<'a> {
    let words: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
    let group = args.group.as_ref().map(|group| format!(" in the group {}", visible(group)));
    let older = args.older.map(older_than);
    let any = args.all.then(|| " in any state".to_owned());
    let states = if args.all { String::new() } else { words.join(" and ") };
    Question { verb: "Purge", states, which: [any, group, older].into_iter().flatten().collect() }
}

/// How many messages a purge would remove. The counts of the queue include its recurring messages, and know neither groups nor
/// ages.
fn to_purge(
    client: &Client,
    args: &PurgeArgs,
    queue: &QueueName,
    states: &[State],
    info: &Fields,
) -> Result<u64, Failure> {
    // Each once, although somebody has named it twice.
    let states: Vec<State> = State::ALL.into_iter().filter(|state| states.contains(state)).collect();
    if args.group.is_none() && args.older.is_none() {
        let recurring = if args.recurring { 0 } else { count_recurring(client, queue, info, &states)? };
        return Ok(held(info, &states).saturating_sub(recurring));
    }
    let mut number = 0;
    for state in states {
        scan::pages(client, queue.as_bytes(), info, &["STATE", state.as_str()], |page| {
            let is_meant = |message: &&Fields| {
                args.group.as_ref().is_none_or(|group| message.bytes("group") == group.as_bytes())
                    && args.older.is_none_or(|age| is_older(message, age, now_ms()))
                    && (args.recurring || !recurs(message))
            };
            number += page.iter().filter(is_meant).count() as u64;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(number)
}

/// The messages of a queue that are in some states.
struct Whole<'a> {
    client: &'a Client,
    states: &'a [State],
    /// The most of them that are changed.
    most: Option<u32>,
}

impl Whole<'_> {
    fn count(&self, queue: &QueueName) -> Counted {
        self.count_with(queue, |info| Ok(held(info, self.states)))
    }

    /// How many messages would be changed of those that `all` counts.
    fn count_with(&self, queue: &QueueName, all: impl FnOnce(&Fields) -> Result<u64, Failure>) -> Counted {
        let Some(info) = queues::read(self.client, queue.as_bytes())? else { return Ok(None) };
        Ok(Some(all(&info)?.min(self.most.map_or(u64::MAX, u64::from))))
    }

    /// Sends commands until as many messages as are there now were changed, and never more than `most`. What comes later is left
    /// alone.
    fn in_steps(&self, queue: &QueueName, most: u64, tell: Tell, step: impl Fn(&QueueName, u64) -> Cmd) -> Counted {
        let Some(held) = self.count(queue)? else { return Ok(None) };
        let (limit, mut total) = (held.min(most), 0);
        while total < limit {
            let wanted = STEP.min(limit - total);
            let reply = self.client.call(&step(queue, wanted), Resend::Never)?;
            let changed = int(&reply).and_then(|count| u64::try_from(count).ok()).ok_or_else(|| unexpected(&reply))?;
            total += changed;
            tell(total);
            if changed < wanted {
                break;
            }
        }
        Ok(Some(total))
    }
}

/// How many messages are in these states.
fn held(info: &Fields, states: &[State]) -> u64 {
    states.iter().filter_map(|state| u64::try_from(info.int(state.as_str())?).ok()).sum()
}

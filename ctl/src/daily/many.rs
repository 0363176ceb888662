//! Commands for all messages of a state: `promote`, `purge`, and `redrive` without ids.
//!
//! The server answers nobody else while it executes a command, so many messages are changed in steps.

use super::bulk::{Bulk, Counted, Tell};
use super::confirm::Question;
use super::why::not_in;
use super::{queues, where_no_dead_are};
use crate::cli::{PromoteArgs, PurgeArgs, RedriveArgs};
use crate::dead::{is_older, older_than};
use crate::failure::{Failure, Outcome};
use crate::message::recurs;
use crate::name::{MessageId, QueueName};
use crate::output::Output;
use crate::reply::{int, unexpected, Fields};
use crate::scan;
use crate::time::{millis, now_ms};
use crate::transfer::get_all;
use crate::visible::visible;
use dq_client::{cmd, Client, Cmd, Resend, State};
use serde_json::json;
use std::ops::ControlFlow;

/// How many messages one command changes.
const STEP: u64 = 10_000;

pub fn promote(client: &Client, args: &PromoteArgs, output: &Output) -> Result<Outcome, Failure> {
    if !args.ids.is_empty() {
        return promote_these(client, &args.queue, &args.ids, output);
    }
    let whole = Whole { client, states: &[State::Delayed], most: args.count };
    let step = |queue: &QueueName, count| cmd("DQ.PROMOTE").arg(queue.as_bytes()).arg("COUNT").arg(count).clone();
    let change = Bulk {
        question: Question { verb: "Promote", states: "delayed".to_owned(), which: String::new() },
        done: "promoted",
        is_dry: args.dry_run,
        confirm: &args.confirm,
        count: &|queue, _| whole.count(queue),
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
        question: Question { verb: "Redrive", states: "dead".to_owned(), which: String::new() },
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
        question: about(args, &states),
        done: "purged",
        is_dry: args.dry_run,
        confirm: &args.confirm,
        count: &|queue, _| whole.count_with(queue, |info| to_purge(client, args, queue, &states, info)),
        change: &|queue, most, tell| whole.in_steps(queue, most, tell, step),
        why_none: &|queue| match states.contains(&State::Dead) {
            true => where_no_dead_are(client, queue),
            false => Ok(()),
        },
    };
    change.run(client, &args.queue, output)
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
    let counts_suffice = args.group.is_none() && args.older.is_none();
    if counts_suffice && args.recurring {
        return Ok(held(info, states));
    }
    let mut number = 0;
    for state in State::ALL.into_iter().filter(|state| states.contains(state)) {
        let see = |options: &[&str], is_meant: &dyn Fn(&Fields) -> bool| {
            let mut seen = 0;
            scan::pages(client, queue.as_bytes(), info, options, |page| {
                seen += page.iter().filter(|message| is_meant(message)).count() as u64;
                Ok(ControlFlow::Continue(()))
            })?;
            Ok::<u64, Failure>(seen)
        };
        number += if counts_suffice {
            let recurring = see(&["RECURRING"], &|message| message.text("state") == state.as_str())?;
            held(info, &[state]).saturating_sub(recurring)
        } else {
            see(&["STATE", state.as_str()], &|message| {
                args.group.as_ref().is_none_or(|group| message.bytes("group") == group.as_bytes())
                    && args.older.is_none_or(|age| is_older(message, age, now_ms()))
                    && (args.recurring || !recurs(message))
            })?
        };
    }
    Ok(number)
}

/// The messages of a queue that are in some states.
struct Whole<'a> {
    client: &'a Client,
    states: &'a [State],
    /// At most so many of them.
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

//! Commands for all messages of a state: `promote`, `purge`, and `redrive` without ids.
//!
//! The server answers nobody else while it executes a command, so many messages are changed in steps.

use super::confirm::{agrees, Question};
use super::why::not_in;
use super::{no_such_queue, queues, where_the_dead_are};
use crate::cli::{PromoteArgs, PurgeArgs, RedriveArgs};
use crate::dead::{is_older, older_than, where_letters_are};
use crate::failure::{Failure, Outcome};
use crate::message::recurs;
use crate::name::{MessageId, QueueName};
use crate::output::Output;
use crate::progress::Progress;
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
    if args.dry_run {
        return count(&args.queue, output, || delayed(client, args));
    }
    let question = Question { verb: "Promote", states: "delayed".to_owned(), which: String::new() };
    let Some(most) = agrees(&args.confirm, &args.queue, &question, || delayed(client, args))? else {
        return Ok(Outcome::Nothing);
    };
    in_steps(client, &args.queue, "promoted", (args.count, most), &[State::Delayed], output, |count| {
        cmd("DQ.PROMOTE").arg(args.queue.as_bytes()).arg("COUNT").arg(count).clone()
    })
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

fn delayed(client: &Client, args: &PromoteArgs) -> Result<Option<u64>, Failure> {
    meant(client, &args.queue, args.count, |info| Ok(held(info, &[State::Delayed])))
}

pub fn redrive(client: &Client, args: &RedriveArgs, output: &Output) -> Result<Outcome, Failure> {
    let dead = || meant(client, &args.queue, args.count, |info| Ok(held(info, &[State::Dead])));
    let question = Question { verb: "Redrive", states: "dead".to_owned(), which: String::new() };
    let Some(most) = agrees(&args.confirm, &args.queue, &question, dead)? else {
        return Ok(Outcome::Nothing);
    };
    in_steps(client, &args.queue, "redriven", (args.count, most), &[State::Dead], output, |count| {
        let mut command = cmd("DQ.REDRIVE");
        command.arg(args.queue.as_bytes()).arg("COUNT").arg(count);
        if let Some(delay) = args.delay {
            command.arg("DELAY").arg(millis(delay));
        }
        command
    })
}

pub fn purge(client: &Client, args: &PurgeArgs, output: &Output) -> Result<Outcome, Failure> {
    let states = if args.all { State::ALL.to_vec() } else { args.states.clone() };
    let all = || meant(client, &args.queue, args.count, |info| to_purge(client, args, &states, info));
    if args.dry_run {
        return count(&args.queue, output, all);
    }
    let Some(most) = agrees(&args.confirm, &args.queue, &about(args, &states), all)? else {
        return Ok(Outcome::Nothing);
    };
    in_steps(client, &args.queue, "purged", (args.count, most), &states, output, |count| {
        let mut command = cmd("DQ.PURGE");
        command.arg(args.queue.as_bytes()).arg(states.iter().map(|state| state.as_str()).collect::<Vec<_>>());
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
    })
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

/// Prints how many messages would be changed.
pub fn count(
    queue: &QueueName,
    output: &Output,
    meant: impl FnOnce() -> Result<Option<u64>, Failure>,
) -> Result<Outcome, Failure> {
    let Some(selected) = meant()? else {
        no_such_queue(queue);
        return Ok(Outcome::Nothing);
    };
    output.counted(selected, "selected", json!({ "selected": selected }))?;
    Ok(Outcome::found(selected > 0))
}

/// How many messages would be changed: at most `most` of those that `all` counts. `None` if the queue does not exist.
fn meant(
    client: &Client,
    queue: &QueueName,
    most: Option<u32>,
    all: impl FnOnce(&Fields) -> Result<u64, Failure>,
) -> Result<Option<u64>, Failure> {
    let Some(info) = queues::read(client, queue.as_bytes())? else { return Ok(None) };
    Ok(Some(all(&info)?.min(most.map_or(u64::MAX, u64::from))))
}

/// How many messages a purge would remove. The counts of the queue include its recurring messages, and know neither groups nor
/// ages.
fn to_purge(client: &Client, args: &PurgeArgs, states: &[State], info: &Fields) -> Result<u64, Failure> {
    let counts_suffice = args.group.is_none() && args.older.is_none();
    if counts_suffice && args.recurring {
        return Ok(held(info, states));
    }
    let mut number = 0;
    for state in State::ALL.into_iter().filter(|state| states.contains(state)) {
        let see = |options: &[&str], is_meant: &dyn Fn(&Fields) -> bool| {
            let mut seen = 0;
            scan::pages(client, args.queue.as_bytes(), info, options, |page| {
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

/// Sends commands until `count` messages, or as many as are in these states now, were changed, and never more than `most`.
/// What comes later is left alone.
fn in_steps(
    client: &Client,
    queue: &QueueName,
    verb: &'static str,
    (count, most): (Option<u32>, u64),
    states: &[State],
    output: &Output,
    step: impl Fn(u64) -> Cmd,
) -> Result<Outcome, Failure> {
    let Some(info) = queues::read(client, queue.as_bytes())? else {
        no_such_queue(queue);
        return Ok(Outcome::Nothing);
    };
    let limit = count.map_or_else(|| held(&info, states), u64::from).min(most);
    let (mut total, mut progress) = (0, Progress::new(verb));
    while total < limit {
        let wanted = STEP.min(limit - total);
        let sent = client.call(&step(wanted), Resend::Never).map_err(Failure::from);
        let reply = sent.map_err(|failure| failure.after_change(total, verb))?;
        let changed = int(&reply).and_then(|count| u64::try_from(count).ok()).ok_or_else(|| unexpected(&reply))?;
        total += changed;
        progress.at(total);
        if changed < wanted {
            break;
        }
    }
    drop(progress);
    output.counted(total, verb, json!({ verb: total }))?;
    if total == 0 && states.contains(&State::Dead) {
        where_the_dead_are(queue, &info);
        where_letters_are(client, queue);
    }
    Ok(Outcome::found(total > 0))
}

/// How many messages are in these states.
fn held(info: &Fields, states: &[State]) -> u64 {
    states.iter().filter_map(|state| u64::try_from(info.int(state.as_str())?).ok()).sum()
}

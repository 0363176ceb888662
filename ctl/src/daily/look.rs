//! `dqctl get`, `peek` and `find`.

use super::why::no_such_id;
use super::{exists, no_such_queue, queues};
use crate::cli::{FindArgs, GetArgs, PeekArgs};
use crate::dead::error_of;
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::name::{put, shown};
use crate::output::Column::{Id, Name, Number, Text, Word};
use crate::output::{Column, Output, Table};
use crate::reply::{self, Fields};
use crate::scan;
use dq_client::{cmd, Client, Error, Resend, State};
use std::ops::ControlFlow;

const FOUND: &[Column] = &[
    Name("queue"),
    Id("id"),
    Word("state"),
    Word("due"),
    Word("died"),
    Number("attempt"),
    Text("payload"),
    Text("error"),
];

pub fn get(client: &Client, args: &GetArgs, output: &Output) -> Result<Outcome, Failure> {
    let id = args.id.id();
    let command = cmd("DQ.GET").arg(args.queue.as_bytes()).arg(id.as_bytes()).clone();
    let Some(message) = Fields::read(client.call(&command, Resend::Harmless)?)? else {
        no_such_id(client, &args.queue, &id);
        return Ok(Outcome::Nothing);
    };
    if args.payload {
        output.raw(message.bytes("payload"))?;
    } else {
        message::details(&message, output)?;
    }
    Ok(Outcome::Done)
}

pub fn peek(client: &Client, args: &PeekArgs, output: &Output) -> Result<Outcome, Failure> {
    if let Some(consumer) = &args.consumer {
        return held_by(client, args, consumer, output);
    }
    let states = args.state.map_or_else(|| State::ALL.to_vec(), |state| vec![state]);
    let mut messages = Vec::new();
    for state in states {
        let mut command = cmd("DQ.PEEK");
        command.arg(args.queue.as_bytes()).arg(state.as_str()).arg("COUNT").arg(args.count);
        if let Some(group) = &args.group {
            command.arg("GROUP").arg(group);
        }
        for message in reply::list(client.call(&command, Resend::Harmless)?)? {
            messages.extend(Fields::read(message)?);
        }
    }
    if messages.is_empty() && !exists(client, &args.queue)? {
        return Ok(Outcome::Nothing);
    }
    message::list(&messages, args.state, output)?;
    Ok(Outcome::Done)
}

/// The messages that a consumer holds, those whose leases end first.
fn held_by(client: &Client, args: &PeekArgs, consumer: &str, output: &Output) -> Result<Outcome, Failure> {
    if args.state.is_some_and(|state| state != State::Inflight) {
        return Err(Failure::usage("a consumer holds only messages in flight: leave the state out"));
    }
    let Some(info) = queues::read(client, args.queue.as_bytes())? else {
        no_such_queue(&args.queue);
        return Ok(Outcome::Nothing);
    };
    let mut messages = Vec::new();
    let options = ["STATE", State::Inflight.as_str(), "SEQUENCE"];
    scan::pages(client, args.queue.as_bytes(), &info, &options, |mut page| {
        let is_of_group = |message: &Fields| args.group.as_ref().is_none_or(|group| message.text("group") == *group);
        page.retain(|message| message.text("consumer") == consumer && is_of_group(message));
        messages.extend(page);
        Ok(ControlFlow::Continue(()))
    })?;
    // In the order of DQ.PEEK, whose messages have no such field.
    messages.sort_by_key(|message| (message.int("deadline"), message.int("sequence")));
    messages.truncate(usize::try_from(args.count).unwrap_or(usize::MAX));
    messages.iter_mut().for_each(|message| message.0.retain(|(name, _)| name != "sequence"));
    message::list(&messages, Some(State::Inflight), output)?;
    Ok(Outcome::Done)
}

/// Looks for an id in all queues, or for its beginning.
pub fn find(client: &Client, args: &FindArgs, output: &Output) -> Result<Outcome, Failure> {
    let id = args.id.id();
    let (mut table, mut outcome) = (Table::new(FOUND), Outcome::Nothing);
    for queue in crate::queues::find(client, args.pattern.as_deref(), usize::MAX)? {
        let found = match args.prefix {
            true => with_prefix(client, &queue, id.as_bytes()),
            false => of_id(client, &queue, id.as_bytes()),
        };
        let found = match found {
            Err(failure) if failure.is_denied() => continue,
            found => found?,
        };
        for message in found {
            outcome = Outcome::Done;
            if output.json {
                let mut object = message.json();
                put(&mut object, "queue", &queue);
                output.object(&object)?;
                continue;
            }
            let [due, died] =
                ["due", "died"].map(|name| message.int(name).map_or_else(String::new, |at| output.instant(at)));
            let due = if died.is_empty() || !output.is_for_people() { due } else { String::new() };
            let [id, state, attempt, payload] =
                ["id", "state", "attempt", "payload"].map(|name| message::field(&message, name, output));
            table.row(vec![shown(&queue), id, state, due, died, attempt, payload, error_of(&message)]);
        }
    }
    match outcome {
        Outcome::Nothing if args.prefix => eprintln!("dqctl: no queue has a message whose id begins with {id}"),
        Outcome::Nothing => eprintln!("dqctl: no queue has a message {id}"),
        Outcome::Done if !output.json => output.table(&table)?,
        Outcome::Done => {}
    }
    Ok(outcome)
}

fn of_id(client: &Client, queue: &[u8], id: &[u8]) -> Result<Vec<Fields>, Failure> {
    match client.call(cmd("DQ.GET").arg(queue).arg(id), Resend::Harmless) {
        // It was replaced since it was found.
        Err(Error::WrongType(_)) => Ok(Vec::new()),
        reply => Ok(Fields::read(reply?)?.into_iter().collect()),
    }
}

/// The messages whose ids begin with something, in the order of their ids.
fn with_prefix(client: &Client, queue: &[u8], prefix: &[u8]) -> Result<Vec<Fields>, Failure> {
    let mut found = Vec::new();
    let Some(info) = queues::read(client, queue)? else { return Ok(found) };
    scan::pages(client, queue, &info, &[], |page| {
        found.extend(page.into_iter().filter(|message| message.bytes("id").starts_with(prefix)));
        Ok(ControlFlow::Continue(()))
    })?;
    found.sort_by(|a, b| a.bytes("id").cmp(b.bytes("id")));
    Ok(found)
}

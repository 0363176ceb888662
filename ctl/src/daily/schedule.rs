//! `dqctl schedule`.

use super::{exists, payload, queue};
use crate::cli::ScheduleArgs;
use crate::dead::cause_of;
use crate::failure::{Failure, Outcome};
use crate::message::{self, recurs};
use crate::name::{shown, QueueName};
use crate::output::Column::{Name, Number, Text, Word};
use crate::output::{Column, Output, Table};
use crate::reply::{self, Fields};
use crate::time::{exact, now_ms};
use dq_client::{cmd, Client, Declared, Resend, Value};
use serde_json::{Map, Value as Json};
use std::time::Duration;

const COLUMNS: &[Column] = &[Name("id"), Text("rule"), Word("due"), Number("runs"), Number("failed"), Text("payload")];

pub fn schedule(client: &Client, args: &ScheduleArgs, output: &Output) -> Result<Outcome, Failure> {
    match &args.id {
        Some(id) => declare(client, args, id, output),
        None => list(client, &args.queue, output),
    }
}

fn declare(client: &Client, args: &ScheduleArgs, id: &str, output: &Output) -> Result<Outcome, Failure> {
    let queue = queue(client, &args.queue);
    let payload = payload(args.payload.as_deref())?;
    let mut schedule = queue.schedule(id, &payload).priority(args.message.priority);
    if let Some(interval) = args.every {
        schedule = schedule.every_at(interval, args.offset.unwrap_or(Duration::ZERO));
    }
    if let Some(expression) = &args.cron {
        schedule = match &args.tz {
            Some(zone) => schedule.cron_in(expression, zone),
            None => schedule.cron(expression),
        };
    }
    if let Some(at) = args.at {
        schedule = schedule.first_at(at);
    }
    if let Some(until) = args.until {
        schedule = schedule.until(until);
    }
    if let Some(times) = args.times {
        schedule = schedule.times(times);
    }
    if let Some(retries) = args.message.retries {
        schedule = schedule.retries(retries);
    }
    if let Some(lease) = args.message.lease {
        schedule = schedule.lease(lease);
    }
    if let Some(ttl) = args.message.ttl {
        schedule = schedule.ttl(ttl);
    }
    if let Some(group) = &args.message.group {
        schedule = schedule.group(group);
    }
    for (name, value) in &args.message.headers {
        schedule = schedule.header(name, value);
    }
    // What the declaration replaces can be seen only before. A user who may only declare can do that.
    let get = cmd("DQ.GET").arg(args.queue.as_bytes()).arg(id).clone();
    let held = client.call(&get, Resend::Harmless).ok().and_then(|reply| Fields::read(reply).ok().flatten());
    let declared = match schedule.declare()? {
        Declared::Created => "created",
        Declared::Changed => "changed",
        Declared::Unchanged => "unchanged",
    };
    let mut object =
        Map::from_iter([("id", id), ("schedule", declared)].map(|(name, text)| (name.into(), text.into())));
    if let Some(message) = held.filter(|message| !recurs(message) && declared != "unchanged") {
        let state = message.text("state");
        say!("dqctl: the queue {} held a message {id}, which {}", args.queue, what_became_of(&message, &state));
        object.insert("was".to_owned(), state.into());
    }
    output.result(declared, Json::Object(object))?;
    Ok(Outcome::Done)
}

/// What a declaration did to the message that had the id of the schedule.
fn what_became_of(message: &Fields, state: &str) -> String {
    match state {
        "dead" => format!("was dead: {}. The schedule took its place, so it cannot be redriven", cause_of(message)),
        "done" => "was done. The schedule took its id, so its result is no longer kept".to_owned(),
        // A delivery that has begun is not taken from its consumer, nor is a retry lost.
        "inflight" => "is in flight. The schedule begins when it has ended".to_owned(),
        _ if message.int("attempt") > Some(0) => {
            format!("is {state} and was delivered already. The schedule begins when it has ended")
        }
        _ => format!("was {state}. The schedule took its place, so it is not delivered as it was pushed"),
    }
}

/// The recurring messages of a queue.
fn list(client: &Client, name: &QueueName, output: &Output) -> Result<Outcome, Failure> {
    let mut messages = Vec::new();
    let mut cursor = b"0".to_vec();
    loop {
        let command = cmd("DQ.SCAN").arg(name.as_bytes()).arg(&cursor).arg("RECURRING").clone();
        let mut page = reply::list(client.call(&command, Resend::Harmless)?)?.into_iter();
        let Some(Value::BulkString(next)) = page.next() else { break };
        for message in reply::list(page.next().unwrap_or(Value::Nil))? {
            messages.extend(Fields::read(message)?);
        }
        cursor = next;
        if cursor == b"0" {
            break;
        }
    }
    if messages.is_empty() && !exists(client, name)? {
        return Ok(Outcome::Nothing);
    }
    // What is late comes first.
    messages.sort_by_key(|message| message.int("due"));
    if output.json {
        messages.iter().try_for_each(|message| output.object(&message.json()))?;
        return Ok(Outcome::Done);
    }
    let mut table = Table::new(COLUMNS);
    messages.iter().for_each(|message| table.row(row(message, output)));
    output.table(&table)?;
    Ok(Outcome::Done)
}

/// When it runs: `every 10s`, or the expression and its time zone.
pub fn rule(message: &Fields) -> String {
    let every = message.int("every").and_then(|ms| u64::try_from(ms).ok());
    every.map_or_else(
        || format!("{} {}", message.text("cron"), message.text("tz")),
        |every| match message.int("offset").and_then(|ms| u64::try_from(ms).ok()) {
            Some(offset) if offset > 0 => format!("every {} at {}", exact(every), exact(offset)),
            _ => format!("every {}", exact(every)),
        },
    )
}

fn row(message: &Fields, output: &Output) -> Vec<String> {
    let due = match message.int("due") {
        Some(due) if output.is_for_people() && due < now_ms() && message.text("state") == "ready" => {
            format!("late: {}", output.instant(due))
        }
        due => due.map_or_else(String::new, |due| output.instant(due)),
    };
    let [runs, failed, payload] = ["runs", "failed-runs", "payload"].map(|name| message::field(message, name, output));
    vec![shown(message.bytes("id")), rule(message), due, runs, failed, payload]
}

//! Writes. Each action is one command, except those for many messages, which run in steps so that other clients of the
//! server do not wait.

use super::dead::{among, delay};
use super::messages::state;
use super::queues::no_queue;
use super::{put, Answer, Api, Params, Problem};
use crate::daily::delete::delete_queue;
use crate::dead::{bury_these, send_back, Among, SentBack};
use crate::reply::{int, list, text, unexpected};
use crate::time::millis;
use dq_client::{cmd, Cmd, Resend, Value};
use serde_json::{json, Map, Value as Json};
use std::time::Duration;

/// How many messages are redriven or purged by one command.
const STEP: i64 = 10_000;
/// The longest duration, and the greatest number, that commands take.
pub const LONGEST: i64 = 4_398_046_511_103;
const MOST: i64 = 2_147_483_647;
/// The range of instants in Unix ms.
const EARLIEST: i64 = 100_000_000_000;
const LATEST: i64 = 8_796_093_022_207;
/// What a message can have of its own, whether it is pushed or recurs.
const OWN: [&str; 6] = ["group", "priority", "retries", "lease", "ttl", "headers"];

pub fn pause(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "group", "flow", "for"])?;
    let mut command = command("DQ.PAUSE", params)?;
    concerned(&mut command, params, "OUT")?;
    if let Some(ms) = params.int("for", 1, LONGEST)? {
        command.arg("FOR").arg(ms);
    }
    send(api, &command)?;
    Ok(json!({ "paused": 1 }))
}

pub fn resume(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "group", "flow"])?;
    let mut command = command("DQ.RESUME", params)?;
    concerned(&mut command, params, "ALL")?;
    send(api, &command)?;
    Ok(json!({ "paused": 0 }))
}

/// Adds what is paused or resumed: a group, or what the queue delivers or accepts.
fn concerned(command: &mut Cmd, params: &Params, default: &'static str) -> Result<(), Problem> {
    match (params.bytes("group")?, params.text("flow")?) {
        (Some(_), Some(_)) => return Err(Problem::wrong("give group or flow, not both")),
        (Some(group), None) => command.arg("GROUP").arg(group),
        (None, word) => command.arg(word.as_deref().map_or(Ok(default), flow)?),
    };
    Ok(())
}

/// What a queue delivers or accepts.
fn flow(word: &str) -> Result<&'static str, Problem> {
    match word {
        "out" => Ok("OUT"),
        "in" => Ok("IN"),
        "all" => Ok("ALL"),
        _ => Err(Problem::wrong("flow must be out, in or all")),
    }
}

pub fn redrive(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "id", "ids", "count", "all", "delay", "state"])?;
    let (ids, delay) = (params.ids()?, delay(params)?);
    match among(params)? {
        Among::Letters => return send_letters_back(api, params, &ids, delay),
        among if among != Among::default() => {
            return Err(Problem::wrong("only dead messages and letters are redriven"))
        }
        Among::State(_) => {}
    }
    let redriven = if ids.is_empty() {
        let wanted = count_or_all(params, "id, ids, count, or all: true")?;
        in_steps(api, params, "dead", wanted, |step| {
            let mut command = command("DQ.REDRIVE", params)?;
            command.arg("COUNT").arg(step).arg("DELAY").arg(millis(delay));
            Ok(command)
        })?
    } else {
        if params.int("count", 1, MOST)?.is_some() || params.flag("all")? {
            return Err(Problem::wrong("give ids, count or all, not several of them"));
        }
        let mut command = command("DQ.REDRIVE", params)?;
        command.arg("IDS").arg(ids.len()).arg(&ids).arg("DELAY").arg(millis(delay));
        number(send(api, &command)?)?
    };
    if redriven == 0 && !ids.is_empty() {
        return Err(Problem::new(404, "the queue has no dead message of this id"));
    }
    Ok(json!({ "redriven": redriven }))
}

/// Sends messages that died in another queue back to it.
fn send_letters_back(api: &Api, params: &Params, ids: &[Vec<u8>], delay: Duration) -> Answer {
    let (ids, mut sent): (Vec<&[u8]>, _) = (ids.iter().map(Vec::as_slice).collect(), SentBack::default());
    if ids.is_empty() {
        return Err(Problem::wrong("letters are sent back by their id or ids, or by conditions"));
    }
    if params.int("count", 1, MOST)?.is_some() || params.flag("all")? {
        return Err(Problem::wrong("give ids of letters, and no count or all"));
    }
    let did = send_back(&api.client, &params.needed("queue")?, &ids, delay, &mut sent);
    did.map_err(|failure| failure.after_change(sent.sent, "sent back"))?;
    if sent == SentBack::default() {
        return Err(Problem::new(404, "the queue has no message of this id that died in another queue"));
    }
    Ok(json!({ "redriven": sent.sent, "left": sent.left() }))
}

pub fn cancel(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "id", "ids"])?;
    let ids = params.ids()?;
    if ids.is_empty() {
        return Err(Problem::wrong("id is missing"));
    }
    let mut command = command("DQ.CANCEL", params)?;
    command.arg(&ids);
    let states: Vec<Option<String>> = list(send(api, &command)?)?.iter().map(text).collect();
    let cancelled = states.iter().flatten().count();
    if cancelled == 0 {
        return Err(Problem::new(404, "the queue has no message of this id"));
    }
    Ok(json!({ "cancelled": cancelled, "states": states }))
}

/// Run now: one message, the next ones, or all that are delayed.
pub fn promote(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "id", "count", "all"])?;
    if let Some(id) = params.bytes("id")? {
        if params.int("count", 1, MOST)?.is_some() || params.flag("all")? {
            return Err(Problem::wrong("give id, count or all, not several of them"));
        }
        let mut command = command("DQ.RESCHEDULE", params)?;
        return match number(send(api, command.arg(id).arg("DELAY").arg(0))?)? {
            0 => Err(not_waiting()),
            promoted => Ok(json!({ "promoted": promoted })),
        };
    }
    let wanted = count_or_all(params, "id, count, or all: true")?;
    let promoted = in_steps(api, params, "delayed", wanted, |step| {
        let mut command = command("DQ.PROMOTE", params)?;
        command.arg("COUNT").arg(step);
        Ok(command)
    })?;
    Ok(json!({ "promoted": promoted }))
}

pub fn purge(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "state", "count"])?;
    let state = state(params)?.ok_or_else(|| Problem::wrong("state is missing"))?;
    let wanted = params.int("count", 1, MOST)?;
    let purged = in_steps(api, params, &state, wanted, |step| {
        let mut command = command("DQ.PURGE", params)?;
        command.arg(&state).arg("COUNT").arg(step);
        Ok(command)
    })?;
    Ok(json!({ "purged": purged }))
}

/// Deletes the queue itself.
pub fn delete(api: &Api, params: &Params) -> Answer {
    params.only(&["queue"])?;
    let queue = params.needed("queue")?;
    let existed = delete_queue(&api.client, &queue)?;
    api.board.look(&queue)?;
    if existed {
        Ok(json!({ "deleted": true }))
    } else {
        Err(no_queue())
    }
}

/// Takes the messages of a consumer that is gone.
pub fn release(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "consumer", "nocount"])?;
    let mut command = command("DQ.RELEASE", params)?;
    command.arg(params.needed("consumer")?);
    if params.flag("nocount")? {
        command.arg("NOCOUNT");
    }
    Ok(json!({ "released": number(send(api, &command)?)? }))
}

/// Gives a delivery back: `id` is the message, or the receipt of one delivery of it.
pub fn nack(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "id", "delay", "error", "nocount"])?;
    let mut command = command("DQ.NACK", params)?;
    command.arg(params.needed("id")?);
    if let Some(ms) = params.int("delay", 0, LONGEST)? {
        command.arg("DELAY").arg(ms);
    }
    add_error(&mut command, params)?;
    if params.flag("nocount")? {
        command.arg("NOCOUNT");
    }
    let state = text(&send(api, &command)?);
    let state = state.ok_or_else(|| Problem::new(404, "the queue has no such delivery: it has ended meanwhile"))?;
    Ok(json!({ "state": state }))
}

/// Buries one message, whatever its state, or those of several that wait.
pub fn bury(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "id", "ids", "error"])?;
    let (id, ids) = (params.bytes("id")?, params.ids()?);
    let id = match (id, ids.len()) {
        (Some(id), 1) => id,
        (Some(_), _) => return Err(Problem::wrong("give id or ids, not both")),
        (None, 0) => return Err(Problem::wrong("id or ids is missing")),
        (None, _) => {
            let (ids, error): (Vec<&[u8]>, _) = (ids.iter().map(Vec::as_slice).collect(), params.bytes("error")?);
            let buried = bury_these(&api.client, &params.needed("queue")?, &ids, error.as_deref())?;
            return Ok(json!({ "buried": buried }));
        }
    };
    let mut command = command("DQ.BURY", params)?;
    command.arg(id);
    add_error(&mut command, params)?;
    let was = text(&send(api, &command)?);
    let was = was.ok_or_else(|| Problem::new(404, "the queue has no message of this id that is not dead"))?;
    Ok(json!({ "was": was }))
}

fn add_error(command: &mut Cmd, params: &Params) -> Result<(), Problem> {
    if let Some(error) = params.bytes("error")? {
        command.arg("ERROR").arg(error);
    }
    Ok(())
}

/// Cancels a batch with its messages.
pub fn cancel_batch(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "batch"])?;
    let mut command = command("DQ.BATCH", params)?;
    command.arg(params.needed("batch")?).arg("CANCEL");
    Ok(json!({ "cancelled": number(send(api, &command)?)? }))
}

pub fn schedule(api: &Api, params: &Params) -> Answer {
    params
        .only(&[&["queue", "id", "payload", "every", "offset", "cron", "tz", "until", "times"], &OWN[..]].concat())?;
    let queue = params.needed("queue")?;
    let mut command = command("DQ.SCHEDULE", params)?;
    command.arg(params.needed("id")?).arg(params.needed("payload")?);
    let every = params.int("every", 1, LONGEST)?;
    if let Some(ms) = every {
        command.arg("EVERY").arg(ms);
    }
    if every.is_some() == params.bytes("cron")?.is_some() {
        return Err(Problem::wrong("give every or cron, one of them"));
    }
    for name in ["cron", "tz"] {
        if let Some(words) = params.bytes(name)? {
            command.arg(name.to_ascii_uppercase()).arg(words);
        }
    }
    add_numbers(&mut command, params, &[("offset", 0, LONGEST), ("until", EARLIEST, LATEST), ("times", 1, MOST)])?;
    add_own(&mut command, params)?;
    let declared = text(&send(api, &command)?);
    api.board.look(&queue)?;
    Ok(json!({ "schedule": declared }))
}

pub fn reschedule(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "id", "delay", "at", "priority"])?;
    let mut command = command("DQ.RESCHEDULE", params)?;
    command.arg(params.needed("id")?);
    let options = add_due(&mut command, params)? || params.int("priority", -128, 127)?.is_some();
    if !options {
        return Err(Problem::wrong("give delay, at or priority"));
    }
    if let Some(priority) = params.int("priority", -128, 127)? {
        command.arg("PRIORITY").arg(priority);
    }
    match number(send(api, &command)?)? {
        0 => Err(not_waiting()),
        _ => Ok(json!({ "rescheduled": true })),
    }
}

pub fn push(api: &Api, params: &Params) -> Answer {
    params.only(&[&["queue", "payload", "id", "delay", "at", "replace"], &OWN[..]].concat())?;
    let queue = params.needed("queue")?;
    let mut command = command("DQ.PUSH", params)?;
    command.arg(params.needed("payload")?);
    if let Some(id) = params.bytes("id")? {
        command.arg("ID").arg(id);
    }
    add_due(&mut command, params)?;
    add_own(&mut command, params)?;
    if params.flag("replace")? {
        command.arg("REPLACE");
    }
    let Value::BulkString(id) = send(api, &command)? else {
        return Err(Problem::new(
            409,
            "a duplicate: the queue has accepted this id already; give another one, or let the new message replace it",
        ));
    };
    api.board.look(&queue)?;
    let mut answer = Map::new();
    put(&mut answer, "id", &id);
    Ok(Json::Object(answer))
}

/// Adds what a message has of its own: a group, numbers, and headers.
fn add_own(command: &mut Cmd, params: &Params) -> Result<(), Problem> {
    if let Some(group) = params.bytes("group")? {
        command.arg("GROUP").arg(group);
    }
    let numbers = [("priority", -128, 127), ("retries", -1, MOST), ("lease", 1, LONGEST), ("ttl", 0, LONGEST)];
    add_numbers(command, params, &numbers)?;
    let headers = params.texts("headers")?;
    if !headers.is_empty() {
        command.arg("HEADERS").arg(headers.len());
        for header in &headers {
            command.arg(header);
        }
    }
    Ok(())
}

/// Adds the numbers that are given, each with its name and range.
fn add_numbers(command: &mut Cmd, params: &Params, numbers: &[(&str, i64, i64)]) -> Result<(), Problem> {
    for (name, least, most) in numbers {
        if let Some(number) = params.int(name, *least, *most)? {
            command.arg(name.to_ascii_uppercase()).arg(number);
        }
    }
    Ok(())
}

/// A command on the queue of the request.
pub fn command(name: &str, params: &Params) -> Result<Cmd, Problem> {
    let mut command = cmd(name);
    command.arg(params.needed("queue")?);
    Ok(command)
}

/// Sends a command that must not be executed twice.
pub fn send(api: &Api, command: &Cmd) -> Result<Value, Problem> {
    Ok(api.client.call(command, Resend::Never)?)
}

fn number(reply: Value) -> Result<i64, Problem> {
    Ok(int(&reply).ok_or_else(|| unexpected(&reply))?)
}

/// Adds the due time, if there is one.
fn add_due(command: &mut Cmd, params: &Params) -> Result<bool, Problem> {
    match (params.int("delay", 0, LONGEST)?, params.int("at", EARLIEST, LATEST)?) {
        (Some(_), Some(_)) => return Err(Problem::wrong("give delay or at, not both")),
        (Some(ms), None) => command.arg("DELAY").arg(ms),
        (None, Some(at)) => command.arg("AT").arg(at),
        (None, None) => return Ok(false),
    };
    Ok(true)
}

/// `None` means all of them, which must be asked for explicitly.
fn count_or_all(params: &Params, choice: &str) -> Result<Option<i64>, Problem> {
    match (params.int("count", 1, MOST)?, params.flag("all")?) {
        (Some(_), true) => Err(Problem::wrong("give count or all, not both")),
        (None, false) => Err(Problem::wrong(format!("say how many: {choice}"))),
        (count, _) => Ok(count),
    }
}

/// Sends a command in steps, for `wanted` messages of a state or for as many as there are now. Returns how many were changed.
/// Messages that enter the state meanwhile may be among them, but do not prolong it.
fn in_steps(
    api: &Api,
    params: &Params,
    state: &str,
    wanted: Option<i64>,
    command_for: impl Fn(i64) -> Result<Cmd, Problem>,
) -> Result<i64, Problem> {
    let queue = params.needed("queue")?;
    let info = crate::web::find::read(&api.client, &queue)?.ok_or_else(no_queue)?;
    let wanted = wanted.unwrap_or_else(|| info.int(state).unwrap_or(0));
    let mut done = 0;
    while done < wanted {
        let step = STEP.min(wanted - done);
        let changed = number(send(api, &command_for(step)?)?)?;
        done += changed;
        if changed < step {
            break;
        }
    }
    Ok(done)
}

fn not_waiting() -> Problem {
    Problem::new(404, "the queue has no delayed or ready message of this id")
}

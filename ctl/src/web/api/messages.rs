//! Messages: those of a state, one of them, schedules, and the search.

use super::queues::no_queue;
use super::{Answer, Api, Params, Problem};
use crate::board::first::{self, Most};
use crate::board::scan;
use crate::http::Response;
use crate::reply::{self, Fields};
use crate::time::now_ms;
use crate::web::find;
use dq_client::{cmd, Resend, Value};
use serde_json::{json, Map, Value as Json};
use std::ops::ControlFlow;

/// The most messages of one answer.
const MESSAGES: i64 = 500;
/// What is shown of a payload in a list, and of the payload of one message.
pub const BEGINNING: usize = 240;
const WHOLE: usize = 1024 * 1024;
/// Fewer messages are listed if their payloads together are larger than this.
const LISTED_BYTES: i64 = 8 * 1024 * 1024;
/// The most messages in flight that are looked at to find those of a consumer.
const OF_CONSUMER: i64 = 10_000;
/// The most messages that are looked at to find those of a batch.
const OF_BATCH: usize = 50_000;

pub fn messages(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "state", "count", "group", "consumer", "batch"])?;
    let name = params.needed("queue")?;
    if let Some(batch) = params.bytes("batch")? {
        return of_batch(api, params, &name, &batch);
    }
    let state = state(params)?.unwrap_or_else(|| "ready".to_owned());
    let shown_most = params.int("count", 1, MESSAGES)?.unwrap_or(50);
    let consumer = params.bytes("consumer")?;
    let wanted = if consumer.is_some() { OF_CONSUMER } else { shown_most };
    let Some(info) = find::read(&api.client, &name)? else { return Err(no_queue()) };
    let mut command = cmd("DQ.PEEK");
    command.arg(&name).arg(&state);
    if let Some(group) = params.bytes("group")? {
        command.arg("GROUP").arg(group);
    }
    let most = Most { messages: wanted, bytes: LISTED_BYTES };
    let mut messages = first::read(&api.client, &command, &info, most)?;
    if let Some(consumer) = consumer {
        messages.retain(|message| message.bytes("consumer") == consumer);
    }
    let shown_most = usize::try_from(shown_most).unwrap_or(usize::MAX);
    let messages: Vec<Json> =
        messages.into_iter().take(shown_most).map(|message| Json::Object(cut(message, BEGINNING))).collect();
    Ok(json!({ "state": state, "total": info.int(&state), "messages": messages, "now": now_ms() }))
}

/// The messages of a batch that have not ended, in no particular order. Dead ones have left it.
fn of_batch(api: &Api, params: &Params, queue: &[u8], batch: &[u8]) -> Answer {
    let most = params.int("count", 1, MESSAGES)?.and_then(|count| usize::try_from(count).ok()).unwrap_or(50);
    let Some(info) = find::read(&api.client, queue)? else { return Err(no_queue()) };
    let (mut messages, mut looked, mut is_limited) = (Vec::new(), 0, false);
    scan::pages(&api.client, queue, &info, &[], |page| {
        looked += page.len();
        let members = page.into_iter().filter(|message| message.bytes("batch") == batch);
        messages.extend(members.map(|message| Json::Object(cut(message, BEGINNING))));
        is_limited = messages.len() > most || looked >= OF_BATCH;
        Ok(if is_limited { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    messages.truncate(most);
    Ok(json!({ "messages": messages, "limited": is_limited, "looked": looked, "now": now_ms() }))
}

pub fn message(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "id"])?;
    Ok(json!({ "message": cut(get(api, params)?, WHOLE), "now": now_ms() }))
}

/// The whole payload or result of a message, as it is.
pub fn payload(api: &Api, params: &Params) -> Result<Response, Problem> {
    params.only(&["queue", "id"])?;
    let message = get(api, params)?;
    let name = if message.get("result").is_some() { "result" } else { "payload" };
    let bytes = message.bytes(name).to_vec();
    Ok(Response::new(200, "application/octet-stream", bytes).with("Content-Disposition", "attachment"))
}

fn get(api: &Api, params: &Params) -> Result<Fields, Problem> {
    let (queue, id) = (params.needed("queue")?, params.needed("id")?);
    let reply = api.client.call(cmd("DQ.GET").arg(&queue).arg(&id), Resend::Harmless)?;
    Fields::read(reply)?.ok_or_else(|| Problem::new(404, "the queue has no message of this id"))
}

pub fn schedules(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "cursor", "count"])?;
    let (next, list) = page(api, params, "DQ.SCAN", &["RECURRING"])?;
    Ok(json!({ "cursor": next, "messages": shown(list, BEGINNING)?, "now": now_ms() }))
}

/// A page of a command with a cursor.
fn page(api: &Api, params: &Params, name: &str, options: &[&str]) -> Result<(String, Vec<Value>), Problem> {
    let mut command = cmd(name);
    command.arg(params.needed("queue")?).arg(params.bytes("cursor")?.unwrap_or_else(|| b"0".to_vec()));
    command.arg("COUNT").arg(params.int("count", 1, MESSAGES)?.unwrap_or(100));
    command.arg(options);
    let mut page = reply::list(api.client.call(&command, Resend::Harmless)?)?.into_iter();
    let next = page.next().as_ref().and_then(reply::text).unwrap_or_else(|| "0".to_owned());
    Ok((next, reply::list(page.next().unwrap_or(Value::Nil))?))
}

fn shown(list: Vec<Value>, limit: usize) -> Result<Vec<Json>, Problem> {
    let mut messages = Vec::new();
    for message in list {
        if let Some(message) = Fields::read(message)? {
            messages.push(Json::Object(cut(message, limit)));
        }
    }
    Ok(messages)
}

/// A message as an object, with the first bytes of its payload and the size of it; or a batch, with those of what follows.
pub fn cut(mut message: Fields, limit: usize) -> Map<String, Json> {
    let mut size = None;
    for (name, value) in &mut message.0 {
        if let ("payload" | "then", Value::BulkString(payload)) = (name.as_str(), value) {
            size = Some((format!("{name}-size"), payload.len()));
            if payload.len() > limit {
                payload.truncate(limit);
                // No character is cut in two, so that text stays valid UTF-8.
                if let Err(error) = std::str::from_utf8(payload) {
                    payload.truncate(if error.error_len().is_none() { error.valid_up_to() } else { limit });
                }
            }
        }
    }
    let mut object = message.json();
    if let Some((name, size)) = size {
        object.insert(name, json!(size));
    }
    object
}

/// A state by its name; `None` if none is given.
pub fn state(params: &Params) -> Result<Option<String>, Problem> {
    const STATES: [&str; 5] = ["delayed", "ready", "inflight", "dead", "done"];
    match params.text("state")? {
        Some(state) if !STATES.contains(&state.as_str()) => {
            Err(Problem::wrong(format!("state must be one of: {}", STATES.join(", "))))
        }
        state => Ok(state),
    }
}

//! Libraries whose jobs are JSON in lists and sorted sets: Sidekiq, Laravel and Celery. The payload is that JSON, as it
//! is.

use super::ids::id;
use super::source::{bytes, exists, Convert, Element, Order, Reader, SourceValue, Values};
use super::Parts;
use crate::board::names;
use crate::cli::End;
use crate::moving::push::{type_of, NewMessage};
use crate::server::{reply, Failure};
use crate::text::shown;
use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::{blocking::Client, cmd, Resend, Value};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Of a job that a worker has taken.
pub const RUNS: &str = "stays, because it runs, or its worker died";

/// Splits the name of a queue, or of its key, at the prefix that the library puts before names. Returns what precedes
/// that prefix, and the name.
pub fn split<'a>(source: &'a [u8], marker: &[u8]) -> (&'a [u8], &'a [u8]) {
    let at = source.windows(marker.len()).position(|window| window == marker);
    let name = at.and_then(|at| Some((source.get(..at)?, source.get(at + marker.len()..)?)));
    name.unwrap_or((b"", source))
}

/// Adds a key if it exists.
pub fn add(parts: &mut Parts, client: &Client, key: Vec<u8>, order: Order, convert: Convert) -> Result<(), Failure> {
    if exists(client, &key, if matches!(order, Order::From(_)) { "list" } else { "zset" })? {
        parts.push(Box::new(Values { key, order, convert }));
    }
    Ok(())
}

/// Converts each value on its own.
pub fn each(convert: impl Fn(SourceValue) -> Element + 'static) -> Convert {
    Box::new(move |_, all| Ok(all.into_iter().map(&convert).collect()))
}

/// Elements that no import takes: each is reported, and stays.
pub fn stays(key: Vec<u8>, why: &'static str) -> Convert {
    each(move |found| Element::Broken(format!("{} of {} {why}", shown(&found.value), shown(&key))))
}

/// A job with the id in its JSON. A job without one cannot be told from an equal job, and stays.
fn job(kind: &'static str, own: Option<&str>, message: NewMessage) -> Element {
    let Some(own) = own.filter(|own| !own.is_empty()) else {
        return Element::Broken(format!("a job of {kind} has no id, so it cannot be told from an equal one"));
    };
    let message = NewMessage { id: id(kind, &[own.as_bytes()]), ..message };
    Element::Message { message: Box::new(message), remove: Vec::new() }
}

/// How often a job was delivered, if it ever was.
pub fn attempts(count: Option<i64>) -> Option<i64> {
    count.filter(|count| *count > 0)
}

fn parse(value: &[u8]) -> Json {
    serde_json::from_slice(value).unwrap_or(Json::Null)
}

/// Sidekiq: LPUSH and BRPOP of `queue:NAME`; all queues share the sorted sets `schedule`, `retry` and `dead`, in
/// seconds.
pub fn sidekiq(client: &Client, source: &[u8]) -> Result<Parts, Failure> {
    let (namespace, name) = split(source, b"queue:");
    let key = |rest: &[u8]| [namespace, rest].concat();
    let mut parts = Parts::new();
    let waiting = |found: SourceValue| sidekiq_job(&parse(&found.value), found, None);
    add(&mut parts, client, key(&[b"queue:", name].concat()), Order::From(End::Right), each(waiting))?;
    let sets = [("schedule", Order::Time, None), ("retry", Order::Time, None), ("dead", Order::Score, Some("retries"))];
    for (set, order, dead) in sets {
        let name = name.to_vec();
        let timed = move |found: SourceValue| {
            let json = parse(&found.value);
            let queue = json.get("queue").and_then(Json::as_str).unwrap_or("default");
            if queue.as_bytes() == name {
                sidekiq_job(&json, found, dead)
            } else {
                Element::Foreign
            }
        };
        add(&mut parts, client, key(set.as_bytes()), order, each(timed))?;
    }
    for taken in sidekiq_taken(client, namespace)? {
        let (name, list) = (name.to_vec(), shown(&taken).to_string());
        let running = move |found: SourceValue| {
            let json = parse(&found.value);
            let text = |field: &str| json.get(field).and_then(Json::as_str);
            if text("queue").unwrap_or("default").as_bytes() != name {
                return Element::Foreign;
            }
            Element::Broken(format!("the job {} of {list} {RUNS}", text("jid").unwrap_or_default()))
        };
        add(&mut parts, client, taken, Order::From(End::Right), each(running))?;
    }
    Ok(parts)
}

/// Where processes of Sidekiq with a reliable fetch keep the jobs that they have taken, of all queues: `super_fetch` of
/// Sidekiq Pro in `queue:sq|PROCESS|NAME`, or in `queue:sq_PROCESS_NAME` before its version 4, and `reliable_fetch` of
/// GitLab in `working:queue:NAME:PROCESS`.
const SIDEKIQ_TAKEN: [&[u8]; 2] = [b"queue:sq[|_]*", b"working:queue:*"];

/// The lists of those that exist.
fn sidekiq_taken(client: &Client, namespace: &[u8]) -> Result<BTreeSet<Vec<u8>>, Failure> {
    let mut escaped = Vec::with_capacity(namespace.len());
    for byte in namespace {
        if b"*?[]\\^-".contains(byte) {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    let mut lists = BTreeSet::new();
    for server in client.servers()? {
        for pattern in SIDEKIQ_TAKEN {
            lists.extend(names::scan(client, &server, "list", Some(&[&escaped, pattern].concat()))?);
        }
    }
    Ok(lists)
}

/// Fields of a job that tie it to something in Sidekiq that would never end, and why such a job stays.
const SIDEKIQ_TIES: [(&str, &str); 5] = [
    ("bid", "it belongs to a batch, which would wait for it"),
    ("lock_digest", "it holds a lock, which nobody would release"),
    ("unique_digest", "it holds a lock, which nobody would release"),
    ("unlock_token", "it holds a lock, which nobody would release"),
    ("unique_for", "it holds a lock, which nobody would release"),
];

/// `retry_count` is 0 after the first failure.
fn sidekiq_job(json: &Json, found: SourceValue, dead: Option<&str>) -> Element {
    let text = |name| json.get(name).and_then(Json::as_str);
    let is_tied = |(name, _): &&(&str, &str)| json.get(*name).is_some_and(|value| !value.is_null() && *value != false);
    if let Some((name, why)) = SIDEKIQ_TIES.iter().find(is_tied) {
        return Element::Broken(format!("the job {} stays, because {why} ({name})", text("jid").unwrap_or_default()));
    }
    let error: Vec<&str> = ["error_class", "error_message"].into_iter().filter_map(text).collect();
    let message = NewMessage {
        payload: found.value,
        due: found.due,
        attempt: json.get("retry_count").and_then(Json::as_i64).map(|count| count + 1),
        dead: dead.map(Into::into),
        ..NewMessage::default()
    };
    let message = message.with("ERROR", (!error.is_empty()).then(|| error.join(": ")));
    job("sidekiq", text("jid"), message)
}

/// Laravel: RPUSH and LPOP of `queues:NAME`, and the sorted set `queues:NAME:delayed` in seconds.
pub fn laravel(client: &Client, source: &[u8]) -> Result<Parts, Failure> {
    let (prefix, name) = split(source, b"queues:");
    let key = [prefix, b"queues:", name].concat();
    let convert = || {
        each(|found: SourceValue| {
            let json = parse(&found.value);
            if let Some(batch) = laravel_batch(&json) {
                return Element::Broken(format!("a job stays, because the batch {batch} would wait for it"));
            }
            let own = json.get("uuid").or_else(|| json.get("id")).and_then(Json::as_str);
            let attempt = attempts(json.get("attempts").and_then(Json::as_i64));
            job("laravel", own, NewMessage { payload: found.value, due: found.due, attempt, ..NewMessage::default() })
        })
    };
    let mut parts = Parts::new();
    add(&mut parts, client, key.clone(), Order::From(End::Left), convert())?;
    add(&mut parts, client, [&key, b":delayed".as_slice()].concat(), Order::Time, convert())?;
    let running = |found: SourceValue| {
        let job = parse(&found.value);
        Element::Broken(format!("the job {} {RUNS}", job.get("uuid").and_then(Json::as_str).unwrap_or_default()))
    };
    add(&mut parts, client, [&key, b":reserved".as_slice()].concat(), Order::Score, each(running))?;
    Ok(parts)
}

/// The batch of a job, which is a property of the serialized object, where the length of a text precedes it.
fn laravel_batch(json: &Json) -> Option<String> {
    let data = json.get("data")?;
    let serialized = || data.get("command")?.as_str()?.split_once("s:7:\"batchId\";s:")?.1.split('"').nth(1);
    data.get("batchId").and_then(Json::as_str).or_else(serialized).map(str::to_owned)
}

/// The highest priority besides 0 that can have a list of its own in the Redis transport of Celery: by default 3, 6 and
/// 9 do. Low ones come first.
const CELERY_PRIORITIES: i64 = 9;

/// Celery: LPUSH and BRPOP of a list. Workers that are stopped put what they hold back into it, and those that have
/// died leave it in the hash `unacked` of all queues.
pub fn celery(client: &Client, source: &[u8]) -> Result<Parts, Failure> {
    let task =
        |priority| each(move |found: SourceValue| celery_task(found.value, priority).unwrap_or_else(Element::Broken));
    let mut parts = Parts::new();
    add(&mut parts, client, source.to_vec(), Order::From(End::Right), task(0))?;
    for priority in 1..=CELERY_PRIORITIES {
        let key = [source, b"\x06\x16", priority.to_string().as_bytes()].concat();
        add(&mut parts, client, key, Order::From(End::Right), task(priority))?;
    }
    if type_of(client, UNACKED)? == "hash" {
        parts.push(Box::new(Unacked { queue: source.to_vec(), cursor: Some(b"0".to_vec()) }));
    }
    Ok(parts)
}

/// Where Celery keeps the tasks that workers hold: `[message, exchange, routing key]` in JSON.
const UNACKED: &[u8] = b"unacked";

/// Reads which tasks of a queue are held. The cursor is that of HSCAN, until its end.
struct Unacked {
    queue: Vec<u8>,
    cursor: Option<Vec<u8>>,
}

impl Reader for Unacked {
    fn page(&mut self, client: &Client, _offset: u64, count: u64) -> Result<Option<Vec<Element>>, Failure> {
        let Some(cursor) = self.cursor.take() else { return Ok(None) };
        let scan = cmd("HSCAN").arg(UNACKED).arg(cursor).arg("COUNT").arg(count).clone();
        let mut reply = reply::list(client.call(&scan, Resend::Harmless)?)?.into_iter();
        let next = bytes(reply.next().unwrap_or(Value::Nil))?;
        self.cursor = (next != b"0").then_some(next);
        let tasks = reply::pairs(reply.next().unwrap_or(Value::Nil))?;
        let elements = tasks.into_iter().map(|(_, task)| Ok(self.held(&parse(&bytes(task)?))));
        elements.collect::<Result<_, Failure>>().map(Some)
    }
}

impl Unacked {
    fn held(&self, task: &Json) -> Element {
        if task.get(2).and_then(Json::as_str).map(str::as_bytes) != Some(self.queue.as_slice()) {
            return Element::Foreign;
        }
        let id = task.get(0).and_then(|message| message.get("headers")?.get("id")?.as_str());
        Element::Broken(format!("the task {} of the hash unacked {RUNS}", id.unwrap_or_default()))
    }
}

/// Whether a task is one of a chord, whose last task begins what comes after all of them.
fn is_in_chord(json: &Json) -> Option<bool> {
    let body = BASE64_STANDARD.decode(json.get("body")?.as_str()?).ok()?;
    Some(!parse(&body).get(2)?.get("chord")?.is_null())
}

/// A task, or why it cannot be imported. Its id, eta and retries are in the headers. `priority` is that of its list.
fn celery_task(message: Vec<u8>, priority: i64) -> Result<Element, String> {
    let json = parse(&message);
    let header = |name| json.get("headers")?.get(name);
    let text = |name| header(name).and_then(Json::as_str);
    let no_time = |text: &str| format!("a task has an eta that is not a time: {text:?}");
    let due = text("eta").map(|text| eta(text).ok_or_else(|| no_time(text))).transpose()?;
    let own = json.get("properties").and_then(|properties| properties.get("priority")).and_then(Json::as_i64);
    let priority = own.unwrap_or(priority).clamp(0, CELERY_PRIORITIES);
    let attempt = attempts(header("retries").and_then(Json::as_i64));
    let id = text("id").map(str::to_owned);
    if is_in_chord(&json).unwrap_or(false) {
        return Err(format!("the task {} stays, because a chord would wait for it", id.unwrap_or_default()));
    }
    let message = NewMessage { payload: message, due, attempt, ..NewMessage::default() };
    Ok(job("celery", id.as_deref(), message.with("PRIORITY", Some(-priority))))
}

/// An instant in ISO 8601, in UTC if it has no offset. In Unix ms, rounded up.
fn eta(text: &str) -> Option<i64> {
    let with_offset: Result<jiff::Timestamp, _> = text.parse();
    let instant = match with_offset {
        Ok(instant) => instant,
        Err(_) => format!("{text}Z").parse().ok()?,
    };
    let ms = (instant.as_nanosecond() + 999_999).div_euclid(1_000_000);
    i64::try_from(ms).ok().map(|ms| ms.max(100_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::{eta, split};

    #[test]
    fn an_eta_is_an_instant() {
        assert_eq!(eta("2026-12-01T09:00:00+01:00"), Some(1_796_112_000_000));
        assert_eq!(eta("2026-12-01T08:00:00.000001"), Some(1_796_112_000_001));
        assert_eq!(eta("soon"), None);
    }

    #[test]
    fn a_source_is_the_name_of_a_queue_or_of_its_key() {
        assert_eq!(split(b"default", b"queue:"), (&b""[..], &b"default"[..]));
        assert_eq!(split(b"queue:default", b"queue:"), (&b""[..], &b"default"[..]));
        assert_eq!(split(b"app:queue:default", b"queue:"), (&b"app:"[..], &b"default"[..]));
    }
}

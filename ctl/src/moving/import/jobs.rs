//! Libraries that keep each job in a hash, and its id in lists and sorted sets: RQ and BullMQ. The payload is JSON with the
//! fields of the hash.

use super::ids::id;
use super::libraries::{add, attempts, split};
use super::source::{bytes, fields_as_json, object, Convert, Element, Found, Order};
use super::Parts;
use crate::cli::End;
use crate::moving::push::NewMessage;
use crate::server::{persistently, reply, Failure};
use crate::text::shown;
use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::{blocking::Client, cmd, Cmd, Resend, Value};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde_json::value::RawValue;
use serde_json::Value as Json;

/// The longest traceback that is read.
const TRACEBACK: usize = 1 << 20;

type Hash = Vec<(Vec<u8>, Vec<u8>)>;

/// The hashes of some keys; empty if there is none.
fn hashes(client: &Client, keys: &[Vec<u8>]) -> Result<Vec<Hash>, Failure> {
    let commands: Vec<Cmd> = keys.iter().map(|key| cmd("HGETALL").arg(key).clone()).collect();
    let mut hashes = Vec::with_capacity(keys.len());
    for reply in persistently(client, &commands) {
        let pairs = reply::pairs(reply?)?.into_iter().map(|(name, value)| Ok((bytes(name)?, bytes(value)?)));
        hashes.push(pairs.collect::<Result<_, Failure>>()?);
    }
    Ok(hashes)
}

fn field<'a>(hash: &'a Hash, name: &str) -> Option<&'a [u8]> {
    hash.iter().find(|(field, _)| field == name.as_bytes()).map(|(_, value)| value.as_slice())
}

/// Turns ids of jobs into elements, by means of their hashes, whose keys begin with `prefix`.
fn with_hashes(
    prefix: Vec<u8>,
    job: impl Fn(&Client, Found, &[u8], Hash) -> Result<Element, Failure> + 'static,
) -> Convert {
    Box::new(move |client: &Client, all: Vec<Found>| {
        let keys: Vec<Vec<u8>> = all.iter().map(|found| [prefix.as_slice(), &found.value].concat()).collect();
        let hashes = hashes(client, &keys)?;
        let element = |((found, key), hash): ((Found, Vec<u8>), Hash)| match hash.is_empty() {
            // A marker, by which older versions of BullMQ wake workers.
            true if found.value.starts_with(b"0:") => Ok(Element::Foreign),
            true => Ok(Element::Broken(format!("the job {} is gone", shown(&key)))),
            false => job(client, found, &key, hash),
        };
        all.into_iter().zip(keys).zip(hashes).map(element).collect()
    })
}

/// RQ: RPUSH and LPOP of job ids in `rq:queue:NAME`, and the sorted sets `rq:scheduled:NAME` in seconds, and `rq:failed:NAME`.
pub fn rq(client: &Client, source: &[u8]) -> Result<Parts, Failure> {
    let (prefix, name) = split(source, b"rq:queue:");
    let key = |kind: &[u8]| [prefix, kind, name].concat();
    let convert = |is_dead: bool| {
        let results = [prefix, b"rq:results:"].concat();
        with_hashes([prefix, b"rq:job:"].concat(), move |client, found, key, mut hash| {
            let results = [results.as_slice(), &found.value].concat();
            let error = if is_dead { rq_error(client, &results)? } else { None };
            let (id, past) = (id("rq", &[&found.value]), rq_past(&hash, error, is_dead));
            let remove = [key, &results].map(|key| cmd("DEL").arg(key).clone());
            hash.sort();
            hash.insert(0, (b"id".to_vec(), found.value));
            let message = NewMessage { id, payload: fields_as_json(&hash), due: found.due, ..past };
            Ok(Element::Message { message: Box::new(message), remove: remove.into() })
        })
    };
    let mut parts = Parts::new();
    add(&mut parts, client, key(b"rq:queue:"), Order::From(End::Left), convert(false))?;
    add(&mut parts, client, key(b"rq:scheduled:"), Order::Time, convert(false))?;
    add(&mut parts, client, key(b"rq:failed:"), Order::Score, convert(true))?;
    Ok(parts)
}

/// The last line of the traceback of a failed job, which its last result has as base64 of what zlib made of it.
fn rq_error(client: &Client, results: &[u8]) -> Result<Option<String>, Failure> {
    let last = cmd("XREVRANGE").arg(results).arg("+").arg("-").arg("COUNT").arg(1).clone();
    let entry = reply::list(client.call(&last, Resend::Harmless)?)?.into_iter().next().unwrap_or(Value::Nil);
    let fields = reply::list(entry)?.into_iter().nth(1).unwrap_or(Value::Nil);
    let name = |word: &Value| reply::text(word).as_deref() == Some("exc_string");
    let text = reply::list(fields)?.into_iter().skip_while(|word| !name(word)).nth(1);
    let text = text.and_then(|text| BASE64_STANDARD.decode(bytes(text).ok()?).ok());
    let text = text.and_then(|packed| decompress_to_vec_zlib_with_limit(&packed, TRACEBACK).ok());
    Ok(text.and_then(|text| String::from_utf8_lossy(&text).trim().lines().last().map(str::to_owned)))
}

/// RQ keeps how many retries are left, but counts those alone that the job itself has asked for. Of the others, it is only
/// known that the job was started.
fn rq_past(hash: &Hash, error: Option<String>, is_dead: bool) -> NewMessage {
    let number = |name| std::str::from_utf8(field(hash, name)?).ok()?.parse::<i64>().ok();
    let was_started = is_dead || field(hash, "started_at").is_some_and(|at| !at.is_empty());
    let tried = number("number_of_retries").unwrap_or(0) + i64::from(is_dead);
    let attempt = attempts(Some(tried.max(i64::from(was_started))));
    let retries = number("retries_left").map(|left| left + attempt.unwrap_or(0) - i64::from(is_dead));
    let past = NewMessage { attempt, dead: is_dead.then(|| b"retries".to_vec()), ..NewMessage::default() };
    past.with("RETRIES", retries).with("ERROR", error)
}

/// BullMQ: job ids in `bull:NAME:wait` and `…:paused`, taken from the right, in `…:prioritized` by score, in `…:delayed` and in
/// `…:failed`.
pub fn bullmq(client: &Client, source: &[u8]) -> Result<Parts, Failure> {
    // The names of queues have no colon, so a name with one has its prefix.
    let prefix = if source.contains(&b':') { b"".as_slice() } else { b"bull:" };
    let base = [prefix, source, b":"].concat();
    // A queue has one name in ids, with the usual prefix or without it.
    let bare = source.strip_prefix(b"bull:").filter(|name| !name.contains(&b':')).unwrap_or(source);
    let key = |rest: &[u8]| [base.as_slice(), rest].concat();
    let convert = |is_dead: bool| {
        let queue = bare.to_vec();
        with_hashes(base.clone(), move |_, found, key, hash| Ok(bullmq_job(&queue, found, key, &hash, is_dead)))
    };
    let mut parts = Parts::new();
    for list in [b"wait".as_slice(), b"paused"] {
        add(&mut parts, client, key(list), Order::From(End::Right), convert(false))?;
    }
    add(&mut parts, client, key(b"prioritized"), Order::Score, convert(false))?;
    add(&mut parts, client, key(b"delayed"), Order::BullMq, convert(false))?;
    add(&mut parts, client, key(b"failed"), Order::Score, convert(true))?;
    Ok(parts)
}

fn bullmq_job(queue: &[u8], found: Found, key: &[u8], hash: &Hash, is_dead: bool) -> Element {
    let text = |name| field(hash, name).map(|value| String::from_utf8_lossy(value).into_owned());
    let number = |name| text(name).and_then(|text| text.parse::<i64>().ok());
    // As it is: parsing and writing it again could change a number or the order of keys.
    let json = |name| match field(hash, name).map(serde_json::from_slice::<&RawValue>) {
        Some(Ok(json)) => json.get().to_owned(),
        Some(Err(_)) | None => Json::from(text(name)).to_string(),
    };
    let opts: Json = field(hash, "opts").and_then(|opts| serde_json::from_slice(opts).ok()).unwrap_or(Json::Null);
    let made = number("atm").or_else(|| number("attemptsMade")).unwrap_or(0);
    // 0 and 1, the default, mean no retries. With no retries, however, the death of a worker would make the job dead at once.
    let limit = opts.get("attempts").and_then(Json::as_i64).filter(|limit| *limit > 1);
    // A job that failed before that was refused by its code.
    let reason = if made < limit.unwrap_or(1) { "rejected" } else { "retries" };
    let pairs = [
        ("id".to_owned(), Json::from(String::from_utf8_lossy(&found.value)).to_string()),
        ("name".to_owned(), Json::from(text("name")).to_string()),
        ("data".to_owned(), json("data")),
        ("opts".to_owned(), json("opts")),
    ];
    let message = NewMessage {
        id: id("bullmq", &[queue, &found.value]),
        payload: object(&pairs),
        due: found.due,
        attempt: attempts(Some(made)),
        dead: is_dead.then(|| reason.into()),
        ..NewMessage::default()
    };
    // 0 is the highest there, and then 1, 2, …
    let message = message.with("PRIORITY", Some(-number("priority").unwrap_or(0).clamp(0, 128)));
    let message = message.with("RETRIES", limit.map(|limit| limit - 1)).with("ERROR", text("failedReason"));
    let logs = [key, b":logs"].concat();
    let remove = vec![cmd("DEL").arg(key).clone(), cmd("DEL").arg(logs).clone()];
    Element::Message { message: Box::new(message), remove }
}

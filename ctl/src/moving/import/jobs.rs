//! Libraries that keep each job in a hash, and its id in lists and sorted sets: what RQ and BullMQ have in common, and
//! RQ. The payload is JSON with the fields of the hash.

use super::ids::id;
use super::libraries::{add, attempts, split, stays, RUNS};
use super::source::{bytes, fields_as_json, Convert, Element, Order, SourceValue};
use super::Parts;
use crate::cli::End;
use crate::moving::push::NewMessage;
use crate::server::{persistently, reply, Failure};
use crate::text::shown;
use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::{blocking::Client, cmd, Cmd, Resend, Value};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// The longest traceback that is read.
const TRACEBACK: usize = 1 << 20;

pub type Hash = Vec<(Vec<u8>, Vec<u8>)>;

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

pub fn field<'a>(hash: &'a Hash, name: &str) -> Option<&'a [u8]> {
    hash.iter().find(|(field, _)| field == name.as_bytes()).map(|(_, value)| value.as_slice())
}

/// Keys beside that of a job, which exist if other jobs wait for it, or it has their results. It stays then: without
/// it, they would wait for ever.
#[derive(Clone, Copy)]
pub struct Ties {
    pub suffixes: &'static [&'static [u8]],
    pub why: &'static str,
}

/// Which of some jobs have ties.
fn tied(client: &Client, keys: &[Vec<u8>], ties: Ties) -> Result<Vec<bool>, Failure> {
    let command = |key: &Vec<u8>| {
        let mut exists = cmd("EXISTS");
        ties.suffixes.iter().for_each(|suffix| _ = exists.arg([key.as_slice(), suffix].concat()));
        exists
    };
    let commands: Vec<Cmd> = keys.iter().map(command).collect();
    persistently(client, &commands).into_iter().map(|reply| Ok(reply::int(&reply?) != Some(0))).collect()
}

/// Turns ids of jobs into elements, by means of their hashes, whose keys begin with `prefix`.
pub fn with_hashes(
    prefix: Vec<u8>,
    ties: Ties,
    job: impl Fn(&Client, SourceValue, &[u8], Hash) -> Result<Element, Failure> + 'static,
) -> Convert {
    Box::new(move |client: &Client, all: Vec<SourceValue>| {
        let keys: Vec<Vec<u8>> = all.iter().map(|found| [prefix.as_slice(), &found.value].concat()).collect();
        let hashes = hashes(client, &keys)?;
        let tied = tied(client, &keys, ties)?;
        let element = |(((found, key), hash), is_tied): (((SourceValue, Vec<u8>), Hash), bool)| match hash.is_empty() {
            // A marker, by which older versions of BullMQ wake workers.
            true if found.value.starts_with(b"0:") => Ok(Element::Foreign),
            true => Ok(Element::Broken(format!("the job {} is gone", shown(&key)))),
            false if is_tied => Ok(Element::Broken(format!("{} {}", shown(&key), ties.why))),
            false => job(client, found, &key, hash),
        };
        all.into_iter().zip(keys).zip(hashes).zip(tied).map(element).collect()
    })
}

/// `enqueue(…, depends_on=job)`.
const DEPENDENTS: Ties = Ties { suffixes: &[b":dependents"], why: "stays, because other jobs depend on it" };

/// RQ: RPUSH and LPOP of job ids in `rq:queue:NAME`, and the sorted sets `rq:scheduled:NAME` in seconds, and
/// `rq:failed:NAME`. A worker that ends between the pop and the start of a job leaves it in
/// `rq:queue:NAME:intermediate`.
pub fn rq(client: &Client, source: &[u8]) -> Result<Parts, Failure> {
    let (prefix, name) = split(source, b"rq:queue:");
    let key = |kind: &[u8]| [prefix, kind, name].concat();
    let convert = |is_dead: bool| {
        let results = [prefix, b"rq:results:"].concat();
        with_hashes([prefix, b"rq:job:"].concat(), DEPENDENTS, move |client, found, key, mut hash| {
            if field(&hash, "repeats_left").is_some_and(|left| !matches!(left, b"" | b"0")) {
                return Ok(Element::Broken(format!("{} stays, because it repeats itself (repeats_left)", shown(key))));
            }
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
    // They were before those that still wait.
    let taken = [&key(b"rq:queue:"), b":intermediate".as_slice()].concat();
    add(&mut parts, client, taken, Order::From(End::Left), convert(false))?;
    add(&mut parts, client, key(b"rq:queue:"), Order::From(End::Left), convert(false))?;
    add(&mut parts, client, key(b"rq:scheduled:"), Order::Time, convert(false))?;
    add(&mut parts, client, key(b"rq:failed:"), Order::Score, convert(true))?;
    for (kind, why) in
        [(b"rq:wip:".as_slice(), RUNS), (b"rq:deferred:".as_slice(), "stays, because it depends on other jobs")]
    {
        add(&mut parts, client, key(kind), Order::Score, stays(key(kind), why))?;
    }
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

/// RQ keeps how many retries are left, but counts those alone that the job itself has asked for. Of the others, it is
/// only known that the job was started.
fn rq_past(hash: &Hash, error: Option<String>, is_dead: bool) -> NewMessage {
    let number = |name| std::str::from_utf8(field(hash, name)?).ok()?.parse::<i64>().ok();
    let was_started = is_dead || field(hash, "started_at").is_some_and(|at| !at.is_empty());
    let tried = number("number_of_retries").unwrap_or(0) + i64::from(is_dead);
    let attempt = attempts(Some(tried.max(i64::from(was_started))));
    let retries = number("retries_left").map(|left| left + attempt.unwrap_or(0) - i64::from(is_dead));
    let past = NewMessage { attempt, dead: is_dead.then(|| b"retries".to_vec()), ..NewMessage::default() };
    past.with("RETRIES", retries).with("ERROR", error)
}

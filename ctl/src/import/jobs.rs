//! Libraries that keep each job in a hash, and its id in lists and sorted sets: RQ and BullMQ. The payload is JSON with the
//! fields of the hash.

use super::ids::id;
use super::libraries::{add_list, add_set, split};
use super::source::{bytes, fields_as_json, object, Convert, Element, Found, Score};
use super::Parts;
use crate::cli::{End, Unit};
use crate::failure::Failure;
use crate::name::shown;
use crate::reply;
use crate::transfer::{persistently, NewMessage};
use dq_client::{cmd, Client, Cmd, Value};
use serde_json::value::RawValue;
use serde_json::Value as Json;

type Hash = Vec<(Vec<u8>, Vec<u8>)>;

/// The hashes of some keys; empty if there is none.
fn hashes(client: &Client, keys: &[Vec<u8>]) -> Result<Vec<Hash>, Failure> {
    let commands: Vec<Cmd> = keys.iter().map(|key| cmd("HGETALL").arg(key).clone()).collect();
    let mut hashes = Vec::with_capacity(keys.len());
    for reply in persistently(client, &commands) {
        let pairs = match reply? {
            Value::Map(pairs) => pairs,
            other => {
                let mut items = reply::list(other)?.into_iter();
                std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect()
            }
        };
        hashes.push(
            pairs.into_iter().map(|(name, value)| Ok((bytes(name)?, bytes(value)?))).collect::<Result<_, Failure>>()?,
        );
    }
    Ok(hashes)
}

fn field<'a>(hash: &'a Hash, name: &str) -> Option<&'a [u8]> {
    hash.iter().find(|(field, _)| field == name.as_bytes()).map(|(_, value)| value.as_slice())
}

/// RQ: RPUSH and LPOP of job ids in `rq:queue:NAME`, and the sorted set `rq:scheduled:NAME` in seconds.
pub fn rq(client: &Client, source: &[u8], only_ids: bool) -> Result<Parts, Failure> {
    let (prefix, name) = split(source, b"rq:queue:");
    let key = |kind: &[u8]| [prefix, kind, name].concat();
    let convert = || -> Convert {
        let jobs = [prefix, b"rq:job:"].concat();
        Box::new(move |client: &Client, all: Vec<Found>| {
            let keys: Vec<Vec<u8>> = all.iter().map(|found| [jobs.as_slice(), &found.value].concat()).collect();
            let hashes = hashes(client, &keys)?;
            let elements = all.into_iter().zip(keys).zip(hashes);
            Ok(elements.map(|((found, key), hash)| rq_job(found, &key, hash, only_ids)).collect())
        })
    };
    let mut parts = Parts::new();
    add_list(&mut parts, client, key(b"rq:queue:"), End::Left, convert())?;
    add_set(&mut parts, client, key(b"rq:scheduled:"), Score::Time(Some(Unit::S)), convert())?;
    Ok(parts)
}

fn rq_job(found: Found, key: &[u8], mut hash: Hash, only_ids: bool) -> Element {
    if hash.is_empty() {
        return Element::Broken(format!("the job {} is gone", shown(key)));
    }
    let message_id = id("rq", &[&found.value]);
    let (payload, remove) = if only_ids {
        (found.value, Vec::new())
    } else {
        hash.sort();
        hash.insert(0, (b"id".to_vec(), found.value));
        (fields_as_json(&hash), vec![cmd("DEL").arg(key).clone()])
    };
    let message = NewMessage { id: message_id, payload, due: found.due, ..NewMessage::default() };
    Element::Message { message: Box::new(message), remove }
}

/// BullMQ: job ids in `bull:NAME:wait` and `…:paused`, taken from the right, in `…:prioritized` by score, and in `…:delayed`.
pub fn bullmq(client: &Client, source: &[u8]) -> Result<Parts, Failure> {
    // The names of queues have no colon, so a name with one has its prefix.
    let prefix = if source.contains(&b':') { b"".as_slice() } else { b"bull:" };
    let base = [prefix, source, b":"].concat();
    // A queue has one name in ids, with the usual prefix or without it.
    let bare = source.strip_prefix(b"bull:").filter(|name| !name.contains(&b':')).unwrap_or(source);
    let key = |rest: &[u8]| [base.as_slice(), rest].concat();
    let convert = || -> Convert {
        let (base, queue) = (base.clone(), bare.to_vec());
        Box::new(move |client: &Client, all: Vec<Found>| {
            let keys: Vec<Vec<u8>> = all.iter().map(|found| [base.as_slice(), &found.value].concat()).collect();
            let hashes = hashes(client, &keys)?;
            let elements = all.into_iter().zip(keys).zip(hashes);
            Ok(elements.map(|((found, key), hash)| bullmq_job(&queue, found, &key, &hash)).collect())
        })
    };
    let mut parts = Parts::new();
    for list in [b"wait".as_slice(), b"paused"] {
        add_list(&mut parts, client, key(list), End::Right, convert())?;
    }
    add_set(&mut parts, client, key(b"prioritized"), Score::Order, convert())?;
    add_set(&mut parts, client, key(b"delayed"), Score::BullMq, convert())?;
    Ok(parts)
}

fn bullmq_job(queue: &[u8], found: Found, key: &[u8], hash: &Hash) -> Element {
    // A marker, by which older versions wake workers.
    if found.value.starts_with(b"0:") {
        return Element::Foreign;
    }
    if hash.is_empty() {
        return Element::Broken(format!("the job {} is gone", shown(key)));
    }
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
    let attempts = opts.get("attempts").and_then(Json::as_i64).filter(|attempts| *attempts > 1);
    let retries = attempts.map(|attempts| (attempts - 1 - made).max(0));
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
        // 0 is the highest there, and then 1, 2, …
        priority: -number("priority").unwrap_or(0).clamp(0, 128),
        retries,
        ..NewMessage::default()
    };
    let logs = [key, b":logs"].concat();
    let remove = vec![cmd("DEL").arg(key).clone(), cmd("DEL").arg(logs).clone()];
    Element::Message { message: Box::new(message), remove }
}

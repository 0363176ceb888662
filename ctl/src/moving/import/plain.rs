//! Sorted sets, lists and streams that are read by code of one's own, not by a library.
//!
//! An element of a list has no id, and equal ones are different messages. So its id is made from the name of the list, the
//! hash of the element, and its number among the equal ones, counted from the end from which the list is consumed. That
//! number must not change because earlier ones were removed. So `--move` removes elements in transactions that also count
//! them, in a separate key: the next run begins with these counts. The key also has a random epoch, which is part
//! of all ids, and which is replaced when the list is empty or when the key has expired: the numbers begin again then, and
//! an equal element that is pushed to the list after that is a new one.

use super::ids::{hash, id};
use super::source::{bytes, fields_as_json, lrem, range, Element, Found, Reader, Score, SortedSet};
use crate::cli::{End, ImportArgs, Unit};
use crate::failure::Failure;
use crate::moving::push::NewMessage;
use crate::name::shown;
use crate::reply;
use crate::transfer::persistently;
use dq_client::{cmd, Client, Cmd, Error, Resend, Value};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// How long the counts of a list that is moved, and later its epoch, are kept: 30 days, in seconds.
const KEPT: u64 = 30 * 24 * 60 * 60;
const EPOCH: &str = "epoch";

pub fn sorted_set(key: Vec<u8>, unit: Option<Unit>) -> SortedSet {
    let source = key.clone();
    // With its score, since a member that is added again with another one is another message.
    let message = move |found: Found| {
        let score = found.score.map(|score| score.to_string()).unwrap_or_default();
        NewMessage {
            id: id("zset", &[&source, score.as_bytes(), &found.value]),
            payload: found.value,
            due: found.due,
            ..NewMessage::default()
        }
    };
    let convert = move |_: &Client, all: Vec<Found>| {
        Ok(all
            .into_iter()
            .map(|found| Element::Message { message: Box::new(message(found)), remove: Vec::new() })
            .collect())
    };
    SortedSet { key, score: Score::Time(unit), convert: Box::new(convert) }
}

/// A list of elements that may be equal.
pub struct PlainList {
    key: Vec<u8>,
    /// The key with the counts of what was removed, in the same slot.
    counts: Vec<u8>,
    from: End,
    epoch: Option<String>,
    /// The last number that an element of this hash got.
    numbers: HashMap<String, u64>,
    has_moved: bool,
}

impl PlainList {
    pub fn open(client: &Client, key: Vec<u8>, args: &ImportArgs) -> Result<PlainList, Failure> {
        let has_tag = key.iter().position(|byte| *byte == b'{').is_some_and(|open| {
            let rest = key.get(open + 1..).unwrap_or_default();
            rest.iter().position(|byte| *byte == b'}').is_some_and(|length| length > 0)
        });
        let mut counts = if has_tag { key.clone() } else { [b"{", key.as_slice(), b"}"].concat() };
        counts.extend(b":dqctl-import");
        let is_apart = !has_tag && key.contains(&b'}');
        if args.is_move && is_apart && is_cluster(client)? {
            return Err(Failure::failed(format!(
                "in a cluster, the list {} cannot be moved: its name has a }} and no hash tag, so no key for its counts is \
                 in its slot; rename it",
                shown(&key)
            )));
        }
        if !args.dry_run {
            let new = cmd("HSETNX").arg(&counts).arg(EPOCH).arg(random()).clone();
            let keep = cmd("EXPIRE").arg(&counts).arg(KEPT).clone();
            for reply in persistently(client, &[new, keep]) {
                reply?;
            }
        }
        let epoch = client.call(cmd("HGET").arg(&counts).arg(EPOCH), Resend::Harmless)?;
        let epoch = reply::text(&epoch);
        let from = args.from.unwrap_or(End::Left);
        Ok(PlainList { key, counts, from, epoch, numbers: HashMap::new(), has_moved: false })
    }

    /// Looks up how many elements of these hashes were moved by earlier runs.
    fn learn(&mut self, client: &Client, hashes: &[String]) -> Result<(), Failure> {
        let mut new: Vec<&String> = hashes.iter().filter(|hash| !self.numbers.contains_key(*hash)).collect();
        new.sort_unstable();
        new.dedup();
        if new.is_empty() {
            return Ok(());
        }
        let counts = client.call(cmd("HMGET").arg(&self.counts).arg(&new), Resend::Harmless)?;
        let count = |value: &Value| reply::text(value).and_then(|text| text.parse().ok()).unwrap_or(0);
        let counts: Vec<u64> = reply::list(counts)?.iter().map(count).collect();
        let learnt: Vec<(String, u64)> = new.into_iter().cloned().zip(counts).collect();
        self.numbers.extend(learnt);
        Ok(())
    }
}

impl Reader for PlainList {
    fn page(&mut self, client: &Client, offset: u64, count: u64) -> Result<Option<Vec<Element>>, Failure> {
        let values = range(client, &self.key, self.from, offset, count)?;
        if values.is_empty() {
            return Ok(None);
        }
        let hashes: Vec<String> =
            values.iter().map(|value| hash(value).get(..32).unwrap_or_default().to_owned()).collect();
        self.learn(client, &hashes)?;
        let mut elements = Vec::with_capacity(values.len());
        for (value, hash) in values.into_iter().zip(hashes) {
            let number = self.numbers.entry(hash.clone()).or_default();
            *number += 1;
            let number = number.to_string();
            let mut parts = vec![self.key.as_slice()];
            parts.extend(self.epoch.as_ref().map(String::as_bytes));
            parts.extend([hash.as_bytes(), number.as_bytes()]);
            let id = id("list", &parts);
            let count = cmd("HINCRBY").arg(&self.counts).arg(&hash).arg(1).clone();
            let remove = vec![lrem(&self.key, self.from, &value), count];
            elements.push(Element::Message {
                message: Box::new(NewMessage { id, payload: value, ..NewMessage::default() }),
                remove,
            });
        }
        Ok(Some(elements))
    }

    /// Once and in one step: if its reply is lost, the counts tell the next run what was removed.
    fn remove(&mut self, client: &Client, commands: &[Cmd]) -> Result<(), Failure> {
        let mut all = commands.to_vec();
        all.push(cmd("EXPIRE").arg(&self.counts).arg(KEPT).clone());
        for reply in client.transaction(&all)? {
            reply?;
        }
        self.has_moved = true;
        Ok(())
    }

    fn finish(&mut self, client: &Client) -> Result<(), Failure> {
        let left = client.call(cmd("LLEN").arg(&self.key), Resend::Harmless)?;
        if !self.has_moved || left != Value::Int(0) {
            return Ok(());
        }
        let commands = [
            cmd("DEL").arg(&self.counts).clone(),
            cmd("HSET").arg(&self.counts).arg(EPOCH).arg(random()).clone(),
            cmd("EXPIRE").arg(&self.counts).arg(KEPT).clone(),
        ];
        for reply in client.transaction(&commands)? {
            reply?;
        }
        Ok(())
    }
}

fn random() -> String {
    format!("{:016x}", RandomState::new().hash_one(0_u8))
}

/// A server without cluster support does not tell the slot of a key.
fn is_cluster(client: &Client) -> Result<bool, Failure> {
    match client.call(cmd("CLUSTER").arg("KEYSLOT").arg("a"), Resend::Harmless) {
        Ok(_) => Ok(true),
        Err(Error::Server(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A stream: all its entries, in their order.
pub struct Stream {
    pub key: Vec<u8>,
    /// The last entry that was read.
    pub last: Option<Vec<u8>>,
}

impl Reader for Stream {
    fn page(&mut self, client: &Client, _: u64, count: u64) -> Result<Option<Vec<Element>>, Failure> {
        let start = self.last.as_ref().map_or_else(|| b"-".to_vec(), |last| [b"(", last.as_slice()].concat());
        let mut range = cmd("XRANGE");
        range.arg(&self.key).arg(start).arg("+").arg("COUNT").arg(count);
        let mut elements = Vec::new();
        for entry in reply::list(client.call(&range, Resend::Harmless)?)? {
            let mut parts = reply::list(entry)?.into_iter();
            let entry = bytes(parts.next().unwrap_or(Value::Nil))?;
            let mut words = reply::list(parts.next().unwrap_or(Value::Nil))?.into_iter();
            let mut fields = Vec::new();
            while let (Some(field), Some(value)) = (words.next(), words.next()) {
                fields.push((bytes(field)?, bytes(value)?));
            }
            let (payload, headers) = content(fields);
            let id = id("stream", &[&self.key, &entry]);
            let message = NewMessage { id, payload, headers, ..NewMessage::default() };
            let remove = vec![cmd("XDEL").arg(&self.key).arg(&entry).clone()];
            elements.push(Element::Message { message: Box::new(message), remove });
            self.last = Some(entry);
        }
        Ok(Some(elements).filter(|elements| !elements.is_empty()))
    }
}

type Field = (Vec<u8>, Vec<u8>);

/// The payload and the headers of an entry: the field `payload`, if it is the only one; that and the headers, if a queue of
/// dq wrote the entry (FORWARD); else all fields as JSON.
fn content(mut fields: Vec<Field>) -> (Vec<u8>, Vec<Field>) {
    const HEADER: &[u8] = b"header:";
    let names: Vec<&[u8]> = fields.iter().map(|(name, _)| name.as_slice()).collect();
    if names == [b"payload"] {
        return (fields.swap_remove(0).1, Vec::new());
    }
    match names.as_slice() {
        [b"id", b"payload", b"due", headers @ ..] if headers.iter().all(|name| name.starts_with(HEADER)) => {
            let mut headers = fields.split_off(3);
            headers.iter_mut().for_each(|(name, _)| drop(name.drain(..HEADER.len())));
            (fields.swap_remove(1).1, headers)
        }
        _ => (fields_as_json(&fields), Vec::new()),
    }
}

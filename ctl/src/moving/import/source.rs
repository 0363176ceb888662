//! Sources: keys that are read page by page, and whose elements are turned into messages.

use super::score::due;
use crate::cli::End;
use crate::moving::push::{type_of, NewMessage, Rule};
use crate::server::{reply, Failure};
use base64::prelude::{Engine, BASE64_STANDARD};
use dq_client::{blocking::Client, cmd, Cmd, Resend, Value};
use serde_json::Value as Json;

/// An element of a source.
pub enum Element {
    /// A message, and the commands that remove it from the source. Executing these twice is harmless.
    Message { message: Box<NewMessage>, remove: Vec<Cmd> },
    /// A recurring message with its rule, and the commands that remove it from the source.
    Schedule { message: Box<NewMessage>, rule: Rule, remove: Vec<Cmd> },
    /// It belongs to another queue that shares the key, or was imported with something else.
    Foreign,
    /// Why the element cannot be imported.
    Broken(String),
}

/// What is read, page by page.
pub trait Reader {
    /// Elements that follow the first `offset` ones, about `count` of them; `None` at the end. A page can be empty.
    fn page(&mut self, client: &Client, offset: u64, count: u64) -> Result<Option<Vec<Element>>, Failure>;
}

/// A value of a list or a sorted set, and its due time.
pub struct SourceValue {
    pub value: Vec<u8>,
    pub due: Option<i64>,
    /// Its score in a sorted set.
    pub score: Option<f64>,
}

/// Turns the values of a page into elements, one for each. The readers add the command that removes the value itself.
pub type Convert = Box<dyn Fn(&Client, Vec<SourceValue>) -> Result<Vec<Element>, Failure>>;

/// In which order the values of a key are consumed, and when they are due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A list, from one of its ends on.
    From(End),
    /// A sorted set whose scores are times.
    Time,
    /// The same in Unix ms times 4096, plus a counter.
    BullMq,
    /// The same whose scores are no times.
    Score,
}

/// The values of a list or of a sorted set.
pub struct Values {
    pub key: Vec<u8>,
    pub order: Order,
    pub convert: Convert,
}

impl Reader for Values {
    fn page(&mut self, client: &Client, offset: u64, count: u64) -> Result<Option<Vec<Element>>, Failure> {
        let index = |number| i64::try_from(number).unwrap_or(i64::MAX);
        let (first, last) = (index(offset), index(offset + count));
        let range = |name, start, stop| cmd(name).arg(&self.key).arg(start).arg(stop).clone();
        let range = match self.order {
            Order::From(End::Left) => range("LRANGE", first, last - 1),
            Order::From(End::Right) => range("LRANGE", -last, -1 - first),
            Order::Time | Order::BullMq | Order::Score => range("ZRANGE", first, last - 1).arg("WITHSCORES").clone(),
        };
        let reply = client.call(&range, Resend::Harmless)?;
        let mut values: Vec<Scored> = match self.order {
            Order::From(_) => reply::list(reply)?.into_iter().map(|value| Ok((bytes(value)?, None))).collect(),
            Order::Time | Order::BullMq | Order::Score => with_scores(reply),
        }?;
        if values.is_empty() {
            return Ok(None);
        }
        if self.order == Order::From(End::Right) {
            values.reverse();
        }
        let (mut found, mut dues, mut removals) = (Vec::new(), Vec::new(), Vec::new());
        for (value, score) in values {
            let due = match (self.order, score) {
                (Order::Time, Some(score)) => due(score).map(Some),
                (Order::BullMq, Some(score)) => due((score / 4096.0).floor()).map(Some),
                (Order::From(_) | Order::Score, _) | (Order::Time | Order::BullMq, None) => Ok(None),
            };
            removals.push(match self.order {
                Order::From(end) => {
                    cmd("LREM").arg(&self.key).arg(if end == End::Left { 1 } else { -1 }).arg(&value).clone()
                }
                Order::Time | Order::BullMq | Order::Score => cmd("ZREM").arg(&self.key).arg(&value).clone(),
            });
            found.push(SourceValue { value, due: due.clone().ok().flatten(), score });
            dues.push(due);
        }
        let mut elements = (self.convert)(client, found)?;
        for ((element, due), removal) in elements.iter_mut().zip(dues).zip(removals) {
            match (element, due) {
                (Element::Message { remove, .. } | Element::Schedule { remove, .. }, Ok(_)) => {
                    remove.insert(0, removal);
                }
                (element @ (Element::Message { .. } | Element::Schedule { .. }), Err(why)) => {
                    *element = Element::Broken(why);
                }
                (Element::Foreign | Element::Broken(_), _) => {}
            }
        }
        Ok(Some(elements))
    }
}

/// An element, and its score if it is one of a sorted set.
type Scored = (Vec<u8>, Option<f64>);

/// Members with their scores: pairs in RESP3, and one flat list of texts in RESP2.
fn with_scores(reply: Value) -> Result<Vec<Scored>, Failure> {
    let mut items = reply::list(reply)?.into_iter();
    let mut members = Vec::new();
    while let Some(item) = items.next() {
        let (member, score) = match item {
            Value::Array(pair) => {
                let mut pair = pair.into_iter();
                (pair.next().unwrap_or(Value::Nil), pair.next().unwrap_or(Value::Nil))
            }
            member => (member, items.next().unwrap_or(Value::Nil)),
        };
        let score = score_of(&score).ok_or_else(|| Failure::failed("the server sent a score that is not a number"))?;
        members.push((bytes(member)?, Some(score)));
    }
    Ok(members)
}

/// A score, which is a text in RESP2.
pub fn score_of(value: &Value) -> Option<f64> {
    match value {
        Value::Double(score) => Some(*score),
        other => reply::text(other)?.parse().ok(),
    }
}

pub fn bytes(value: Value) -> Result<Vec<u8>, Failure> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        other => Err(reply::unexpected(&other)),
    }
}

/// Whether a key exists; an error if it has another type.
pub fn exists(client: &Client, key: &[u8], wanted: &str) -> Result<bool, Failure> {
    match type_of(client, key)?.as_str() {
        "none" => Ok(false),
        found if found == wanted => Ok(true),
        found => {
            let key = crate::text::shown(key);
            Err(Failure::failed(format!("the source {key} is a {found}, and not a {wanted}; name a key that is one")))
        }
    }
}

/// Fields and values as a JSON object. Values that are not UTF-8 are base64 under `NAME-base64`. If two fields have the
/// same name, the result is a list of pairs.
pub fn fields_as_json(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for (name, value) in fields {
        let name = String::from_utf8_lossy(name).into_owned();
        pairs.push(match std::str::from_utf8(value) {
            Ok(text) => (name, Json::from(text).to_string()),
            Err(_) => (format!("{name}-base64"), Json::from(BASE64_STANDARD.encode(value)).to_string()),
        });
    }
    let mut names: Vec<&String> = pairs.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < pairs.len() {
        let pairs: Vec<String> =
            pairs.iter().map(|(name, value)| format!("[{},{value}]", Json::from(name.as_str()))).collect();
        return format!("[{}]", pairs.join(",")).into_bytes();
    }
    object(&pairs)
}

/// A JSON object of names and values that are JSON already, in this order.
pub fn object(pairs: &[(String, String)]) -> Vec<u8> {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}:{value}", Json::from(name.as_str()))).collect();
    format!("{{{}}}", pairs.join(",")).into_bytes()
}

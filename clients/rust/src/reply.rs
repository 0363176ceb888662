//! Reads replies, which differ between RESP2 and RESP3 only in their maps.

use crate::Error;
use redis::Value;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The reply; an error if it is one.
pub(crate) fn checked(value: Value) -> Result<Value, Error> {
    match value {
        Value::ServerError(error) => Err(Error::from_reply(error.code(), error.details().unwrap_or_default())),
        value => Ok(value),
    }
}

fn unexpected(value: &Value) -> Error {
    Error::Protocol(format!("{value:?}"))
}

pub(crate) fn int(value: &Value) -> Result<i64, Error> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::BulkString(bytes) => {
            std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok()).ok_or_else(|| unexpected(value))
        }
        _ => Err(unexpected(value)),
    }
}

/// A number that is never negative.
pub(crate) fn count(value: &Value) -> Result<u64, Error> {
    u64::try_from(int(value)?).map_err(|_| unexpected(value))
}

pub(crate) fn bytes(value: Value) -> Result<Vec<u8>, Error> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text.into_bytes()),
        Value::Okay => Ok(b"OK".to_vec()),
        value => Err(unexpected(&value)),
    }
}

pub(crate) fn text(value: &Value) -> Result<String, Error> {
    match value {
        Value::BulkString(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text.clone()),
        Value::Okay => Ok("OK".to_owned()),
        value => Err(unexpected(value)),
    }
}

/// The parts of a page of an iteration: the cursor of the next page, `None` at the end, and the items.
pub(crate) fn page(value: Value) -> Result<(Option<Vec<u8>>, Vec<Value>), Error> {
    let mut parts = list(value)?.into_iter();
    let cursor = bytes(parts.next().unwrap_or_default())?;
    let items = list(parts.next().unwrap_or_default())?;
    Ok((Some(cursor).filter(|cursor| cursor != b"0"), items))
}

/// An array; null is an empty one.
pub(crate) fn list(value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(items) | Value::Set(items) => Ok(items),
        Value::Nil => Ok(Vec::new()),
        value => Err(unexpected(&value)),
    }
}

/// The pairs of a map, or in RESP2 of the flat array that stands for one.
pub(crate) fn pairs(value: Value) -> Result<Vec<(Value, Value)>, Error> {
    match value {
        Value::Map(pairs) => Ok(pairs),
        Value::Array(items) => {
            let mut items = items.into_iter();
            Ok(std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect())
        }
        value => Err(unexpected(&value)),
    }
}

/// `None` if the value is null.
pub(crate) fn optional<T>(value: Value, read: impl FnOnce(Value) -> Result<T, Error>) -> Result<Option<T>, Error> {
    if value == Value::Nil {
        Ok(None)
    } else {
        read(value).map(Some)
    }
}

/// A map, or in RESP2 the flat array of its fields and values.
#[derive(Debug)]
pub(crate) struct Fields(BTreeMap<String, Field>);

#[derive(Debug)]
struct Field {
    value: Value,
    was_read: Cell<bool>,
}

impl Fields {
    pub fn from(value: Value) -> Result<Fields, Error> {
        let field = |(name, value)| Ok((text(&name)?, Field { value, was_read: Cell::new(false) }));
        pairs(value)?.into_iter().map(field).collect::<Result<_, _>>().map(Fields)
    }

    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).map(|field| field.value).filter(|value| *value != Value::Nil)
    }

    fn find(&self, name: &str) -> Option<&Value> {
        let field = self.0.get(name)?;
        field.was_read.set(true);
        Some(&field.value)
    }

    fn get(&self, name: &str) -> Result<&Value, Error> {
        self.find(name).ok_or_else(|| Error::Protocol(format!("no field {name}")))
    }

    pub fn int(&self, name: &str) -> Result<i64, Error> {
        int(self.get(name)?)
    }

    /// A number that an older server may not have, or that is null.
    pub fn maybe_int(&self, name: &str) -> Result<Option<i64>, Error> {
        self.find(name).filter(|value| **value != Value::Nil).map(int).transpose()
    }

    /// A number that is never negative, and 0 if the server does not have it.
    pub fn count(&self, name: &str) -> Result<u64, Error> {
        self.find(name).map_or(Ok(0), count)
    }

    pub fn maybe_text(&self, name: &str) -> Result<Option<String>, Error> {
        self.find(name).filter(|value| **value != Value::Nil).map(text).transpose()
    }

    /// The fields that were neither taken nor read, as text: those unknown to this version.
    pub fn unknown(&self) -> BTreeMap<String, String> {
        let as_text = |value: &Value| text(value).or_else(|_| int(value).map(|number| number.to_string()));
        let unknown = self.0.iter().filter(|(_, field)| !field.was_read.get());
        unknown.filter_map(|(name, field)| Some((name.clone(), as_text(&field.value).ok()?))).collect()
    }

    /// The fields that were not taken.
    pub fn into_rest(self) -> impl Iterator<Item = (String, Value)> {
        self.0.into_iter().map(|(name, field)| (name, field.value))
    }
}

//! Reads replies, which differ between RESP2 and RESP3 only in their maps.

use crate::request::time_of;
use crate::Error;
use redis::Value;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};

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

/// The fields of a map, or in RESP2 of the flat array that stands for one. Each is read once.
#[derive(Debug)]
pub(crate) struct Fields(BTreeMap<String, Value>);

impl Fields {
    pub fn from(value: Value) -> Result<Fields, Error> {
        pairs(value)?.into_iter().map(|(name, value)| Ok((text(&name)?, value))).collect::<Result<_, _>>().map(Fields)
    }

    /// Reads a field. One that is missing, because the server is older, is like null.
    pub fn get<F: Field>(&mut self, name: &str) -> Result<F, Error> {
        let value = self.0.remove(name).unwrap_or_default();
        F::read(value).map_err(|error| Error::Protocol(format!("{name}: {error}")))
    }

    /// Whether there is a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The fields that were not read, as text: those unknown to this version.
    pub fn unknown(&self) -> BTreeMap<String, String> {
        let as_text = |value: &Value| text(value).or_else(|_| int(value).map(|number| number.to_string()));
        self.0.iter().filter_map(|(name, value)| Some((name.clone(), as_text(value).ok()?))).collect()
    }
}

/// What several fields of a reply can be read as, beginning with one of this name.
pub(crate) trait Part: Sized {
    fn read_part(fields: &mut Fields, name: &str) -> Result<Self, Error>;
}

impl<F: Field> Part for F {
    fn read_part(fields: &mut Fields, name: &str) -> Result<Self, Error> {
        fields.get(name)
    }
}

/// The fields that are unknown to this version, as text: those that no earlier part has read.
impl Part for BTreeMap<String, String> {
    fn read_part(fields: &mut Fields, _: &str) -> Result<Self, Error> {
        Ok(fields.unknown())
    }
}

impl<T> Part for PhantomData<fn() -> T> {
    fn read_part(_: &mut Fields, _: &str) -> Result<Self, Error> {
        Ok(PhantomData)
    }
}

/// Declares a struct, and how it is read from the fields of a reply: each field by the name that follows it.
macro_rules! fields {
    ($(#[$attribute:meta])* $of:ident$(<$T:ident>)? { $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $name:expr,)* }) => {
        $(#[$attribute])*
        #[non_exhaustive]
        pub struct $of$(<$T>)? {
            $($(#[$doc])* $vis $field: $type,)*
        }

        impl$(<$T>)? $of$(<$T>)? {
            pub(crate) fn read_fields(fields: &mut crate::reply::Fields) -> Result<Self, crate::Error> {
                Ok($of { $($field: crate::reply::Part::read_part(fields, $name)?,)* })
            }
        }
    };
}
pub(crate) use fields;

/// The same for a reply that has no other fields.
macro_rules! reply {
    ($(#[$attribute:meta])* $of:ident$(<$T:ident>)? { $($body:tt)* }) => {
        crate::reply::fields! { $(#[$attribute])* $of$(<$T>)? { $($body)* } }

        impl$(<$T>)? crate::reply::Field for $of$(<$T>)? {
            fn read(reply: redis::Value) -> Result<Self, crate::Error> {
                Self::read_fields(&mut crate::reply::Fields::from(reply)?)
            }
        }
    };
}
pub(crate) use reply;

/// What a field can be read as. Null is zero, empty or `None`, unless the type has no such value.
pub(crate) trait Field: Sized {
    fn read(value: Value) -> Result<Self, Error>;
}

impl<F: Field> Field for Option<F> {
    fn read(value: Value) -> Result<Self, Error> {
        optional(value, F::read)
    }
}

impl<F: Field> Field for Vec<F> {
    fn read(value: Value) -> Result<Self, Error> {
        list(value)?.into_iter().map(F::read).collect()
    }
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl Field for $number {
            /// A number beyond the range is the nearest one in it.
            fn read(value: Value) -> Result<Self, Error> {
                let number = if value == Value::Nil { 0 } else { int(&value)? };
                Ok(<$number>::try_from(number).unwrap_or(if number < 0 { <$number>::MIN } else { <$number>::MAX }))
            }
        }
    )* };
}

numbers!(i8 i32 i64 u32 u64);

impl Field for bool {
    fn read(value: Value) -> Result<Self, Error> {
        i64::read(value).map(|number| number != 0)
    }
}

impl Field for Duration {
    fn read(value: Value) -> Result<Self, Error> {
        u64::read(value).map(Duration::from_millis)
    }
}

impl Field for SystemTime {
    fn read(value: Value) -> Result<Self, Error> {
        u64::read(value).map(time_of)
    }
}

impl Field for String {
    fn read(value: Value) -> Result<Self, Error> {
        text(&value)
    }
}

impl Field for Vec<u8> {
    fn read(value: Value) -> Result<Self, Error> {
        bytes(value)
    }
}

impl Field for Value {
    fn read(value: Value) -> Result<Self, Error> {
        Ok(value)
    }
}

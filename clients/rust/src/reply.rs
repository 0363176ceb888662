//! Reads replies, which differ between RESP2 and RESP3 only in their maps.

use crate::error::Error;
use crate::names::{MessageId, QueueName, Receipt};
use crate::time::from_unix_ms;
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

/// The reply of `TIME`, since 1970; `None` if the user may not ask.
pub(crate) fn time(value: Value) -> Option<Duration> {
    let [seconds, micros] = <[Value; 2]>::try_from(list(value).ok()?).ok()?;
    let number = |value| text(value).ok()?.parse::<u64>().ok();
    Some(Duration::from_secs(number(seconds)?) + Duration::from_micros(number(micros)?))
}

pub(crate) fn bytes(value: Value) -> Result<Vec<u8>, Error> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Ok(text.into_bytes()),
        Value::Okay => Ok(b"OK".to_vec()),
        value => Err(unexpected(&value)),
    }
}

pub(crate) fn text(value: Value) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&bytes(value)?).into_owned())
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
        pairs(value)?.into_iter().map(|(name, value)| Ok((text(name)?, value))).collect::<Result<_, _>>().map(Fields)
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
        let as_text = |value: &Value| text(value.clone()).or_else(|_| int(value).map(|number| number.to_string()));
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

/// Declares a struct, and how it is read from the fields of a reply: each field by the name that follows it.
macro_rules! fields {
    ($(#[$attribute:meta])* $of:ident$(<$T:ident>)? {
        $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty = $name:expr,)*
    }) => {
        $(#[$attribute])*
        #[non_exhaustive]
        pub struct $of$(<$T>)? {
            $($(#[$doc])* $vis $field: $type,)*
        }

        impl$(<$T>)? $of$(<$T>)? {
            pub(crate) fn read_fields(fields: &mut crate::reply::Fields) -> Result<Self, crate::error::Error> {
                Ok($of { $($field: crate::reply::Part::read_part(fields, $name)?,)* })
            }
        }
    };
}
pub(crate) use fields;

/// Reads a reply that the program has asked for with `Client::call` or `Client::batch`.
macro_rules! try_from_value {
    ($of:ident$(<$T:ident>)?) => {
        impl$(<$T>)? TryFrom<redis::Value> for $of$(<$T>)? {
            type Error = crate::error::Error;

            /// Reads a reply of [`Client::call`](crate::both::Client::call) or
            /// [`Client::batch`](crate::both::Client::batch).
            fn try_from(reply: redis::Value) -> Result<Self, crate::error::Error> {
                crate::reply::Field::read(reply)
            }
        }
    };
}
pub(crate) use try_from_value;

/// The same for a reply that has no other fields.
macro_rules! reply {
    ($(#[$attribute:meta])* $of:ident$(<$T:ident>)? { $($body:tt)* }) => {
        crate::reply::fields! { $(#[$attribute])* $of$(<$T>)? { $($body)* } }

        impl$(<$T>)? crate::reply::Field for $of$(<$T>)? {
            fn read(reply: redis::Value) -> Result<Self, crate::error::Error> {
                Self::read_fields(&mut crate::reply::Fields::from(reply)?)
            }
        }

        crate::reply::try_from_value! { $of$(<$T>)? }
    };
}
pub(crate) use reply;

/// Declares a struct that is read from an array: each field from the element at its place, which is null if it is
/// missing.
macro_rules! row {
    ($(#[$attribute:meta])* $of:ident$(<$T:ident>)? { $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        #[non_exhaustive]
        pub struct $of$(<$T>)? {
            $($(#[$doc])* $vis $field: $type,)*
        }

        impl$(<$T>)? crate::reply::Field for $of$(<$T>)? {
            fn read(reply: redis::Value) -> Result<Self, crate::error::Error> {
                let mut elements = crate::reply::list(reply)?.into_iter();
                Ok($of { $($field: crate::reply::Field::read(elements.next().unwrap_or_default())?,)* })
            }
        }

        crate::reply::try_from_value! { $of$(<$T>)? }
    };
}
pub(crate) use row;

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

/// An array of two.
impl<A: Field, B: Field> Field for (A, B) {
    fn read(value: Value) -> Result<Self, Error> {
        let mut elements = list(value)?.into_iter();
        Ok((A::read(elements.next().unwrap_or_default())?, B::read(elements.next().unwrap_or_default())?))
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

numbers!(i8 i32 i64 u16 u32 u64);

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
        u64::read(value).map(from_unix_ms)
    }
}

impl Field for String {
    fn read(value: Value) -> Result<Self, Error> {
        text(value)
    }
}

impl Field for Vec<u8> {
    fn read(value: Value) -> Result<Self, Error> {
        bytes(value)
    }
}

impl Field for QueueName {
    fn read(value: Value) -> Result<Self, Error> {
        bytes(value).map(QueueName::from)
    }
}

impl Field for MessageId {
    fn read(value: Value) -> Result<Self, Error> {
        bytes(value).map(MessageId::from)
    }
}

impl Field for Receipt {
    fn read(value: Value) -> Result<Self, Error> {
        bytes(value).map(Receipt::from)
    }
}

impl Field for Value {
    fn read(value: Value) -> Result<Self, Error> {
        Ok(value)
    }
}

/// A reply that says nothing.
impl Field for () {
    fn read(_: Value) -> Result<Self, Error> {
        Ok(())
    }
}

impl<T> Field for PhantomData<fn() -> T> {
    fn read(_: Value) -> Result<Self, Error> {
        Ok(PhantomData)
    }
}

/// Declares an enum whose values are words of commands and replies.
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// The word for it in commands and replies.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::error::Error;

            fn from_str(text: &str) -> Result<$name, crate::error::Error> {
                let found = $name::ALL.into_iter().find(|one| one.as_str().eq_ignore_ascii_case(text));
                found.ok_or_else(|| crate::error::Error::Protocol(format!("unknown {} '{text}'", stringify!($name))))
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                self.as_str().as_bytes()
            }
        }

        impl crate::reply::Field for $name {
            fn read(value: redis::Value) -> Result<Self, crate::error::Error> {
                crate::reply::text(value)?.parse()
            }
        }
    };
}
pub(crate) use words;

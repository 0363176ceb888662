//! Headers: the metadata of a message.

use crate::error::Error;
use crate::reply::{self, Field};
use crate::request::Command;
use redis::Value;
use std::collections::BTreeMap;

/// The headers of a message: values by their names. Both are any bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Headers(BTreeMap<Vec<u8>, Vec<u8>>);

impl Headers {
    /// The value of the header with this name.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.0.get(name.as_ref()).map(Vec::as_slice)
    }

    /// The value of the header with this name, if it is UTF-8.
    pub fn text(&self, name: impl AsRef<[u8]>) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets a header. The last value of a name counts.
    pub fn set(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.0.insert(name.as_ref().to_vec(), value.as_ref().to_vec());
    }

    pub(super) fn write(&self, command: Command) -> Command {
        if self.is_empty() {
            return command;
        }
        let command = command.word("HEADERS").word(self.0.len());
        command.words(self.iter().flat_map(|(name, value)| [name, value]))
    }
}

/// A map, or the flat array that stands for it in RESP2; no headers if it is missing.
impl Field for Headers {
    fn read(value: Value) -> Result<Self, Error> {
        let pairs = reply::optional(value, reply::pairs)?.unwrap_or_default();
        pairs.into_iter().map(|(name, value)| Ok((reply::bytes(name)?, reply::bytes(value)?))).collect()
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Headers {
        let mut headers = Headers::default();
        pairs.into_iter().for_each(|(name, value)| headers.set(name, value));
        headers
    }
}

//! MessagePack as all versions of the format use it: structs are arrays without field names.

use super::Refused;
use serde::{Deserialize, Serialize};

/// Appends a value to `buffer`.
pub fn encode<T: Serialize>(buffer: &mut Vec<u8>, value: &T) -> Result<(), Refused> {
    rmp_serde::encode::write(buffer, value).map_err(|_| Refused::Malformed)
}

/// Reads a value. Returns an error if the bytes are damaged or if anything follows the value.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refused> {
    let mut values = Values::new(bytes);
    let value = values.next()?;
    values.end()?;
    Ok(value)
}

/// Reads values that were written one after the other.
pub struct Values<'a>(rmp_serde::Deserializer<rmp_serde::decode::ReadRefReader<'a, [u8]>>);

impl<'a> Values<'a> {
    /// Reads from the first of `bytes` on.
    pub fn new(bytes: &'a [u8]) -> Values<'a> {
        Values(rmp_serde::Deserializer::from_read_ref(bytes))
    }

    /// Reads the next value. Returns an error if the bytes are damaged, or if there is none.
    pub fn next<T: Deserialize<'a>>(&mut self) -> Result<T, Refused> {
        T::deserialize(&mut self.0).map_err(|_| Refused::Malformed)
    }

    /// Returns an error unless all bytes were read.
    pub fn end(mut self) -> Result<(), Refused> {
        // If a byte is left, this read returns anything but the error for an input that ends before a value's first
        // byte.
        match <()>::deserialize(&mut self.0) {
            Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(()),
            _ => Err(Refused::Malformed),
        }
    }
}

/// The version that the bytes begin with, and the bytes that follow it.
pub fn version_of(bytes: &[u8]) -> Result<(u8, &[u8]), Refused> {
    let (version, rest) = bytes.split_first().ok_or(Refused::Malformed)?;
    Ok((*version, rest))
}

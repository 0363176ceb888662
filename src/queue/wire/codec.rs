//! MessagePack as all versions of the format use it: structs are arrays without field names.

use super::Refused;
use serde::{Deserialize, Serialize};

/// Appends a value to `buffer`.
pub fn encode<T: Serialize>(buffer: &mut Vec<u8>, value: &T) -> Result<(), Refused> {
    rmp_serde::encode::write(buffer, value).map_err(|_| Refused::Malformed)
}

/// Reads a value. Returns an error if the bytes are damaged or if anything follows the value.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refused> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    let value = T::deserialize(&mut reader).map_err(|_| Refused::Malformed)?;
    // If a byte is left, this second read returns anything but the error for an input that ends before a value's first
    // byte.
    match <()>::deserialize(&mut reader) {
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(value),
        _ => Err(Refused::Malformed),
    }
}

/// The version that the bytes begin with, and the bytes that follow it.
pub fn version_of(bytes: &[u8]) -> Result<(u8, &[u8]), Refused> {
    let (version, rest) = bytes.split_first().ok_or(Refused::Malformed)?;
    Ok((*version, rest))
}

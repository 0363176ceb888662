//! The bytes of queues and effects in RDB files, in the AOF, on the replication link and in `DUMP`.
//!
//! Each version of the format has structs of its own in a file of its own, with conversions to and from the live
//! types, so a change of a live type cannot change the bytes. A version that was released is never edited again;
//! a new layout is a new version with a new file, and its number is added to the `match` on versions below. The first
//! byte of an effect, and of the first piece of a saved queue, is the version, and it is checked before anything else
//! is read. `docs/decisions/0003-format.md` has the policy.

mod codec;
mod snapshot;
mod v1;

pub use snapshot::{Loader, QueueHeader};

use super::effect::Stamped;
use std::fmt;

/// The version of the format that is written.
pub const VERSION: u8 = 1;

/// Why bytes from outside were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// They are damaged.
    Malformed,
    /// No queue could have written them.
    Impossible,
    /// They have this version of the format, which this module does not read.
    Version(u8),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Malformed => f.write_str("the bytes are damaged"),
            Refused::Impossible => f.write_str("the bytes describe a state that no queue can be in"),
            Refused::Version(version) => write!(
                f,
                "the bytes are of format version {version}, and this version of the module reads version {VERSION}: \
                 load the version of the module that wrote them, or a newer one"
            ),
        }
    }
}

impl<'a> Stamped<'a> {
    /// Appends the encoded effect to `buffer`.
    pub fn encode(&self, buffer: &mut Vec<u8>) -> Result<(), Refused> {
        buffer.push(VERSION);
        v1::Stamped::from(self).write(buffer)
    }

    /// Decodes what [`Stamped::encode`] wrote. Payloads are not copied, and the result is no larger than a small
    /// multiple of the input. Returns an error if the bytes are damaged or have another version.
    pub fn decode(bytes: &'a [u8]) -> Result<Stamped<'a>, Refused> {
        match codec::version_of(bytes)? {
            (1, rest) => v1::Stamped::read(rest)?.try_into(),
            (version, _) => Err(Refused::Version(version)),
        }
    }
}

//! The bytes of queues and effects in RDB files, in the AOF, on the replication link and in `DUMP`.
//!
//! The format grows, and its versions count the additions. Every effect begins with the version that its reader needs,
//! which is the first one unless something is in it that a later version added. So this module reads what every earlier
//! version wrote, and an earlier module reads what this one writes as long as nothing new is used; what it cannot read,
//! it refuses by the number. `docs/internals/decisions/0003-format.md` has the policy.

mod codec;
mod effects;
mod message;
mod numbers;
mod pieces;
mod recurring;
mod seal;
mod settings;
mod snapshot;

pub use seal::{seal, unsealed};
pub use snapshot::Loader;

use std::fmt;

/// The first version of the format.
const FIRST: u8 = 1;

/// The latest version of the format, up to which this module reads and writes. The feature is for tests of upgrades.
pub const VERSION: u8 = 1 + cfg!(feature = "next-format") as u8;

/// Why bytes from outside were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// They are damaged.
    Malformed,
    /// No queue could have written them.
    Impossible,
    /// They need this version of the format, which this module does not read.
    Version(u8),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Malformed => f.write_str("the bytes are damaged"),
            Refused::Impossible => f.write_str("the bytes describe a state that no queue can be in"),
            Refused::Version(version) => write!(
                f,
                "the bytes need format version {version}, and this version of the module reads up to version \
                 {VERSION}: \
                 load the version of the module that wrote them, or a newer one"
            ),
        }
    }
}

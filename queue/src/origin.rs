//! What must be known of the past of a named message beyond its record.

use super::id::Sequence;
use super::time::UnixMs;

/// Where a named message comes from.
///
/// It follows from the sequence of nearly every message, and is stored only for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// When its id was accepted. A sequence tells a later time if the clock had stepped back.
    pub accepted: UnixMs,
    /// When the first message was pushed of the chain of replacements that ends with this one; `None` if the chain has
    /// ended. A delivery or death ends it too, and nothing is stored for that: the record tells.
    pub chain: Option<UnixMs>,
}

impl Origin {
    /// The origin of a message whose id was accepted at `accepted` and which replaced nothing.
    pub fn new(accepted: UnixMs) -> Origin {
        Origin { accepted, chain: Some(accepted) }
    }

    /// What the sequence tells.
    pub fn told_by(sequence: Sequence) -> Origin {
        Origin::new(sequence.created())
    }

    /// The origin, unless the sequence tells it.
    pub fn unless_told_by(self, sequence: Sequence) -> Option<Origin> {
        (self != Origin::told_by(sequence)).then_some(self)
    }
}

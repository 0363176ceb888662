//! What a queue must know about the history of a named message in addition to its record.

use super::id::Sequence;
use super::time::UnixMs;

/// Where a named message comes from.
///
/// It follows from the sequence of nearly every message, and is stored only for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// When its id was accepted. The time in its sequence is later than this if the clock had stepped back.
    pub accepted: UnixMs,
    /// When the chain of replacements began that ends with this message; `None` if the chain has ended. A delivery or a
    /// death ends it too, but changes nothing here, because the record shows it.
    pub chain: Option<UnixMs>,
}

impl Origin {
    /// The origin of a message whose id was accepted at `accepted` and which replaced nothing.
    pub fn new(accepted: UnixMs) -> Origin {
        Origin { accepted, chain: Some(accepted) }
    }

    /// The origin that follows from the sequence.
    pub fn derived_from(sequence: Sequence) -> Origin {
        Origin::new(sequence.created())
    }

    /// The origin; `None` if it follows from the sequence.
    pub fn unless_derived_from(self, sequence: Sequence) -> Option<Origin> {
        (self != Origin::derived_from(sequence)).then_some(self)
    }
}

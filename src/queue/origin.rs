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
}

impl Origin {
    /// What the sequence tells.
    pub fn told_by(sequence: Sequence) -> Origin {
        Origin { accepted: sequence.created() }
    }

    /// The origin, unless the sequence tells it.
    pub fn unless_told_by(self, sequence: Sequence) -> Option<Origin> {
        (self != Origin::told_by(sequence)).then_some(self)
    }
}

//! What the sorted sets hold: a time, or a hash, and a sequence.

use super::super::id::Sequence;
use super::super::time::UnixMs;

/// A time (or a hash) and a sequence, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    hash: u64,
    sequence: u64,
}

impl Key {
    /// Before every other.
    pub(super) const LEAST: Key = Key { hash: 0, sequence: 0 };

    /// The key of `sequence` at `time`.
    #[inline]
    pub fn at(time: UnixMs, sequence: Sequence) -> Key {
        Key::hashed(time.as_ms(), sequence)
    }

    /// After every key of `time` and before any later one.
    #[inline]
    pub fn end_of(time: UnixMs) -> Key {
        Key::at(time, Sequence(u64::MAX))
    }

    /// The key of `sequence` under a hash.
    #[inline]
    pub fn hashed(hash: u64, sequence: Sequence) -> Key {
        Key { hash, sequence: sequence.0 }
    }

    /// The time of a key made by [`Key::at`].
    #[inline]
    pub fn time(self) -> UnixMs {
        UnixMs::new(self.hash())
    }

    /// The upper half.
    #[inline]
    pub fn hash(self) -> u64 {
        self.hash
    }

    /// The sequence.
    #[inline]
    pub fn sequence(self) -> Sequence {
        Sequence(self.sequence)
    }
}

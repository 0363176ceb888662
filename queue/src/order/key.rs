//! The keys of the sorted sets: a time or a hash, and a sequence.

use super::super::id::Sequence;
use super::super::time::UnixMs;
use std::cmp::Ordering;

/// A time (or a hash) and a sequence, compared in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    hash: u64,
    sequence: u64,
}

const _: () = assert!(size_of::<Key>() == 16);

impl Key {
    /// The smallest key.
    pub(super) const LEAST: Key = Key { hash: 0, sequence: 0 };

    /// The largest key.
    pub(super) const GREATEST: Key = Key { hash: u64::MAX, sequence: u64::MAX };

    /// The key of `sequence` at `time`.
    #[inline]
    pub fn at(time: UnixMs, sequence: Sequence) -> Key {
        Key::hashed(time.as_ms(), sequence)
    }

    /// A key after every key of `time` and before any later one.
    #[inline]
    pub fn end_of(time: UnixMs) -> Key {
        Key::at(time, Sequence(u64::MAX))
    }

    /// The key of `sequence` under a hash.
    #[inline]
    pub fn hashed(hash: u64, sequence: Sequence) -> Key {
        Key { hash, sequence: sequence.0 }
    }

    /// The key directly before this one; `None` for the smallest key.
    pub fn just_before(self) -> Option<Key> {
        match self.sequence.checked_sub(1) {
            Some(sequence) => Some(Key { sequence, ..self }),
            None => Some(Key { hash: self.hash.checked_sub(1)?, sequence: u64::MAX }),
        }
    }

    /// The time of a key made by [`Key::at`].
    #[inline]
    pub fn time(self) -> UnixMs {
        UnixMs::new(self.hash())
    }

    /// The hash, or the time in milliseconds.
    #[inline]
    pub fn hash(self) -> u64 {
        self.hash
    }

    /// Both parts as one number, which is compared with two instructions and without a branch that could be
    /// mispredicted.
    #[inline]
    fn whole(self) -> u128 {
        u128::from(self.hash) << 64 | u128::from(self.sequence)
    }

    /// The position between `low` and `high`, from 0 to 1: by time, or by sequence if both have the same time.
    #[inline]
    pub(super) fn share_of(self, low: Key, high: Key) -> f64 {
        let (at, all) = if low.hash == high.hash {
            (self.sequence.saturating_sub(low.sequence), high.sequence.saturating_sub(low.sequence))
        } else {
            (self.hash.saturating_sub(low.hash), high.hash.saturating_sub(low.hash))
        };
        (at as f64 / all.max(1) as f64).min(1.0)
    }

    /// The sequence.
    #[inline]
    pub fn sequence(self) -> Sequence {
        Sequence(self.sequence)
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // A search calls this for every key; by way of `cmp` it takes twice as long.
    #[inline]
    fn le(&self, other: &Key) -> bool {
        self.whole() <= other.whole()
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Key) -> Ordering {
        self.whole().cmp(&other.whole())
    }
}

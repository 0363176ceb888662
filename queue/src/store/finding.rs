//! How a message is found in a segment by its sequence.

// Indices are those of headers of the same segment.
#![allow(clippy::indexing_slicing)]

use super::header::{Era, Header, LOW_MASK};
use super::segment::Segment;
use crate::id::Sequence;
use std::cmp::Ordering;

impl Segment {
    /// The index of the message with `sequence`; `None` if it is not here. All sequences of the segment lie from
    /// `first` to `last`.
    ///
    /// A read of a header that is not cached costs more than the rest of the search, so each position is chosen with
    /// care. Sequences increase by at least one: the distance of a message from either end is at most that of its
    /// sequence, and in a burst both are equal. At a steady rate the message lies about where it would lie if sequences
    /// increased evenly (Peterson's interpolation search, 1957). Every third read is in the middle, so the search is
    /// O(log n) for any sequences.
    pub fn find(&self, sequence: Sequence, first: u64, last: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.headers.len().checked_sub(1)?);
        let (mut ahead, mut behind) = (sequence.0.checked_sub(first)?, last.checked_sub(sequence.0)?);
        let wanted = self.low_of(sequence)?;
        for look in 1.. {
            let room = high.checked_sub(low)?;
            let index = low + if look % 3 == 0 { room / 2 } else { guess(room, ahead, behind) };
            let header = self.headers.get(index)?;
            let held = header.low();
            match held.cmp(&wanted) {
                Ordering::Equal => return header.is_present().then_some(index),
                Ordering::Less => (low, ahead) = (index + 1, wanted - held - 1),
                Ordering::Greater => (high, behind) = (index.checked_sub(1)?, held - wanted - 1),
            }
        }
        None
    }

    /// The lower bits of a sequence as a header of this segment has them; `None` if this segment cannot have it.
    fn low_of(&self, sequence: Sequence) -> Option<u64> {
        (Era::containing(sequence) == self.era).then_some(sequence.0 & LOW_MASK)
    }

    /// The sequence of the message at `index`.
    pub fn sequence(&self, index: usize) -> Sequence {
        self.era.sequence(&self.headers[index])
    }

    /// Whether the message at `index` is still here and has this sequence.
    pub fn holds(&self, index: usize, sequence: Sequence) -> bool {
        let is_it = |header: &Header| header.is_present() && self.era.sequence(header) == sequence;
        self.headers.get(index).is_some_and(is_it)
    }

    /// The first sequence, even if its message was removed.
    pub fn first(&self) -> Option<Sequence> {
        self.headers.first().map(|header| self.era.sequence(header))
    }

    /// The last sequence, even if its message was removed.
    pub fn last(&self) -> Option<Sequence> {
        self.headers.last().map(|header| self.era.sequence(header))
    }

    /// The number of headers whose sequence is below `sequence`. O(log n).
    pub fn rank(&self, sequence: Sequence) -> usize {
        self.headers.partition_point(|header| self.era.sequence(header) < sequence)
    }
}

/// Guesses the index of a message among `room` + 1 headers, given that its sequence is `ahead` above that of the first
/// one and `behind` below that of the last one.
fn guess(room: usize, ahead: u64, behind: u64) -> usize {
    if ahead <= room as u64 {
        ahead as usize
    } else if behind <= room as u64 {
        room - behind as usize
    } else {
        (ahead as f64 / (ahead as f64 + behind as f64) * room as f64) as usize
    }
}

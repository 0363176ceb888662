//! How segments give memory back: a segment that is full of gaps is packed, and merged with a small neighbour.

// Indices are those of headers of the same segment.
#![allow(clippy::indexing_slicing)]

use super::deliveries::Deliveries;
use super::header::Header;
use super::segment::{Segment, SEGMENT_BYTES, SEGMENT_HEADERS, SMALL_BYTES};
use std::mem::size_of;

/// A segment with fewer messages than this, and no more than [`SMALL_BYTES`], is never packed: that would gain nothing.
const PACK_MIN: usize = 8;

impl Segment {
    /// Packs a full list of deliveries if more than half of it consists of gaps, instead of letting it grow.
    pub(super) fn close_gaps(&mut self) {
        if self.deliveries.has_gaps_to_close() {
            let mut kept = Deliveries::with_room(self.deliveries.used() + 1);
            for header in &mut self.headers {
                if let Some(place) = header.delivery() {
                    header.set_delivery(kept.add_from(&self.deliveries, place));
                }
            }
            self.deliveries = kept;
        }
    }

    /// Whether the segment is so small that it may be kept while it is empty.
    pub fn is_small(&self) -> bool {
        self.data.capacity() + self.headers.capacity() * size_of::<Header>() <= SMALL_BYTES
    }

    /// Empties a segment that has no live message.
    pub fn clear(&mut self) {
        self.headers.clear();
        self.data.clear();
        self.deliveries.clear();
    }

    /// Whether so little of the segment is in use that it is worth packing. The limit is three quarters, which moves
    /// three messages for each that was removed. For the first segment of a queue it is a quarter, since that is
    /// usually about to be emptied.
    pub fn is_sparse(&self, first: bool) -> bool {
        let (most, of) = if first { (1, 4) } else { (3, 4) };
        let few = |live: u16, held: usize| of * usize::from(live) <= most * held;
        (self.headers.len() >= PACK_MIN && few(self.live, self.headers.len()))
            || (self.data.len() > SMALL_BYTES && few(self.live_bytes, self.data.len()))
    }

    /// Drops the bytes of removed messages. O(messages).
    pub fn pack(&mut self) {
        *self = self.packed(&[self]);
    }

    /// A segment of the live messages of `sources`, without room for more.
    fn packed(&self, sources: &[&Segment]) -> Segment {
        let sum = |of: fn(&Segment) -> usize| sources.iter().map(|source| of(source)).sum();
        let mut packed = Segment {
            headers: Vec::with_capacity(sum(|source| source.live.into())),
            era: self.era,
            data: Vec::with_capacity(sum(|source| source.live_bytes.into())),
            deliveries: Deliveries::with_room(sum(|source| source.deliveries.used())),
            live: 0,
            live_bytes: 0,
            retries: self.retries,
        };
        sources.iter().for_each(|source| packed.take_all(source));
        packed
    }

    /// Whether the messages of `next` fit into this segment as well, with room to spare.
    pub fn can_absorb(&self, next: &Segment) -> bool {
        self.retries == next.retries
            && self.era == next.era
            && usize::from(self.live) + usize::from(next.live) <= SEGMENT_HEADERS / 2
            && usize::from(self.live_bytes) + usize::from(next.live_bytes) <= SEGMENT_BYTES / 2
    }

    /// Adds the messages of `next`.
    pub fn absorb(&mut self, next: &Segment) {
        *self = self.packed(&[self, next]);
    }

    fn take_all(&mut self, other: &Segment) {
        for (index, header) in other.headers.iter().enumerate() {
            if header.is_present() {
                let delivery = header.delivery().and_then(|place| self.deliveries.add_from(&other.deliveries, place));
                let mut moved = *header;
                moved.offset = self.data.len() as u16;
                moved.set_delivery(delivery);
                self.headers.push(moved);
                self.data.extend_from_slice(&other.data[other.span(index)]);
            }
        }
        self.live += other.live;
        self.live_bytes += other.live_bytes;
    }
}

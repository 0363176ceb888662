//! What is known of a message only once it was delivered: kept apart, since most messages were not yet.
//!
//! Chunks of 64 slots with a bitmap each. A message's header holds its slot's number; chunks are allocated as they
//! are needed and freed as soon as they are empty, so the room follows the number in flight.

// Slots come from `take` and are given back once; chunk numbers are checked by the vector's length at use.
#![allow(clippy::indexing_slicing)]

use std::mem::size_of;
use std::num::NonZeroU32;

/// Slots in a chunk: the bits of its bitmap.
const CHUNK: usize = 64;

/// The number of a slot, from 1: an absent one costs nothing in a header.
pub(super) type Slot = NonZeroU32;

/// What a delivery adds to a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The receipt's number.
    pub receipt: u64,
    /// The deadline of a leased message, the instant of death of a dead one.
    pub moment: u64,
    /// Deliveries so far.
    pub attempts: u32,
}

#[derive(Debug, Default)]
struct Chunk {
    used: u64,
    /// Allocated while a slot is in use.
    slots: Option<Box<[Delivery; CHUNK]>>,
}

/// All deliveries of a queue.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    chunks: Vec<Chunk>,
    /// The chunks that have a free slot, each once: the next slot comes from the last of them.
    open: Vec<u32>,
}

fn place(slot: Slot) -> (usize, usize) {
    let at = slot.get() as usize - 1;
    (at / CHUNK, at % CHUNK)
}

impl Deliveries {
    /// Takes a slot for `delivery`; none where four billion are in use.
    pub fn take(&mut self, delivery: Delivery) -> Option<Slot> {
        let number = match self.open.last() {
            Some(number) => *number as usize,
            None => {
                self.open.push(u32::try_from(self.chunks.len()).ok()?);
                self.chunks.push(Chunk::default());
                self.chunks.len() - 1
            }
        };
        let chunk = &mut self.chunks[number];
        let free = (!chunk.used).trailing_zeros() as usize;
        let slot = Slot::new(u32::try_from(number * CHUNK + free + 1).ok()?)?;
        chunk.used |= 1 << free;
        chunk.slots.get_or_insert_with(|| Box::new([Delivery::default(); CHUNK]))[free] = delivery;
        if chunk.used == u64::MAX {
            self.open.pop();
        }
        Some(slot)
    }

    /// The delivery in a slot in use.
    pub fn get(&self, slot: Slot) -> Delivery {
        let (chunk, at) = place(slot);
        self.chunks[chunk].slots.as_ref().map_or(Delivery::default(), |slots| slots[at])
    }

    /// Changes the delivery in a slot in use.
    pub fn set(&mut self, slot: Slot, delivery: Delivery) {
        let (chunk, at) = place(slot);
        if let Some(slots) = &mut self.chunks[chunk].slots {
            slots[at] = delivery;
        }
    }

    /// Gives a slot back.
    pub fn free(&mut self, slot: Slot) {
        let (number, at) = place(slot);
        let chunk = &mut self.chunks[number];
        if chunk.used == u64::MAX {
            self.open.push(number as u32);
        }
        chunk.used &= !(1 << at);
        if chunk.used == 0 {
            chunk.slots = None;
            if self.open.len() > 1 {
                self.trim();
            }
        }
    }

    /// Drops the empty chunks at the end.
    fn trim(&mut self) {
        let kept = self.chunks.iter().rposition(|chunk| chunk.used != 0).map_or(0, |last| last + 1);
        if kept < self.chunks.len() {
            self.chunks.truncate(kept);
            self.open.retain(|chunk| (*chunk as usize) < kept);
            self.chunks.shrink_to(2 * kept + 8);
            self.open.shrink_to(2 * self.open.len() + 8);
        }
    }

    pub fn heap_bytes(&self) -> usize {
        let chunks = self.chunks.iter().filter(|chunk| chunk.slots.is_some()).count();
        chunks * size_of::<[Delivery; CHUNK]>()
            + self.chunks.capacity() * size_of::<Chunk>()
            + self.open.capacity() * size_of::<u32>()
    }

    pub fn allocations(&self) -> usize {
        self.chunks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_what_they_are_given_and_are_used_again() {
        let mut deliveries = Deliveries::default();
        let delivery = |receipt| Delivery { receipt, ..Delivery::default() };
        let mut slots: Vec<Slot> = (0..1_000).map(|n| deliveries.take(delivery(n)).unwrap()).collect();
        for (n, slot) in slots.iter().enumerate() {
            assert_eq!(deliveries.get(*slot), delivery(n as u64));
        }
        for slot in slots.iter().skip(1).step_by(2) {
            deliveries.free(*slot);
        }
        let chunks = deliveries.chunks.len();
        for slot in slots.iter_mut().skip(1).step_by(2) {
            *slot = deliveries.take(delivery(7)).unwrap();
        }
        assert_eq!(deliveries.chunks.len(), chunks);
        assert_eq!(deliveries.get(slots[2]), delivery(2));
        for slot in slots {
            deliveries.free(slot);
        }
        assert!(deliveries.chunks.len() <= 1 && deliveries.heap_bytes() < 600);
    }
}

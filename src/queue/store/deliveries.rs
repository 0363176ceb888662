//! What is known of a message only once it was delivered: kept apart, since most messages were not yet.
//!
//! Each segment of the store has one list of these, and a message's header says where in it. What is given back
//! leaves a gap until the segment is packed, or until a growing list is mostly gaps: so the room follows the number
//! of messages that were delivered and are still there.

use std::mem::size_of;
use std::num::NonZeroU32;

/// A list grows by as many places as it has, but by no more than this.
const STEP_MAX: usize = 64;

/// A place in the list, from 1: an absent one costs nothing in a header.
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

const _: () = assert!(size_of::<Delivery>() == 24);

/// The deliveries of a segment's messages.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Vec<Delivery>);

impl Deliveries {
    /// A list with room for so many, and no more.
    pub fn with_room(count: usize) -> Deliveries {
        Deliveries(Vec::with_capacity(count))
    }

    /// Adds one. A list that is full grows.
    pub fn add(&mut self, delivery: Delivery) -> Option<Slot> {
        if self.is_full() {
            self.0.reserve_exact(self.0.len().clamp(1, STEP_MAX));
        }
        self.0.push(delivery);
        Slot::new(u32::try_from(self.0.len()).ok()?)
    }

    /// The one at a place.
    pub fn get(&self, slot: Slot) -> Delivery {
        self.0.get(slot.get() as usize - 1).copied().unwrap_or_default()
    }

    /// Changes the one at a place.
    pub fn set(&mut self, slot: Slot, delivery: Delivery) {
        if let Some(held) = self.0.get_mut(slot.get() as usize - 1) {
            *held = delivery;
        }
    }

    /// Whether the next one needs more room.
    pub fn is_full(&self) -> bool {
        self.0.len() == self.0.capacity()
    }

    /// Places, gaps among them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Delivery>()
    }
}

//! Data that a message has only after it was delivered. It is stored apart, since most messages were not delivered yet.
//!
//! Each segment of the store has one list of deliveries, and the header of a message holds its place in that list. A
//! removed entry leaves a gap until the segment is packed, or until a list that must grow is mostly gaps. The memory
//! therefore follows the number of messages that were delivered and are still in the queue.

use std::mem::size_of;
use std::num::NonZeroU32;

/// A list doubles when it grows, but adds at most this many places.
const STEP_MAX: usize = 64;

/// A place in the list, counted from 1, so that an absent one takes no memory in a header.
pub(super) type DeliveryPlace = NonZeroU32;

/// The data that a delivery adds to a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The receipt's number.
    pub receipt: u64,
    /// The deadline of a leased message, or the instant of death of a dead one, in ms.
    pub moment: u64,
    /// The number of deliveries so far.
    pub attempts: u32,
}

const _: () = assert!(size_of::<Delivery>() == 24);

/// The deliveries of a segment's messages.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Vec<Delivery>);

impl Deliveries {
    /// A list with room for exactly `count` deliveries.
    pub fn with_room(count: usize) -> Deliveries {
        Deliveries(Vec::with_capacity(count))
    }

    /// Adds a delivery and returns its place. A full list grows.
    pub fn add(&mut self, delivery: Delivery) -> Option<DeliveryPlace> {
        if self.is_full() {
            self.0.reserve_exact(self.0.len().clamp(1, STEP_MAX));
        }
        self.0.push(delivery);
        DeliveryPlace::new(u32::try_from(self.0.len()).ok()?)
    }

    /// The delivery at a place.
    pub fn get(&self, place: DeliveryPlace) -> Delivery {
        self.0.get(place.get() as usize - 1).copied().unwrap_or_default()
    }

    /// Replaces the delivery at a place.
    pub fn set(&mut self, place: DeliveryPlace, delivery: Delivery) {
        if let Some(held) = self.0.get_mut(place.get() as usize - 1) {
            *held = delivery;
        }
    }

    /// Whether the list must grow for the next delivery.
    pub fn is_full(&self) -> bool {
        self.0.len() == self.0.capacity()
    }

    /// The number of places, including gaps.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes all deliveries.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Delivery>()
    }
}

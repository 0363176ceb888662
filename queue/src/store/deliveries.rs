//! Data that a message has only after it was delivered. It is stored apart, since most messages were not delivered yet.
//!
//! Each segment of the store has one list of deliveries, and the header of a message holds its place in that list. A
//! removed entry leaves a gap until the segment is packed, or until a list that must grow is mostly gaps. The memory
//! therefore follows the number of messages that were delivered and are still in the queue.

use std::mem::size_of;
use std::num::NonZeroU16;

/// A list doubles when it grows, but adds at most this many places.
pub(super) const STEP_MAX: usize = 64;

/// The most places of a list.
pub(super) const DELIVERIES_MAX: usize = 4095;

/// A place in the list, counted from 1, so that an absent one takes no memory in a header.
pub(super) type DeliveryPlace = NonZeroU16;

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

/// A delivery as it is stored: arrays of bytes, which need no alignment. A moment has at most 44 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    receipt: [u8; 8],
    moment: [u8; 6],
    attempts: [u8; 4],
}

const _: () = assert!(size_of::<Packed>() == 18);

impl From<Delivery> for Packed {
    #[inline]
    fn from(Delivery { receipt, moment, attempts }: Delivery) -> Packed {
        let [a, b, c, d, e, f, ..] = moment.to_le_bytes();
        Packed { receipt: receipt.to_le_bytes(), moment: [a, b, c, d, e, f], attempts: attempts.to_le_bytes() }
    }
}

impl From<Packed> for Delivery {
    #[inline]
    fn from(Packed { receipt, moment: [a, b, c, d, e, f], attempts }: Packed) -> Delivery {
        Delivery {
            receipt: u64::from_le_bytes(receipt),
            moment: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            attempts: u32::from_le_bytes(attempts),
        }
    }
}

/// The deliveries of a segment's messages. The list is allocated with the first of them, since the messages of most
/// queues wait.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Option<Box<List>>);

#[derive(Debug, Default)]
struct List {
    places: Vec<Packed>,
    /// The number of places that are not gaps.
    used: u16,
}

impl Deliveries {
    /// A list with room for exactly `count` deliveries.
    pub fn with_room(count: usize) -> Deliveries {
        Deliveries((count > 0).then(|| Box::new(List { places: Vec::with_capacity(count), used: 0 })))
    }

    /// Adds a delivery and returns its place. A full list grows.
    pub fn add(&mut self, delivery: Delivery) -> Option<DeliveryPlace> {
        self.add_packed(delivery.into())
    }

    /// Adds the delivery at a place of another list, and returns its place here.
    #[inline]
    pub fn add_from(&mut self, other: &Deliveries, place: DeliveryPlace) -> Option<DeliveryPlace> {
        let held = other.0.as_ref()?.places.get(usize::from(place.get()) - 1)?;
        self.add_packed(*held)
    }

    #[inline]
    fn add_packed(&mut self, packed: Packed) -> Option<DeliveryPlace> {
        let List { places, used } = &mut **self.0.get_or_insert_default();
        if places.len() == places.capacity() {
            places.reserve_exact(places.len().clamp(1, STEP_MAX));
        }
        places.push(packed);
        *used += 1;
        debug_assert!(places.len() <= DELIVERIES_MAX);
        DeliveryPlace::new(u16::try_from(places.len()).ok()?)
    }

    /// The delivery at a place.
    pub fn get(&self, place: DeliveryPlace) -> Delivery {
        let held = self.0.as_ref().and_then(|list| list.places.get(usize::from(place.get()) - 1));
        held.map_or_else(Delivery::default, |held| (*held).into())
    }

    /// Replaces the delivery at a place.
    pub fn set(&mut self, place: DeliveryPlace, delivery: Delivery) {
        let held = self.0.as_mut().and_then(|list| list.places.get_mut(usize::from(place.get()) - 1));
        if let Some(held) = held {
            *held = delivery.into();
        }
    }

    /// Takes note that a place has become a gap.
    #[inline]
    pub fn vacate(&mut self) {
        self.0.as_mut().into_iter().for_each(|list| list.used -= 1);
    }

    /// Whether the list must grow for the next delivery although more than half of it consists of gaps.
    pub fn has_gaps_to_close(&self) -> bool {
        self.0.as_deref().is_some_and(|List { places, used }| {
            places.len() == places.capacity() && 2 * usize::from(*used) < places.len()
        })
    }

    /// The number of deliveries.
    pub fn used(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.used.into())
    }

    /// Removes all deliveries.
    pub fn clear(&mut self) {
        if let Some(list) = &mut self.0 {
            list.places.clear();
            list.used = 0;
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |list| size_of::<List>() + list.places.capacity() * size_of::<Packed>())
    }
}

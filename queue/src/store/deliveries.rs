//! Data that a message has only after it was delivered. It is stored apart, since most messages have not been delivered
//! yet.
//!
//! Each segment of the store has one list of deliveries, and the header of a message holds its place in that list. A
//! removed entry leaves a gap until the segment is packed, or until a list that must grow is mostly gaps. The memory
//! therefore follows the number of messages that were delivered and are still in the queue.
//!
//! A list has four bytes more for each delivery as soon as one of them has a consumer with a name.

use crate::id::ConsumerId;
use crate::memory::{box_bytes, vec_bytes};
use std::mem::size_of;
use std::num::NonZeroU16;

/// A list doubles when it grows, but adds at most this many places.
pub(super) const STEP_MAX: usize = 64;

/// The largest number of places in a list.
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
    /// The number of deliveries that count.
    pub attempts: u32,
}

/// A delivery as it is stored, without the consumer.
type Packed = [u8; NARROW];

/// The bytes of a delivery: a receipt, a moment, which has at most 44 bits, and the attempts.
const NARROW: usize = 8 + 6 + 4;
/// The bytes of a delivery with the number of its consumer, plus one, behind it. Zero stands for none.
const WIDE: usize = NARROW + 4;

fn packed(Delivery { receipt, moment, attempts }: Delivery) -> Packed {
    let mut packed = [0; NARROW];
    let (head, tail) = packed.split_at_mut(8);
    let (middle, end) = tail.split_at_mut(6);
    let [moment @ .., _, _] = moment.to_le_bytes();
    head.copy_from_slice(&receipt.to_le_bytes());
    middle.copy_from_slice(&moment);
    end.copy_from_slice(&attempts.to_le_bytes());
    packed
}

fn unpacked([a, b, c, d, e, f, g, h, i, j, k, l, m, n, attempts @ ..]: Packed) -> Delivery {
    Delivery {
        receipt: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        moment: u64::from_le_bytes([i, j, k, l, m, n, 0, 0]),
        attempts: u32::from_le_bytes(attempts),
    }
}

/// The deliveries of a segment's messages. The list is allocated with the first of them, since the messages of most
/// queues wait.
#[derive(Debug, Default)]
pub(super) struct Deliveries(Option<Box<List>>);

/// The list is wide from the first delivery with a consumer on until it is built again without one.
#[derive(Debug)]
struct List {
    bytes: Vec<u8>,
    /// The number of places.
    places: u16,
    /// The number of places that are not gaps.
    used: u16,
    /// The bytes of each place: [`NARROW`] or [`WIDE`].
    width: u8,
}

const _: () = assert!(size_of::<List>() == 32);

impl Default for List {
    fn default() -> Self {
        List { bytes: Vec::new(), places: 0, used: 0, width: NARROW as u8 }
    }
}

impl List {
    fn width(&self) -> usize {
        self.width.into()
    }

    /// The number of places.
    fn len(&self) -> usize {
        self.places.into()
    }

    fn is_full(&self) -> bool {
        self.bytes.len() + self.width() > self.bytes.capacity()
    }

    /// The bytes from a place on.
    fn bytes_at(&self, place: DeliveryPlace) -> Option<&[u8]> {
        self.bytes.get((usize::from(place.get()) - 1) * self.width()..)
    }

    fn bytes_at_mut(&mut self, place: DeliveryPlace) -> Option<&mut [u8]> {
        let start = (usize::from(place.get()) - 1) * self.width();
        self.bytes.get_mut(start..)
    }

    fn get(&self, place: DeliveryPlace) -> Option<Packed> {
        self.bytes_at(place)?.first_chunk().copied()
    }

    fn consumer(&self, place: DeliveryPlace) -> Option<ConsumerId> {
        let behind = self.bytes_at(place).filter(|_| self.width() == WIDE)?.get(NARROW..)?;
        u32::from_le_bytes(*behind.first_chunk()?).checked_sub(1).map(ConsumerId)
    }

    fn set_consumer(&mut self, place: DeliveryPlace, consumer: Option<ConsumerId>) {
        if self.width() == NARROW {
            if consumer.is_none() {
                return;
            }
            self.widen();
        }
        let number = consumer.map_or(0, |ConsumerId(number)| number + 1);
        let held = self.bytes_at_mut(place).and_then(|from| from.get_mut(NARROW..WIDE));
        held.into_iter().for_each(|held| held.copy_from_slice(&number.to_le_bytes()));
    }

    /// Makes room for a consumer at each place.
    fn widen(&mut self) {
        let mut wide = Vec::with_capacity(self.bytes.capacity() / NARROW * WIDE);
        for packed in self.bytes.chunks_exact(NARROW) {
            wide.extend_from_slice(packed);
            wide.resize(wide.len() + (WIDE - NARROW), 0);
        }
        self.bytes = wide;
        self.width = WIDE as u8;
    }
}

impl Deliveries {
    /// A list with room for exactly `count` deliveries.
    pub fn with_room(count: usize) -> Deliveries {
        let list = || List { bytes: Vec::with_capacity(count * NARROW), ..List::default() };
        Deliveries((count > 0).then(|| Box::new(list())))
    }

    /// Adds a delivery and returns its place. A full list grows.
    pub fn add(&mut self, delivery: Delivery) -> Option<DeliveryPlace> {
        self.add_packed(packed(delivery))
    }

    /// Adds the delivery at a place of another list, and returns its place here.
    pub fn add_from(&mut self, other: &Deliveries, place: DeliveryPlace) -> Option<DeliveryPlace> {
        let list = other.0.as_ref()?;
        let added = self.add_packed(list.get(place)?)?;
        if list.width() == WIDE {
            self.set_consumer(added, list.consumer(place));
        }
        Some(added)
    }

    fn add_packed(&mut self, packed: Packed) -> Option<DeliveryPlace> {
        let list = &mut **self.0.get_or_insert_default();
        if list.is_full() {
            list.bytes.reserve_exact(list.len().clamp(1, STEP_MAX) * list.width());
        }
        list.bytes.extend_from_slice(&packed);
        if list.width() == WIDE {
            list.bytes.extend_from_slice(&[0; WIDE - NARROW]);
        }
        (list.places, list.used) = (list.places + 1, list.used + 1);
        debug_assert!(list.len() <= DELIVERIES_MAX);
        DeliveryPlace::new(list.places)
    }

    /// The delivery at a place.
    pub fn get(&self, place: DeliveryPlace) -> Delivery {
        self.0.as_ref().and_then(|list| list.get(place)).map_or_else(Delivery::default, unpacked)
    }

    /// Replaces the delivery at a place, but not its consumer.
    pub fn set(&mut self, place: DeliveryPlace, delivery: Delivery) {
        let held = self.0.as_mut().and_then(|list| list.bytes_at_mut(place)?.first_chunk_mut::<NARROW>());
        if let Some(held) = held {
            *held = packed(delivery);
        }
    }

    /// The consumer of the delivery at a place.
    pub fn consumer(&self, place: DeliveryPlace) -> Option<ConsumerId> {
        self.0.as_ref()?.consumer(place)
    }

    /// Notes the consumer of the delivery at a place.
    pub fn set_consumer(&mut self, place: DeliveryPlace, consumer: Option<ConsumerId>) {
        self.0.as_mut().into_iter().for_each(|list| list.set_consumer(place, consumer));
    }

    /// Whether a delivery may have a consumer.
    pub fn may_have_consumers(&self) -> bool {
        self.0.as_ref().is_some_and(|list| list.width() == WIDE)
    }

    /// Records that a place has become a gap.
    pub fn vacate(&mut self) {
        self.0.as_mut().into_iter().for_each(|list| list.used -= 1);
    }

    /// Whether the list must grow for the next delivery although more than half of it consists of gaps.
    pub fn has_gaps_to_close(&self) -> bool {
        self.0.as_deref().is_some_and(|list| list.is_full() && 2 * usize::from(list.used) < list.len())
    }

    /// The number of deliveries.
    pub fn used(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.used.into())
    }

    /// Removes all deliveries.
    pub fn clear(&mut self) {
        if let Some(list) = &mut self.0 {
            list.bytes.clear();
            list.places = 0;
            list.used = 0;
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |list| box_bytes::<List>() + vec_bytes::<u8>(list.bytes.capacity()))
    }
}

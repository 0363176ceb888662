//! One segment of the store: the headers of its messages in push order in one vector, and their bytes in another.
//!
//! The bytes of a message start at the offset in its header. They consist of these parts, each only if it is present:
//! the name (after a length byte), the retries, the lease, the TTL, the group, and last the payload, which ends where the next
//! message begins. Retries that equal those of the segment's first message are left out, since all messages of most
//! queues have the same.

// Indices are those of headers that the caller found in this segment; offsets are written by `append` only.
#![allow(clippy::indexing_slicing)]

use super::super::groups::GroupId;
use super::super::id::Sequence;
use super::super::origin::Origin;
use super::super::record::{Record, Ttl};
use super::super::settings::Retries;
use super::super::time::{DurationMs, UnixMs};
use super::deliveries::{Deliveries, Delivery};
use super::header::*;
use std::cmp::Ordering;
use std::mem::size_of;

/// The bytes of the messages in a full segment: an allocation size that the server's allocator does not round up.
const SEGMENT_BYTES: usize = 56 * 1024;
/// The number of messages in a full segment if their payloads are tiny.
const SEGMENT_HEADERS: usize = 1024;
/// The messages of a segment and their bytes are counted in 16 bits, to keep the segment small: it is most of the
/// memory of a queue with one message.
const _: () = assert!(SEGMENT_BYTES <= u16::MAX as usize && SEGMENT_HEADERS < SEGMENT_BYTES);
/// An empty segment of up to this many bytes is kept for the next message.
const SMALL_BYTES: usize = 2 * 1024;
/// A segment with fewer messages than this, and no more than [`SMALL_BYTES`], is never packed: that would gain nothing.
const PACK_MIN: usize = 8;

/// The bytes of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes<'a> {
    /// The name that the producer chose.
    pub name: Option<&'a [u8]>,
    /// The payload.
    pub payload: &'a [u8],
    /// The error text that was last stored with it.
    pub error: Option<&'a [u8]>,
    /// Where it comes from, unless its sequence tells.
    pub origin: Option<Origin>,
}

/// The parts of a message that a segment stores behind its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub name: Option<&'a [u8]>,
    pub group: Option<GroupId>,
    /// The payload; `None` if it is stored elsewhere.
    pub inline: Option<&'a [u8]>,
}

/// Some hundreds of consecutive messages.
#[derive(Debug)]
pub(super) struct Segment {
    pub headers: Vec<Header>,
    data: Vec<u8>,
    deliveries: Deliveries,
    /// The number of messages that were not removed.
    pub live: u16,
    /// The bytes of `data` that belong to these messages.
    live_bytes: u16,
    /// The number of messages that have an entry in `deliveries`.
    delivered: u16,
    /// The retries of messages that store none of their own.
    retries: CommonRetries,
}

/// The retry count of messages that store none of their own: that of the segment's first message, or 0 if that count
/// does not fit in 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CommonRetries(i16);

impl CommonRetries {
    fn of(record: &Record) -> CommonRetries {
        CommonRetries(i16::try_from(record.retries.count()).unwrap_or(0))
    }

    #[inline]
    fn get(self) -> Retries {
        Retries::new(self.0.into()).unwrap_or(Retries::UNLIMITED)
    }
}

impl Segment {
    /// The first segment of a queue, which may stay the only one. It grows from almost nothing.
    pub fn small(record: &Record) -> Segment {
        Segment {
            headers: Vec::new(),
            data: Vec::new(),
            deliveries: Deliveries::default(),
            live: 0,
            live_bytes: 0,
            delivered: 0,
            retries: CommonRetries::of(record),
        }
    }

    /// The segment that follows this full one, allocated in the size that it is expected to reach.
    pub fn successor(&self, record: &Record) -> Segment {
        let mut next = Segment::small(record);
        next.headers.reserve_exact(self.headers.len());
        next.data.reserve_exact(self.data.len().next_multiple_of(SEGMENT_BYTES / 8).min(SEGMENT_BYTES));
        next
    }

    /// Whether another message fits.
    pub fn has_room(&self, record: &Record, parts: &Parts<'_>) -> bool {
        self.headers.len() < SEGMENT_HEADERS && self.data.len() + self.size_of(record, parts) <= SEGMENT_BYTES
    }

    fn size_of(&self, record: &Record, Parts { name, group, inline }: &Parts<'_>) -> usize {
        name.map_or(0, |name| 1 + name.len())
            + if record.retries == self.retries.get() { 0 } else { size_of::<i32>() }
            + if record.lease.is_some() { size_of::<u64>() } else { 0 }
            + if record.ttl.is_some() { 2 * size_of::<u64>() } else { 0 }
            + if group.is_some() { size_of::<u32>() } else { 0 }
            + inline.map_or(0, <[u8]>::len)
    }

    /// Adds a message.
    pub fn append(&mut self, record: &Record, parts: &Parts<'_>, delivery: Option<Delivery>) {
        let size = self.size_of(record, parts);
        let Parts { name, group, inline } = *parts;
        self.make_room(size);
        let mut header = Header {
            sequence: record.sequence.0,
            word: due_and_priority(record),
            offset: self.data.len() as u16,
            flags: 0,
            delivery: None,
        };
        header.set_placement(Placement::Waiting);
        header.set_phase(record.phase.into());
        if let Some(name) = name {
            header.word |= NAMED;
            self.data.push(name.len() as u8);
            self.data.extend_from_slice(name);
        }
        if record.retries != self.retries.get() {
            header.word |= RETRIES;
            self.data.extend_from_slice(&record.retries.count().to_le_bytes());
        }
        if let Some(lease) = record.lease {
            header.word |= LEASE;
            self.data.extend_from_slice(&lease.as_ms().to_le_bytes());
        }
        if let Some(ttl) = record.ttl {
            header.word |= TTL;
            self.data.extend_from_slice(&ttl.end.as_ms().to_le_bytes());
            self.data.extend_from_slice(&ttl.duration.as_ms().to_le_bytes());
        }
        if let Some(GroupId(group)) = group {
            header.flags |= GROUPED;
            self.data.extend_from_slice(&group.to_le_bytes());
        }
        match inline {
            Some(payload) => self.data.extend_from_slice(payload),
            None => header.word |= LARGE,
        }
        if record.recurring {
            header.word |= RECURRING;
        }
        self.headers.push(header);
        self.live += 1;
        self.live_bytes += size as u16;
        self.keep(self.headers.len() - 1, delivery);
    }

    /// Makes room by doubling, but never beyond the size of a full segment.
    fn make_room(&mut self, size: usize) {
        let needed = self.data.len() + size;
        if needed > self.data.capacity() {
            let room = needed.max((2 * self.data.capacity()).min(SEGMENT_BYTES));
            self.data.reserve_exact(room - self.data.len());
        }
        if self.headers.len() == self.headers.capacity() {
            self.headers.reserve_exact(self.headers.len().clamp(1, SEGMENT_HEADERS / 4));
        }
    }

    /// Gives back the memory that a full segment does not need.
    pub fn seal(&mut self) {
        if self.headers.capacity() - self.headers.len() > self.headers.len() / 16 {
            self.headers.shrink_to_fit();
        }
        if self.data.capacity() - self.data.len() > self.data.len() / 16 {
            self.data.shrink_to_fit();
        }
    }

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
        for look in 1.. {
            let room = high.checked_sub(low)?;
            let index = if look % 3 == 0 {
                low + room / 2
            } else if ahead <= room as u64 {
                low + ahead as usize
            } else if behind <= room as u64 {
                high - behind as usize
            } else {
                low + (ahead as f64 / (ahead as f64 + behind as f64) * room as f64) as usize
            };
            let header = self.headers.get(index)?;
            match header.sequence.cmp(&sequence.0) {
                Ordering::Equal => return header.is_present().then_some(index),
                Ordering::Less => (low, ahead) = (index + 1, sequence.0 - header.sequence - 1),
                Ordering::Greater => (high, behind) = (index.checked_sub(1)?, header.sequence - sequence.0 - 1),
            }
        }
        None
    }

    /// The range of the bytes of a message in `data`.
    fn span(&self, index: usize) -> std::ops::Range<usize> {
        let end = self.headers.get(index + 1).map_or(self.data.len(), |next| next.offset as usize);
        self.headers[index].offset as usize..end
    }

    /// The name of a message, and the bytes behind it.
    fn behind_name(&self, index: usize) -> (Option<&[u8]>, &[u8]) {
        let bytes = &self.data[self.span(index)];
        // If there is no name, the bytes are not read: they may not be cached.
        if self.headers[index].word & NAMED == 0 {
            return (None, bytes);
        }
        match bytes.split_first() {
            Some((len, rest)) => {
                let (name, rest) = rest.split_at(usize::from(*len).min(rest.len()));
                (Some(name), rest)
            }
            None => (None, bytes),
        }
    }

    /// The name, and the payload unless it is stored elsewhere.
    pub fn bytes(&self, index: usize) -> (Option<&[u8]>, &[u8]) {
        let (name, rest) = self.behind_name(index);
        let header = &self.headers[index];
        let mut options = 0;
        if header.word & (RETRIES | LEASE | TTL) != 0 || header.is_grouped() {
            options = header.options_len() + if header.is_grouped() { size_of::<u32>() } else { 0 };
        }
        (name, rest.get(options..).unwrap_or_default())
    }

    /// The group of a message.
    #[inline]
    pub fn group(&self, index: usize) -> Option<GroupId> {
        let header = self.headers.get(index).filter(|header| header.is_grouped())?;
        let (_, rest) = self.behind_name(index);
        let number = rest.get(header.options_len()..)?.first_chunk()?;
        Some(GroupId(u32::from_le_bytes(*number)))
    }

    /// The length of a payload that is stored in the segment.
    #[inline]
    pub fn inline_len(&self, index: usize) -> usize {
        let header = &self.headers[index];
        match header.word & (NAMED | RETRIES | LEASE | TTL) {
            0 if !header.is_grouped() => self.span(index).len(),
            _ => self.bytes(index).1.len(),
        }
    }

    /// Records a delivery.
    pub fn lend(&mut self, index: usize, delivery: Delivery) {
        self.keep(index, Some(delivery));
        let header = &mut self.headers[index];
        header.set_phase(PhaseTag::Leased);
        header.set_placement(Placement::InFlight);
    }

    /// Stores the last delivery of a message, or removes it if `delivery` is `None`.
    fn keep(&mut self, index: usize, delivery: Option<Delivery>) {
        let before = self.headers[index].delivery;
        let place = match (before, delivery) {
            (_, None) => None,
            (Some(place), Some(delivery)) => {
                self.deliveries.set(place, delivery);
                Some(place)
            }
            (None, Some(delivery)) => {
                self.close_gaps();
                self.deliveries.add(delivery)
            }
        };
        self.delivered = self.delivered + u16::from(place.is_some()) - u16::from(before.is_some());
        self.headers[index].delivery = place;
    }

    /// Packs a full list of deliveries if more than half of it consists of gaps, instead of letting it grow.
    fn close_gaps(&mut self) {
        if !self.deliveries.is_full() {
            return;
        }
        let used = usize::from(self.delivered);
        if 2 * used < self.deliveries.len() {
            let mut kept = Deliveries::with_room(used + 1);
            for place in self.headers.iter_mut().filter_map(|header| header.delivery.as_mut()) {
                if let Some(packed) = kept.add(self.deliveries.get(*place)) {
                    *place = packed;
                }
            }
            self.deliveries = kept;
        }
    }

    /// The record of a message.
    pub fn record(&self, index: usize) -> Record {
        let header = &self.headers[index];
        let delivery = header.delivery.map(|place| self.deliveries.get(place)).unwrap_or_default();
        let mut record = Record {
            sequence: Sequence(header.sequence),
            due: header.due(),
            priority: header.priority(),
            retries: self.retries.get(),
            lease: None,
            ttl: None,
            attempts: delivery.attempts,
            phase: phase_of(header.phase(), delivery),
            recurring: header.is_recurring(),
        };
        if header.word & (RETRIES | LEASE | TTL) != 0 {
            let (_, mut rest) = self.behind_name(index);
            if header.word & RETRIES != 0 {
                record.retries = Retries::new(i32::from_le_bytes(take(&mut rest))).unwrap_or(self.retries.get());
            }
            if header.word & LEASE != 0 {
                record.lease = Some(DurationMs::new(u64::from_le_bytes(take(&mut rest))));
            }
            if header.word & TTL != 0 {
                let end = UnixMs::new(u64::from_le_bytes(take(&mut rest)));
                let duration = DurationMs::new(u64::from_le_bytes(take(&mut rest)));
                record.ttl = Some(Ttl { duration, end });
            }
        }
        record
    }

    /// Writes those fields of a record that can change.
    pub fn update(&mut self, index: usize, record: &Record, delivery: Option<Delivery>) {
        self.keep(index, delivery);
        let header = &mut self.headers[index];
        header.word = header.word & !(DUE_MASK | PRIORITY_MASK) | due_and_priority(record);
        header.set_phase(record.phase.into());
        let word = header.word;
        if let (true, Some(ttl)) = (word & TTL != 0, record.ttl) {
            let name = self.behind_name(index).0.map_or(0, |name| 1 + name.len());
            let start = self.span(index).start
                + name
                + if word & RETRIES != 0 { size_of::<i32>() } else { 0 }
                + if word & LEASE != 0 { size_of::<u64>() } else { 0 };
            if let Some(end) = self.data.get_mut(start..start + size_of::<u64>()) {
                end.copy_from_slice(&ttl.end.as_ms().to_le_bytes());
            }
        }
    }

    pub fn set_recurring(&mut self, index: usize) {
        self.headers[index].word |= RECURRING;
    }

    pub fn set_error(&mut self, index: usize, present: bool) {
        let word = &mut self.headers[index].word;
        *word = if present { *word | ERROR } else { *word & !ERROR };
    }

    /// Removes a message. Its bytes stay until the segment is packed.
    pub fn remove(&mut self, index: usize) {
        self.live_bytes -= self.span(index).len() as u16;
        self.live -= 1;
        let header = &mut self.headers[index];
        header.word &= !PLACEMENT_MASK;
        self.delivered -= u16::from(header.delivery.take().is_some());
    }

    /// Removes the messages for which `doomed` returns `true`. `gone` gets the header of each, and the length of its
    /// payload unless that is stored elsewhere.
    pub fn remove_where(&mut self, mut doomed: impl FnMut(&Header) -> bool, mut gone: impl FnMut(&Header, usize)) {
        for index in 0..self.headers.len() {
            let header = self.headers[index];
            if header.is_present() && doomed(&header) {
                gone(&header, self.bytes(index).1.len());
                self.remove(index);
            }
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
        self.delivered = 0;
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
            data: Vec::with_capacity(sum(|source| source.live_bytes.into())),
            deliveries: Deliveries::with_room(sum(|source| source.delivered.into())),
            live: 0,
            live_bytes: 0,
            delivered: 0,
            retries: self.retries,
        };
        sources.iter().for_each(|source| packed.take_all(source));
        packed
    }

    /// Whether the messages of `next` fit into this segment as well, with room to spare.
    pub fn can_absorb(&self, next: &Segment) -> bool {
        self.retries == next.retries
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
                let delivery = header.delivery.and_then(|place| self.deliveries.add(other.deliveries.get(place)));
                self.headers.push(Header { offset: self.data.len() as u16, delivery, ..*header });
                self.data.extend_from_slice(&other.data[other.span(index)]);
            }
        }
        self.live += other.live;
        self.live_bytes += other.live_bytes;
        self.delivered += other.delivered;
    }

    pub fn heap_bytes(&self) -> usize {
        self.headers.capacity() * size_of::<Header>() + self.data.capacity() + self.deliveries.heap_bytes()
    }
}

/// The due time and the priority as a header stores them.
fn due_and_priority(record: &Record) -> u64 {
    record.due.as_ms() | u64::from(record.priority as u8) << PRIORITY_SHIFT
}

/// Takes the first `N` bytes. Returns zeros if there are fewer, which `append` rules out.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    match bytes.split_first_chunk::<N>() {
        Some((head, rest)) => {
            *bytes = rest;
            *head
        }
        None => [0; N],
    }
}

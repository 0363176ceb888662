//! One segment of the store: the headers of its messages in push order in one vector, and their bytes in another.
//!
//! The bytes of a message start at the offset in its header. They consist of these parts, each only if it is present:
//! the name (after a length byte), the retries, the lease, the TTL, the group, the batch, the headers, and last the
//! payload, which ends where the next message begins. Retries that equal those of the segment's first message are left
//! out, since all messages of most queues have the same.

// Indices are those of headers that the caller found in this segment; offsets are written by `append` only.
#![allow(clippy::indexing_slicing)]

use super::deliveries::{Deliveries, Delivery, DELIVERIES_MAX, STEP_MAX};
use super::header::*;
use crate::errors::Errors;
use crate::headers::Headers;
use crate::id::{BatchId, GroupId, Sequence};
use crate::memory::vec_bytes;
use crate::origin::Origin;
use crate::record::{Record, Ttl};
use crate::settings::Retries;
use crate::time::{DurationMs, UnixMs};
use std::mem::size_of;

/// The bytes of the messages in a full segment: an allocation size that the server's allocator does not round up.
pub(super) const SEGMENT_BYTES: usize = 56 * 1024;
/// The headers grow by this many bytes: a step that the server's allocator does not round up.
const HEADERS_STEP: usize = 2 * 1024;
/// The number of messages in a full segment if their payloads are tiny.
pub(super) const SEGMENT_HEADERS: usize = 8 * HEADERS_STEP / size_of::<Header>();
/// A list of deliveries has at most half of its places empty when it grows.
const _: () = assert!(2 * SEGMENT_HEADERS + STEP_MAX <= DELIVERIES_MAX);
/// A segment is full if its headers must grow while its bytes are nearly as many as this.
const NEARLY_FULL_BYTES: usize = SEGMENT_BYTES / 8 * 7;
/// The messages of a segment and their bytes are counted in 16 bits, to keep the segment small: it is most of the
/// memory of a queue with one message.
const _: () = assert!(SEGMENT_BYTES <= u16::MAX as usize && SEGMENT_HEADERS < SEGMENT_BYTES);
/// An empty segment of up to this many bytes is kept for the next message.
pub(super) const SMALL_BYTES: usize = 2 * 1024;

/// What stands in place of the number of a batch once the membership of the message has ended.
const NO_BATCH: BatchId = BatchId(u32::MAX);

/// The bytes of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes<'a> {
    /// The name that the producer chose.
    pub name: Option<&'a [u8]>,
    /// The payload.
    pub payload: &'a [u8],
    /// Its errors.
    pub errors: Option<Errors<'a>>,
    /// Where it comes from; `None` if that follows from its sequence.
    pub origin: Option<Origin>,
    /// Its headers.
    pub headers: Option<Headers<'a>>,
}

/// What of a message a segment stores in addition to its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry<'a> {
    pub name: Option<&'a [u8]>,
    pub group: Option<GroupId>,
    pub batch: Option<BatchId>,
    pub headers: Option<Headers<'a>>,
    /// The payload; `None` if it is stored elsewhere, with the headers.
    pub inline: Option<&'a [u8]>,
}

/// A few hundred consecutive messages.
#[derive(Debug)]
pub(super) struct Segment {
    pub headers: Vec<Header>,
    /// The upper bits of their sequences.
    pub(super) era: Era,
    pub(super) data: Vec<u8>,
    pub(super) deliveries: Deliveries,
    /// The number of messages that were not removed.
    pub live: u16,
    /// The bytes of `data` that belong to these messages.
    pub(super) live_bytes: u16,
    /// The retries of messages that store none of their own.
    pub(super) retries: CommonRetries,
}

/// The retry count of messages that store none of their own: that of the segment's first message, or 0 if that count
/// does not fit in 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommonRetries(i16);

impl CommonRetries {
    fn from_record(record: &Record) -> CommonRetries {
        CommonRetries(i16::try_from(record.retries.count()).unwrap_or(0))
    }

    fn get(self) -> Retries {
        Retries::new(self.0.into()).unwrap_or(Retries::UNLIMITED)
    }
}

impl Segment {
    /// The first segment of a queue, which may stay the only one. It grows from almost nothing.
    pub fn small(record: &Record) -> Segment {
        Segment {
            headers: Vec::new(),
            era: Era::containing(record.sequence),
            data: Vec::new(),
            deliveries: Deliveries::default(),
            live: 0,
            live_bytes: 0,
            retries: CommonRetries::from_record(record),
        }
    }

    /// The segment that follows this one. If this one is full, it is allocated in the size that it is expected to
    /// reach.
    pub fn successor(&self, record: &Record) -> Segment {
        let mut next = Segment::small(record);
        if next.era != self.era {
            return next;
        }
        let headers = self.headers.len() * size_of::<Header>();
        next.headers.reserve_exact(headers.max(HEADERS_STEP) / HEADERS_STEP * HEADERS_STEP / size_of::<Header>());
        next.data.reserve_exact(self.data.len().next_multiple_of(SEGMENT_BYTES / 8).min(SEGMENT_BYTES));
        next
    }

    /// How many bytes another message takes, if it fits.
    pub fn room_for(&self, record: &Record, entry: &NewEntry<'_>) -> Option<usize> {
        let size = self.size_of(record, entry);
        let fits = self.headers.len() < SEGMENT_HEADERS
            && self.data.len() + size <= SEGMENT_BYTES
            && (self.era == Era::containing(record.sequence) || self.headers.is_empty())
            && (self.headers.len() < self.headers.capacity() || self.data.len() < NEARLY_FULL_BYTES);
        fits.then_some(size)
    }

    /// How many bytes a message takes here.
    pub fn size_of(&self, record: &Record, NewEntry { name, group, batch, headers, inline }: &NewEntry<'_>) -> usize {
        name.map_or(0, |name| 1 + name.len())
            + if record.retries == self.retries.get() { 0 } else { size_of::<i32>() }
            + if record.lease.is_some() { size_of::<u64>() } else { 0 }
            + if record.ttl.is_some() { 2 * size_of::<u64>() } else { 0 }
            + if group.is_some() { size_of::<u32>() } else { 0 }
            + if batch.is_some() { size_of::<u32>() } else { 0 }
            + inline.map_or(0, |payload| headers.map_or(0, Headers::stored_len) + payload.len())
    }

    /// Adds a message, which takes `size` bytes.
    pub fn append(&mut self, record: &Record, entry: &NewEntry<'_>, size: usize, delivery: Option<Delivery>) {
        let NewEntry { name, group, batch, headers, inline } = *entry;
        self.make_room(size);
        if self.headers.is_empty() {
            self.era = Era::containing(record.sequence);
        }
        let mut header = Header::new(record.sequence, record.due, record.priority, self.data.len() as u16);
        header.set_phase(record.phase.into());
        if let Some(name) = name {
            header.set(NAMED, true);
            self.data.push(name.len() as u8);
            self.data.extend_from_slice(name);
        }
        if record.retries != self.retries.get() {
            header.set(RETRIES, true);
            self.data.extend_from_slice(&record.retries.count().to_le_bytes());
        }
        if let Some(lease) = record.lease {
            header.set(LEASE, true);
            self.data.extend_from_slice(&lease.as_ms().to_le_bytes());
        }
        if let Some(ttl) = record.ttl {
            header.set(TTL, true);
            self.data.extend_from_slice(&ttl.end.as_ms().to_le_bytes());
            self.data.extend_from_slice(&ttl.duration.as_ms().to_le_bytes());
        }
        if let Some(GroupId(group)) = group {
            header.set_grouped();
            self.data.extend_from_slice(&group.to_le_bytes());
        }
        if let Some(BatchId(batch)) = batch {
            header.set_batched();
            self.data.extend_from_slice(&batch.to_le_bytes());
        }
        if headers.is_some() {
            header.set_headed();
        }
        match inline {
            Some(payload) => {
                headers.into_iter().for_each(|headers| headers.store(&mut self.data));
                self.data.extend_from_slice(payload);
            }
            None => header.set(LARGE, true),
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
            let held = self.headers.len();
            let room = match 2 * held {
                few if few * size_of::<Header>() <= HEADERS_STEP => few.max(1),
                _ => ((held + 1) * size_of::<Header>()).next_multiple_of(HEADERS_STEP) / size_of::<Header>(),
            };
            self.headers.reserve_exact(room - held);
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

    /// The range of the bytes of a message in `data`.
    pub(super) fn span(&self, index: usize) -> std::ops::Range<usize> {
        let end = self.headers.get(index + 1).map_or(self.data.len(), |next| next.offset as usize);
        self.headers[index].offset as usize..end
    }

    /// The name of a message, and the bytes after it.
    fn behind_name(&self, index: usize) -> (Option<&[u8]>, &[u8]) {
        let bytes = &self.data[self.span(index)];
        // If there is no name, the bytes are not read: they may not be cached.
        if !self.headers[index].is_named() {
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

    /// The name, and the payload with the headers in front of it, unless these are stored elsewhere.
    pub fn bytes(&self, index: usize) -> (Option<&[u8]>, &[u8]) {
        let (name, rest) = self.behind_name(index);
        let header = &self.headers[index];
        let mut options = header.numbers_len();
        if header.has(RETRIES | LEASE | TTL) {
            options += header.options_len();
        }
        (name, rest.get(options..).unwrap_or_default())
    }

    /// The group of a message.
    pub fn group(&self, index: usize) -> Option<GroupId> {
        let header = self.headers.get(index).filter(|header| header.is_grouped())?;
        let (_, rest) = self.behind_name(index);
        let number = rest.get(header.options_len()..)?.first_chunk()?;
        Some(GroupId(u32::from_le_bytes(*number)))
    }

    /// The batch that a message is a member of.
    pub fn batch(&self, index: usize) -> Option<BatchId> {
        let number = self.data.get(self.batch_span(index)?)?.first_chunk()?;
        Some(BatchId(u32::from_le_bytes(*number))).filter(|batch| *batch != NO_BATCH)
    }

    /// Ends the membership of a message in its batch.
    pub fn end_batch(&mut self, index: usize) {
        if let Some(number) = self.batch_span(index).and_then(|span| self.data.get_mut(span)) {
            number.copy_from_slice(&NO_BATCH.0.to_le_bytes());
        }
    }

    /// Where the number of the batch of a message is.
    fn batch_span(&self, index: usize) -> Option<std::ops::Range<usize>> {
        let header = self.headers.get(index).filter(|header| header.is_batched())?;
        let end = self.options_start(index) + header.options_len() + header.numbers_len();
        Some(end - size_of::<u32>()..end)
    }

    /// Where the options of a message begin, behind its name.
    fn options_start(&self, index: usize) -> usize {
        self.span(index).start + self.behind_name(index).0.map_or(0, |name| 1 + name.len())
    }

    /// The length of a payload that is stored in the segment.
    pub fn inline_len(&self, index: usize) -> usize {
        let header = &self.headers[index];
        match header.is_plain() {
            true => self.span(index).len(),
            false => split(header, self.bytes(index).1).1.len(),
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
        let before = self.headers[index].delivery();
        let place = match (before, delivery) {
            (None, None) => return,
            (Some(_), None) => {
                self.deliveries.vacate();
                None
            }
            (Some(place), Some(delivery)) => {
                self.deliveries.set(place, delivery);
                Some(place)
            }
            (None, Some(delivery)) => {
                self.close_gaps();
                self.deliveries.add(delivery)
            }
        };
        self.headers[index].set_delivery(place);
    }

    /// The record of a message.
    pub fn record(&self, index: usize) -> Record {
        let header = &self.headers[index];
        let delivery = header.delivery().map(|place| self.deliveries.get(place)).unwrap_or_default();
        let mut record = Record {
            sequence: self.era.sequence(header),
            due: header.due(),
            priority: header.priority(),
            retries: self.retries.get(),
            lease: None,
            ttl: None,
            attempts: delivery.attempts,
            phase: phase_of(header.phase(), delivery),
            recurring: header.is_recurring(),
        };
        if header.has(RETRIES | LEASE | TTL) {
            let (_, mut rest) = self.behind_name(index);
            if header.has(RETRIES) {
                record.retries = Retries::new(i32::from_le_bytes(take(&mut rest))).unwrap_or(self.retries.get());
            }
            if header.has(LEASE) {
                record.lease = Some(DurationMs::new(u64::from_le_bytes(take(&mut rest))));
            }
            if header.has(TTL) {
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
        header.set_due_and_priority(record.due, record.priority);
        header.set_phase(record.phase.into());
        let header = *header;
        if let (true, Some(ttl)) = (header.has(TTL), record.ttl) {
            let start = self.options_start(index)
                + if header.has(RETRIES) { size_of::<i32>() } else { 0 }
                + if header.has(LEASE) { size_of::<u64>() } else { 0 };
            if let Some(end) = self.data.get_mut(start..start + size_of::<u64>()) {
                end.copy_from_slice(&ttl.end.as_ms().to_le_bytes());
            }
        }
    }

    pub fn set_recurring(&mut self, index: usize) {
        self.headers[index].set(RECURRING, true);
    }

    pub fn set_error(&mut self, index: usize, present: bool) {
        self.headers[index].set(ERROR, present);
    }

    /// Removes a message. Its bytes stay until the segment is packed.
    pub fn remove(&mut self, index: usize) {
        self.live_bytes -= self.span(index).len() as u16;
        self.live -= 1;
        let header = &mut self.headers[index];
        header.set_removed();
        if header.delivery().is_some() {
            header.set_delivery(None);
            self.deliveries.vacate();
        }
    }

    /// Removes the messages for which `doomed` returns `true`. `gone` gets the sequence of each, its header, and the
    /// length of its payload unless that is stored elsewhere.
    pub fn remove_where(
        &mut self,
        mut doomed: impl FnMut(Sequence) -> bool,
        mut gone: impl FnMut(Sequence, &Header, usize),
    ) {
        for index in 0..self.headers.len() {
            let sequence = self.sequence(index);
            if self.headers[index].is_present() && doomed(sequence) {
                gone(sequence, &self.headers[index], self.inline_len(index));
                self.remove(index);
            }
        }
    }

    pub fn heap_bytes(&self) -> usize {
        vec_bytes::<Header>(self.headers.capacity())
            + vec_bytes::<u8>(self.data.capacity())
            + self.deliveries.heap_bytes()
    }
}

/// The headers and the payload in bytes that are stored for the message with this header.
pub(super) fn split<'a>(header: &Header, stored: &'a [u8]) -> (Option<Headers<'a>>, &'a [u8]) {
    match header.is_headed() {
        true => Headers::split(stored),
        false => (None, stored),
    }
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

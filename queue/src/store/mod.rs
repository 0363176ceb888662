//! The store of a queue: its messages in segments, in push order, found by binary search.
//!
//! A segment holds a few hundred consecutive messages. Their headers lie together in one place, 18 bytes each, and
//! their bytes in another, so a change of a message's state touches no page of payloads (which limits copy-on-write
//! while a child process saves). There is no index from a sequence to a place, and there are no allocations per
//! message: two binary searches find a message. A segment that is full of gaps is packed, so memory shrinks as messages
//! are removed. A place is valid during one call only: orders and names refer to sequences. Data that few messages have
//! (a delivery, errors, a checkpoint, a schedule, headers with a payload above [`INLINE_MAX`]) is stored apart.

// Indices come from `find` in the same call, or from a search in the vector that they index.
#![allow(clippy::indexing_slicing)]

mod at;
mod attachments;
mod deliveries;
mod directory;
mod finding;
mod header;
mod packing;
mod segment;
#[cfg(test)]
mod tests;

use super::consumers::Consumers;
use super::errors::Errors;
use super::headers::Headers;
use super::id::{BatchId, ConsumerId, GroupId, Receipt, Sequence};
use super::memory::{box_bytes, given, sum_sampled, tree_bytes};
use super::origin::Origin;
use super::record::{Phase, Record};
use super::time::{DurationMs, UnixMs};
use attachments::Attachments;
use deliveries::Delivery;
use directory::Directory;
use header::{Header, PhaseTag};
use segment::{split, NewEntry, Segment};
use std::collections::{BTreeMap, VecDeque};

pub(super) use at::At;
pub(super) use attachments::Leaving;
pub(super) use header::Placement;
pub(super) use segment::Bytes;

/// The largest payload that is stored in a segment, with its headers, in bytes; a larger one has an allocation of its
/// own.
pub(super) const INLINE_MAX: usize = 8 * 1024;

/// All messages of a queue, in push order.
#[derive(Debug, Default)]
pub(super) struct Store {
    segments: Directory,
    /// Allocated with the first message that needs it.
    attachments: Option<Box<Attachments>>,
    len: usize,
    payload_bytes: u64,
    /// The place of the last message found: the next one to be found is usually the one after it.
    hint: At,
}

impl Store {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// The largest sequence in memory. That of a removed message stays in memory until its segment is packed.
    pub fn last(&self) -> Option<Sequence> {
        self.segments.iter().rev().find_map(Segment::last)
    }

    /// Adds a message behind all others, and returns its place. Its sequence must be above theirs.
    pub fn append(&mut self, record: &Record, bytes: Bytes<'_>, group: Option<GroupId>, batch: Option<BatchId>) -> At {
        let inline = if bytes.payload.len() + bytes.headers.map_or(0, Headers::stored_len) > INLINE_MAX {
            self.attachments.get_or_insert_default().large.insert(record.sequence, large(&bytes));
            None
        } else {
            Some(bytes.payload)
        };
        let entry = NewEntry { name: bytes.name, group, batch, headers: bytes.headers, inline };
        let size = self.segments.last_mut().and_then(|last| last.room_for(record, &entry));
        if size.is_none() {
            let fresh = match self.segments.last_mut() {
                Some(last) => {
                    last.seal();
                    last.successor(record)
                }
                None => Segment::small(record),
            };
            self.segments.push(record.sequence, fresh);
        }
        if let Some(last) = self.segments.last_mut() {
            let size = size.unwrap_or_else(|| last.size_of(record, &entry));
            last.append(record, &entry, size, delivery_of(record));
            if let Some(errors) = bytes.errors {
                self.attachments.get_or_insert_default().errors.insert(record.sequence, errors.block().into());
                last.set_error(last.headers.len() - 1, true);
            }
            if let Some(origin) = bytes.origin {
                self.attachments.get_or_insert_default().origins.insert(record.sequence, origin);
            }
        }
        self.len += 1;
        self.payload_bytes += bytes.payload.len() as u64;
        let index = self.segments.last_mut().map_or(0, |last| last.headers.len().saturating_sub(1));
        At::new(self.segments.len().saturating_sub(1), index)
    }

    /// The place of the message with `sequence`; `None` if it is not here. O(log n), and O(1) for the one after the
    /// last one found.
    pub fn find(&mut self, sequence: Sequence) -> Option<At> {
        let next = At { index: self.hint.index + 1, ..self.hint };
        let at = match self.segments.get(next.segment()) {
            Some(segment) if segment.holds(next.index(), sequence) => next,
            _ => self.locate(sequence)?,
        };
        self.hint = at;
        Some(at)
    }

    /// [`Store::find`] without the shortcut, for a caller that may change nothing.
    pub fn locate(&self, sequence: Sequence) -> Option<At> {
        let (segment, first, last) = self.segments.search(sequence)?;
        let index = self.segments[segment].find(sequence, first, last)?;
        Some(At::new(segment, index))
    }

    /// The place of the first message with this sequence or a later one. O(log n).
    pub fn first_from(&self, sequence: Sequence) -> Option<At> {
        let segment = self.segments.search(sequence).map_or(0, |(segment, ..)| segment);
        self.present_from(At::new(segment, self.segments.get(segment)?.rank(sequence)))
    }

    /// The place of the message after the one at `at`. O(1), plus the number of removed messages in between.
    pub fn next(&self, at: At) -> Option<At> {
        self.present_from(At { index: at.index + 1, ..at })
    }

    /// The first place from `at` on that holds a message.
    fn present_from(&self, at: At) -> Option<At> {
        let mut first = at.index();
        for (nth, segment) in self.segments.from(at.segment()).enumerate() {
            let found = segment.headers.iter().skip(first).position(Header::is_present);
            if let Some(skipped) = found {
                return Some(At::new(at.segment() + nth, first + skipped));
            }
            first = 0;
        }
        None
    }

    fn header(&self, at: At) -> &Header {
        &self.segments[at.segment()].headers[at.index()]
    }

    fn header_mut(&mut self, at: At) -> &mut Header {
        &mut self.segments[at.segment()].headers[at.index()]
    }

    /// The record of the message at a place.
    pub fn record(&self, at: At) -> Record {
        self.segments[at.segment()].record(at.index())
    }

    /// The bytes of the message at a place.
    pub fn bytes(&self, at: At) -> Bytes<'_> {
        let (name, headers, payload) = self.texts(at);
        let (mut errors, mut origin) = (None, None);
        if let Some(attachments) = &self.attachments {
            let sequence = self.sequence(at);
            if self.header(at).has_error() {
                errors = attachments.errors.get(&sequence).map(|block| Errors::stored(block));
            }
            origin = attachments.origins.get(&sequence).copied();
        }
        Bytes { name, payload, errors, origin, headers }
    }

    /// The name, the headers and the payload of the message at a place.
    #[inline]
    pub fn texts(&self, at: At) -> (Option<&[u8]>, Option<Headers<'_>>, &[u8]) {
        let segment = &self.segments[at.segment()];
        let header = &segment.headers[at.index()];
        let (name, inline) = segment.bytes(at.index());
        let stored = if header.is_large() { self.large(at) } else { inline };
        let (headers, payload) = split(header, stored);
        (name, headers, payload)
    }

    /// What is stored of a large payload.
    #[cold]
    fn large(&self, at: At) -> &[u8] {
        let attachments = self.attachments.as_ref();
        attachments.and_then(|attachments| attachments.large.get(&self.sequence(at))).map_or(&[], |stored| stored)
    }

    /// The sequence of the message at a place.
    pub fn sequence(&self, at: At) -> Sequence {
        self.segments[at.segment()].sequence(at.index())
    }

    /// The due time of the message at a place.
    pub fn due(&self, at: At) -> UnixMs {
        self.header(at).due()
    }

    /// Whether the message at a place has a name.
    pub fn is_named(&self, at: At) -> bool {
        self.header(at).is_named()
    }

    /// The priority of the message at a place.
    pub fn priority(&self, at: At) -> i8 {
        self.header(at).priority()
    }

    /// The group of the message at a place.
    pub fn group(&self, at: At) -> Option<GroupId> {
        self.segments[at.segment()].group(at.index())
    }

    /// The batch that the message at a place is a member of.
    pub fn batch(&self, at: At) -> Option<BatchId> {
        self.segments[at.segment()].batch(at.index())
    }

    /// Ends the membership of the message at a place in its batch.
    pub fn end_batch(&mut self, at: At) {
        self.segments[at.segment()].end_batch(at.index());
    }

    /// The order of the view that the message is in.
    pub fn placement(&self, at: At) -> Placement {
        self.header(at).placement()
    }

    /// Records which order of the view the message is in.
    pub fn set_placement(&mut self, at: At, placement: Placement) {
        self.header_mut(at).set_placement(placement);
    }

    /// Sets which order of the view each message is in: calls `placement` with every record and its group, in push
    /// order.
    pub fn place_all(&mut self, mut placement: impl FnMut(&Record, Option<GroupId>) -> Placement) {
        for segment in self.segments.iter_mut() {
            for index in 0..segment.headers.len() {
                if segment.headers[index].is_present() {
                    let placement = placement(&segment.record(index), segment.group(index));
                    segment.headers[index].set_placement(placement);
                }
            }
        }
    }

    /// Writes those fields of a record that can change: due time, priority, the end of its TTL, attempts and phase.
    pub fn update(&mut self, at: At, record: &Record) {
        if !matches!(record.phase, Phase::Successor { .. }) {
            self.drop_leaving(at);
        }
        self.segments[at.segment()].update(at.index(), record, delivery_of(record));
    }

    /// Writes those fields of a record that a delivery changes, and marks the message as leased. This does the work of
    /// [`Store::update`] and [`Store::set_placement`] at once, because every message is delivered.
    pub fn lend(&mut self, at: At, attempts: u32, deadline: UnixMs, receipt: Receipt) {
        self.drop_leaving(at);
        let delivery = Delivery { receipt: receipt.0, moment: deadline.as_ms(), attempts };
        self.segments[at.segment()].lend(at.index(), delivery);
    }

    /// The consumer whose name the delivery of a message bears.
    pub fn consumer(&self, at: At) -> Option<ConsumerId> {
        let segment = &self.segments[at.segment()];
        segment.deliveries.consumer(segment.headers[at.index()].delivery()?)
    }

    /// Notes the consumer of the delivery of a message.
    pub fn set_consumer(&mut self, at: At, consumer: Option<ConsumerId>) {
        let segment = &mut self.segments[at.segment()];
        if let Some(place) = segment.headers[at.index()].delivery() {
            segment.deliveries.set_consumer(place, consumer);
        }
    }

    /// The messages whose deliveries bear the name of a consumer, with that. Segments without any are passed over.
    pub fn all_with_consumers(&self) -> impl Iterator<Item = (At, ConsumerId)> + '_ {
        let segments = self.segments.iter().enumerate();
        segments.filter(|(_, segment)| segment.deliveries.may_have_consumers()).flat_map(|(nth, segment)| {
            segment.headers.iter().enumerate().filter_map(move |(index, header)| {
                let place = header.delivery().filter(|_| header.is_present())?;
                Some((At::new(nth, index), segment.deliveries.consumer(place)?))
            })
        })
    }

    /// Marks a waiting message as given back, until its record is written again.
    pub fn mark_given_back(&mut self, at: At) {
        self.header_mut(at).set_phase(PhaseTag::GivenBack);
    }

    /// Whether the message was marked as given back.
    pub fn was_given_back(&self, at: At) -> bool {
        self.header(at).phase() == PhaseTag::GivenBack
    }

    /// Removes the message at a place.
    pub fn remove(&mut self, at: At) {
        let segment = &self.segments[at.segment()];
        let header = segment.headers[at.index()];
        let payload = match header.is_large() {
            true => self.bytes(at).payload.len(),
            false => segment.inline_len(at.index()),
        };
        self.payload_bytes -= payload as u64;
        self.len -= 1;
        if self.attachments.as_ref().is_some_and(|attachments| header.has_attachment() || attachments.has_unmarked()) {
            self.remove_attachments(at);
        }
        let sole = self.segments.len() == 1;
        let segment = &mut self.segments[at.segment()];
        segment.remove(at.index());
        if segment.live == 0 && !(sole && segment.is_small()) {
            self.segments.remove(at.segment());
        } else if segment.live == 0 {
            segment.clear();
        } else if segment.is_sparse(at.segment == 0) {
            segment.pack();
            self.merge(at.segment());
        }
    }

    /// Removes all messages for which `doomed`, called in push order, returns `true`. O(n), with little work for each.
    pub fn remove_where(&mut self, mut doomed: impl FnMut(Sequence) -> bool) {
        let mut attachments = self.attachments.take();
        let (mut removed, mut payload_bytes) = (0, 0);
        let mut kept: VecDeque<Segment> = VecDeque::new();
        for mut segment in std::mem::take(&mut self.segments).into_segments() {
            segment.remove_where(&mut doomed, |sequence, header, inline| {
                let leaving = attachments.as_ref().and_then(|attachments| attachments.leaving.get(&sequence));
                payload_bytes += leaving.map_or(0, |leaving| leaving.payload.len() as u64);
                let large = attachments.as_mut().and_then(|attachments| attachments.remove(sequence));
                removed += 1;
                payload_bytes += large.map_or(inline, |stored| split(header, &stored).1.len()) as u64;
            });
            if segment.live == 0 {
                continue;
            }
            if segment.is_sparse(false) {
                segment.pack();
            }
            match kept.back_mut() {
                Some(last) if last.can_absorb(&segment) => last.absorb(&segment),
                _ => kept.push_back(segment),
            }
        }
        self.segments = Directory::new(kept);
        self.attachments = attachments.filter(|attachments| !attachments.is_empty());
        self.len -= removed;
        self.payload_bytes -= payload_bytes;
        self.hint = At::default();
    }

    /// Merges a packed segment with its neighbours if both fit in half of one.
    fn merge(&mut self, segment: usize) {
        // The last segment is left alone, since it still grows.
        for first in [segment, segment.wrapping_sub(1)] {
            if first.saturating_add(2) >= self.segments.len() {
                continue;
            }
            if self.segments[first].can_absorb(&self.segments[first + 1]) {
                if let Some(next) = self.segments.remove(first + 1) {
                    self.segments[first].absorb(&next);
                }
            }
        }
    }

    /// The places of all messages above `after` (of all messages if it is `None`), in push order.
    pub fn iter_after(&self, after: Option<Sequence>) -> impl Iterator<Item = At> + '_ {
        let start = match after {
            Some(after) => self.segments.search(after).map_or(0, |(segment, ..)| segment),
            None => 0,
        };
        self.segments.from(start).enumerate().flat_map(move |(nth, segment)| {
            let headers = segment.headers.iter().enumerate();
            headers.filter_map(move |(index, header)| {
                let wanted = header.is_present() && after.is_none_or(|after| segment.sequence(index) > after);
                wanted.then_some(At::new(start + nth, index))
            })
        })
    }

    /// The number of bytes on the heap. O(segments).
    pub fn heap_bytes(&self) -> usize {
        let texts = |map: &BTreeMap<Sequence, Box<[u8]>>| {
            let bytes = sum_sampled(map.values(), |bytes| given(bytes.len()));
            bytes + tree_bytes::<Sequence, Box<[u8]>>(map.len())
        };
        let boxes = |len| tree_bytes::<Sequence, Box<Leaving>>(len);
        self.segments.heap_bytes()
            + self.attachments.as_ref().map_or(0, |maps| {
                let recurring = sum_sampled(maps.recurring.values(), |recurring| recurring.heap_bytes());
                let leaving = sum_sampled(maps.leaving.values(), |leaving| leaving.heap_bytes());
                box_bytes::<Attachments>()
                    + texts(&maps.large)
                    + texts(&maps.errors)
                    + texts(&maps.checkpoints)
                    + tree_bytes::<Sequence, Origin>(maps.origins.len())
                    + tree_bytes::<Sequence, DurationMs>(maps.retains.len())
                    + boxes(maps.recurring.len())
                    + recurring
                    + maps.consumers.as_ref().map_or(0, |of| box_bytes::<Consumers>() + of.heap_bytes())
                    + boxes(maps.leaving.len())
                    + leaving
            })
    }
}

/// What is stored of a payload that does not fit into a segment: its headers, and the payload.
#[cold]
fn large(bytes: &Bytes<'_>) -> Box<[u8]> {
    let Some(headers) = bytes.headers else { return bytes.payload.into() };
    let mut stored = Vec::with_capacity(headers.stored_len() + bytes.payload.len());
    headers.store(&mut stored);
    stored.extend_from_slice(bytes.payload);
    stored.into()
}

/// The part of a record that is stored apart from its header; `None` for a message that waits with no attempts.
fn delivery_of(record: &Record) -> Option<Delivery> {
    let (receipt, moment) = match record.phase {
        Phase::Waiting if record.attempts == 0 => return None,
        Phase::Waiting => (0, 0),
        Phase::Leased { deadline, receipt } | Phase::Successor { deadline, receipt } => (receipt.0, deadline.as_ms()),
        Phase::Dead { died, .. } => (0, died.as_ms()),
    };
    Some(Delivery { receipt, moment, attempts: record.attempts })
}

//! Where messages are: in segments, in push order, found by binary search.
//!
//! A segment holds some hundreds of consecutive messages: their headers together at one place, 24 bytes each, and
//! their bytes together at another, so that what changes a message's state touches no payload page (this keeps
//! copy-on-write low while a child process saves). There is no index from sequence to place and no allocation a
//! message: two binary searches find it, and a segment that is full of gaps is packed anew, so that
//! memory shrinks as messages go. Nothing refers to a place for longer than one call: orders and names refer to
//! sequences. What few messages have (a delivery, an error, a payload above [`INLINE_MAX`]) is kept aside.

// Indices come from `find` in the same call, or from a search in the vector that they index.
#![allow(clippy::indexing_slicing)]

use super::deliveries::Delivery;
use super::id::{Receipt, Sequence};
use super::record::{Phase, Reason, Record};
use super::segment::{Header, Segment};
use super::time::UnixMs;
use std::collections::{BTreeMap, VecDeque};
use std::mem::size_of;

pub(super) use super::segment::{Bytes, Placement};

/// The largest payload that lies in a segment; a larger one has an allocation of its own.
pub(super) const INLINE_MAX: usize = 8 * 1024;

/// A message's place, good until the next insertion or removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct At {
    segment: usize,
    index: usize,
}

/// The bytes that few messages have.
#[derive(Debug, Default)]
struct Aside {
    large: BTreeMap<Sequence, Box<[u8]>>,
    errors: BTreeMap<Sequence, Box<[u8]>>,
}

/// All messages of a queue, in push order.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// The first sequence of each segment, apart, so that the search stays in few cache lines.
    firsts: VecDeque<u64>,
    segments: VecDeque<Segment>,
    /// Made with the first message that needs it.
    aside: Option<Box<Aside>>,
    len: usize,
    payload_bytes: u64,
    /// Where the last message was found: the next one wanted is most often the one behind it.
    hint: At,
}

impl Store {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// The last sequence that it holds, or held until that segment was packed.
    pub fn last(&self) -> Option<Sequence> {
        self.segments.iter().rev().find_map(|segment| segment.headers.last()).map(|header| Sequence(header.sequence))
    }

    /// Adds a message behind all others. Its sequence is above theirs.
    pub fn append(&mut self, record: &Record, bytes: Bytes<'_>) {
        let inline = if bytes.payload.len() > INLINE_MAX {
            self.aside.get_or_insert_default().large.insert(record.sequence, bytes.payload.into());
            None
        } else {
            Some(bytes.payload)
        };
        if !self.segments.back().is_some_and(|last| last.has_room(record, bytes.name, inline)) {
            let fresh = match self.segments.back_mut() {
                Some(last) => {
                    last.seal();
                    last.successor(record)
                }
                None => Segment::small(record),
            };
            if self.segments.len() == self.segments.capacity() && self.segments.is_empty() {
                self.segments.reserve_exact(1);
                self.firsts.reserve_exact(1);
            }
            self.firsts.push_back(record.sequence.0);
            self.segments.push_back(fresh);
        }
        if let (Some(last), Some(first)) = (self.segments.back_mut(), self.firsts.back_mut()) {
            if last.headers.is_empty() {
                *first = record.sequence.0;
            }
            last.append(record, bytes.name, inline, delivery_of(record));
            if let Some(error) = bytes.error {
                self.aside.get_or_insert_default().errors.insert(record.sequence, error.into());
                last.set_error(last.headers.len() - 1, true);
            }
        }
        self.len += 1;
        self.payload_bytes += bytes.payload.len() as u64;
    }

    /// The place of the message with `sequence`: O(log n), O(1) for the one behind the last one found.
    pub fn find(&mut self, sequence: Sequence) -> Option<At> {
        let next = At { index: self.hint.index + 1, ..self.hint };
        let at = match self.segments.get(next.segment).and_then(|segment| segment.headers.get(next.index)) {
            Some(header) if header.sequence == sequence.0 && header.is_present() => next,
            _ => self.locate(sequence)?,
        };
        self.hint = at;
        Some(at)
    }

    /// [`Store::find`] without the shortcut, for those who only look.
    pub fn locate(&self, sequence: Sequence) -> Option<At> {
        let segment = self.firsts.partition_point(|first| *first <= sequence.0).checked_sub(1)?;
        let index = self.segments[segment].find(sequence)?;
        Some(At { segment, index })
    }

    fn header(&self, at: At) -> &Header {
        &self.segments[at.segment].headers[at.index]
    }

    fn header_mut(&mut self, at: At) -> &mut Header {
        &mut self.segments[at.segment].headers[at.index]
    }

    /// The record of the message at a place.
    pub fn record(&self, at: At) -> Record {
        self.segments[at.segment].record(at.index)
    }

    /// The bytes of the message at a place.
    pub fn bytes(&self, at: At) -> Bytes<'_> {
        let segment = &self.segments[at.segment];
        let sequence = Sequence(segment.headers[at.index].sequence);
        let (name, inline) = segment.bytes(at.index);
        let payload = if segment.headers[at.index].is_large() {
            self.aside.as_ref().and_then(|aside| aside.large.get(&sequence)).map_or(&[][..], |payload| payload)
        } else {
            inline
        };
        let has_error = segment.headers[at.index].has_error();
        let error = self.aside.as_ref().filter(|_| has_error).and_then(|aside| aside.errors.get(&sequence));
        Bytes { name, payload, error: error.map(|error| &**error) }
    }

    /// Which index the message is in.
    pub fn placement(&self, at: At) -> Placement {
        self.header(at).placement()
    }

    /// Notes which index the message is in.
    pub fn set_placement(&mut self, at: At, placement: Placement) {
        self.header_mut(at).set_placement(placement);
    }

    /// Asks of every message, in push order, which index it is in.
    pub fn place_all(&mut self, mut placement: impl FnMut(&Record) -> Placement) {
        for segment in &mut self.segments {
            for index in 0..segment.headers.len() {
                if segment.headers[index].is_present() {
                    let placement = placement(&segment.record(index));
                    segment.headers[index].set_placement(placement);
                }
            }
        }
    }

    /// Writes what can change of a record: due, the end of its TTL, attempts and phase.
    pub fn update(&mut self, at: At, record: &Record) {
        self.segments[at.segment].update(at.index, record, delivery_of(record));
    }

    /// Keeps `error` with the message, or clears it.
    pub fn set_error(&mut self, at: At, error: Option<&[u8]>) {
        let sequence = Sequence(self.header(at).sequence);
        let errors = &mut self.aside.get_or_insert_default().errors;
        match error {
            Some(error) => errors.insert(sequence, error.into()),
            None => errors.remove(&sequence),
        };
        self.segments[at.segment].set_error(at.index, error.is_some());
    }

    /// Removes the message at a place.
    pub fn remove(&mut self, at: At) {
        self.payload_bytes -= self.bytes(at).payload.len() as u64;
        self.len -= 1;
        let header = *self.header(at);
        let sequence = Sequence(header.sequence);
        if let Some(aside) = self.aside.as_mut().filter(|_| header.is_large() || header.has_error()) {
            aside.large.remove(&sequence);
            aside.errors.remove(&sequence);
            if aside.large.is_empty() && aside.errors.is_empty() {
                self.aside = None;
            }
        }
        let sole = self.segments.len() == 1;
        let segment = &mut self.segments[at.segment];
        segment.remove(at.index);
        if segment.live == 0 && !(sole && segment.is_small()) {
            self.segments.remove(at.segment);
            self.firsts.remove(at.segment);
            self.shrink_directory();
        } else if segment.live == 0 {
            segment.clear();
        } else if segment.is_sparse(at.segment == 0) {
            segment.pack();
            self.merge(at.segment);
        }
    }

    /// Joins a packed segment with its neighbours while both fit in half of one.
    fn merge(&mut self, segment: usize) {
        // The last one is left alone: it still grows.
        for first in [segment, segment.wrapping_sub(1)] {
            if first.saturating_add(2) >= self.segments.len() {
                continue;
            }
            if self.segments[first].can_absorb(&self.segments[first + 1]) {
                if let Some(next) = self.segments.remove(first + 1) {
                    self.firsts.remove(first + 1);
                    self.segments[first].absorb(&next);
                    self.shrink_directory();
                }
            }
        }
    }

    fn shrink_directory(&mut self) {
        let kept = self.segments.len() * 2 + 4;
        if self.segments.capacity() > 2 * kept {
            self.segments.shrink_to(kept);
            self.firsts.shrink_to(kept);
        }
    }

    /// The places of all messages above `after`, in push order.
    pub fn iter_after(&self, after: Option<Sequence>) -> impl Iterator<Item = At> + '_ {
        let start = match after {
            Some(after) => self.firsts.partition_point(|first| *first <= after.0).saturating_sub(1),
            None => 0,
        };
        self.segments.range(start..).enumerate().flat_map(move |(nth, segment)| {
            let headers = segment.headers.iter().enumerate();
            headers.filter_map(move |(index, header)| {
                let wanted = header.is_present() && after.is_none_or(|after| header.sequence > after.0);
                wanted.then_some(At { segment: start + nth, index })
            })
        })
    }

    /// Bytes on the heap. O(segments).
    pub fn heap_bytes(&self) -> usize {
        let aside = |map: &BTreeMap<Sequence, Box<[u8]>>| {
            // A node of std's B-tree holds up to eleven entries and is two thirds full on average.
            map.values().map(|bytes| bytes.len() + 16 + 16 * 3 / 2).sum::<usize>()
        };
        self.segments.iter().map(Segment::heap_bytes).sum::<usize>()
            + self.segments.capacity() * size_of::<Segment>()
            + self.firsts.capacity() * size_of::<u64>()
            + self.aside.as_ref().map_or(0, |maps| aside(&maps.large) + aside(&maps.errors))
    }

    /// Allocations to free, an estimate.
    pub fn allocations(&self) -> usize {
        3 * self.segments.len() + self.aside.as_ref().map_or(0, |aside| aside.large.len() + aside.errors.len())
    }
}

/// What is kept of a record apart from its header; none where it was never delivered.
fn delivery_of(record: &Record) -> Option<Delivery> {
    let (receipt, moment) = match record.phase {
        Phase::Waiting if record.attempts == 0 => return None,
        Phase::Waiting => (0, 0),
        Phase::Leased { deadline, receipt } => (receipt.0, deadline.as_ms()),
        Phase::Dead { died, .. } => (0, died.as_ms()),
    };
    Some(Delivery { receipt, moment, attempts: record.attempts })
}

/// Puts a record together from its parts.
pub(super) fn phase_of(tag: PhaseTag, delivery: Delivery) -> Phase {
    let moment = UnixMs::new(delivery.moment);
    match tag {
        PhaseTag::Waiting => Phase::Waiting,
        PhaseTag::Leased => Phase::Leased { deadline: moment, receipt: Receipt(delivery.receipt) },
        PhaseTag::Dead(reason) => Phase::Dead { died: moment, reason },
    }
}

/// A phase without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseTag {
    Waiting,
    Leased,
    Dead(Reason),
}

impl From<Phase> for PhaseTag {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Waiting => PhaseTag::Waiting,
            Phase::Leased { .. } => PhaseTag::Leased,
            Phase::Dead { reason, .. } => PhaseTag::Dead(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Ttl;
    use super::super::settings::Retries;
    use super::super::time::DurationMs;
    use super::*;
    use proptest::prelude::*;

    /// A message, owned.
    #[derive(Clone, Debug, PartialEq)]
    struct Held {
        record: Record,
        name: Option<Vec<u8>>,
        payload: Vec<u8>,
        error: Option<Vec<u8>>,
        placement: Placement,
    }

    impl Held {
        fn bytes(&self) -> Bytes<'_> {
            Bytes { name: self.name.as_deref(), payload: &self.payload, error: self.error.as_deref() }
        }
    }

    /// A message in which every part is present or not by one bit of `seed`.
    fn message(sequence: u64, size: usize, seed: u8) -> Held {
        let has = |bit: u8| seed >> bit & 1 == 1;
        let number = sequence * 31;
        Held {
            record: Record {
                sequence: Sequence(sequence),
                due: if has(0) { UnixMs::MAX } else { UnixMs::new(number) },
                priority: sequence as i8,
                retries: if has(1) { Retries::UNLIMITED } else { Retries::new(3).unwrap() },
                lease: has(2).then_some(DurationMs::new(number + 1)),
                ttl: has(3).then_some(Ttl { duration: DurationMs::MAX, end: UnixMs::new(number + 2) }),
                attempts: if has(4) { 7 } else { 0 },
                phase: if has(4) { leased(number) } else { Phase::Waiting },
            },
            name: has(5).then(|| vec![b'n'; 1 + sequence as usize % 255]),
            payload: vec![sequence as u8; size],
            error: has(6).then(|| number.to_string().into_bytes()),
            placement: Placement::Waiting,
        }
    }

    fn leased(number: u64) -> Phase {
        Phase::Leased { deadline: UnixMs::new(number + 3), receipt: Receipt(number + 4) }
    }

    fn same(store: &Store, at: At, held: &Held) -> bool {
        store.record(at) == held.record && store.bytes(at) == held.bytes() && store.placement(at) == held.placement
    }

    fn assert_same(store: &Store, model: &BTreeMap<u64, Held>) {
        assert_eq!(store.len(), model.len());
        let payload_bytes: usize = model.values().map(|held| held.payload.len()).sum();
        assert_eq!(store.payload_bytes(), payload_bytes as u64);
        let places: Vec<At> = store.iter_after(None).collect();
        assert_eq!(places.len(), model.len());
        for (at, (sequence, held)) in places.into_iter().zip(model) {
            assert_eq!(store.locate(Sequence(*sequence)), Some(at));
            assert!(same(store, at, held), "{held:?} is {:?}", store.record(at));
        }
        assert!(store.last().is_none_or(|last| model.last_key_value().is_none_or(|(key, _)| last.0 >= *key)));
    }

    /// What happens to a store: a kind, which message, a size, a seed.
    type Step = (u8, prop::sample::Index, usize, u8);

    fn carry_out(store: &mut Store, model: &mut BTreeMap<u64, Held>, next: &mut u64, step: &Step) {
        let (kind, which, size, seed) = step;
        if *kind < 5 || model.is_empty() {
            *next += 1 + u64::from(seed % 3);
            let held = message(*next, *size, *seed);
            store.append(&held.record, held.bytes());
            model.insert(*next, held);
            return;
        }
        let sequence = *which.get(&model.keys().copied().collect::<Vec<_>>());
        let at = store.find(Sequence(sequence)).unwrap();
        let held = model.get_mut(&sequence).unwrap();
        assert!(same(store, at, held));
        match kind {
            5 => {
                let died = UnixMs::new(u64::from(*seed));
                let phases = [Phase::Waiting, leased(9), Phase::Dead { died, reason: Reason::Expired }];
                held.record.phase = phases[usize::from(seed % 3)];
                held.record.attempts = u32::from(*seed / 3);
                // Never delivered is as good as waiting: a record of a message that was never delivered is that.
                if held.record.attempts == 0 {
                    held.record.phase = Phase::Waiting;
                }
                held.record.due = died;
                held.record.ttl = held.record.ttl.map(|ttl| Ttl { end: died, ..ttl });
                store.update(at, &held.record);
            }
            6 => {
                held.error = (seed % 2 == 0).then(|| vec![*seed; 9]);
                store.set_error(at, held.error.as_deref());
            }
            7 => {
                held.placement = [Placement::Waiting, Placement::InFlight, Placement::Dead][usize::from(seed % 3)];
                store.set_placement(at, held.placement);
            }
            _ => {
                store.remove(at);
                model.remove(&sequence);
                assert_eq!(store.find(Sequence(sequence)), None);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 48 }))]

        #[test]
        fn it_holds_what_it_is_given(
            growing in steps(0..10),
            shrinking in steps(4..14),
            growing_again in steps(0..7),
        ) {
            let (mut store, mut model, mut next) = (Store::default(), BTreeMap::new(), 0);
            for (nth, step) in growing.iter().chain(&shrinking).chain(&growing_again).enumerate() {
                carry_out(&mut store, &mut model, &mut next, step);
                if nth % 61 == 0 {
                    assert_same(&store, &model);
                }
            }
            assert_same(&store, &model);
            let middle = Sequence(next / 2);
            let above = store.iter_after(Some(middle)).map(|at| store.record(at).sequence.0);
            prop_assert!(above.eq(model.range(middle.0 + 1..).map(|(sequence, _)| *sequence)));
            for sequence in model.keys() {
                let at = store.find(Sequence(*sequence)).unwrap();
                store.remove(at);
            }
            prop_assert_eq!((store.len(), store.payload_bytes()), (0, 0));
            prop_assert!(store.heap_bytes() < 3 * 1024, "{} bytes", store.heap_bytes());
        }
    }

    fn steps(kinds: std::ops::Range<u8>) -> impl Strategy<Value = Vec<Step>> {
        let size = prop_oneof![30 => 0usize..300, 2 => 2_000usize..INLINE_MAX, 1 => INLINE_MAX..=INLINE_MAX + 2];
        let step = (kinds, any::<prop::sample::Index>(), size, any::<u8>());
        prop::collection::vec(step, 0..if cfg!(miri) { 60 } else { 1_500 })
    }

    fn filled(count: u64, size: usize) -> Store {
        let mut store = Store::default();
        for sequence in 1..=count {
            let held = message(sequence, size, 0);
            store.append(&held.record, held.bytes());
        }
        store
    }

    #[test]
    fn memory_follows_what_is_left() {
        for size in [0, 100, 1_000, 8_000] {
            let count = if cfg!(miri) { 300 } else { 20_000 / (1 + size as u64 / 500) };
            let mut store = filled(count, size);
            let all = store.heap_bytes();
            assert!(all < count as usize * (size + 24) * 11 / 10 + 2_048, "{all} bytes");
            for sequence in (1..=count).filter(|sequence| sequence * 7_919 % 10 != 0) {
                let at = store.find(Sequence(sequence)).unwrap();
                store.remove(at);
            }
            assert_eq!(store.len() as u64, count / 10);
            assert!(store.heap_bytes() < all / 5, "{} of {all} bytes for messages of {size}", store.heap_bytes());
        }
    }

    #[test]
    fn deliveries_come_and_go_without_a_trace() {
        let mut store = filled(500, 10);
        let waiting = store.heap_bytes();
        for round in 0..50 {
            for sequence in 1..=500 {
                let at = store.find(Sequence(sequence)).unwrap();
                let record = Record { attempts: 1, phase: leased(round), ..store.record(at) };
                store.update(at, &record);
                assert_eq!(store.record(at), record);
            }
            for sequence in (1..=500).rev() {
                let at = store.find(Sequence(sequence)).unwrap();
                assert_eq!(store.record(at).phase, leased(round));
                store.update(at, &Record { attempts: 0, phase: Phase::Waiting, ..store.record(at) });
            }
        }
        assert!(store.heap_bytes() < waiting + 500 * 2 * size_of::<Delivery>());
    }

    #[test]
    fn a_message_behind_an_emptied_segment_is_found() {
        let mut store = filled(3, 10);
        for sequence in 1..=3 {
            let at = store.find(Sequence(sequence)).unwrap();
            store.remove(at);
        }
        assert_eq!(store.last(), None);
        let held = message(2, 10, 0);
        store.append(&held.record, held.bytes());
        assert!(store.find(Sequence(2)).is_some() && store.find(Sequence(1)).is_none());
    }
}

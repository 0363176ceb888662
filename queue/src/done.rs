//! Completed messages that are kept for a time (`RETAIN`).
//!
//! What is retained of a message is small: its payload is dropped when it is completed, and its result is stored
//! instead. A done message is never delivered again, so it stands in no order of the view: it has two orders of its
//! own, by the instant of its completion and by the end of its retention. Its id cannot be used again until that end.
//!
//! The end follows from the time alone, and every look-up compares the times. The memory is freed later, by an effect
//! of the master in bounded steps, so that all servers hold the same done messages.

use super::id::{Id, Sequence};
use super::memory::{given, tree_bytes};
use super::name_index::NameIndex;
use super::sorted_set::{Key, OrderedKeys};
use super::spans::Spans;
use super::time::UnixMs;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The longest result that is stored, in bytes.
pub const RESULT_MAX: usize = 64 * 1024;

/// A completed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoneMessage<'a> {
    /// Its position in push order, which is also its id if it has no name.
    pub sequence: Sequence,
    /// The name that the producer chose.
    pub name: Option<&'a [u8]>,
    /// When it was due.
    pub due: UnixMs,
    /// The number of deliveries.
    pub attempts: u32,
    /// When it was completed.
    pub done: UnixMs,
    /// When its retention ends.
    pub until: UnixMs,
    /// The result that the consumer gave.
    pub result: Option<&'a [u8]>,
    /// When its id was accepted.
    pub accepted: UnixMs,
}

impl DoneMessage<'_> {
    /// Whether a queue could hold this message.
    pub fn is_valid(&self) -> bool {
        self.sequence.is_possible()
            && self.name.is_none_or(Id::is_name)
            && self.done <= self.until
            && self.result.is_none_or(|result| result.len() <= RESULT_MAX)
    }
}

/// The done messages of a queue.
#[derive(Debug, Default)]
pub(super) struct Done {
    entries: BTreeMap<Sequence, Entry>,
    names: NameIndex<Sequence>,
    /// All of them by (done, sequence).
    ages: OrderedKeys,
    /// All of them by (until, sequence).
    ends: OrderedKeys,
    /// The memory of all names and results.
    bytes: usize,
}

/// What is stored of a done message in addition to its sequence.
#[derive(Debug)]
struct Entry {
    due: UnixMs,
    done: UnixMs,
    until: UnixMs,
    accepted: UnixMs,
    /// The name, followed by the result.
    bytes: Box<[u8]>,
    attempts: u32,
    /// The length of the name; 0 if there is none.
    name_len: u8,
    has_result: bool,
}

const _: () = assert!(size_of::<Entry>() == 56);

impl Entry {
    fn new(message: &DoneMessage<'_>) -> Entry {
        let name = message.name.unwrap_or_default();
        Entry {
            due: message.due,
            done: message.done,
            until: message.until,
            accepted: message.accepted,
            bytes: [name, message.result.unwrap_or_default()].concat().into(),
            attempts: message.attempts,
            name_len: name.len() as u8,
            has_result: message.result.is_some(),
        }
    }

    fn message(&self, sequence: Sequence) -> DoneMessage<'_> {
        let (name, result) = self.bytes.split_at_checked(self.name_len.into()).unwrap_or_default();
        DoneMessage {
            sequence,
            name: (!name.is_empty()).then_some(name),
            due: self.due,
            attempts: self.attempts,
            done: self.done,
            until: self.until,
            result: self.has_result.then_some(result),
            accepted: self.accepted,
        }
    }
}

impl Done {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of messages whose retention has not ended by `now`. O(log n).
    pub fn count_at(&self, now: UnixMs) -> usize {
        self.len() - self.ends.rank(Key::end_of(now))
    }

    /// Adds a message whose sequence and name no other has. O(log n).
    pub fn insert(&mut self, message: &DoneMessage<'_>) {
        if let Some(name) = message.name {
            self.names.insert(name, message.sequence);
        }
        self.ages.insert(Key::at(message.done, message.sequence));
        self.ends.insert(Key::at(message.until, message.sequence));
        let entry = Entry::new(message);
        self.bytes += given(entry.bytes.len());
        self.entries.insert(message.sequence, entry);
    }

    /// Removes a message. Returns the length of its result; `None` if there is no such message. O(log n).
    pub fn remove(&mut self, sequence: Sequence) -> Option<usize> {
        let entry = self.entries.remove(&sequence)?;
        self.bytes -= given(entry.bytes.len());
        let message = entry.message(sequence);
        if let Some(name) = message.name {
            self.names.remove(name, sequence);
        }
        self.ages.remove(Key::at(entry.done, sequence));
        self.ends.remove(Key::at(entry.until, sequence));
        Some(message.result.map_or(0, <[u8]>::len))
    }

    /// The message with `sequence`. O(log n).
    pub fn get(&self, sequence: Sequence) -> Option<DoneMessage<'_>> {
        self.entries.get(&sequence).map(|entry| entry.message(sequence))
    }

    /// The message that `id` refers to. O(log n).
    pub fn find(&self, id: &Id<'_>) -> Option<DoneMessage<'_>> {
        match id {
            Id::Generated(sequence) => self.get(*sequence).filter(|message| message.name.is_none()),
            Id::Named(name) => self.find_named(name),
        }
    }

    /// The message with this name. O(log n).
    pub fn find_named(&self, name: &[u8]) -> Option<DoneMessage<'_>> {
        self.names.find(name, |sequence| self.get(sequence).filter(|message| message.name == Some(name)))
    }

    /// The message whose retention ends first, as (until, sequence). O(1).
    pub fn first_end(&self) -> Option<Key> {
        self.ends.first()
    }

    /// The message that was completed first, as (done, sequence). O(1).
    pub fn oldest(&self) -> Option<Key> {
        self.ages.first()
    }

    /// The messages in push order.
    pub fn iter(&self) -> impl Iterator<Item = DoneMessage<'_>> + '_ {
        self.entries.iter().map(|(sequence, entry)| entry.message(*sequence))
    }

    /// The messages, the most recently completed one first.
    pub fn newest(&self) -> impl Iterator<Item = DoneMessage<'_>> + '_ {
        self.ages.iter_backwards().filter_map(|key| self.get(key.sequence()))
    }

    /// The messages above `after` (all messages if it is `None`), in push order.
    pub fn iter_after(&self, after: Option<Sequence>) -> impl Iterator<Item = DoneMessage<'_>> + '_ {
        let above = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        self.entries.range(above).map(|(sequence, entry)| entry.message(*sequence))
    }

    /// The messages in `spans`, in push order. O(m log n).
    pub fn in_spans(&self, spans: &Spans) -> Vec<Sequence> {
        spans.iter().flat_map(|span| self.entries.range(span.first..=span.last).map(|(held, _)| *held)).collect()
    }

    /// The spans that name these messages, which are held or were just removed, and no others that are held.
    /// O(m log n).
    pub fn spans_of(&self, mut sequences: Vec<Sequence>) -> Spans {
        sequences.sort_unstable();
        let (mut spans, mut before) = (Spans::default(), None);
        for sequence in sequences {
            let is_next = |before: Sequence| {
                let between = self.entries.range(Sequence(before.0.saturating_add(1))..sequence);
                between.take(1).count() == 0
            };
            spans.add(sequence, before.is_some_and(is_next));
            before = Some(sequence);
        }
        spans
    }

    /// The number of bytes on the heap, an estimate. O(n / 64).
    pub fn heap_bytes(&self) -> usize {
        let entries = tree_bytes::<Sequence, Entry>(self.len()) + self.bytes;
        entries + self.names.heap_bytes() + self.ages.heap_bytes() + self.ends.heap_bytes()
    }

    /// Checks that each message stands in its orders, and nothing else does. O(n log n), for tests.
    pub fn check(&self) -> Result<(), &'static str> {
        let (mut named, mut bytes) = (0, 0);
        for message in self.iter() {
            named += usize::from(message.name.is_some());
            bytes += given(message.name.map_or(0, <[u8]>::len) + message.result.map_or(0, <[u8]>::len));
            let is_found = match message.name {
                Some(name) => self.find_named(name) == Some(message),
                None => self.find(&Id::Generated(message.sequence)) == Some(message),
            };
            let stands = self.ages.contains(Key::at(message.done, message.sequence))
                && self.ends.contains(Key::at(message.until, message.sequence));
            if !is_found || !stands || !message.is_valid() {
                return Err("a done message is not found, or does not stand in its orders");
            }
        }
        let counted = (self.names.len(), self.ages.len(), self.ends.len(), self.bytes);
        if (named, self.len(), self.len(), bytes) != counted {
            return Err("the done messages are miscounted");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(1_760_000_000_000 + ms)
    }

    fn tick(nth: u64) -> Sequence {
        Sequence((1_760_000_000_000 << 20) + nth)
    }

    fn message(sequence: u64, name: Option<&'static [u8]>, done: u64, until: u64) -> DoneMessage<'static> {
        let [done, until] = [at(done), at(until)];
        let result = name.map(|_| &b"result"[..]);
        let sequence = tick(sequence);
        DoneMessage { sequence, name, due: at(0), attempts: 1, done, until, result, accepted: at(0) }
    }

    #[test]
    fn a_done_message_is_found_by_its_id_until_it_is_removed() {
        let mut done = Done::default();
        let (one, other) = (message(1, Some(b"a"), 1, 50), message(2, None, 2, 9));
        done.insert(&one);
        done.insert(&other);
        done.check().unwrap();
        assert_eq!(done.find(&Id::Named(b"a")), Some(one));
        assert_eq!(done.find(&Id::Generated(one.sequence)), None, "it has a name");
        assert_eq!(done.find(&Id::Generated(other.sequence)), Some(other));
        assert_eq!((done.count_at(at(8)), done.count_at(at(9)), done.count_at(at(50))), (2, 1, 0));
        assert_eq!(done.remove(one.sequence), Some(6));
        assert_eq!(done.remove(one.sequence), None);
        assert_eq!(done.find(&Id::Named(b"a")), None);
        done.check().unwrap();
    }

    #[test]
    fn spans_name_the_messages_and_none_between_them() {
        let mut done = Done::default();
        (1..=5).for_each(|sequence| done.insert(&message(sequence, None, 0, 9)));
        let spans = done.spans_of([4, 1, 2].map(tick).into());
        assert_eq!(done.in_spans(&spans), [1, 2, 4].map(tick));
        assert_eq!(spans.iter().count(), 2);
        for sequence in [1, 2, 3] {
            done.remove(tick(sequence));
        }
        assert_eq!(done.spans_of([1, 2, 3].map(tick).into()).iter().count(), 1);
    }
}

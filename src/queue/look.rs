//! Looking: changes nothing, not even the view.

use super::effect::Image;
use super::id::{Id, Sequence};
use super::order::Key;
use super::record::{Record, State, StateKind};
use super::store::{At, Bytes};
use super::time::{DurationMs, UnixMs};
use super::{Counts, Queue};

/// A message as it is at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message<'a> {
    /// The record.
    pub record: Record,
    /// Its state at that instant.
    pub state: State,
    /// Its name.
    pub name: Option<&'a [u8]>,
    /// What it carries.
    pub payload: &'a [u8],
    /// What the last consumer said of its failure.
    pub error: Option<&'a [u8]>,
    /// The lease in force for it.
    pub lease: DurationMs,
}

impl Queue {
    /// The message that a client means. O(log n).
    pub fn get(&self, now: UnixMs, id: &Id<'_>) -> Option<Message<'_>> {
        let at = match id {
            Id::Generated(sequence) => self.store.locate(*sequence)?,
            Id::Named(name) => self.find_named(name)?,
        };
        let message = self.message(at, self.seen(now));
        (message.name.is_some() == matches!(id, Id::Named(_))).then_some(message)
    }

    /// Brings the view up to `now`, as a delivery does, so that [`Queue::peek`] sees all of it.
    pub fn catch_up(&mut self, now: UnixMs) {
        self.settle_all(self.seen(now));
    }

    /// The first messages of a state, at most `count`, in the order in which they will leave it; the dead newest
    /// first. What the view knows, so see [`Queue::catch_up`]. O(count + log n).
    pub fn peek(&self, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        self.in_state(self.seen(now), kind, count)
    }

    /// Looks at the next `count` messages before `cursor` (from the last one pushed, where it is zero), and returns
    /// those of a state (or all), and the cursor for the next look; none where this was the last. It goes back in
    /// push order, so that a round ends however much is pushed meanwhile. O(count + log n).
    pub fn scan(
        &self,
        now: UnixMs,
        cursor: Sequence,
        count: usize,
        kind: Option<StateKind>,
    ) -> (Vec<Sequence>, Option<Sequence>) {
        let now = self.seen(now);
        let before = Some(cursor).filter(|cursor| *cursor != Sequence::ZERO);
        let mut behind = self.store.iter_before(before).peekable();
        let (mut found, mut last) = (Vec::new(), cursor);
        for at in behind.by_ref().take(count) {
            last = self.store.sequence(at);
            if kind.is_none_or(|kind| self.store.record(at).state_at(now).kind() == kind) {
                found.push(last);
            }
        }
        (found, behind.peek().map(|_| last))
    }

    /// The message of a sequence.
    pub fn show(&self, now: UnixMs, sequence: Sequence) -> Option<Message<'_>> {
        self.store.locate(sequence).map(|at| self.message(at, self.seen(now)))
    }

    fn message(&self, at: At, now: UnixMs) -> Message<'_> {
        let record = self.store.record(at);
        let bytes = self.store.bytes(at);
        Message {
            record,
            state: record.state_at(now),
            name: bytes.name,
            payload: bytes.payload,
            error: bytes.error,
            lease: record.lease.unwrap_or(self.settings.lease),
        }
    }

    /// What it holds at `now`: due times are exact, ended leases and TTLs as of the last advance. O(log n).
    pub fn counts_at(&self, now: UnixMs) -> Counts {
        let ready = self.waiting.due_by(self.seen(now), usize::MAX) as u64;
        Counts { delayed: self.waiting.len() as u64 - ready, ready, ..self.counts() }
    }

    /// The earliest due time of a delayed message.
    pub fn next_due(&self, now: UnixMs) -> Option<UnixMs> {
        self.waiting.due_after(self.seen(now))
    }

    /// How long ago the message fell due that has been ready for longest.
    pub fn oldest_ready(&self, now: UnixMs) -> Option<DurationMs> {
        let now = self.seen(now);
        let earliest = self.waiting.earliest().filter(|due| *due <= now)?;
        Some(now.since(earliest))
    }

    /// Whether something is delivered as soon as it is asked for.
    pub fn has_ready(&self, now: UnixMs) -> bool {
        let now = self.seen(now);
        let room = self.settings.maxinflight == 0 || (self.inflight.len() as u64) < self.settings.maxinflight;
        let end = Key::end_of(now);
        let pending = self.inflight.first().is_some_and(|lease| lease <= end);
        !self.paused && (pending || (room && self.waiting.earliest().is_some_and(|due| due <= now)))
    }

    /// All messages as they would be saved, in push order.
    pub fn images(&self) -> impl Iterator<Item = Image<'_>> {
        self.store.iter_after(None).map(|at| self.image(at))
    }

    fn image(&self, at: At) -> Image<'_> {
        let Bytes { name, payload, error } = self.store.bytes(at);
        Image {
            record: self.store.record(at),
            name: name.map(serde_bytes::Bytes::new),
            payload: serde_bytes::Bytes::new(payload),
            error: error.map(serde_bytes::Bytes::new),
        }
    }
}

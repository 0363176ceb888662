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

/// How many ended leases a look passes over: some 100 µs of work.
const ENDED_MAX: usize = 1024;

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
        let now = self.seen(now);
        // Another clock, ahead of this one, may have brought the view further: what is not in that state is not shown.
        let is_so = |sequence: &Sequence| {
            self.store.locate(*sequence).is_some_and(|at| self.store.record(at).state_at(now).kind() == kind)
        };
        self.in_state(now, kind, count).into_iter().filter(is_so).collect()
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

    /// How long ago the delivery began that has been running for longest. O(log n), the milliseconds that the queue
    /// remembers before that one, and the leases that have ended since the last advance; of these [`ENDED_MAX`] at most
    /// are told from running ones.
    pub fn oldest_inflight(&self, now: UnixMs) -> Option<DurationMs> {
        let now = self.seen(now);
        let end = Key::end_of(now);
        let ended = self.inflight.iter_after(None).take(ENDED_MAX).take_while(|lease| *lease <= end);
        let record = |lease: Key| self.store.locate(lease.sequence()).map(|at| self.store.record(at));
        let begun = self.begun.earliest_but(ended.filter_map(|lease| record(lease)?.receipt()).collect())?;
        Some(now.since(begun))
    }

    /// Whether something is delivered as soon as it is asked for.
    pub fn has_ready(&self, now: UnixMs) -> bool {
        let now = self.seen(now);
        let room = self.settings.maxinflight == 0 || (self.inflight.len() as u64) < self.settings.maxinflight;
        let end = Key::end_of(now);
        let pending = self.inflight.first().is_some_and(|lease| lease <= end);
        !self.pause.holds_at(now) && (pending || (room && self.waiting.earliest().is_some_and(|due| due <= now)))
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

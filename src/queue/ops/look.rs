//! Looking at messages and counts.

use super::super::effect::Image;
use super::super::id::{Id, Sequence};
use super::super::record::{Record, State, StateKind};
use super::super::store::{At, Bytes};
use super::super::time::{DurationMs, UnixMs};
use super::super::{Counts, Queue};

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
        self.messages.locate_id(id).map(|at| self.message(at, self.own_time(now)))
    }

    /// Brings all messages up to `now`, as a delivery does, so that [`Queue::peek`] sees all of them.
    pub fn catch_up(&mut self, now: UnixMs) {
        self.catch_up_all(self.own_time(now));
    }

    /// The first messages of a state, at most `count`, in the order in which they will leave it; the dead newest
    /// first. What the view knows, so see [`Queue::catch_up`]. O(count + log n).
    pub fn peek(&self, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        let now = self.own_time(now);
        // Another clock, ahead of this one, may have brought the view further: what is not in that state is not shown.
        let is_so = |sequence: &Sequence| {
            self.messages.locate(*sequence).is_some_and(|at| self.messages.record(at).state_at(now).kind() == kind)
        };
        self.view.in_state(now, kind, count).into_iter().filter(is_so).collect()
    }

    /// The message of a sequence.
    pub fn show(&self, now: UnixMs, sequence: Sequence) -> Option<Message<'_>> {
        self.messages.locate(sequence).map(|at| self.message(at, self.own_time(now)))
    }

    fn message(&self, at: At, now: UnixMs) -> Message<'_> {
        let record = self.messages.record(at);
        let bytes = self.messages.bytes(at);
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
        let counts = self.counts();
        let ready = self.view.due_by(self.own_time(now)) as u64;
        Counts { delayed: counts.delayed + counts.ready - ready, ready, ..counts }
    }

    /// The earliest due time of a delayed message.
    pub fn next_due(&self, now: UnixMs) -> Option<UnixMs> {
        self.view.due_after(self.own_time(now))
    }

    /// How long ago the message fell due that has been ready for longest.
    pub fn oldest_ready(&self, now: UnixMs) -> Option<DurationMs> {
        let now = self.own_time(now);
        let earliest = self.view.earliest_due().filter(|due| *due <= now)?;
        Some(now.since(earliest))
    }

    /// How long ago the delivery began that has been running for longest. O(log n), the milliseconds that the queue
    /// remembers before that one, and the leases that have ended since the last advance; of these [`ENDED_MAX`] at most
    /// are told from running ones.
    pub fn oldest_inflight(&self, now: UnixMs) -> Option<DurationMs> {
        let now = self.own_time(now);
        let begun = self.view.oldest_begun(&self.messages, now, ENDED_MAX)?;
        Some(now.since(begun))
    }

    /// All messages as they would be saved, in push order.
    pub fn images(&self) -> impl Iterator<Item = Image<'_>> {
        self.messages.iter_after(None).map(|at| self.image(at))
    }

    fn image(&self, at: At) -> Image<'_> {
        let Bytes { name, payload, error } = self.messages.bytes(at);
        Image { record: self.messages.record(at), name, payload, error }
    }
}

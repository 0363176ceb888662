//! Reading messages and counts without changing them.

use super::advance::PILED_MAX;
use super::{At, DurationMs, Id, Phase, Queue, Record, Sequence, State, StateKind, UnixMs};
use crate::done::DoneMessage;
use crate::effect::Image;
use crate::errors::Errors;
use crate::headers::{HeaderBlock, Headers};
use crate::recurring::Recurring;
use crate::store::Bytes;
use crate::Counts;

/// A message as it is at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message<'a> {
    /// The sequence by which effects name it. If it has a successor, this is the sequence of the successor.
    pub sequence: Sequence,
    /// The record.
    pub record: Record,
    /// Its state at that instant.
    pub state: State,
    /// Its name.
    pub name: Option<&'a [u8]>,
    /// The payload.
    pub payload: &'a [u8],
    /// Its errors. The last one is what clients see as its error.
    pub errors: Option<Errors<'a>>,
    /// The lease that applies to it: its own, or that of the queue.
    pub lease: DurationMs,
    /// How long it is retained after its completion, if it has a retention of its own; that of its successor, if it has
    /// one.
    pub retain: Option<DurationMs>,
    /// Its schedule, if it is a recurring message.
    pub recurring: Option<&'a Recurring>,
    /// Whether it has a successor, which takes its place when its delivery ends. If the successor is recurring,
    /// `recurring` is the schedule of the successor.
    pub next: bool,
    /// The name of its group.
    pub group: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Option<Headers<'a>>,
    /// Its checkpoint.
    pub checkpoint: Option<&'a [u8]>,
    /// The name of the consumer that holds it, if it is in flight and has one.
    pub consumer: Option<&'a [u8]>,
    /// The name of its batch.
    pub batch: Option<&'a [u8]>,
}

/// What a queue holds under an id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shown<'a> {
    /// A message that is not done: delayed, ready, in flight or dead.
    Message(Message<'a>),
    /// A done message.
    Done(DoneMessage<'a>),
}

impl Shown<'_> {
    /// The sequence by which effects name the message.
    pub fn sequence(&self) -> Sequence {
        match self {
            Shown::Message(message) => message.sequence,
            Shown::Done(message) => message.sequence,
        }
    }

    /// Whether the message will not be delivered unless a client changes that: it is done or dead.
    pub fn is_over(&self) -> bool {
        match self {
            Shown::Message(message) => message.state.kind() == StateKind::Dead,
            Shown::Done(_) => true,
        }
    }
}

/// The largest number of expired leases that one call passes over, which takes about 100 µs.
const ENDED_MAX: usize = 1024;

impl Queue {
    /// What `id` refers to, as it is at `now`; `None` if the id is not held. O(log n).
    pub fn find(&self, now: UnixMs, id: &Id<'_>) -> Option<Shown<'_>> {
        let held = self.get(now, id).map(Shown::Message);
        held.or_else(|| self.get_done(now, id).map(Shown::Done))
    }

    /// The message that `id` refers to, as it is at `now`; `None` if there is none, or if it is done. O(log n).
    pub fn get(&self, now: UnixMs, id: &Id<'_>) -> Option<Message<'_>> {
        self.messages.locate_id(id).map(|at| self.message(at, self.own_time(now)))
    }

    /// When the earliest and the latest death was among the dead messages, as of the last advance; `None` if there are
    /// none. O(log n).
    pub fn deaths(&self) -> Option<(UnixMs, UnixMs)> {
        self.view.deaths()
    }

    /// The number of messages that recur, of consumers that hold messages as of the last advance, and of groups that
    /// are paused at `now`; `None` if the queue has no part that could hold one. O(log n).
    #[inline]
    pub fn gauges(&self, now: UnixMs) -> Option<[u64; 3]> {
        if self.messages.is_plain() && self.view.is_plain() {
            return None;
        }
        let paused = self.messages.gates().map_or(0, |gates| gates.paused(now));
        Some([self.messages.recurring_count(), self.view.holding(), paused].map(|count| count as u64))
    }

    /// The first messages of a state, at most `count`, in the order in which they will leave it; dead and done messages
    /// are returned newest first. It reads the view as of the last advance, so call [`Queue::catch_up`] first.
    /// O(count + log n).
    pub fn peek(&self, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        self.first_in(self.own_time(now), kind, count)
    }

    /// [`Queue::peek`] at the queue's own time. At most [`PILED_MAX`] messages that the view has in that state, but
    /// that are no longer in it or not yet, are passed over.
    pub(crate) fn first_in(&self, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        if kind == StateKind::Done {
            return self.newest_done(now, count);
        }
        let is_so = |sequence: &Sequence| {
            self.messages.locate(*sequence).is_some_and(|at| self.messages.record(at).state_at(now).kind() == kind)
        };
        let seen = self.view.in_state(now, kind, count.saturating_add(PILED_MAX));
        seen.into_iter().filter(is_so).take(count).collect()
    }

    /// The message with `sequence`, as it is at `now`; `None` if the queue does not hold it. O(log n).
    pub fn show(&self, now: UnixMs, sequence: Sequence) -> Option<Shown<'_>> {
        let now = self.own_time(now);
        match self.messages.locate(sequence) {
            Some(at) => Some(Shown::Message(self.message(at, now))),
            None => self.done_at(now, sequence).map(Shown::Done),
        }
    }

    fn message(&self, at: At, now: UnixMs) -> Message<'_> {
        let record = self.messages.record(at);
        let bytes = self.messages.bytes(at);
        let shown = Message {
            sequence: record.sequence,
            record,
            state: record.state_at(now),
            name: bytes.name,
            payload: bytes.payload,
            errors: bytes.errors,
            lease: record.lease.unwrap_or(self.settings.lease),
            retain: self.messages.retain(at),
            recurring: self.messages.recurring(at),
            group: self.messages.group_name(at),
            next: false,
            headers: bytes.headers,
            checkpoint: self.messages.checkpoint(at),
            consumer: self.messages.consumer_name(at).filter(|_| record.state_at(now) == State::InFlight),
            batch: self.batch_of(at, &record, now),
        };
        let Phase::Successor { deadline, receipt } = record.phase else { return shown };
        match self.messages.leaving(at) {
            Some(leaving) if now < deadline => Message {
                record: Record { phase: Phase::Leased { deadline, receipt }, ..leaving.record },
                payload: &leaving.payload,
                errors: leaving.errors(),
                lease: leaving.record.lease.unwrap_or(self.settings.lease),
                next: true,
                headers: leaving.headers.as_ref().map(HeaderBlock::headers),
                checkpoint: leaving.checkpoint(),
                // It left its batch when it was replaced.
                batch: None,
                ..shown
            },
            // The delivery is over, and the successor has taken the place.
            _ => Message { record: Record { phase: Phase::Waiting, ..record }, ..shown },
        }
    }

    /// The number of messages in each state at `now`. Due times and done messages are exact; ended leases and TTLs
    /// count as of the last advance. O(log n).
    pub fn counts_at(&self, now: UnixMs) -> Counts {
        let counts = self.counts();
        let now = self.own_time(now);
        let (ready, done) = (self.view.due_by(now) as u64, self.count_done(now));
        Counts { delayed: counts.delayed + counts.ready - ready, ready, done, ..counts }
    }

    /// The earliest due time of a delayed message; `None` if there is no delayed message.
    pub fn next_due(&self, now: UnixMs) -> Option<UnixMs> {
        self.view.due_after(self.own_time(now))
    }

    /// The time since the earliest due time of a ready message; `None` if no message is ready.
    pub fn oldest_ready(&self, now: UnixMs) -> Option<DurationMs> {
        let now = self.own_time(now);
        let earliest = self.view.earliest_due().filter(|due| *due <= now)?;
        Some(now.since(earliest))
    }

    /// The age of the oldest running delivery; `None` if there is none. O(log n + m), where m is the number of recorded
    /// milliseconds before that delivery, plus the number of leases that have expired since the last advance, plus that
    /// of consumers. At most [`ENDED_MAX`] of those leases are recognised as expired.
    pub fn oldest_inflight(&self, now: UnixMs) -> Option<DurationMs> {
        let now = self.own_time(now);
        let begun = self.view.oldest_begun(&self.messages, now, ENDED_MAX)?;
        Some(now.since(begun))
    }

    /// The instant at which the rate limit allows a delivery again; `None` if it allows one at `now`. O(log n).
    pub fn next_delivery(&self, now: UnixMs) -> Option<UnixMs> {
        self.gate.next_delivery(&self.settings, self.own_time(now))
    }

    /// All messages in the form in which they are saved, in push order.
    pub fn images(&self) -> impl Iterator<Item = Image<'_>> {
        self.messages.iter_after(None).map(|at| self.image(at))
    }

    fn image(&self, at: At) -> Image<'_> {
        let Bytes { name, payload, errors, origin, headers } = self.messages.bytes(at);
        let recurring = self.messages.recurring(at).map(|state| Box::new(state.clone()));
        let retain = self.messages.retain(at);
        let group = self.messages.group_name(at);
        let (record, checkpoint) = (self.messages.record(at), self.messages.checkpoint(at));
        let consumer = self.messages.consumer_name(at);
        let batch = self.batch_of_image(at);
        Image { record, name, payload, errors, group, origin, retain, recurring, headers, checkpoint, consumer, batch }
    }
}

//! Acknowledging: a delivered message is removed because it is completed. A done message may be retained for a time.

use super::{At, DurationMs, Ended, Queue, Record, Sequence, State, UnixMs};
use crate::done::RESULT_MAX;
use crate::id::Target;

/// The result of an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The message.
    pub sequence: Sequence,
    /// The state of its successor, which has taken its place; `None` if there was none.
    pub next: Option<State>,
}

/// How a consumer completes a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Completion<'a> {
    /// The result to keep, of at most [`RESULT_MAX`] bytes.
    pub result: Option<&'a [u8]>,
    /// How long the message is retained; overrides its own setting and that of the queue. Zero means not at all.
    pub retain: Option<DurationMs>,
}

/// The result of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The message.
    pub sequence: Sequence,
    /// Until when it is retained; `None` if it is not.
    pub until: Option<UnixMs>,
    /// The state of its successor, which has taken its place; `None` if there was none.
    pub next: Option<State>,
}

impl Queue {
    /// Removes a message as completed if `target` refers to its last delivery, even if the lease of that delivery has
    /// expired. A recurring message waits for its next run instead. If the message has a successor, the successor takes
    /// its place. Returns `None` if there is no such delivery. O(log n).
    pub fn ack(&mut self, now: UnixMs, target: &Target<'_>) -> Option<Acked> {
        let now = self.observe(now);
        let (at, record) = self.last_delivery(target, now)?;
        self.count_runtime(&record, now);
        let next = if record.recurring && !record.is_successor_at(now) {
            self.end_run(at, &record, Ended::Acked, None, now);
            None
        } else {
            self.finish(at, &record, now)
        };
        Some(Acked { sequence: record.sequence, next })
    }

    /// [`Queue::ack`] with a result, and with a time for which the message is retained. Nothing is retained of a
    /// recurring message, nor of a message that has a successor.
    pub fn complete(&mut self, now: UnixMs, target: &Target<'_>, how: &Completion<'_>) -> Option<Completed> {
        let now = self.observe(now);
        let (at, record) = self.last_delivery(target, now)?;
        self.count_runtime(&record, now);
        let (mut until, mut next) = (None, None);
        if record.is_successor_at(now) {
            next = self.finish_with(at, &record, None, None, now);
        } else if record.recurring {
            self.end_run(at, &record, Ended::Completed, None, now);
        } else {
            until = match how.retain {
                Some(retain) => self.end_of(retain, now),
                None => self.retained_until(at, now),
            };
            let result = how.result.and_then(|result| result.get(..result.len().min(RESULT_MAX)));
            self.finish_with(at, &record, until, result, now);
        }
        Some(Completed { sequence: record.sequence, until, next })
    }

    /// Applies an ack. Returns the state of the message's successor, if there was one.
    pub(crate) fn finish(&mut self, at: At, record: &Record, now: UnixMs) -> Option<State> {
        let until = self.retained_until(at, now);
        self.finish_with(at, record, until, None, now)
    }

    /// Applies a completion after which the message is retained until `until`, or not at all. If the message has a
    /// successor, the successor takes its place instead.
    #[inline]
    pub(crate) fn finish_with(
        &mut self,
        at: At,
        record: &Record,
        until: Option<UnixMs>,
        result: Option<&[u8]>,
        now: UnixMs,
    ) -> Option<State> {
        self.tally.acked += 1;
        if record.is_successor_at(now) {
            return Some(self.succeed(at, record, now));
        }
        self.retain(at, record, until, result, now);
        self.remove_ended(at, record);
        None
    }

    /// The delivery that `target` refers to, if it is the last one of its message, in flight or expired.
    fn last_delivery(&mut self, target: &Target<'_>, now: UnixMs) -> Option<(At, Record)> {
        let at = self.messages.find(&target.id)?;
        let record = self.refresh(at, now);
        let current = record.receipt_at(now)?;
        target.receipt.is_none_or(|receipt| receipt == current).then_some((at, record))
    }

    /// The delivery that `target` refers to, if its lease still runs.
    pub(crate) fn in_flight(&mut self, target: &Target<'_>, now: UnixMs) -> Option<(At, Record)> {
        self.last_delivery(target, now).filter(|(_, record)| record.state_at(now) == State::InFlight)
    }
}

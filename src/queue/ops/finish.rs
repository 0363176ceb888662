//! Acknowledging: a delivered message is removed because it is completed.

use super::super::id::{Sequence, Target};
use super::super::record::{Record, State};
use super::super::recurring::Ended;
use super::super::store::At;
use super::super::time::UnixMs;
use super::super::Queue;

/// The result of an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The message.
    pub sequence: Sequence,
    /// The state of the message that was kept beside it and has taken its place; `None` if there was none.
    pub next: Option<State>,
}

impl Queue {
    /// Removes a message as completed if `target` refers to its last delivery, even if the lease of that delivery has
    /// ended. A recurring message waits for its next run instead, and a message that is kept beside the delivery takes
    /// its place. Returns `None` if there is no such delivery. O(log n).
    pub fn ack(&mut self, now: UnixMs, target: &Target<'_>) -> Option<Acked> {
        let now = self.observe(now);
        let (at, record) = self.last_delivery(target, now)?;
        self.count_runtime(&record, now);
        let next = if record.recurring && !record.is_kept_at(now) {
            self.end_run(at, &record, Ended::Acked, None, now);
            None
        } else {
            self.complete(at, &record, now)
        };
        Some(Acked { sequence: record.sequence, next })
    }

    /// Applies an ack. Returns the state of the message that was kept beside the delivery, if there was one.
    pub(in crate::queue) fn complete(&mut self, at: At, record: &Record, now: UnixMs) -> Option<State> {
        self.tally.acked += 1;
        if record.is_kept_at(now) {
            return Some(self.succeed(at, record, now));
        }
        self.remember(at, now);
        self.remove(at, record);
        None
    }

    /// The delivery that `target` refers to, if it is the last one of its message, in flight or with its lease ended.
    fn last_delivery(&mut self, target: &Target<'_>, now: UnixMs) -> Option<(At, Record)> {
        let at = self.messages.find(&target.id)?;
        let record = self.refresh(at, now);
        let current = record.receipt_at(now)?;
        target.receipt.is_none_or(|receipt| receipt == current).then_some((at, record))
    }

    /// The delivery that `target` refers to, if its lease still runs.
    pub(in crate::queue) fn in_flight(&mut self, target: &Target<'_>, now: UnixMs) -> Option<(At, Record)> {
        self.last_delivery(target, now).filter(|(_, record)| record.state_at(now) == State::InFlight)
    }
}

//! Acknowledging: a delivered message is removed because it is completed.

use super::super::id::{Receipt, Sequence, Target};
use super::super::record::{Record, State};
use super::super::recurring::Ended;
use super::super::store::At;
use super::super::time::UnixMs;
use super::super::Queue;

impl Queue {
    /// Removes a message as completed if `target` refers to its last delivery, even if the lease of that delivery has
    /// ended. A recurring message waits for its next run instead. Returns its sequence; `None` if there is no such
    /// delivery. O(log n).
    pub fn ack(&mut self, now: UnixMs, target: &Target<'_>) -> Option<Sequence> {
        let now = self.observe(now);
        let (at, record) = self.last_delivery(target, now)?;
        self.count_runtime(&record, now);
        if record.recurring {
            self.end_run(at, &record, Ended::Acked, None, now);
        } else {
            self.complete(at, &record, now);
        }
        Some(record.sequence)
    }

    /// Applies an ack.
    pub(in crate::queue) fn complete(&mut self, at: At, record: &Record, now: UnixMs) {
        self.remember(at, now);
        self.remove(at, record);
        self.tally.acked += 1;
    }

    /// The delivery that `target` refers to, if it is the last one of its message, in flight or with its lease ended.
    fn last_delivery(&mut self, target: &Target<'_>, now: UnixMs) -> Option<(At, Record)> {
        let at = self.messages.find(&target.id)?;
        let record = self.refresh(at, now);
        let current: Receipt = record.receipt()?;
        target.receipt.is_none_or(|receipt| receipt == current).then_some((at, record))
    }

    /// The delivery that `target` refers to, if its lease still runs.
    pub(in crate::queue) fn in_flight(&mut self, target: &Target<'_>, now: UnixMs) -> Option<(At, Record)> {
        self.last_delivery(target, now).filter(|(_, record)| record.state_at(now) == State::InFlight)
    }
}

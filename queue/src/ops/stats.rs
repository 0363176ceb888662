//! What is counted for the statistics of a queue, and what clients see of them.

use super::{At, DurationMs, Queue, Record, UnixMs};
use crate::gate::Lease;
use crate::stats::Stats;

impl Queue {
    /// The statistics; `None` if there is nothing to show.
    pub fn stats(&self) -> Option<&Stats> {
        self.stats.as_deref()
    }

    /// Counts a pop that was answered with null.
    pub fn count_empty_pop(&mut self) {
        self.stats.get_or_insert_default().pops_empty += 1;
    }

    /// Counts the lateness of a delivery that begins now, if it is the first one of its message, and returns it. The
    /// delivery after one that was given back without being counted is not the first.
    #[inline(always)]
    pub(crate) fn count_lateness(&mut self, at: At, record: &Record, now: UnixMs) -> Option<DurationMs> {
        if record.attempts > 0 || self.messages.was_given_back(at) {
            return None;
        }
        let lateness = now.since(record.due);
        self.stats.get_or_insert_default().lateness.record(lateness);
        Some(lateness)
    }

    /// Records whether the rate limit alone holds a message back. Call this after anything that may have changed that.
    /// O(1) without a rate limit, and O(log n) with one.
    #[inline]
    pub fn note_rate_limit(&mut self, now: UnixMs) {
        if !self.settings().rate.is_off() || self.stats().is_some_and(|stats| stats.limited.is_some()) {
            self.note_limited(self.own_time(now));
        }
    }

    #[cold]
    fn note_limited(&mut self, now: UnixMs) {
        let until = self.limited_until(now);
        if until.is_some() || self.stats.is_some() {
            self.stats.get_or_insert_default().note_limited(now, until);
        }
    }

    /// When the rate limit will allow a delivery, if it alone holds a message back at `now`.
    fn limited_until(&self, now: UnixMs) -> Option<UnixMs> {
        let is_ready = self.view.earliest_due().is_some_and(|due| due <= now);
        let lets_pass = self.gate.room_but_for_rate(&self.settings, self.view.inflight(), Lease::Default, now) > 0;
        self.gate.next_delivery(&self.settings, now).filter(|_| is_ready && lets_pass)
    }

    /// Notes that a delivery begins now, here or on the server that decides about the queue.
    #[inline]
    pub(crate) fn note_delivery(&mut self, now: UnixMs) {
        self.stats.get_or_insert_default().last_delivery = now;
    }

    /// When the last delivery began, and when the last message died, since the queue came into memory; `None` if none
    /// has.
    pub fn last_events(&self) -> [Option<UnixMs>; 2] {
        let delivered = self.stats().map(|stats| stats.last_delivery).filter(|begun| *begun != UnixMs::EPOCH);
        [delivered, self.tally.last_death()]
    }

    /// Counts the runtime of a delivery that is completed now.
    #[inline]
    pub(crate) fn count_runtime(&mut self, record: &Record, now: UnixMs) {
        if let Some(receipt) = record.receipt() {
            self.stats.get_or_insert_default().runtime.record(now.since(receipt.began()));
        }
    }
}

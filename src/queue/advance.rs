//! What time alone does: leases end, TTLs end, due times come.
//!
//! Each move is a view of the records and commutes with every other: one big advance and many small ones end in
//! the same view and the same totals.

use super::order::{Key, OrderedKeys};
use super::record::Record;
use super::store::{At, Placement};
use super::time::UnixMs;
use super::view::Home;
use super::{Queue, State};

/// What time moved and no advance has told of yet: commands too bring messages up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    ready: u32,
    died: u32,
}

impl Moved {
    /// Counts messages that became ready; four thousand million are as many as more.
    #[inline]
    pub fn count_ready(&mut self, count: usize) {
        self.ready = self.ready.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// How far an advance came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advanced {
    /// Messages that became ready by time, since the last advance told of some.
    pub ready: usize,
    /// Messages that became dead by time, likewise.
    pub died: usize,
    /// Whether nothing is left to do at this time.
    pub done: bool,
    /// The next instant at which there is something to do; the present one where the budget ran out.
    pub next: Option<UnixMs>,
}

impl Advanced {
    /// Messages moved.
    pub fn moved(&self) -> usize {
        self.ready + self.died
    }
}

impl Queue {
    /// Brings the view up to `now`, ending at most `budget` leases and TTLs. Due times cost nothing: any number of
    /// messages becomes ready in O(log n).
    pub fn advance(&mut self, now: UnixMs, budget: usize) -> Advanced {
        let now = self.tick(now);
        self.advance_view(now, budget)
    }

    /// As [`Queue::advance`], on a replica: its master's clock rules, and what that has ended stays ended.
    pub fn advance_view(&mut self, now: UnixMs, budget: usize) -> Advanced {
        self.view_at(now);
        let done = self.end_leases_and_ttls(now, budget);
        Advanced {
            ready: std::mem::take(&mut self.moved.ready) as usize,
            died: std::mem::take(&mut self.moved.died) as usize,
            done,
            next: if done { self.next_wake() } else { Some(now) },
        }
    }

    /// The earliest instant after the last advance at which time will move something.
    pub fn next_wake(&self) -> Option<UnixMs> {
        // Asked with every command, so spelt out: an iterator over the three costs three times as much.
        let earlier = |wake: Option<UnixMs>, keys: &OrderedKeys| match (wake, keys.first().map(Key::time)) {
            (Some(wake), Some(first)) => Some(wake.min(first)),
            (wake, first) => wake.or(first),
        };
        let wake = earlier(earlier(self.waiting.next_due(), &self.inflight), &self.expiring);
        match self.pause.end().filter(|end| *end > self.viewed) {
            None => wake,
            Some(end) => Some(wake.map_or(end, |wake| wake.min(end))),
        }
    }

    /// The instant at which the oldest dead message will have been kept for as long as `DEADTTL` says; `None` if no
    /// dead message will be dropped because of its age. Only a master drops it.
    #[inline]
    pub fn next_drop(&self) -> Option<UnixMs> {
        if self.settings.deadttl.is_zero() {
            return None;
        }
        self.dead.first().map(|oldest| oldest.time().after(self.settings.deadttl))
    }

    /// Ends all leases and TTLs that end by `now`.
    pub(super) fn settle_all(&mut self, now: UnixMs) {
        self.view_at(now);
        self.end_leases_and_ttls(now, usize::MAX);
    }

    /// Ends at most `budget` leases and TTLs; whether that were all.
    fn end_leases_and_ttls(&mut self, now: UnixMs, mut budget: usize) -> bool {
        while budget > 0 && self.end_first(now) {
            budget -= 1;
        }
        budget > 0 || self.first_end(now).is_none()
    }

    /// The first lease or TTL that ends by `now` and was not ended yet.
    pub(super) fn first_end(&self, now: UnixMs) -> Option<Key> {
        let end = Key::end_of(now);
        let due = |keys: &OrderedKeys| keys.first().filter(|first| *first <= end);
        due(&self.inflight).or_else(|| due(&self.expiring))
    }

    /// Ends the first lease or TTL that ends by `now`, if there is one.
    pub(super) fn end_first(&mut self, now: UnixMs) -> bool {
        let Some(key) = self.first_end(now) else { return false };
        match self.store.find(key.sequence()) {
            Some(at) => {
                self.settle(at, now);
            }
            // Every key stands for a message; one that did not would be the first for ever.
            None => {
                let _ = self.inflight.remove(key) || self.expiring.remove(key);
            }
        }
        true
    }

    /// Brings one message up to `now` and returns its record.
    pub(super) fn settle(&mut self, at: At, now: UnixMs) -> Record {
        let record = self.store.record(at);
        let (was, is) = (self.store.placement(at), Home::of(&record, now).placement());
        if was != is {
            self.view_at(now);
            self.unplace(at, &record);
            self.place(at, &record, now);
            if was == Placement::InFlight {
                self.tally.rare().lease_expired += 1;
            }
            if is == Placement::Waiting && was == Placement::InFlight {
                self.moved.count_ready(1);
            }
            if let State::Dead { reason, .. } = record.state_at(now) {
                self.moved.died = self.moved.died.saturating_add(1);
                self.tally.count_dead(reason);
            }
        }
        record
    }
}

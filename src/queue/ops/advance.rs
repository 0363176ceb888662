//! What time alone does: leases end, TTLs end, due times come.
//!
//! Each move follows from the records and commutes with every other: one big advance and many small ones end in the
//! same view and the same totals.

use super::super::time::UnixMs;
use super::super::Queue;

/// How far an advance came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advanced {
    /// Messages that became ready by time, since the last advance told of some.
    pub ready: usize,
    /// Messages that became dead by time, likewise.
    pub died: usize,
    /// Whether nothing is left to do at this time.
    pub done: bool,
    /// The next instant at which there is something to do; the present one if the budget ran out.
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
        let now = self.observe(now);
        self.advance_view(now, budget)
    }

    /// [`Queue::advance`] on a replica: its master's clock rules, and what that has ended stays ended.
    pub fn advance_view(&mut self, now: UnixMs, budget: usize) -> Advanced {
        self.view.advance_due(now);
        let done = self.end_overdue(now, budget);
        let moved = self.view.take_moved();
        Advanced {
            ready: moved.ready as usize,
            died: moved.died as usize,
            done,
            next: if done { self.next_wake() } else { Some(now) },
        }
    }

    /// The earliest instant after the last advance at which time will move a message or let one be delivered. O(1).
    #[inline]
    pub fn next_wake(&self) -> Option<UnixMs> {
        let wake = self.view.next_wake();
        match self.gate.opens_after(self.view.at()) {
            None => wake,
            Some(opens) => Some(wake.map_or(opens, |wake| wake.min(opens))),
        }
    }

    /// Brings all messages up to `now`. O(m log n) with m the leases and TTLs that ended.
    pub(in crate::queue) fn catch_up_all(&mut self, now: UnixMs) {
        self.view.advance_due(now);
        self.end_overdue(now, usize::MAX);
    }

    /// Ends at most `budget` leases and TTLs that end by `now`. Returns whether none is left.
    fn end_overdue(&mut self, now: UnixMs, mut budget: usize) -> bool {
        while budget > 0 && self.end_first(now) {
            budget -= 1;
        }
        budget > 0 || self.view.first_end(now).is_none()
    }

    /// Ends the first lease or TTL that ends by `now`. Returns whether there was one.
    pub(in crate::queue) fn end_first(&mut self, now: UnixMs) -> bool {
        let Some(key) = self.view.first_end(now) else { return false };
        match self.messages.find_sequence(key.sequence()) {
            Some(at) => {
                self.refresh(at, now);
            }
            None => self.view.forget_end(key),
        }
        true
    }
}

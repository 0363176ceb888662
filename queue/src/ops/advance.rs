//! Changes that time alone makes: leases expire, TTLs end, messages become due, groups may go on.
//!
//! Each change follows from the records and commutes with every other: one large advance and many small ones end in the
//! same view and the same totals. A call that needs the view therefore brings it up to now only as far as [`PILED_MAX`]
//! allows, so no call ever takes long, however much has ended at once. The answer is exact for what was processed, and
//! the timer processes the rest. What a call says about a single message is always exact, since it follows from the
//! record of that message.

use super::{Queue, UnixMs};
/// The largest number of overdue leases and TTLs that one call ends: about a millisecond of work, and less than two if
/// the messages are not in the CPU's cache.
pub(crate) const PILED_MAX: usize = 2048;

/// The largest number of overdue leases and TTLs that a pop ends if it finds enough messages then.
const PILED_FEW: usize = 256;

/// The number of payload bytes that take about as long to copy or to free as one step of an advance.
pub(crate) const BYTES_OF_A_STEP: usize = 8 * 1024;

/// The result of an advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advanced {
    /// Messages that became ready by time alone since the last advance that reported any.
    pub ready: usize,
    /// Messages that became dead by time alone since the last advance that reported any.
    pub died: usize,
    /// Whether the view is complete up to the given time.
    pub done: bool,
    /// The next instant at which time changes something; the given time if the budget ran out.
    pub next: Option<UnixMs>,
}

impl Advanced {
    /// The number of messages that became ready or dead.
    pub fn moved(&self) -> usize {
        self.ready + self.died
    }
}

impl Queue {
    /// Brings the view up to `now`, ending at most `budget` leases and TTLs, and frees as many forgotten ids. Due times
    /// do not count towards the budget: any number of messages becomes ready in O(log n).
    pub fn advance(&mut self, now: UnixMs, budget: usize) -> Advanced {
        let now = self.observe(now);
        self.advance_view(now, budget)
    }

    /// [`Queue::advance`] for a replica: the clock of its master decides, so the queue's own clock is not advanced, and
    /// leases and TTLs that have ended there stay ended.
    pub fn advance_view(&mut self, now: UnixMs, budget: usize) -> Advanced {
        self.view.advance_due(now);
        let ended = self.end_overdue(now, budget);
        self.sweep_known(budget);
        self.messages.sweep_gates(budget);
        let done = ended && !self.must_sweep();
        let moved = self.view.take_moved();
        Advanced {
            ready: moved.ready as usize,
            died: moved.died as usize,
            done,
            next: if done { self.next_wake() } else { Some(now) },
        }
    }

    /// The earliest instant after the last advance at which time will move a message or open the gate; the instant of
    /// the last advance if memory is still to be freed. O(1).
    #[inline]
    pub fn next_wake(&self) -> Option<UnixMs> {
        if self.must_sweep() {
            return Some(self.view.at());
        }
        let wake = self.view.next_wake();
        match self.gate.opens_after(&self.settings, self.view.at()) {
            None => wake,
            Some(opens) => Some(wake.map_or(opens, |wake| wake.min(opens))),
        }
    }

    /// Whether memory is still to be freed of ids or of gates of groups that are forgotten.
    #[inline]
    fn must_sweep(&self) -> bool {
        self.must_sweep_known() || self.messages.must_sweep_gates()
    }

    /// Whether [`Queue::next_wake`] says all that the timer has to do for the queue, because it has nothing that the
    /// server which decides about it would drop, end or forward. O(1).
    #[inline]
    pub fn decides_nothing(&self) -> bool {
        self.optional.held().is_none() && self.settings.deadttl.is_zero() && self.view.first_failed().is_none()
    }

    /// Brings the view up to `now` as far as one call may: it ends at most [`PILED_MAX`] leases and TTLs. What is left
    /// is ended by later calls and by the timer. O(1) if nothing has ended.
    #[inline]
    pub fn catch_up(&mut self, now: UnixMs) {
        self.view.advance_due(now);
        if self.is_overdue(now) {
            self.end_overdue(now, PILED_MAX);
        }
    }

    /// [`Queue::catch_up`] with a small part of its work. Returns whether that was enough.
    #[inline]
    pub(crate) fn catch_up_few(&mut self, now: UnixMs) -> bool {
        self.view.advance_due(now);
        !self.is_overdue(now) || self.end_overdue(now, PILED_FEW)
    }

    /// Whether the view is yet to end a lease or a TTL that ends by `now`, or to look at a group that may go on.
    #[inline(always)]
    fn is_overdue(&self, now: UnixMs) -> bool {
        self.view.first_end(now).is_some() || self.view.has_opening(now)
    }

    /// Ends at most `budget` of the leases and TTLs that end by `now`, and looks at groups that may go on. Returns
    /// whether none is left.
    fn end_overdue(&mut self, now: UnixMs, mut budget: usize) -> bool {
        while budget > 0 && (self.end_first(now) || self.view.open_first(&self.messages, now)) {
            budget -= 1;
        }
        budget > 0 || !self.is_overdue(now)
    }

    /// Ends the first lease or TTL that ends by `now`. Returns whether there was one.
    pub(crate) fn end_first(&mut self, now: UnixMs) -> bool {
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

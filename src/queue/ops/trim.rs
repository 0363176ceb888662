//! Dropping dead messages that the settings no longer keep, the oldest first. This is a write, so only a master does
//! it.

use super::super::id::Sequence;
use super::super::order::Key;
use super::super::time::UnixMs;
use super::super::Queue;

impl Queue {
    /// Drops the oldest of the dead messages that the settings no longer keep, in at most `budget` steps. Returns the
    /// last one dropped, or `None` if none was: no dead message up to that one is left. O(budget × log n).
    pub fn trim_dead(&mut self, budget: usize) -> Option<(UnixMs, Sequence)> {
        let mut last = None;
        for _ in 0..budget {
            let Some(oldest) = self.view.oldest_dead().filter(|_| self.has_excess_dead()) else { break };
            // A message that died before the oldest one is dropped before it, even if this view has not moved it to the
            // dead yet: the view of another server may have.
            if self.view.first_end(oldest.time()).is_some() {
                self.end_first(self.clock.max(oldest.time()));
            } else {
                last = self.drop_oldest_dead(oldest);
            }
        }
        last
    }

    /// Drops all dead messages that the settings no longer keep. Returns the last one dropped, or `None` if none was:
    /// no dead message up to that one is left. O(m log n), where m is the number of messages dropped, and O(n log n) at
    /// most.
    pub fn trim_all_dead(&mut self, now: UnixMs) -> Option<(UnixMs, Sequence)> {
        let now = self.observe(now);
        self.catch_up_dead(now);
        let kept = usize::try_from(self.settings.deadlen.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let excess = self.view.dead().saturating_sub(kept).max(self.outdated_dead());
        let last = self.view.last_of_oldest_dead(excess)?;
        self.drop_dead_up_to(last);
        Some((last.time(), last.sequence()))
    }

    /// Whether [`Queue::trim_dead`] has something to do: there are more dead messages than `DEADLEN`, or one is older
    /// than `DEADTTL` by the queue's own time. O(1).
    #[inline]
    pub fn has_excess_dead(&self) -> bool {
        self.settings.deadlen.is_some_and(|kept| self.view.dead() as u64 > kept)
            || self.next_drop().is_some_and(|drop| drop <= self.clock)
    }

    /// The instant at which the oldest dead message exceeds `DEADTTL`; `None` if no dead message will be dropped
    /// because of its age. O(1).
    #[inline]
    pub fn next_drop(&self) -> Option<UnixMs> {
        if self.settings.deadttl.is_zero() {
            return None;
        }
        self.view.oldest_dead().map(|oldest| oldest.time().after(self.settings.deadttl))
    }

    /// The number of dead messages that are older than `DEADTTL`.
    fn outdated_dead(&self) -> usize {
        let kept = self.settings.deadttl;
        if kept.is_zero() {
            return 0;
        }
        let last_outdated = self.clock.as_ms().checked_sub(kept.as_ms());
        last_outdated.map_or(0, |died| self.view.count_dead_up_to(Key::end_of(UnixMs::new(died))))
    }

    /// Brings the view up to the latest known instant of death, which another clock may have set beyond `now`. The view
    /// then has every message among the dead that died before that instant.
    pub(in crate::queue) fn catch_up_dead(&mut self, now: UnixMs) {
        self.catch_up_all(now);
        if let Some(newest) = self.view.newest_dead().filter(|newest| newest.time() > now) {
            self.catch_up_all(newest.time());
        }
    }

    /// Applies a trim: drops all dead messages up to and including `last`.
    pub(in crate::queue) fn drop_dead_up_to(&mut self, last: Key) {
        if !self.is_bulk(self.view.count_dead_up_to(last)) {
            while self.drop_oldest_dead(last).is_some() {}
            return;
        }
        let mut doomed = self.view.dead_up_to(last);
        doomed.sort_unstable();
        let mut doomed = doomed.into_iter().peekable();
        // Both iterate in push order.
        self.messages.remove_where(|_, _, sequence| doomed.next_if_eq(&sequence).is_some());
        self.view.take_dead_up_to(last);
    }

    /// Drops the oldest dead message, unless it is beyond `limit`.
    fn drop_oldest_dead(&mut self, limit: Key) -> Option<(UnixMs, Sequence)> {
        let key = self.view.take_oldest_dead(limit)?;
        if let Some(at) = self.messages.find_sequence(key.sequence()) {
            self.messages.remove(at);
        }
        Some((key.time(), key.sequence()))
    }
}

//! Dropping dead messages that the settings no longer keep, the oldest first. This is a write, so only a master does
//! it, in bounded steps.

use super::super::order::Key;
use super::super::record::State;
use super::super::spans::Spans;
use super::super::time::UnixMs;
use super::super::Queue;
use super::advance::{BYTES_OF_A_STEP, PILED_MAX};

impl Queue {
    /// Drops the oldest of the dead messages that the settings no longer keep, in about `budget` steps, and returns
    /// them. A message takes one step, and one more for each [`BYTES_OF_A_STEP`] of its payload.
    /// O(budget × log n).
    pub fn trim_dead(&mut self, budget: usize) -> Spans {
        let (mut steps, mut dropped) = (0, Vec::new());
        while steps < budget {
            let Some(oldest) = self.view.oldest_dead().filter(|_| self.has_excess_dead()) else { break };
            steps += 1;
            // A message that died before the oldest one is dropped before it, even if this view has not moved it to the
            // dead yet. A kept message has died at the end of its TTL, which may be earlier than the end of the lease that
            // moves it.
            let by = if self.messages.keeps_any() { self.clock.max(oldest.time()) } else { oldest.time() };
            if self.view.first_end(by).is_some() {
                self.end_first(self.clock.max(oldest.time()));
            } else {
                steps += self.drop_dead(oldest) / BYTES_OF_A_STEP;
                dropped.push(oldest.sequence());
            }
        }
        self.messages.spans_of_removed(dropped)
    }

    /// Drops dead messages that the settings no longer keep, as far as one call may, and returns them.
    pub fn trim_dead_now(&mut self, now: UnixMs) -> Spans {
        let now = self.observe(now);
        self.catch_up(now);
        self.trim_dead(PILED_MAX)
    }

    /// Drops the message with this name if it is a dead message that the settings no longer keep, however many older
    /// ones there are. Returns what was dropped. O(log n).
    pub fn drop_excess(&mut self, now: UnixMs, name: &[u8]) -> Option<Spans> {
        let now = self.observe(now);
        self.catch_up(now);
        let at = self.messages.find_named(name)?;
        let record = self.refresh(at, now);
        let State::Dead { died, .. } = record.state_at(now) else { return None };
        if record.recurring {
            return None;
        }
        let key = Key::at(died, record.sequence);
        (self.view.count_dead_up_to(key) <= self.excess_dead()).then(|| {
            self.drop_dead(key);
            self.messages.spans_of_removed(vec![record.sequence])
        })
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

    /// The number of dead messages that the settings no longer keep.
    fn excess_dead(&self) -> usize {
        let kept = usize::try_from(self.settings.deadlen.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        self.view.dead().saturating_sub(kept).max(self.outdated_dead())
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

    /// Drops a dead message, and returns the number of bytes of its payload.
    fn drop_dead(&mut self, key: Key) -> usize {
        let Some(at) = self.messages.find_sequence(key.sequence()) else {
            self.view.take_dead(&mut self.messages, key);
            return 0;
        };
        let record = self.messages.record(at);
        self.view.unplace(&self.messages, at, &record);
        let size = self.messages.bytes(at).payload.len();
        self.remember(at, self.clock);
        self.messages.remove(at);
        size
    }
}

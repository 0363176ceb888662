//! Dropping dead and done messages that the settings no longer keep, the oldest first. This is a write, so only a
//! master does it, in bounded steps.

use super::advance::{BYTES_OF_A_STEP, PILED_MAX};
use super::dedupe::Ids;
use super::{Queue, Spans, State, UnixMs};
use crate::batches::MemberEnd;
use crate::done::Done;
use crate::effect::Effect;
use crate::sorted_set::Key;

/// What was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// The dead messages.
    pub dead: Spans,
    /// The done messages.
    pub done: Spans,
}

impl Trimmed {
    /// The effects that replicate the drops; none if nothing was dropped.
    pub fn effects(self) -> impl Iterator<Item = Effect<'static>> {
        let dead = (!self.dead.is_empty()).then_some(Effect::Trim(self.dead));
        dead.into_iter().chain((!self.done.is_empty()).then_some(Effect::TrimDone(self.done)))
    }
}

impl Queue {
    /// Drops dead messages that the settings no longer keep, then done messages whose retention has ended or that
    /// exceed `DONELEN`, the oldest first, in about `budget` steps. A message takes one step, and one more for each
    /// [`BYTES_OF_A_STEP`] of its payload or result. O(budget × log n).
    pub fn trim(&mut self, budget: usize) -> Trimmed {
        let (mut steps, mut dead, mut done) = (0, Vec::new(), Vec::new());
        while steps < budget {
            let Some(oldest) = self.view.oldest_dead().filter(|_| self.has_excess_dead()) else { break };
            steps += 1;
            // A message that died before the oldest one is dropped before it, even if this view has not moved it to the
            // dead yet. A successor has died at the end of its TTL, which may be earlier than the end of the lease that
            // moves it. Nothing ends after the queue's own time, even if the oldest one died later than that, by a
            // clock that was ahead.
            let by = if self.messages.has_successors() { self.clock } else { self.clock.min(oldest.time()) };
            if self.view.first_end(by).is_some() {
                self.end_first(self.clock);
            } else {
                steps += self.drop_dead(oldest) / BYTES_OF_A_STEP;
                dead.push(oldest.sequence());
            }
        }
        // Those that apply the two effects push what follows a batch between them.
        if !dead.is_empty() {
            self.end_effect(self.clock);
        }
        while steps < budget {
            let Some(sequence) = self.first_excess_done() else { break };
            steps += 1 + self.drop_done(sequence, Ids::Remembered, self.clock) / BYTES_OF_A_STEP;
            done.push(sequence);
        }
        let none = Done::default();
        let done = self.optional.done.as_deref().unwrap_or(&none).spans_of(done);
        Trimmed { dead: self.messages.spans_of_removed(dead), done }
    }

    /// [`Queue::trim`] with the budget of one call, after a change of the settings.
    pub fn trim_now(&mut self, now: UnixMs) -> Trimmed {
        let now = self.observe(now);
        if !self.settings.keep_all_dead() {
            self.catch_up(now);
        }
        self.trim(PILED_MAX)
    }

    /// Drops the message with this name if it is a dead message that the settings no longer keep, however many older
    /// ones there are. Returns what was dropped. O(log n).
    pub fn drop_excess(&mut self, now: UnixMs, name: &[u8]) -> Option<Trimmed> {
        if self.settings.keep_all_dead() {
            return None;
        }
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
            self.end_effect(now);
            let dead = self.messages.spans_of_removed(vec![record.sequence]);
            Trimmed { dead, ..Trimmed::default() }
        })
    }

    /// Whether [`Queue::trim`] has something to do. O(1), and O(log n) with `DONELEN`.
    #[inline(always)]
    pub fn has_excess(&self) -> bool {
        self.has_excess_dead() || self.has_excess_done()
    }

    /// Whether there are more dead messages than `DEADLEN`, or one is older than `DEADTTL` by the queue's own time, and
    /// they are dropped: those that are forwarded are not. O(1).
    #[inline]
    fn has_excess_dead(&self) -> bool {
        let has_excess = self.settings.deadlen.is_some_and(|kept| self.view.dead() as u64 > kept)
            || self.next_dead_end().is_some_and(|end| end <= self.clock);
        has_excess && !self.moves_dead()
    }

    /// The next instant at which the age of a dead or a done message makes [`Queue::trim`] drop it. O(1).
    #[inline]
    pub fn next_drop(&self) -> Option<UnixMs> {
        let ends = (self.next_dead_end(), self.next_done_end());
        if let (Some(dead), Some(done)) = ends {
            Some(dead.min(done))
        } else {
            ends.0.or(ends.1)
        }
    }

    /// The instant at which the oldest dead message exceeds `DEADTTL`; `None` if no dead message will be dropped
    /// because of its age. O(1).
    #[inline(always)]
    fn next_dead_end(&self) -> Option<UnixMs> {
        if self.settings.deadttl.is_zero() || self.moves_dead() {
            return None;
        }
        self.view.oldest_dead().map(|oldest| oldest.time().after(self.settings.deadttl))
    }

    /// The number of dead messages that the settings no longer keep.
    fn excess_dead(&self) -> usize {
        if self.moves_dead() {
            return 0;
        }
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
        self.end_member(at, record.sequence, MemberEnd::Dead);
        self.view.unplace(&self.messages, at, &record);
        let size = self.messages.bytes(at).payload.len();
        self.remember(at, self.clock);
        self.messages.remove(at);
        size
    }
}

//! Removing and changing many messages at once.
//!
//! One message costs O(log n) in each set that it is in. Where a good part of a queue goes, one pass over the headers
//! and the sets is cheaper, and where all of it goes, nothing needs to be looked at: so a purge of a million messages
//! costs about what the deletion of the key would.

use super::begun::Begun;
use super::id::Sequence;
use super::order::{Key, OrderedKeys};
use super::record::{StateKind, States};
use super::settings::Settings;
use super::store::{Placement, Store};
use super::time::UnixMs;
use super::waiting::Waiting;
use super::{hash_of, Queue};
use std::sync::Arc;

/// Fewer than so many are changed one by one.
const BULK: usize = 8;

impl Queue {
    /// Removes all messages that are in one of `states`, and says how many they were. O(m log n), and O(n) at most.
    pub fn purge(&mut self, now: UnixMs, states: States) -> usize {
        let now = self.tick(now);
        self.settle_all(now);
        self.purge_view(now, states)
    }

    /// Removes the first `count` messages that are in one of `states`, and returns them: the states in the order of
    /// [`StateKind::ALL`], the messages of a state in the order in which [`Queue::peek`] shows them.
    /// O(m log n) with m the messages removed.
    pub fn purge_first(&mut self, now: UnixMs, states: States, count: usize) -> Vec<Sequence> {
        let now = self.tick(now);
        self.settle_all(now);
        let mut removed = Vec::new();
        for kind in StateKind::ALL.into_iter().filter(|kind| states.contain(*kind)) {
            removed.extend(self.in_state(now, kind, count - removed.len()));
        }
        self.remove_all(&removed);
        removed
    }

    /// Removes the messages of `sequences` that are here.
    pub(super) fn remove_all(&mut self, sequences: &[Sequence]) {
        for sequence in sequences {
            if let Some((at, record)) = self.message_of(*sequence) {
                self.remove(at, &record);
            }
        }
    }

    /// As [`Queue::purge`], by the records as they were at `now`, for one whose view may be ahead of it.
    pub(super) fn purge_as_of(&mut self, now: UnixMs, states: States) {
        if self.moved_to > now {
            self.lay_out_anew(now);
        }
        self.purge_view(now, states);
    }

    /// Removes what the view, which is that of `now`, says to be in one of `states`.
    fn purge_view(&mut self, now: UnixMs, states: States) -> usize {
        let counts = self.counts();
        let doomed = StateKind::ALL.into_iter().filter(|kind| states.contain(*kind));
        let doomed: u64 = doomed.map(|kind| counts.of(kind)).sum();
        let doomed = doomed as usize;
        if doomed == self.store.len() {
            self.empty();
        } else if self.is_bulk(doomed) {
            self.store.remove_where(|placement, due, _| {
                states.contain(match placement {
                    Placement::Waiting if due > now => StateKind::Delayed,
                    Placement::Waiting => StateKind::Ready,
                    Placement::InFlight => StateKind::InFlight,
                    Placement::Dead => StateKind::Dead,
                })
            });
            self.forget_states(now, states);
        } else {
            for kind in StateKind::ALL.into_iter().filter(|kind| states.contain(*kind)) {
                self.remove_all(&self.in_state(now, kind, usize::MAX));
            }
        }
        doomed
    }

    /// The first messages of a state as the view has it, in the order in which they leave it; the dead newest first.
    pub(super) fn in_state(&self, now: UnixMs, kind: StateKind, count: usize) -> Vec<Sequence> {
        match kind {
            StateKind::Delayed => self.waiting.iter_delayed(now).take(count).collect(),
            StateKind::Ready => self.waiting.iter_ready(now).take(count).collect(),
            StateKind::InFlight => self.inflight.iter_after(None).take(count).map(Key::sequence).collect(),
            StateKind::Dead => self.dead.iter_backwards().take(count).map(Key::sequence).collect(),
        }
    }

    /// Sets the settings.
    pub fn alter(&mut self, settings: Settings) {
        self.settings = Arc::new(settings);
    }

    /// Drops all of the dead beyond those that the settings keep, the oldest first, and returns the last one dropped:
    /// everything dead up to it is gone. A write: only a master does it. O(m log n), and O(n log n) at most.
    pub fn trim_all_dead(&mut self, now: UnixMs) -> Option<(UnixMs, Sequence)> {
        let now = self.tick(now);
        self.settle_dead(now);
        let kept = usize::try_from(self.settings.deadlen.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let excess = self.dead.len().saturating_sub(kept).max(self.outdated_dead());
        let last = self.last_of_oldest_dead(excess)?;
        self.drop_dead_up_to(last);
        Some((last.time(), last.sequence()))
    }

    /// How many of the dead are older than `DEADTTL`.
    fn outdated_dead(&self) -> usize {
        let kept = self.settings.deadttl;
        if kept.is_zero() {
            return 0;
        }
        let oldest_kept = self.clock.as_ms().checked_sub(kept.as_ms());
        oldest_kept.map_or(0, |died| self.dead.rank(Key::end_of(UnixMs::new(died))))
    }

    /// Drops the dead up to `last`.
    pub(super) fn drop_dead_up_to(&mut self, last: Key) {
        if !self.is_bulk(self.dead.rank(last)) {
            while self.drop_oldest_dead(last).is_some() {}
            return;
        }
        let mut doomed = self.dead_up_to(last);
        doomed.sort_unstable();
        let mut doomed = doomed.into_iter().peekable();
        // Both are in push order.
        self.store.remove_where(|_, _, sequence| doomed.next_if_eq(&sequence).is_some());
        self.dead.retain(|key| key > last);
        self.rebuild_names();
    }

    /// The last of the oldest dead, of which there are at most `count`.
    pub(super) fn last_of_oldest_dead(&self, count: usize) -> Option<Key> {
        self.dead.iter_after(None).take(count).last()
    }

    /// The dead up to `last`, the oldest first.
    pub(super) fn dead_up_to(&self, last: Key) -> Vec<Sequence> {
        self.dead.iter_after(None).take_while(|key| *key <= last).map(Key::sequence).collect()
    }

    /// Whether so many of the messages are better seen to all at once.
    pub(super) fn is_bulk(&self, concerned: usize) -> bool {
        concerned >= BULK && concerned >= self.store.len() / 8
    }

    /// Removes every message. O(n) to free, and no more.
    fn empty(&mut self) {
        self.store = Store::default();
        self.waiting = Waiting::default();
        self.waiting.advance(self.viewed);
        for set in [&mut self.inflight, &mut self.expiring, &mut self.dead, &mut self.names] {
            *set = OrderedKeys::default();
        }
        self.begun = Begun::default();
    }

    /// Takes the messages that were in one of `states` out of the view of `now`, after they were removed.
    fn forget_states(&mut self, now: UnixMs, states: States) {
        let (delayed, ready) = (states.contain(StateKind::Delayed), states.contain(StateKind::Ready));
        if delayed || ready {
            self.waiting.retain(|due| if due > now { !delayed } else { !ready });
            self.rebuild_expiring();
        }
        if states.contain(StateKind::InFlight) {
            self.inflight = OrderedKeys::default();
            self.begun = Begun::default();
        }
        if states.contain(StateKind::Dead) {
            self.dead = OrderedKeys::default();
        }
        self.rebuild_names();
    }

    /// Gathers the ends of TTLs from the messages that are there.
    fn rebuild_expiring(&mut self) {
        if self.expiring.is_empty() {
            return;
        }
        let waiting = self.store.iter_after(None).filter(|at| self.store.placement(*at) == Placement::Waiting);
        let records = waiting.map(|at| self.store.record(at));
        let ends = records.filter_map(|record| Some(Key::at(record.ttl?.end, record.sequence)));
        self.expiring = OrderedKeys::from_unsorted(ends.collect());
    }

    /// Gathers the names of the messages that are there.
    fn rebuild_names(&mut self) {
        if self.names.is_empty() {
            return;
        }
        let named = self.store.iter_after(None).filter_map(|at| {
            let name = self.store.bytes(at).name?;
            Some(Key::hashed(hash_of(name), self.store.sequence(at)))
        });
        self.names = OrderedKeys::from_unsorted(named.collect());
    }

    /// Lays the view of `now` out anew where records were written under it.
    pub(super) fn lay_out_anew(&mut self, now: UnixMs) {
        self.lay_out(now);
        self.view_at(now);
    }
}

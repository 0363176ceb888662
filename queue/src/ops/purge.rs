//! Purging: all messages in some states are removed, or the first of them.
//!
//! A purge first chooses its messages and then removes them, and an effect names those that were chosen. Removing one
//! message costs O(log n) in each order in which it stands. If a large part of a queue is removed, one pass over the
//! headers and the orders is cheaper, and if all of it is removed, the orders need not be searched at all. A purge of a
//! million messages therefore costs about as much as the deletion of the key.

use super::dedupe::Ids;
use super::{At, DurationMs, Loss, Queue, Sequence, Spans, State, StateKind, UnixMs};
use crate::id::Receipt;
use crate::record::States;
use crate::store::Placement;

/// Fewer messages than this are removed one by one.
const BULK: usize = 8;

/// What a purge passes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// Recurring messages, even while a run of theirs is in flight or has failed.
    Schedules,
    /// Nothing.
    Nothing,
}

/// Which messages a purge removes.
#[derive(Clone, Copy, Debug)]
pub struct ToPurge {
    /// Those in one of these states.
    pub states: States,
    /// Only the first of them.
    pub count: Option<usize>,
    /// Only those that have been in their state for at least this long.
    pub older: Option<DurationMs>,
    /// Which of them are passed over.
    pub spare: Spare,
}

impl ToPurge {
    /// All messages in one of `states`, except schedules.
    pub const fn all(states: States) -> ToPurge {
        ToPurge { states, count: None, older: None, spare: Spare::Schedules }
    }

    /// How many messages are chosen one by one; `None` if all in some states are.
    fn limit(&self) -> Option<usize> {
        self.count.or(self.older.and(Some(usize::MAX)))
    }
}

/// The result of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purged {
    /// The number of messages that were removed.
    pub count: usize,
    /// The messages that were not done.
    pub messages: Spans,
    /// The done messages.
    pub done: Spans,
}

impl Queue {
    /// Removes messages. The states are taken in the order of [`StateKind::ALL`], the messages of a state in the order
    /// in which [`Queue::peek`] returns them. O(m log n), where m is the number of messages removed, and O(n) at most;
    /// O(n) if they must have been in their state for some time.
    pub fn purge(&mut self, now: UnixMs, which: &ToPurge) -> Purged {
        let now = self.observe(now);
        self.catch_up(now);
        let mut left = which.limit();
        let messages = match (which.states.within(States::HELD), left) {
            (None, _) => Spans::default(),
            (Some(held), None) => {
                let spans = self.spans_in(now, held, which);
                if held.contain(StateKind::InFlight) {
                    let leases = self.view.leases_after(now).filter(|sequence| spans.contain(*sequence));
                    self.note_all_lost(&self.in_flight_of(leases, now), Loss::Purged);
                }
                spans
            }
            (Some(held), Some(count)) => {
                let chosen = first_of_all(held, count, |kind, left| self.first_to_purge(now, kind, left, which));
                left = Some(count - chosen.len());
                if held.contain(StateKind::InFlight) && self.view.inflight() > 0 {
                    self.note_all_lost(&self.in_flight_of(chosen.iter().copied(), now), Loss::Purged);
                }
                self.messages.spans_of(chosen)
            }
        };
        let (ended, done) = match which.states.contain(StateKind::Done) {
            true => self.done_to_purge(now, left, which.older),
            false => Default::default(),
        };
        let count = self.remove_spans(&messages, now, Ids::Forgotten) + ended;
        self.drop_done_spans(&done, Ids::Forgotten, now);
        Purged { count, messages, done }
    }

    /// The messages that are in one of `states`, apart from done messages, as far as the view knows.
    fn spans_in(&mut self, now: UnixMs, states: States, which: &ToPurge) -> Spans {
        let counts = self.counts();
        let kinds = StateKind::ALL.into_iter().filter(|kind| states.contain(*kind));
        let concerned = kinds.map(|kind| counts.count(kind)).sum::<u64>() as usize;
        let spared = self.count_spared(which.spare);
        if concerned == 0 {
            return Spans::default();
        }
        if concerned == self.messages.len() && spared == 0 {
            return Spans::up_to(self.last_sequence);
        }
        // Where the view is behind the time, the record of each message decides.
        if self.view.first_end(now).is_some() || !self.is_bulk(concerned) {
            let chosen = first_of_all(states, usize::MAX, |kind, left| self.first_to_purge(now, kind, left, which));
            return self.messages.spans_of(chosen);
        }
        self.messages.spans_where(|messages, at| {
            let kind = match messages.placement(at) {
                Placement::Waiting if messages.due(at) > now => StateKind::Delayed,
                Placement::Waiting => StateKind::Ready,
                Placement::InFlight => StateKind::InFlight,
                Placement::Dead => StateKind::Dead,
            };
            states.contain(kind) && (spared == 0 || messages.recurring(at).is_none())
        })
    }

    /// The largest number of messages that a purge passes over.
    pub(crate) fn count_spared(&self, spare: Spare) -> usize {
        match spare {
            Spare::Schedules => self.messages.recurring_count(),
            Spare::Nothing => 0,
        }
    }

    /// Takes out those of `found` that a purge passes over, and all but the first `count` others.
    pub(crate) fn spare_of(
        &self,
        mut found: Vec<Sequence>,
        count: usize,
        which: &ToPurge,
        now: UnixMs,
    ) -> Vec<Sequence> {
        if self.count_spared(which.spare) > 0 {
            let is_recurring = |at| self.messages.recurring(at).is_some();
            found.retain(|sequence| !self.messages.locate(*sequence).is_some_and(is_recurring));
        }
        if let Some(older) = which.older {
            let is_older = |at| now.since(self.in_state_since(at, now)) >= older;
            found.retain(|sequence| self.messages.locate(*sequence).is_some_and(is_older));
        }
        found.truncate(count);
        found
    }

    /// How many messages of a state must be looked at to find `count` that a purge does not pass over.
    pub(crate) fn to_look_at(&self, count: usize, which: &ToPurge) -> usize {
        match which.older {
            Some(_) => usize::MAX,
            None => count.saturating_add(self.count_spared(which.spare)),
        }
    }

    /// When the message came into its state: delayed when it was pushed, ready when it was due, in flight when its
    /// delivery began.
    fn in_state_since(&self, at: At, now: UnixMs) -> UnixMs {
        let record = self.messages.record(at);
        match record.state_at(now) {
            State::Delayed => record.sequence.created(),
            State::Ready => record.due,
            State::InFlight => record.receipt().map_or(record.due, Receipt::began),
            State::Dead { died, .. } => died,
        }
    }

    /// The first `count` messages of a state that a purge removes.
    fn first_to_purge(&self, now: UnixMs, kind: StateKind, count: usize, which: &ToPurge) -> Vec<Sequence> {
        let seen = self.first_in(now, kind, self.to_look_at(count, which));
        self.spare_of(seen, count, which, now)
    }

    /// Removes the messages in `spans` that the queue holds, and returns how many there were. What time has done to
    /// them up to `now` is counted first.
    pub(crate) fn remove_spans(&mut self, spans: &Spans, now: UnixMs, ids: Ids) -> usize {
        // What time did up to `now` was not counted yet, or what it did later was counted by another clock.
        let is_apart = self.view.first_end(now).is_some() || self.view.is_beyond(now);
        if ids == Ids::Forgotten && !is_apart && self.messages.all_in(spans) {
            self.end_removed_in(spans, now);
            return self.remove_all();
        }
        let doomed = self.messages.in_spans(spans);
        let in_bulk = self.is_bulk(doomed.len());
        if ids == Ids::Remembered && !self.settings.dedupe.is_zero() {
            for sequence in &doomed {
                if let Some(at) = self.messages.find_sequence(*sequence) {
                    self.remember(at, now);
                }
            }
        }
        if ids == Ids::Forgotten && self.messages.has_groups() {
            for sequence in &doomed {
                if let Some((at, record)) = self.messages.locate_record(*sequence) {
                    self.claim_turn(at, &record, now);
                }
            }
        }
        if !in_bulk {
            self.for_each_refreshed(&doomed, now, |queue, at, record| queue.remove(at, record));
        } else if is_apart {
            self.for_each_refreshed(&doomed, now, |_, _, _| ());
        }
        if in_bulk {
            self.end_removed_in(spans, now);
        }
        if in_bulk && doomed.len() == self.messages.len() {
            self.remove_all();
        } else if in_bulk {
            self.messages.remove_spans(spans);
            self.view.forget(&self.messages, spans);
        }
        doomed.len()
    }

    /// Removes all messages, and returns how many there were.
    fn remove_all(&mut self) -> usize {
        let count = self.messages.len();
        self.messages.clear();
        self.view.clear();
        count
    }

    /// Whether removing this many messages is cheaper in one pass over all of them.
    fn is_bulk(&self, concerned: usize) -> bool {
        concerned >= BULK && concerned >= self.messages.len() / 8
    }
}

/// The first `count` messages in these states; `first` finds those in one of them, and returns at most a given number.
pub(super) fn first_of_all(
    states: States,
    count: usize,
    first: impl Fn(StateKind, usize) -> Vec<Sequence>,
) -> Vec<Sequence> {
    let kinds = StateKind::ALL.into_iter().filter(|kind| states.contain(*kind));
    kinds.fold(Vec::new(), |mut chosen, kind| {
        chosen.extend(first(kind, count - chosen.len()));
        chosen
    })
}

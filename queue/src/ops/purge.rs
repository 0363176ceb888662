//! Purging: all messages in some states are removed, or the first of them.
//!
//! A purge first chooses its messages and then removes them, and an effect names those that were chosen. Removing one
//! message costs O(log n) in each order in which it stands. If a large part of a queue is removed, one pass over the
//! headers and the orders is cheaper, and if all of it is removed, the orders need not be searched at all. A purge of a
//! million messages therefore costs about as much as the deletion of the key.

use super::super::id::Sequence;
use super::super::messages::Messages;
use super::super::record::{StateKind, States};
use super::super::spans::Spans;
use super::super::store::Placement;
use super::super::time::UnixMs;
use super::super::Queue;

/// Fewer messages than this are removed one by one.
const BULK: usize = 8;

/// The result of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purged {
    /// The number of messages that were removed.
    pub count: usize,
    /// The messages that were not done.
    pub spans: Spans,
    /// The done messages.
    pub done: Spans,
}

impl Queue {
    /// Removes all messages that are in one of `states`. O(m log n), where m is the number of messages removed, and
    /// O(n) at most.
    pub fn purge(&mut self, now: UnixMs, states: States) -> Purged {
        let now = self.observe(now);
        self.catch_up(now);
        let spans = states.within(States::HELD).map_or_else(Spans::default, |states| self.spans_in(now, states));
        let (ended, done) = match states.contain(StateKind::Done) {
            true => self.done_to_purge(now, None),
            false => Default::default(),
        };
        let count = self.remove_spans(&spans, now, false) + ended;
        self.drop_done_spans(&done, false, now);
        Purged { count, spans, done }
    }

    /// Removes the first `count` messages that are in one of `states`. The states are taken in the order of
    /// [`StateKind::ALL`], the messages of a state in the order in which [`Queue::peek`] returns them. O(m log n),
    /// where m is the number of messages removed.
    pub fn purge_first(&mut self, now: UnixMs, states: States, count: usize) -> Purged {
        let now = self.observe(now);
        self.catch_up(now);
        let mut chosen: Vec<Sequence> = Vec::new();
        if let Some(states) = states.within(States::HELD) {
            for kind in StateKind::ALL.into_iter().filter(|kind| states.contain(*kind)) {
                chosen.extend(self.first_to_purge(now, states, kind, count - chosen.len()));
            }
        }
        let (ended, done) = match states.contain(StateKind::Done) {
            true => self.done_to_purge(now, Some(count - chosen.len())),
            false => Default::default(),
        };
        let spans = self.messages.spans_of(chosen);
        let count = self.remove_spans(&spans, now, false) + ended;
        self.drop_done_spans(&done, false, now);
        Purged { count, spans, done }
    }

    /// The messages that are in one of `states`, without done, as far as the view knows.
    fn spans_in(&mut self, now: UnixMs, states: States) -> Spans {
        let kinds = || StateKind::ALL.into_iter().filter(|kind| states.contain(*kind));
        let counts = self.counts();
        let mut concerned = kinds().map(|kind| counts.of(kind)).sum::<u64>() as usize;
        if states != States::HELD && states.contain(StateKind::Dead) {
            concerned -= self.view.failed();
        }
        if concerned == 0 {
            return Spans::default();
        }
        if concerned == self.messages.len() {
            return Spans::up_to(self.last_sequence);
        }
        // Where the view is behind the time, the record of each message decides.
        if self.view.first_end(now).is_some() || self.view.failed() > 0 || !self.is_bulk(concerned) {
            let chosen = kinds().flat_map(|kind| self.first_to_purge(now, states, kind, usize::MAX)).collect();
            return self.messages.spans_of(chosen);
        }
        self.messages.spans_where(|placement, due| {
            states.contain(match placement {
                Placement::Waiting if due > now => StateKind::Delayed,
                Placement::Waiting => StateKind::Ready,
                Placement::InFlight => StateKind::InFlight,
                Placement::Dead => StateKind::Dead,
            })
        })
    }

    /// The first `count` messages of a state that a purge of `states` removes. A recurring message whose run has failed
    /// is shown as dead until its next run is decided: a purge of the dead does not end its series.
    fn first_to_purge(&self, now: UnixMs, states: States, kind: StateKind, count: usize) -> Vec<Sequence> {
        if kind != StateKind::Dead || states == States::HELD || self.view.failed() == 0 {
            return self.first_in(now, kind, count);
        }
        let is_ordinary =
            |sequence: &Sequence| self.messages.locate(*sequence).is_some_and(|at| !self.messages.record(at).recurring);
        let seen = self.first_in(now, kind, count.saturating_add(self.view.failed()));
        seen.into_iter().filter(is_ordinary).take(count).collect()
    }

    /// Removes the messages in `spans` that the queue holds, and returns how many there were. What time has done to
    /// them by `now` is counted first. If `remembered`, their ids stay known as long as `DEDUPE` says.
    pub(crate) fn remove_spans(&mut self, spans: &Spans, now: UnixMs, remembered: bool) -> usize {
        let ends_first = self.view.first_end(now).is_some();
        if !remembered && !ends_first && self.messages.all_in(spans) {
            return self.remove_all();
        }
        let doomed = self.messages.in_spans(spans);
        let in_bulk = self.is_bulk(doomed.len());
        if remembered && !self.settings.dedupe.is_zero() {
            for sequence in &doomed {
                if let Some(at) = self.messages.find_sequence(*sequence) {
                    self.remember(at, now);
                }
            }
        }
        if !in_bulk {
            self.for_each_refreshed(&doomed, now, |queue, at, record| queue.remove(at, record));
        } else if ends_first {
            self.for_each_refreshed(&doomed, now, |_, _, _| ());
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
        self.messages = Messages::default();
        self.view.clear();
        count
    }

    /// Whether removing this many messages is cheaper in one pass over all of them.
    fn is_bulk(&self, concerned: usize) -> bool {
        concerned >= BULK && concerned >= self.messages.len() / 8
    }
}

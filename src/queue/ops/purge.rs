//! Purging: all messages in some states are removed, or the first of them.
//!
//! Removing one message costs O(log n) in each order in which it stands. If a large part of a queue is removed, one
//! pass over the headers and the orders is cheaper, and if all of it is removed, no message needs to be looked at. A
//! purge of a million messages therefore costs about as much as the deletion of the key.

use super::super::id::Sequence;
use super::super::messages::Messages;
use super::super::record::{StateKind, States};
use super::super::store::Placement;
use super::super::time::UnixMs;
use super::super::Queue;

/// Fewer messages than this are removed one by one.
const BULK: usize = 8;

impl Queue {
    /// Removes all messages that are in one of `states`, and returns how many were removed. O(m log n), and O(n) at
    /// most.
    pub fn purge(&mut self, now: UnixMs, states: States) -> usize {
        let now = self.observe(now);
        self.catch_up_all(now);
        self.purge_view(now, states)
    }

    /// Removes the first `count` messages that are in one of `states`, and returns them. The states are taken in the
    /// order of [`StateKind::ALL`], the messages of a state in the order in which [`Queue::peek`] returns them.
    /// O(m log n), where m is the number of messages removed.
    pub fn purge_first(&mut self, now: UnixMs, states: States, count: usize) -> Vec<Sequence> {
        let now = self.observe(now);
        self.catch_up_all(now);
        let mut removed = Vec::new();
        for kind in StateKind::ALL.into_iter().filter(|kind| states.contain(*kind)) {
            removed.extend(self.view.in_state(now, kind, count - removed.len()));
        }
        self.remove_all(&removed);
        removed
    }

    /// Applies a purge that was decided elsewhere at `now`, by the states that the messages had then: the view of this
    /// queue may have been brought beyond that instant.
    pub(in crate::queue) fn purge_as_of(&mut self, now: UnixMs, states: States) {
        if self.view.is_beyond(now) {
            self.view.rebuild(&mut self.messages, now);
            self.view.advance_due(now);
        }
        self.purge_view(now, states);
    }

    /// Removes the messages that the view, which must be that of `now`, has in one of `states`.
    fn purge_view(&mut self, now: UnixMs, states: States) -> usize {
        let counts = self.counts();
        let doomed = StateKind::ALL.into_iter().filter(|kind| states.contain(*kind));
        let doomed: u64 = doomed.map(|kind| counts.of(kind)).sum();
        let doomed = doomed as usize;
        if doomed == self.messages.len() {
            self.messages = Messages::default();
            self.view.clear();
        } else if self.is_bulk(doomed) {
            self.messages.remove_where(|placement, due, _| {
                states.contain(match placement {
                    Placement::Waiting if due > now => StateKind::Delayed,
                    Placement::Waiting => StateKind::Ready,
                    Placement::InFlight => StateKind::InFlight,
                    Placement::Dead => StateKind::Dead,
                })
            });
            self.view.take_states(&self.messages, now, states);
        } else {
            for kind in StateKind::ALL.into_iter().filter(|kind| states.contain(*kind)) {
                let those = self.view.in_state(now, kind, usize::MAX);
                self.remove_all(&those);
            }
        }
        doomed
    }

    /// Whether removing this many messages is cheaper in one pass over all of them.
    pub(in crate::queue) fn is_bulk(&self, concerned: usize) -> bool {
        concerned >= BULK && concerned >= self.messages.len() / 8
    }
}

//! Loads what the removal of many messages touches into the cache, so that its waits for memory overlap.

use super::super::id::Sequence;
use super::super::messages::Messages;
use super::super::order::{fetch, Key, OrderedKeys};
use super::super::store::{At, Placement};
use super::super::time::UnixMs;
use super::View;

impl View {
    /// The messages whose leases and TTLs end first, of those that end by `now`.
    pub fn first_ends(&self, now: UnixMs) -> impl Iterator<Item = Sequence> + '_ {
        let end = Key::end_of(now);
        let due = move |keys| OrderedKeys::iter_after(keys, None).take_while(move |key| *key <= end).map(Key::sequence);
        due(&self.inflight).chain(due(&self.expiring))
    }

    /// Loads what [`View::unplace`] is going to touch for these messages into the cache, if they wait and have no group.
    /// See [`fetch`].
    pub fn fetch(&self, messages: &Messages, places: &[At]) {
        let waiting = places.iter().filter(|at| messages.placement(**at) == Placement::Waiting);
        fetch(waiting.filter_map(|at| {
            let record = messages.record(*at);
            self.waiting.whereabouts(record.priority, record.due, record.sequence)
        }));
    }
}

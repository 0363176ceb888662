//! Loads what the removal of many messages touches into the cache, so that its waits for memory overlap.

use super::super::messages::Messages;
use super::super::order::fetch;
use super::super::store::{At, Placement};
use super::View;

impl View {
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

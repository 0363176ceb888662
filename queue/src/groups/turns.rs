//! The order of the heads when groups take turns: by priority, and among equal priorities by when the group's turn
//! comes.

use crate::memory::vec_bytes;
use crate::sorted_set::{word, Key, OrderedKeys};
use std::cmp::Reverse;

/// When the turn of a group comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(pub u64);

word!(Turn);

/// The heads of all groups, by (priority, turn, sequence).
#[derive(Debug, Default)]
pub(super) struct Turns(Vec<(i8, OrderedKeys<Turn>)>);

impl Turns {
    /// Adds a head. O(log n).
    pub fn insert(&mut self, priority: i8, key: Key<Turn>) {
        let place = self.0.binary_search_by_key(&Reverse(priority), |(priority, _)| Reverse(*priority));
        let at = place.unwrap_or_else(|at| {
            self.0.insert(at, (priority, OrderedKeys::default()));
            at
        });
        if let Some((_, keys)) = self.0.get_mut(at) {
            keys.insert(key);
        }
    }

    /// Removes a head. Returns whether it was there. O(log n).
    pub fn remove(&mut self, priority: i8, key: Key<Turn>) -> bool {
        let Ok(at) = self.0.binary_search_by_key(&Reverse(priority), |(priority, _)| Reverse(*priority)) else {
            return false;
        };
        let Some((_, keys)) = self.0.get_mut(at) else { return false };
        let removed = keys.remove(key);
        if keys.is_empty() {
            self.0.remove(at);
        }
        removed
    }

    /// The first head whose turn has come by `horizon`. O(priorities in use).
    pub fn first(&self, horizon: u64) -> Option<(i8, Key<Turn>)> {
        let firsts = self.0.iter().filter_map(|(priority, keys)| Some((*priority, keys.first()?)));
        firsts.into_iter().find(|(_, key)| key.major() <= Turn(horizon))
    }

    /// The heads whose turn has come by `horizon`, in their order.
    pub fn iter(&self, horizon: u64) -> impl Iterator<Item = (i8, Key<Turn>)> + '_ {
        self.0.iter().flat_map(move |(priority, keys)| {
            keys.iter_after(None).take_while(move |key| key.major() <= Turn(horizon)).map(|key| (*priority, key))
        })
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|(_, keys)| keys.len()).sum()
    }

    pub fn contains(&self, priority: i8, key: Key<Turn>) -> bool {
        self.0.iter().any(|(band, keys)| *band == priority && keys.contains(key))
    }

    pub fn heap_bytes(&self) -> usize {
        vec_bytes::<(i8, OrderedKeys<Turn>)>(self.0.capacity())
            + self.0.iter().map(|(_, keys)| keys.heap_bytes()).sum::<usize>()
    }
}

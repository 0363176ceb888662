//! A sorted set of keys that needs no allocation while it has at most one key, as most of these sets do.

use crate::sorted_set::{Key, OrderedKeys, KEY_BYTES};

/// A sorted set of unique keys.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The smallest key.
    first: Option<Key>,
    rest: OrderedKeys,
}

impl Line {
    /// A set of `keys`, which must be sorted and unique.
    pub fn from_sorted(keys: &[Key]) -> Line {
        match keys.split_first() {
            None => Line::default(),
            Some((first, rest)) => Line { first: Some(*first), rest: OrderedKeys::from_sorted(rest) },
        }
    }

    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn first(&self) -> Option<Key> {
        self.first
    }

    pub fn last(&self) -> Option<Key> {
        if self.rest.is_empty() {
            self.first
        } else {
            self.rest.last()
        }
    }

    /// Adds a key, which must not be in the set.
    pub fn insert(&mut self, key: Key) {
        match self.first {
            None => self.first = Some(key),
            Some(first) if key < first => {
                self.rest.insert(first);
                self.first = Some(key);
            }
            Some(_) => self.rest.insert(key),
        }
    }

    /// Removes a key. Returns whether it was in the set.
    pub fn remove(&mut self, key: Key) -> bool {
        if self.first == Some(key) {
            self.first = self.rest.pop_first(Key::end_of(super::super::time::UnixMs::MAX));
            return true;
        }
        self.rest.remove(key)
    }

    pub fn contains(&self, key: Key) -> bool {
        self.first == Some(key) || self.rest.contains(key)
    }

    /// The number of keys <= `key`.
    pub fn rank(&self, key: Key) -> usize {
        usize::from(self.first.is_some_and(|first| first <= key)) + self.rest.rank(key)
    }

    /// The smallest key above `key`.
    pub fn first_after(&self, key: Key) -> Option<Key> {
        self.first.filter(|first| *first > key).or_else(|| self.rest.first_after(key))
    }

    /// The keys above `key` in order, or all keys if it is `None`.
    pub fn iter_after(&self, key: Option<Key>) -> impl Iterator<Item = Key> + '_ {
        let first = self.first.filter(|first| key.is_none_or(|key| *first > key));
        first.into_iter().chain(self.rest.iter_after(key))
    }

    /// The keys behind the first one.
    #[cfg(test)]
    pub fn rest(&self) -> &OrderedKeys {
        &self.rest
    }

    /// [`OrderedKeys::overhead_bytes`]: the first key takes no bytes on the heap.
    pub fn overhead_bytes(&self) -> i64 {
        let first = if self.first.is_some() { KEY_BYTES } else { 0 };
        self.rest.overhead_bytes() - first as i64
    }
}

//! A sorted set of keys in which no single operation takes long: the data structure behind every order of the queue.
//!
//! It is a B+ tree of three fixed levels, as in a paged file: leaves of at most 128 keys, inner nodes of at most 256
//! leaves, and one root. Nothing larger than a leaf grows by doubling. The storage of a leaf grows in small steps and
//! shrinks as keys are removed, so a key of 16 bytes takes about 17. Keys that arrive in order fill their leaves: a
//! split at the end leaves the left leaf full, as InnoDB and SQLite do for sequential inserts. Nodes know how many keys
//! are below them, so a [`OrderedKeys::rank`] over millions of keys is a few hundred additions: a million messages
//! become ready in a microsecond, exactly in order. In a set that does not fit into a cache, keys that arrive at random
//! are inserted in batches of some dozens: see `tree`.
//!
//! A key is (time, sequence). The time is a due time, a deadline, an instant of death or the end of a TTL; in the index
//! of names it is a hash.

mod fetch;
mod key;
mod keys;
mod node;
#[cfg(test)]
mod tests;
mod tree;

pub use key::Key;
pub use keys::Keys;

use std::mem::size_of;

/// A sorted set of unique keys that is empty in most queues: [`Keys`], allocated with the first key. While it is empty
/// it takes one word. The operations are those of [`Keys`] and cost the same.
#[derive(Debug, Default)]
pub struct OrderedKeys(Option<Box<Keys>>);

impl OrderedKeys {
    /// The number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |keys| keys.len())
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a key, which must not be in the set.
    #[inline]
    pub fn insert(&mut self, key: Key) {
        self.0.get_or_insert_default().insert(key);
    }

    /// Removes a key. Returns whether it was in the set.
    #[inline]
    pub fn remove(&mut self, key: Key) -> bool {
        self.0.as_mut().is_some_and(|keys| keys.remove(key))
    }

    /// Removes `old` and adds `new`, which must not be in the set. Costs no more than a search if no key is between them.
    #[inline]
    pub fn replace(&mut self, old: Key, new: Key) {
        self.0.get_or_insert_default().replace(old, new);
    }

    /// The smallest key. O(1).
    #[inline]
    pub fn first(&self) -> Option<Key> {
        self.0.as_ref()?.first()
    }

    /// The largest key.
    pub fn last(&self) -> Option<Key> {
        self.0.as_ref()?.last()
    }

    /// Removes and returns the smallest key; `None` if the set is empty or its smallest key is above `limit`.
    #[inline]
    pub fn pop_first(&mut self, limit: Key) -> Option<Key> {
        self.0.as_mut()?.pop_first(limit)
    }

    /// Whether the key is in the set.
    pub fn contains(&self, key: Key) -> bool {
        self.0.as_ref().is_some_and(|keys| keys.contains(key))
    }

    /// The number of keys <= `key`.
    pub fn rank(&self, key: Key) -> usize {
        self.rank_up_to(key, usize::MAX)
    }

    /// The number of keys <= `key`, counted up to `limit`. O(log n + limit / leaf).
    pub fn rank_up_to(&self, key: Key, limit: usize) -> usize {
        self.0.as_ref().map_or(0, |keys| keys.rank_up_to(key, limit))
    }

    /// The smallest key above `key`; `None` if there is none.
    pub fn first_after(&self, key: Key) -> Option<Key> {
        self.0.as_ref()?.first_after(key)
    }

    /// The keys above `key` in order, or all keys if it is `None`.
    pub fn iter_after(&self, key: Option<Key>) -> impl Iterator<Item = Key> + '_ {
        self.0.iter().flat_map(move |keys| keys.iter_after(key))
    }

    /// The keys from the largest to the smallest.
    pub fn iter_backwards(&self) -> impl Iterator<Item = Key> + '_ {
        self.0.iter().flat_map(|keys| keys.iter_backwards())
    }

    /// Removes the keys for which `keep` returns `false`. O(n).
    pub fn retain(&mut self, keep: impl Fn(Key) -> bool) {
        if let Some(mut keys) = self.0.take() {
            keys.retain(keep);
            self.0 = (!keys.is_empty()).then_some(keys);
        }
    }

    /// A set of `keys`, which must be unique. O(n log n).
    pub fn from_unsorted(mut keys: Vec<Key>) -> OrderedKeys {
        keys.sort_unstable();
        OrderedKeys::from_sorted(&keys)
    }

    /// A set of `keys`, which must be sorted and unique. O(n). The leaves are nearly full.
    pub fn from_sorted(keys: &[Key]) -> OrderedKeys {
        OrderedKeys((!keys.is_empty()).then(|| Box::new(Keys::from_sorted(keys))))
    }

    /// The number of bytes on the heap. O(number of leaves).
    pub fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |keys| size_of::<Keys>() + keys.heap_bytes())
    }

    /// The number of allocations to free, an estimate. O(1).
    pub fn allocations(&self) -> usize {
        1 + self.0.as_ref().map_or(0, |keys| keys.allocations())
    }
}

//! A sorted set of keys in which no single operation takes long: the data structure behind every order of the queue.
//!
//! It is a B+ tree of three fixed levels, as in a paged file: leaves of at most 128 keys, inner nodes of at most 256
//! leaves, and one root. Nothing larger than a leaf grows by doubling. The storage of a leaf grows in small steps and
//! shrinks as keys are removed, so a key of 16 bytes takes about 17. Keys that arrive in order fill their leaves: a
//! split at the end leaves the left leaf full, as InnoDB and SQLite do for sequential inserts. Nodes know how many keys
//! are below them, so a [`Keys::rank`] over millions of keys is a few hundred additions: a million messages
//! become ready in a microsecond, exactly in order.
//!
//! Most keys are (time, sequence). The time is a due time, a deadline, an instant of death or the end of a TTL.

mod key;
mod keys;
mod node;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use key::word;
pub use key::{Key, Word};
pub use keys::Keys;

use super::id::Sequence;
use super::memory::{box_bytes, sum_spread};
use super::time::UnixMs;
use std::ops::Deref;

/// How many bytes each key of a large set takes, whatever the order in which they were added.
pub(crate) const KEY_BYTES: usize = 17;

/// A set of more keys than this is large: its nodes, and the room in its leaves, are next to nothing for each key.
const LARGE: usize = 1024;

/// The bytes of a collection of sets that hold `keys` keys altogether, given the number of sets and the
/// [`OrderedKeys::overhead_bytes`] of each.
pub(super) fn key_set_bytes(keys: usize, sets: usize, overhead: impl Fn(usize) -> i64) -> usize {
    let bytes = (keys * KEY_BYTES) as i64 + sum_spread(sets, overhead);
    usize::try_from(bytes).unwrap_or(0)
}

/// [`Keys`] that stay empty in most queues: they are allocated with the first key, and take one word until then.
#[derive(Debug)]
pub struct OrderedKeys<A = UnixMs, B = Sequence>(Option<Box<Keys<A, B>>>);

impl<A, B> Default for OrderedKeys<A, B> {
    fn default() -> Self {
        OrderedKeys(None)
    }
}

/// For reading.
impl<A: Word, B: Word> Deref for OrderedKeys<A, B> {
    type Target = Keys<A, B>;

    #[inline]
    fn deref(&self) -> &Keys<A, B> {
        self.0.as_deref().unwrap_or(Keys::NOTHING)
    }
}

/// Changes. Only those that add a key allocate.
impl<A: Word, B: Word> OrderedKeys<A, B> {
    /// [`Keys::insert`].
    #[inline]
    pub fn insert(&mut self, key: Key<A, B>) {
        self.0.get_or_insert_default().insert(key);
    }

    /// [`Keys::remove`].
    #[inline]
    pub fn remove(&mut self, key: Key<A, B>) -> bool {
        self.0.as_mut().is_some_and(|keys| keys.remove(key))
    }

    /// [`Keys::replace`].
    #[inline]
    pub fn replace(&mut self, old: Key<A, B>, new: Key<A, B>) {
        self.0.get_or_insert_default().replace(old, new);
    }

    /// [`Keys::pop_first`].
    #[inline]
    pub fn pop_first(&mut self, limit: Key<A, B>) -> Option<Key<A, B>> {
        self.0.as_mut()?.pop_first(limit)
    }

    /// [`Keys::retain`].
    pub fn retain(&mut self, keep: impl Fn(Key<A, B>) -> bool) {
        self.0.as_mut().into_iter().for_each(|keys| keys.retain(&keep));
        self.0.take_if(|keys| keys.is_empty());
    }

    /// A set of `keys`, which must be unique. O(n log n).
    pub fn from_unsorted(mut keys: Vec<Key<A, B>>) -> Self {
        keys.sort_unstable();
        Self::from_sorted(&keys)
    }

    /// [`Keys::from_sorted`].
    pub fn from_sorted(keys: &[Key<A, B>]) -> Self {
        OrderedKeys((!keys.is_empty()).then(|| Box::new(Keys::from_sorted(keys))))
    }

    /// The number of bytes on the heap. O(number of leaves).
    pub fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |keys| box_bytes::<Keys>() + keys.heap_bytes())
    }

    /// How many bytes more, or fewer, the set takes than [`KEY_BYTES`] for each key. As it is small for a set of any
    /// size, a few of many sets tell it for all of them. O(1).
    pub fn overhead_bytes(&self) -> i64 {
        if self.len() > LARGE {
            return 0;
        }
        self.heap_bytes() as i64 - (self.len() * KEY_BYTES) as i64
    }
}

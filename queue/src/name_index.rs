//! An index of names: which messages, done messages, groups or consumers of a queue have a name.
//!
//! It holds only the hashes of the names. A caller that looks for a name compares it with the names of the few
//! candidates that have its hash.

use super::id::{BatchId, ConsumerId, GroupId};
use super::sorted_set::{word, Key, OrderedKeys, Word};
use std::hash::Hasher;

/// SipHash of a name with a fixed key, since the cursor of a scan contains such hashes. Nobody can make it collide in
/// bulk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameHash(pub u64);

impl NameHash {
    pub fn from_name(name: &[u8]) -> NameHash {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(name);
        NameHash(hasher.finish())
    }

    /// The cursor of a scan of names: the first 63 bits, and a bit that makes it differ from 0. A scan returns names
    /// that have these bits in common together.
    pub fn cursor(self) -> u64 {
        self.0 >> 1 | 1 << 63
    }

    /// The last hash that has this cursor.
    pub fn last_of(cursor: u64) -> NameHash {
        NameHash(cursor << 1 | 1)
    }
}

word!(NameHash);
word!(GroupId);
word!(ConsumerId);
word!(BatchId);

/// What has a name, found by it. `T` is a sequence, or the number of a group or of a consumer.
#[derive(Debug)]
pub(super) struct NameIndex<T>(OrderedKeys<NameHash, T>);

impl<T> Default for NameIndex<T> {
    fn default() -> Self {
        NameIndex(OrderedKeys::default())
    }
}

impl<T: Word> NameIndex<T> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a name. O(log n).
    pub fn insert(&mut self, name: &[u8], of: T) {
        self.0.insert(Key::new(NameHash::from_name(name), of));
    }

    /// Removes a name. O(log n).
    pub fn remove(&mut self, name: &[u8], of: T) {
        self.0.remove(Key::new(NameHash::from_name(name), of));
    }

    /// Gives the name of `before` to `after`. O(log n).
    pub fn replace(&mut self, name: &[u8], before: T, after: T) {
        let hash = NameHash::from_name(name);
        self.0.replace(Key::new(hash, before), Key::new(hash, after));
    }

    /// Calls `look` for each entry with the hash of `name`, until it returns something, and returns that. `look` must
    /// return `None` for an entry with another name. O(log n).
    pub fn find<U>(&self, name: &[u8], look: impl FnMut(T) -> Option<U>) -> Option<U> {
        self.0.iter_of(NameHash::from_name(name)).map(Key::minor).find_map(look)
    }

    /// All entries, ordered by the hash of their names, starting after `hash`.
    pub fn iter_behind(&self, hash: Option<NameHash>) -> impl Iterator<Item = (NameHash, T)> + '_ {
        self.0.iter_after(hash.map(Key::last_of)).map(|key| (key.major(), key.minor()))
    }

    /// An index of these names. O(n log n).
    pub fn from_names<'a>(names: impl Iterator<Item = (&'a [u8], T)>) -> NameIndex<T> {
        NameIndex(OrderedKeys::from_unsorted(names.map(|(name, of)| Key::new(NameHash::from_name(name), of)).collect()))
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Sequence;

    fn found(index: &NameIndex<Sequence>, name: &[u8]) -> Vec<u64> {
        let mut all = Vec::new();
        assert!(index
            .find(name, |Sequence(sequence)| -> Option<()> {
                all.push(sequence);
                None
            })
            .is_none());
        all
    }

    #[test]
    fn a_name_is_found_until_it_is_removed() {
        let mut index = NameIndex::default();
        index.insert(b"a", Sequence(1));
        index.insert(b"b", Sequence(u64::MAX));
        assert_eq!((found(&index, b"a"), found(&index, b"b"), found(&index, b"c")), (vec![1], vec![u64::MAX], vec![]));
        index.replace(b"a", Sequence(1), Sequence(7));
        index.remove(b"b", Sequence(u64::MAX));
        assert_eq!((found(&index, b"a"), found(&index, b"b"), index.len()), (vec![7], vec![], 1));
    }

    #[test]
    fn names_of_one_hash_are_told_apart_by_the_caller() {
        let mut index = NameIndex::default();
        [3, 9, 4].into_iter().for_each(|sequence| index.insert(b"same", Sequence(sequence)));
        assert_eq!(found(&index, b"same"), [3, 4, 9]);
        assert_eq!(index.find(b"same", |of| (of == Sequence(4)).then_some(of)), Some(Sequence(4)));
    }

    #[test]
    fn names_are_passed_on_by_their_hash() {
        let names: [&[u8]; 3] = [b"one", b"two", b"three"];
        let index = NameIndex::from_names(names.into_iter().zip((1..).map(Sequence)));
        let all: Vec<_> = index.iter_behind(None).collect();
        assert!(all.is_sorted() && all.len() == 3);
        assert!(index.iter_behind(Some(all[0].0)).eq(all[1..].iter().copied()));
    }
}

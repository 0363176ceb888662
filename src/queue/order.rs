//! A sorted set of keys that never stalls: the one structure behind every order of the queue.
//!
//! A B+ tree of three fixed levels, as in a paged file: leaves of at most [`LEAF_MAX`] keys, inner nodes of at most
//! [`INNER_MAX`] leaves, one root. Nothing grows by doubling beyond a leaf; a leaf's storage grows in small steps
//! and shrinks as keys go, so a key costs about 17 of its 16 bytes. A run of keys that arrive in order fills its
//! leaves (a split at the end leaves the left one full, as InnoDB and SQLite do for sequential inserts). Nodes know
//! how many keys are below them, so a [`OrderedKeys::rank`] over millions of keys is a few hundred additions: this
//! is how a million messages become ready in a microsecond, exactly in order.
//!
//! A key is (time, sequence); the time is the due time, the deadline, the instant of death or the end of a TTL,
//! and in the index of names a hash.

// Every index below comes from a search in the very vector that it indexes, or is checked beside its use.
#![allow(clippy::indexing_slicing)]

use super::id::Sequence;
use super::time::UnixMs;
use std::collections::VecDeque;
use std::mem::size_of;

/// Keys in a full leaf: 2 KiB, a shift of half of which costs less than a cache miss.
const LEAF_MAX: usize = 128;
/// Leaves in a full inner node: with three levels, a root of 300 entries holds 5 million keys.
const INNER_MAX: usize = 256;
/// A leaf's storage grows by this many keys (256 bytes, the allocator's step at this size).
const LEAF_STEP: usize = 16;
/// A leaf smaller than this is merged with a neighbour, where both fit in [`MERGED_MAX`].
const LEAF_MIN: usize = LEAF_MAX / 4;
const MERGED_MAX: usize = LEAF_MAX * 3 / 4;

/// A time (or a hash) and a sequence, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    hash: u64,
    sequence: u64,
}

impl Key {
    /// Before every other.
    const LEAST: Key = Key { hash: 0, sequence: 0 };

    /// The key of `sequence` at `time`.
    #[inline]
    pub fn at(time: UnixMs, sequence: Sequence) -> Key {
        Key::hashed(time.as_ms(), sequence)
    }

    /// After every key of `time` and before any later one.
    #[inline]
    pub fn end_of(time: UnixMs) -> Key {
        Key::at(time, Sequence(u64::MAX))
    }

    /// The key of `sequence` under a hash.
    #[inline]
    pub fn hashed(hash: u64, sequence: Sequence) -> Key {
        Key { hash, sequence: sequence.0 }
    }

    /// The time of a key made by [`Key::at`].
    #[inline]
    pub fn time(self) -> UnixMs {
        UnixMs::new(self.hash())
    }

    /// The upper half.
    #[inline]
    pub fn hash(self) -> u64 {
        self.hash
    }

    /// The sequence.
    #[inline]
    pub fn sequence(self) -> Sequence {
        Sequence(self.sequence)
    }
}

/// The sorted set. Keys are unique; all operations but iteration cost O(log n).
#[derive(Debug, Default)]
pub struct OrderedKeys {
    len: usize,
    /// Made with the first key: most sets of most queues never have one, and cost two words.
    root: Option<Box<Root>>,
}

/// Most queues are small, and a small set is a single leaf without a tree above it.
#[derive(Debug)]
enum Root {
    Leaf(Leaf),
    Tree(Tree),
}

impl Default for Root {
    fn default() -> Self {
        Root::Leaf(Leaf::default())
    }
}

/// Sorted keys. A deque, because queues are emptied from the front.
#[derive(Debug, Default)]
struct Leaf(VecDeque<Key>);

/// The root: inner nodes with a lower bound for each.
#[derive(Debug, Default)]
struct Tree {
    /// `bounds[i]` <= every key of `inners[i]`, and > every key before them.
    bounds: Vec<Key>,
    inners: Vec<Inner>,
}

/// Leaves with a lower bound for each.
#[derive(Debug, Default)]
struct Inner {
    bounds: Vec<Key>,
    leaves: Vec<Leaf>,
    len: usize,
}

/// The child under which `key` belongs: the last whose bound is not above it, else the first.
#[inline]
fn child_of(bounds: &[Key], key: Key) -> usize {
    bounds.partition_point(|bound| *bound <= key).saturating_sub(1)
}

impl Leaf {
    /// How many keys are <= `key`.
    #[inline]
    fn rank(&self, key: Key) -> usize {
        // The ends first: queues work there.
        match self.0.back() {
            Some(last) if *last > key => self.0.partition_point(|held| *held <= key),
            _ => self.0.len(),
        }
    }

    fn insert(&mut self, key: Key) {
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(self.0.len().clamp(1, LEAF_STEP));
        }
        let at = self.rank(key);
        debug_assert!(at == 0 || self.0[at - 1] != key, "a key is inserted once");
        self.0.insert(at, key);
    }

    fn remove(&mut self, key: Key) -> bool {
        match self.0.binary_search(&key) {
            Ok(at) => {
                self.0.remove(at);
                self.trim();
                true
            }
            Err(_) => false,
        }
    }

    /// Gives storage back once a fifth of it is unused, and a few keys more.
    #[inline]
    fn trim(&mut self) {
        let used = self.0.len();
        if self.0.capacity() > used + used / 4 + LEAF_STEP {
            self.0.shrink_to(used + LEAF_STEP / 2);
        }
    }

    /// The upper part of a full leaf: half of it, or nothing where `key` goes to its end.
    fn split(&mut self, key: Key) -> Leaf {
        let at = if self.rank(key) == self.0.len() { self.0.len() } else { self.0.len() / 2 };
        let upper = self.0.split_off(at);
        self.0.shrink_to(self.0.len() + LEAF_STEP / 2);
        Leaf(upper)
    }
}

impl Inner {
    /// Inserts, and returns the upper part with its bound where the node was full.
    fn insert(&mut self, key: Key) -> Option<(Key, Inner)> {
        self.len += 1;
        let at = child_of(&self.bounds, key);
        let leaf = &mut self.leaves[at];
        if leaf.0.len() < LEAF_MAX {
            leaf.insert(key);
            return None;
        }
        let mut upper = leaf.split(key);
        let bound = upper.0.front().copied().unwrap_or(key);
        if key < bound { &mut *leaf } else { &mut upper }.insert(key);
        self.bounds.insert(at + 1, bound);
        self.leaves.insert(at + 1, upper);
        (self.leaves.len() > INNER_MAX).then(|| self.split(at + 1))
    }

    /// Splits in half, or before the last leaf where that was the one just added.
    fn split(&mut self, added: usize) -> (Key, Inner) {
        let at = if added + 1 == self.leaves.len() { added } else { self.leaves.len() / 2 };
        let bounds = self.bounds.split_off(at);
        let leaves = self.leaves.split_off(at);
        let len = leaves.iter().map(|leaf| leaf.0.len()).sum();
        self.len -= len;
        (bounds[0], Inner { bounds, leaves, len })
    }

    fn remove(&mut self, key: Key) -> bool {
        let at = child_of(&self.bounds, key);
        if !self.leaves[at].remove(key) {
            return false;
        }
        self.len -= 1;
        self.mend(at);
        true
    }

    /// Removes a leaf that has become empty, or merges it with the next when both are small.
    fn mend(&mut self, at: usize) {
        let len = self.leaves[at].0.len();
        if len == 0 {
            self.bounds.remove(at);
            self.leaves.remove(at);
        } else if len < LEAF_MIN && at + 1 < self.leaves.len() && len + self.leaves[at + 1].0.len() <= MERGED_MAX {
            self.bounds.remove(at + 1);
            let mut next = self.leaves.remove(at + 1);
            let leaf = &mut self.leaves[at].0;
            leaf.reserve_exact(next.0.len());
            leaf.append(&mut next.0);
        }
    }

    /// How many keys are <= `key`, counted no further than `limit`.
    fn rank(&self, key: Key, limit: usize) -> usize {
        let at = child_of(&self.bounds, key);
        let mut rank = 0;
        for leaf in &self.leaves[..at] {
            rank += leaf.0.len();
            if rank >= limit {
                return rank;
            }
        }
        rank + self.leaves.get(at).map_or(0, |leaf| leaf.rank(key))
    }
}

impl OrderedKeys {
    /// The number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a key that is not there yet.
    pub fn insert(&mut self, key: Key) {
        self.len += 1;
        let root = &mut **self.root.get_or_insert_default();
        let tree = match root {
            Root::Leaf(leaf) if leaf.0.len() < LEAF_MAX => return leaf.insert(key),
            Root::Leaf(leaf) => {
                let inner = Inner { bounds: vec![Key::LEAST], len: leaf.0.len(), leaves: vec![std::mem::take(leaf)] };
                *root = Root::Tree(Tree { bounds: vec![Key::LEAST], inners: vec![inner] });
                match root {
                    Root::Tree(tree) => tree,
                    Root::Leaf(_) => return,
                }
            }
            Root::Tree(tree) => tree,
        };
        let at = child_of(&tree.bounds, key);
        if let Some((bound, upper)) = tree.inners[at].insert(key) {
            tree.bounds.insert(at + 1, bound);
            tree.inners.insert(at + 1, upper);
        }
    }

    /// Removes a key and says whether it was there.
    pub fn remove(&mut self, key: Key) -> bool {
        let removed = match self.root.as_deref_mut() {
            None => false,
            Some(Root::Leaf(leaf)) => leaf.remove(key),
            Some(Root::Tree(tree)) => {
                let at = child_of(&tree.bounds, key);
                let removed = tree.inners[at].remove(key);
                self.mend(at);
                removed
            }
        };
        self.len -= usize::from(removed);
        removed
    }

    /// The smallest key.
    #[inline]
    pub fn first(&self) -> Option<Key> {
        match self.root.as_deref()? {
            Root::Leaf(leaf) => leaf.0.front().copied(),
            Root::Tree(tree) => tree.inners.first()?.leaves.first()?.0.front().copied(),
        }
    }

    /// Removes and returns the smallest key, unless it is above `limit`.
    pub fn pop_first(&mut self, limit: Key) -> Option<Key> {
        let leaf = match self.root.as_deref_mut()? {
            Root::Leaf(leaf) => leaf,
            Root::Tree(tree) => {
                let inner = tree.inners.first_mut()?;
                let leaf = inner.leaves.first_mut()?;
                let key = *leaf.0.front()?;
                if key > limit {
                    return None;
                }
                leaf.0.pop_front();
                inner.len -= 1;
                if leaf.0.len() < LEAF_MIN {
                    inner.mend(0);
                    self.mend(0);
                }
                self.len -= 1;
                return Some(key);
            }
        };
        let key = *leaf.0.front()?;
        if key > limit {
            return None;
        }
        leaf.0.pop_front();
        leaf.trim();
        self.len -= 1;
        Some(key)
    }

    /// How many keys are <= `key`.
    pub fn rank(&self, key: Key) -> usize {
        self.rank_up_to(key, usize::MAX)
    }

    /// How many keys are <= `key`, at most `limit`: O(log n + limit / leaf).
    pub fn rank_up_to(&self, key: Key, limit: usize) -> usize {
        let rank = match self.root.as_deref() {
            None => 0,
            Some(Root::Leaf(leaf)) => leaf.rank(key),
            Some(Root::Tree(tree)) => {
                let at = child_of(&tree.bounds, key);
                let mut rank = 0;
                for inner in &tree.inners[..at] {
                    if rank + inner.len >= limit {
                        return limit;
                    }
                    rank += inner.len;
                }
                rank + tree.inners.get(at).map_or(0, |inner| inner.rank(key, limit - rank))
            }
        };
        rank.min(limit)
    }

    /// The smallest key above `key`.
    pub fn first_after(&self, key: Key) -> Option<Key> {
        self.iter_after(Some(key)).next()
    }

    /// The keys above `key` in order; all of them where it is none.
    pub fn iter_after(&self, key: Option<Key>) -> impl Iterator<Item = Key> + '_ {
        let (first_inner, first_leaf, skip) = match (self.root.as_deref(), key) {
            (Some(Root::Leaf(leaf)), Some(key)) => (0, 0, leaf.rank(key)),
            (Some(Root::Tree(tree)), Some(key)) => {
                let inner = child_of(&tree.bounds, key);
                let leaf = child_of(&tree.inners[inner].bounds, key);
                (inner, leaf, tree.inners[inner].leaves[leaf].rank(key))
            }
            (None, _) | (_, None) => (0, 0, 0),
        };
        let (single, inners) = match self.root.as_deref() {
            None => (None, &[][..]),
            Some(Root::Leaf(leaf)) => (Some(leaf), &[][..]),
            Some(Root::Tree(tree)) => (None, &tree.inners[first_inner..]),
        };
        let leaves = inners
            .iter()
            .enumerate()
            .flat_map(move |(nth, inner)| &inner.leaves[if nth == 0 { first_leaf } else { 0 }..]);
        single
            .into_iter()
            .chain(leaves)
            .enumerate()
            .flat_map(move |(nth, leaf)| leaf.0.range(if nth == 0 { skip } else { 0 }..).copied())
    }

    /// The keys from the largest to the smallest.
    pub fn iter_backwards(&self) -> impl Iterator<Item = Key> + '_ {
        let (single, inners) = match self.root.as_deref() {
            None => (None, &[][..]),
            Some(Root::Leaf(leaf)) => (Some(leaf), &[][..]),
            Some(Root::Tree(tree)) => (None, &tree.inners[..]),
        };
        let leaves = inners.iter().rev().flat_map(|inner| inner.leaves.iter().rev());
        leaves.chain(single).flat_map(|leaf| leaf.0.iter().rev().copied())
    }

    /// A set of `keys`, which are sorted and unique: O(n), leaves nearly full.
    pub fn from_sorted(keys: &[Key]) -> OrderedKeys {
        debug_assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        // Room for a few more keys in each leaf, so that the next pushes do not split them all.
        let leaf_of = |keys: &[Key]| Leaf(VecDeque::from(keys.to_vec()));
        if keys.is_empty() {
            return OrderedKeys::default();
        }
        if keys.len() <= LEAF_MAX {
            return OrderedKeys { len: keys.len(), root: Some(Box::new(Root::Leaf(leaf_of(keys)))) };
        }
        let mut tree = Tree::default();
        for keys in keys.chunks((LEAF_MAX - LEAF_STEP) * (INNER_MAX - INNER_MAX / 8)) {
            let mut inner = Inner { len: keys.len(), ..Inner::default() };
            for keys in keys.chunks(LEAF_MAX - LEAF_STEP) {
                inner.bounds.push(keys[0]);
                inner.leaves.push(leaf_of(keys));
            }
            tree.bounds.push(keys[0]);
            tree.inners.push(inner);
        }
        OrderedKeys { len: keys.len(), root: Some(Box::new(Root::Tree(tree))) }
    }

    /// Bytes on the heap. O(number of leaves).
    pub fn heap_bytes(&self) -> usize {
        let leaf_bytes = |leaf: &Leaf| leaf.0.capacity() * size_of::<Key>();
        match self.root.as_deref() {
            None => 0,
            Some(Root::Leaf(leaf)) => size_of::<Root>() + leaf_bytes(leaf),
            Some(Root::Tree(tree)) => {
                let inner_bytes = |inner: &Inner| {
                    inner.bounds.capacity() * size_of::<Key>()
                        + inner.leaves.capacity() * size_of::<Leaf>()
                        + inner.leaves.iter().map(leaf_bytes).sum::<usize>()
                };
                size_of::<Root>()
                    + tree.bounds.capacity() * size_of::<Key>()
                    + tree.inners.capacity() * size_of::<Inner>()
                    + tree.inners.iter().map(inner_bytes).sum::<usize>()
            }
        }
    }

    /// Allocations to free. O(1), an estimate.
    pub fn allocations(&self) -> usize {
        1 + self.len / (LEAF_MAX / 2)
    }

    /// After a removal under inner node `at`: drops it when empty, and the whole tree when one leaf is left.
    fn mend(&mut self, at: usize) {
        let Some(root) = self.root.as_deref_mut() else { return };
        let Root::Tree(tree) = root else { return };
        if tree.inners[at].leaves.is_empty() {
            tree.bounds.remove(at);
            tree.inners.remove(at);
        }
        match tree.inners.as_mut_slice() {
            [] => *root = Root::default(),
            [inner] if inner.leaves.len() == 1 => {
                let leaf = inner.leaves.pop().unwrap_or_default();
                *root = Root::Leaf(leaf);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn key(time: u64, sequence: u64) -> Key {
        Key::at(UnixMs::new(time), Sequence(sequence))
    }

    fn assert_same(keys: &OrderedKeys, model: &BTreeSet<Key>, probe: Key) {
        assert_eq!(keys.len(), model.len());
        assert_eq!(keys.first(), model.first().copied());
        assert_eq!(keys.rank(probe), model.range(..=probe).count());
        assert_eq!(keys.rank_up_to(probe, 10), model.range(..=probe).count().min(10));
        assert!(keys.iter_after(Some(probe)).eq(model.iter().copied().filter(|held| *held > probe)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn it_is_a_sorted_set(
            steps in prop::collection::vec((0u8..10, 0u64..2_000), 1..if cfg!(miri) { 300 } else { 6_000 }),
            grow_first in any::<bool>(),
        ) {
            let mut keys = OrderedKeys::default();
            let mut model = BTreeSet::new();
            let middle = steps.len() / 2;
            for (nth, (what, time)) in steps.iter().copied().enumerate() {
                let growing = (nth < middle) == grow_first;
                match what {
                    0 => {
                        let limit = key(time, 0);
                        let expected = model.first().copied().filter(|first| *first <= limit);
                        prop_assert_eq!(keys.pop_first(limit), expected);
                        expected.map(|first| model.remove(&first));
                    }
                    what if (what < 8) == growing => {
                        let key = key(time, nth as u64);
                        keys.insert(key);
                        model.insert(key);
                    }
                    _ => {
                        let victim = model.range(key(time, 0)..).next().copied().unwrap_or(key(time, 0));
                        prop_assert_eq!(keys.remove(victim), model.remove(&victim));
                    }
                }
                if nth % 97 == 0 {
                    assert_same(&keys, &model, key(time, 0));
                }
            }
            assert_same(&keys, &model, key(1_000, 0));
            prop_assert!(keys.iter_after(None).eq(model.iter().copied()));
            prop_assert!(keys.iter_backwards().eq(model.iter().rev().copied()));
            let sorted: Vec<Key> = model.iter().copied().collect();
            assert_same(&OrderedKeys::from_sorted(&sorted), &model, key(1_000, 0));
        }
    }

    #[test]
    fn it_gives_its_memory_back() {
        let mut keys = OrderedKeys::default();
        let count = if cfg!(miri) { 2_000 } else { 100_000 };
        for nth in 0..count {
            keys.insert(key(nth * 7_919 % count, nth));
        }
        assert!(keys.heap_bytes() < 20 * count as usize, "{} bytes", keys.heap_bytes());
        for nth in 0..count {
            assert!(keys.remove(key(nth * 7_919 % count, nth)));
        }
        assert!(keys.is_empty() && keys.heap_bytes() <= 64 * size_of::<Key>());
        assert!(!keys.remove(key(0, 0)) && keys.pop_first(key(9, 9)).is_none());
    }
}

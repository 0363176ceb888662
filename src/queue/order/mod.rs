//! A sorted set of keys that never stalls: the one structure behind every order of the queue.
//!
//! A B+ tree of three fixed levels, as in a paged file: leaves of at most 128 keys, inner nodes of at most
//! 256 leaves, one root. Nothing grows by doubling beyond a leaf; a leaf's storage grows in small steps
//! and shrinks as keys go, so a key costs about 17 of its 16 bytes. A run of keys that arrive in order fills its
//! leaves (a split at the end leaves the left one full, as InnoDB and SQLite do for sequential inserts). Nodes know
//! how many keys are below them, so a [`OrderedKeys::rank`] over millions of keys is a few hundred additions: this
//! is how a million messages become ready in a microsecond, exactly in order.
//!
//! A key is (time, sequence); the time is the due time, the deadline, the instant of death or the end of a TTL,
//! and in the index of names a hash.

// Every index below comes from a search in the very vector that it indexes, or is checked beside its use.
#![allow(clippy::indexing_slicing)]

mod key;
mod node;
#[cfg(test)]
mod tests;

pub use key::Key;

use node::{child_of, Inner, Leaf, INNER_MAX, LEAF_MAX, LEAF_MIN, LEAF_STEP};
use std::collections::VecDeque;
use std::mem::size_of;

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

/// The root: inner nodes with a lower bound for each.
#[derive(Debug, Default)]
struct Tree {
    /// `bounds[i]` <= every key of `inners[i]`, and > every key before them.
    bounds: Vec<Key>,
    inners: Vec<Inner>,
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

    /// The largest key.
    pub fn last(&self) -> Option<Key> {
        self.iter_backwards().next()
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

    /// Removes the keys that are not to be kept: O(n).
    pub fn retain(&mut self, keep: impl Fn(Key) -> bool) {
        let kept: Vec<Key> = self.iter_after(None).filter(|key| keep(*key)).collect();
        *self = OrderedKeys::from_sorted(&kept);
    }

    /// A set of `keys`, which are unique: O(n log n).
    pub fn from_unsorted(mut keys: Vec<Key>) -> OrderedKeys {
        keys.sort_unstable();
        OrderedKeys::from_sorted(&keys)
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

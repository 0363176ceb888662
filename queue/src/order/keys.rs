//! A sorted set: a leaf, or a tree.

// Every index below comes from a search in the same vector, or is checked next to its use.
#![allow(clippy::indexing_slicing)]

use super::node::{Leaf, LEAF_MAX};
use super::tree::Tree;
use super::Key;

/// A sorted set of unique keys. All operations but iteration cost O(log n) unless stated otherwise.
///
/// For a set that is usually empty, [`OrderedKeys`](super::OrderedKeys) takes less memory.
#[derive(Debug, Default)]
pub struct Keys(Root);

/// Most queues are small, and a small set is a single leaf without a tree.
#[derive(Debug)]
enum Root {
    Leaf(Leaf),
    Tree(Box<Tree>),
}

impl Default for Root {
    fn default() -> Self {
        Root::Leaf(Leaf::default())
    }
}

impl Keys {
    /// The number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Root::Leaf(leaf) => leaf.0.len(),
            Root::Tree(tree) => tree.len,
        }
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a key, which must not be in the set.
    pub fn insert(&mut self, key: Key) {
        match &mut self.0 {
            Root::Leaf(leaf) if leaf.0.len() < LEAF_MAX => leaf.insert(key),
            Root::Leaf(leaf) => {
                let mut tree = Tree::above(std::mem::take(leaf));
                tree.insert(key);
                self.0 = Root::Tree(Box::new(tree));
            }
            Root::Tree(tree) => tree.insert(key),
        }
    }

    /// Removes a key. Returns whether it was in the set.
    pub fn remove(&mut self, key: Key) -> bool {
        match &mut self.0 {
            Root::Leaf(leaf) => leaf.remove(key),
            Root::Tree(tree) => {
                let removed = tree.remove(key);
                self.mend();
                removed
            }
        }
    }

    /// Removes `old` and adds `new`, which must not be in the set. Costs no more than a search if no key is between them.
    pub fn replace(&mut self, old: Key, new: Key) {
        let replaced = match &mut self.0 {
            Root::Leaf(leaf) => leaf.replace(leaf.rank(old), old, new, Key::GREATEST),
            Root::Tree(tree) => tree.replace(old, new),
        };
        if !replaced {
            self.remove(old);
            self.insert(new);
        }
    }

    /// The smallest key. O(1).
    #[inline]
    pub fn first(&self) -> Option<Key> {
        match &self.0 {
            Root::Leaf(leaf) => leaf.0.front().copied(),
            Root::Tree(tree) => tree.first(),
        }
    }

    /// The largest key.
    pub fn last(&self) -> Option<Key> {
        self.iter_backwards().next()
    }

    /// Removes and returns the smallest key; `None` if the set is empty or its smallest key is above `limit`.
    pub fn pop_first(&mut self, limit: Key) -> Option<Key> {
        let key = self.first().filter(|first| *first <= limit)?;
        match &mut self.0 {
            Root::Leaf(leaf) => {
                leaf.0.pop_front();
                leaf.trim();
            }
            Root::Tree(tree) => {
                tree.pop_first();
                self.mend();
            }
        }
        Some(key)
    }

    /// Whether the key is in the set.
    pub fn contains(&self, key: Key) -> bool {
        self.iter_after(key.just_before()).next() == Some(key)
    }

    /// The number of keys <= `key`.
    pub fn rank(&self, key: Key) -> usize {
        self.rank_up_to(key, usize::MAX)
    }

    /// The number of keys <= `key`, counted up to `limit`. O(log n + limit / leaf).
    pub fn rank_up_to(&self, key: Key, limit: usize) -> usize {
        let rank = match &self.0 {
            Root::Leaf(leaf) => leaf.rank(key),
            Root::Tree(tree) => tree.rank(key, limit),
        };
        rank.min(limit)
    }

    /// The smallest key above `key`; `None` if there is none.
    pub fn first_after(&self, key: Key) -> Option<Key> {
        self.iter_after(Some(key)).next()
    }

    /// The keys above `key` in order, or all keys if it is `None`.
    pub fn iter_after(&self, key: Option<Key>) -> impl Iterator<Item = Key> + '_ {
        let (leaf, tree) = self.parts();
        let leaf = leaf.map(|leaf| leaf.0.range(key.map_or(0, |key| leaf.rank(key))..).copied());
        leaf.into_iter().flatten().chain(tree.into_iter().flat_map(move |tree| tree.iter_after(key)))
    }

    /// The keys from the largest to the smallest.
    pub fn iter_backwards(&self) -> impl Iterator<Item = Key> + '_ {
        let (leaf, tree) = self.parts();
        let leaf = leaf.into_iter().flat_map(|leaf| leaf.0.iter().rev().copied());
        leaf.chain(tree.into_iter().flat_map(Tree::iter_backwards))
    }

    /// The leaf or the tree.
    fn parts(&self) -> (Option<&Leaf>, Option<&Tree>) {
        match &self.0 {
            Root::Leaf(leaf) => (Some(leaf), None),
            Root::Tree(tree) => (None, Some(tree)),
        }
    }

    /// Removes the keys for which `keep` returns `false`. O(n).
    pub fn retain(&mut self, keep: impl Fn(Key) -> bool) {
        let kept: Vec<Key> = self.iter_after(None).filter(|key| keep(*key)).collect();
        *self = Keys::from_sorted(&kept);
    }

    /// A set of `keys`, which must be sorted and unique. O(n). The leaves are nearly full.
    pub fn from_sorted(keys: &[Key]) -> Keys {
        debug_assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        Keys(if keys.len() <= LEAF_MAX {
            Root::Leaf(Leaf::from_sorted(keys))
        } else {
            Root::Tree(Box::new(Tree::from_sorted(keys)))
        })
    }

    /// The number of bytes on the heap. O(number of leaves).
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Root::Leaf(leaf) => leaf.heap_bytes(),
            Root::Tree(tree) => tree.heap_bytes(),
        }
    }

    /// The number of allocations to free, an estimate. O(1).
    pub fn allocations(&self) -> usize {
        1 + self.len() / (LEAF_MAX / 2)
    }

    /// Replaces the tree by a leaf after a removal if a leaf is enough.
    #[inline]
    fn mend(&mut self) {
        if let Root::Tree(tree) = &mut self.0 {
            if let Some(leaf) = tree.sole_leaf() {
                self.0 = Root::Leaf(leaf);
            }
        }
    }
}

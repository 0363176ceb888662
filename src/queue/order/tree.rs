//! The tree above the leaves.

// Every index below comes from a search in the very vector that it indexes, or is checked beside its use.
#![allow(clippy::indexing_slicing)]

use super::node::{child_of, Inner, Leaf, INNER_MAX, LEAF_MAX, LEAF_STEP};
use super::Key;
use std::mem::size_of;

/// The root: inner nodes with a lower bound for each.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) len: usize,
    /// `bounds[i]` <= every key of `inners[i]` (but those of the first), and > every key before them.
    bounds: Vec<Key>,
    inners: Vec<Inner>,
}

impl Tree {
    /// A tree of one leaf.
    pub(super) fn above(leaf: Leaf) -> Tree {
        let len = leaf.0.len();
        let inner = Inner { bounds: vec![Key::LEAST], leaves: vec![leaf], len };
        Tree { len, bounds: vec![Key::LEAST], inners: vec![inner] }
    }

    /// A tree of sorted keys, with room for a few more in each leaf, so that the next insertions do not split them all.
    pub(super) fn from_sorted(keys: &[Key]) -> Tree {
        let mut tree = Tree { len: keys.len(), ..Tree::default() };
        for keys in keys.chunks((LEAF_MAX - LEAF_STEP) * (INNER_MAX - INNER_MAX / 8)) {
            let mut inner = Inner { len: keys.len(), ..Inner::default() };
            for keys in keys.chunks(LEAF_MAX - LEAF_STEP) {
                inner.bounds.push(keys[0]);
                inner.leaves.push(Leaf::from_sorted(keys));
            }
            tree.bounds.push(keys[0]);
            tree.inners.push(inner);
        }
        tree
    }

    pub(super) fn insert(&mut self, key: Key) {
        self.len += 1;
        let at = child_of(&self.bounds, key);
        if let Some((bound, upper)) = self.inners[at].insert(key) {
            self.bounds.insert(at + 1, bound);
            self.inners.insert(at + 1, upper);
        }
    }

    pub(super) fn remove(&mut self, key: Key) -> bool {
        let at = child_of(&self.bounds, key);
        let removed = self.inners[at].remove(key);
        self.len -= usize::from(removed);
        self.mend(at);
        removed
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Key> {
        self.inners.first()?.leaves.first()?.0.front().copied()
    }

    /// Removes the first key.
    #[inline]
    pub(super) fn pop_first(&mut self) {
        if let Some(inner) = self.inners.first_mut() {
            self.len -= 1;
            if inner.pop_first() {
                self.mend(0);
            }
        }
    }

    /// After a removal under inner node `at`: drops it when empty.
    fn mend(&mut self, at: usize) {
        if self.inners[at].leaves.is_empty() {
            self.bounds.remove(at);
            self.inners.remove(at);
        }
    }

    /// What is left, where that is no more than a leaf: then there is no need for a tree.
    #[inline]
    pub(super) fn sole_leaf(&mut self) -> Option<Leaf> {
        match self.inners.as_mut_slice() {
            [] => Some(Leaf::default()),
            [inner] if inner.leaves.len() == 1 => inner.leaves.pop(),
            _ => None,
        }
    }

    /// How many keys are <= `key`, counted no further than `limit`.
    pub(super) fn rank(&self, key: Key, limit: usize) -> usize {
        let at = child_of(&self.bounds, key);
        let mut rank = 0;
        for inner in &self.inners[..at] {
            rank += inner.len;
            if rank >= limit {
                return rank;
            }
        }
        rank + self.inners.get(at).map_or(0, |inner| inner.rank(key, limit - rank))
    }

    /// The keys above `key` in order; all of them where it is none.
    pub(super) fn iter_after(&self, key: Option<Key>) -> impl Iterator<Item = Key> + '_ {
        let (first_inner, first_leaf, skip) = key.map_or((0, 0, 0), |key| {
            let inner = child_of(&self.bounds, key);
            let leaf = child_of(&self.inners[inner].bounds, key);
            (inner, leaf, self.inners[inner].leaves[leaf].rank(key))
        });
        let inners = self.inners[first_inner..].iter().enumerate();
        let leaves = inners.flat_map(move |(nth, inner)| &inner.leaves[if nth == 0 { first_leaf } else { 0 }..]);
        leaves.enumerate().flat_map(move |(nth, leaf)| leaf.0.range(if nth == 0 { skip } else { 0 }..).copied())
    }

    /// The keys from the largest to the smallest.
    pub(super) fn iter_backwards(&self) -> impl Iterator<Item = Key> + '_ {
        let leaves = self.inners.iter().rev().flat_map(|inner| inner.leaves.iter().rev());
        leaves.flat_map(|leaf| leaf.0.iter().rev().copied())
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Tree>()
            + self.bounds.capacity() * size_of::<Key>()
            + self.inners.capacity() * size_of::<Inner>()
            + self.inners.iter().map(Inner::heap_bytes).sum::<usize>()
    }
}

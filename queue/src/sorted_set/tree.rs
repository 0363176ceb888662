//! The tree above the leaves.

// Every index below comes from a search in the same vector, or is checked next to its use.
#![allow(clippy::indexing_slicing)]

use super::key::Words;
use super::node::{child_of, Inner, Leaf, INNER_MAX, LEAF_MAX, LEAF_STEP};
use crate::memory::{box_bytes, vec_bytes};

/// The root: inner nodes with a lower bound for each.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) len: usize,
    /// `bounds[i]` is <= every key of `inners[i]` (except for the first node) and > every key before them.
    bounds: Vec<Words>,
    inners: Vec<Inner>,
}

impl Tree {
    /// A tree with one leaf.
    pub(super) fn above(leaf: Leaf) -> Tree {
        let len = leaf.0.len();
        let inner = Inner { bounds: vec![Words::LEAST], leaves: vec![leaf], len };
        Tree { len, bounds: vec![Words::LEAST], inners: vec![inner] }
    }

    /// A tree of sorted keys. Each leaf has room for a few more, so that the next insertions do not split them all.
    pub(super) fn from_sorted(keys: &[Words]) -> Tree {
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

    pub(super) fn insert(&mut self, key: Words) {
        self.len += 1;
        // Keys that arrive in order go where the last one went, which is cached.
        if self.inners.last_mut().is_some_and(|inner| inner.push_last(key)) {
            return;
        }
        let at = child_of(&self.bounds, key);
        if let Some((bound, upper)) = self.inners[at].insert(key) {
            self.bounds.insert(at + 1, bound);
            self.inners.insert(at + 1, upper);
        }
    }

    /// Puts `new` in the place of `old` if it belongs there as well. Returns whether it did.
    pub(super) fn replace(&mut self, old: Words, new: Words) -> bool {
        let at = child_of(&self.bounds, old);
        let end = self.bounds.get(at + 1).copied().unwrap_or(Words::GREATEST);
        self.inners[at].replace(old, new, end)
    }

    pub(super) fn remove(&mut self, key: Words) -> bool {
        // The first key is usually the first to be removed.
        if self.first() == Some(key) {
            self.pop_first();
            return true;
        }
        let at = child_of(&self.bounds, key);
        let removed = self.inners[at].remove(key);
        self.mend(at);
        self.len -= usize::from(removed);
        removed
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Words> {
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

    /// Drops the inner node `at` if a removal left it empty.
    fn mend(&mut self, at: usize) {
        if self.inners[at].leaves.is_empty() {
            self.bounds.remove(at);
            self.inners.remove(at);
        }
        if self.inners.is_empty() {
            // There is always a leaf, even if it is empty, so that every key has a place.
            *self = Tree::above(Leaf::default());
        }
    }

    /// Takes out the only leaf that is left, if all keys fit into it: then no tree is needed.
    #[inline]
    pub(super) fn sole_leaf(&mut self) -> Option<Leaf> {
        if self.len > LEAF_MAX {
            return None;
        }
        match self.inners.as_mut_slice() {
            [inner] if inner.leaves.len() == 1 => inner.leaves.pop(),
            _ => None,
        }
    }

    /// The number of keys <= `key`. Counting stops once it reaches `limit`.
    pub(super) fn rank(&self, key: Words, limit: usize) -> usize {
        let at = child_of(&self.bounds, key);
        let mut rank = 0;
        for inner in &self.inners[..at] {
            rank += inner.len;
            if rank >= limit {
                return rank;
            }
        }
        rank + self.inners.get(at).map_or(0, |inner| inner.rank(key, limit.saturating_sub(rank)))
    }

    /// The keys above `key` in order, or all keys if it is `None`.
    pub(super) fn iter_after(&self, key: Option<Words>) -> impl Iterator<Item = Words> + '_ {
        let (first_inner, first_leaf, skip) = key.map_or((0, 0, 0), |key| {
            let inner = child_of(&self.bounds, key);
            let (leaf, rank) = self.inners[inner].find(key);
            (inner, leaf, rank)
        });
        let inners = self.inners[first_inner..].iter().enumerate();
        let leaves = inners.flat_map(move |(nth, inner)| &inner.leaves[if nth == 0 { first_leaf } else { 0 }..]);
        leaves.enumerate().flat_map(move |(nth, leaf)| leaf.0.range(if nth == 0 { skip } else { 0 }..)).copied()
    }

    /// The keys from the largest to the smallest.
    pub(super) fn iter_backwards(&self) -> impl Iterator<Item = Words> + '_ {
        let leaves = self.inners.iter().rev().flat_map(|inner| inner.leaves.iter().rev());
        leaves.flat_map(|leaf| leaf.0.iter().rev()).copied()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        box_bytes::<Tree>()
            + vec_bytes::<Words>(self.bounds.capacity())
            + vec_bytes::<Inner>(self.inners.capacity())
            + self.inners.iter().map(Inner::heap_bytes).sum::<usize>()
    }
}

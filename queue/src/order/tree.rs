//! The tree above the leaves, and the buffer of new keys in front of it.
//!
//! In a tree that does not fit into a cache, an insertion at a random place waits for memory a few times, one after
//! another, and these waits are nearly all of its cost. New keys are therefore gathered in a leaf of their own, which
//! is always cached. Once there are [`NEWCOMERS_MAX`] of them, their places in the tree are looked up together, so that
//! the waits of all keys overlap (see [`super::fetch`]); only then are they inserted, one by one, into cached nodes.
//! (This is the buffer of Arge's "The buffer tree", 1995, at the root alone, with main memory in place of the disk.) A
//! key is either in the buffer or in the tree, and a search for the first key, a rank or the next key consults both.

// Every index below comes from a search in the same vector, or is checked next to its use.
#![allow(clippy::indexing_slicing)]

use super::fetch::{fetch, Whereabouts, FETCH_MAX};
use super::key::Words;
use super::node::{child_of, Inner, Leaf, INNER_MAX, LEAF_MAX, LEAF_STEP};
use crate::memory::{of_box, of_vec};

/// The number of buffered keys that are inserted at once.
const NEWCOMERS_MAX: usize = FETCH_MAX;
/// A tree of fewer keys fits into some cache, so it gains nothing from a buffer, or from [`fetch`]. The limit is
/// low in debug builds, since the sets of tests are small.
const FAR: usize = if cfg!(debug_assertions) { 200 } else { 128 * 1024 };

/// The root: inner nodes with a lower bound for each, and the buffered keys.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) len: usize,
    newcomers: Leaf,
    /// `bounds[i]` is <= every key of `inners[i]` (except for the first node) and > every key before them.
    bounds: Vec<Words>,
    inners: Vec<Inner>,
}

impl Tree {
    /// A tree with one leaf.
    pub(super) fn above(leaf: Leaf) -> Tree {
        let len = leaf.0.len();
        let inner = Inner { bounds: vec![Words::LEAST], leaves: vec![leaf], len };
        Tree { len, bounds: vec![Words::LEAST], inners: vec![inner], ..Tree::default() }
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

    /// The index of the inner node under which `key` belongs, and the first key of the next one.
    #[inline]
    fn descend(&self, key: Words) -> (usize, Words) {
        let at = child_of(&self.bounds, key);
        (at, self.bounds.get(at + 1).copied().unwrap_or(Words::GREATEST))
    }

    pub(super) fn insert(&mut self, key: Words) {
        self.len += 1;
        // Keys that arrive in order go where the last one went, which is cached.
        if self.inners.last_mut().is_some_and(|inner| inner.push_last(key)) {
            return;
        }
        let last = self.inners.last().and_then(|inner| inner.bounds.last());
        if self.len < FAR || last.is_some_and(|last| *last <= key) {
            return self.take_in(key);
        }
        if self.newcomers.0.len() == NEWCOMERS_MAX {
            self.take_in_newcomers();
        }
        self.newcomers.insert(key);
    }

    fn take_in(&mut self, key: Words) {
        let (at, end) = self.descend(key);
        if let Some((bound, upper)) = self.inners[at].insert(key, end) {
            self.bounds.insert(at + 1, bound);
            self.inners.insert(at + 1, upper);
        }
    }

    fn take_in_newcomers(&mut self) {
        let mut newcomers = std::mem::take(&mut self.newcomers);
        fetch(newcomers.0.iter().map(|key| self.whereabouts(*key)));
        newcomers.0.iter().for_each(|key| self.take_in(*key));
        newcomers.0.clear();
        self.newcomers = newcomers;
    }

    /// About where `key` is in the tree.
    #[inline]
    pub(super) fn whereabouts(&self, key: Words) -> Whereabouts<'_> {
        let (inner, end) = self.descend(key);
        let inner = &self.inners[inner];
        let (leaf, share) = inner.descend(key, end);
        Whereabouts { leaf: &inner.leaves[leaf], share }
    }

    /// Puts `new` in the place of `old` if it belongs there as well. Returns whether it did.
    pub(super) fn replace(&mut self, old: Words, new: Words) -> bool {
        let (at, end) = self.descend(old);
        self.inners[at].replace(old, new, end)
    }

    pub(super) fn remove(&mut self, key: Words) -> bool {
        // The first key is usually the first to be removed.
        if self.first_below() == Some(key) {
            self.pop_first_below();
            return true;
        }
        let removed = (!self.newcomers.0.is_empty() && self.newcomers.remove(key)) || {
            let (at, end) = self.descend(key);
            let removed = self.inners[at].remove(key, end);
            self.mend(at);
            removed
        };
        self.len -= usize::from(removed);
        removed
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Words> {
        let below = self.first_below();
        match self.newcomers.0.front() {
            None => below,
            Some(newcomer) => Some(below.map_or(*newcomer, |below| below.min(*newcomer))),
        }
    }

    #[inline]
    fn first_below(&self) -> Option<Words> {
        self.inners.first()?.leaves.first()?.0.front().copied()
    }

    /// Removes the first key.
    #[inline]
    pub(super) fn pop_first(&mut self) {
        let newcomer = self.newcomers.0.front();
        if newcomer.is_some_and(|newcomer| self.first_below().is_none_or(|below| *newcomer < below)) {
            self.newcomers.0.pop_front();
            self.len -= 1;
        } else {
            self.pop_first_below();
        }
    }

    #[inline]
    fn pop_first_below(&mut self) {
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
            *self = Tree::above(std::mem::take(&mut self.newcomers));
        }
    }

    /// Takes out the only leaf that is left, if all keys fit into it: then no tree is needed.
    #[inline]
    pub(super) fn sole_leaf(&mut self) -> Option<Leaf> {
        if self.len > LEAF_MAX {
            return None;
        }
        match self.inners.as_mut_slice() {
            [inner] if inner.leaves.len() == 1 => {
                let mut leaf = inner.leaves.pop()?;
                self.newcomers.0.iter().for_each(|key| leaf.insert(*key));
                Some(leaf)
            }
            _ => None,
        }
    }

    /// The number of keys <= `key`. Counting stops once it reaches `limit`.
    pub(super) fn rank(&self, key: Words, limit: usize) -> usize {
        let (at, end) = self.descend(key);
        let mut rank = self.newcomers.rank(key);
        for inner in &self.inners[..at] {
            rank += inner.len;
            if rank >= limit {
                return rank;
            }
        }
        rank + self.inners.get(at).map_or(0, |inner| inner.rank(key, end, limit.saturating_sub(rank)))
    }

    /// The keys above `key` in order, or all keys if it is `None`.
    pub(super) fn iter_after(&self, key: Option<Words>) -> impl Iterator<Item = Words> + '_ {
        let (first_inner, first_leaf, skip) = key.map_or((0, 0, 0), |key| {
            let (inner, end) = self.descend(key);
            let (leaf, rank) = self.inners[inner].find(key, end);
            (inner, leaf, rank)
        });
        let inners = self.inners[first_inner..].iter().enumerate();
        let leaves = inners.flat_map(move |(nth, inner)| &inner.leaves[if nth == 0 { first_leaf } else { 0 }..]);
        let keys = leaves.enumerate().flat_map(move |(nth, leaf)| leaf.0.range(if nth == 0 { skip } else { 0 }..));
        let newcomers = self.newcomers.0.range(key.map_or(0, |key| self.newcomers.rank(key))..);
        merged(keys.copied(), newcomers.copied(), Words::lt)
    }

    /// The keys from the largest to the smallest.
    pub(super) fn iter_backwards(&self) -> impl Iterator<Item = Words> + '_ {
        let leaves = self.inners.iter().rev().flat_map(|inner| inner.leaves.iter().rev());
        let keys = leaves.flat_map(|leaf| leaf.0.iter().rev());
        merged(keys.copied(), self.newcomers.0.iter().rev().copied(), Words::gt)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        of_box::<Tree>()
            + self.newcomers.heap_bytes()
            + of_vec::<Words>(self.bounds.capacity())
            + of_vec::<Inner>(self.inners.capacity())
            + self.inners.iter().map(Inner::heap_bytes).sum::<usize>()
    }
}

/// Merges two sorted iterators; `is_before` tells which of two keys comes first.
fn merged(
    left: impl Iterator<Item = Words>,
    right: impl Iterator<Item = Words>,
    is_before: impl Fn(&Words, &Words) -> bool,
) -> impl Iterator<Item = Words> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some(next), Some(other)) if is_before(other, next) => right.next(),
        (None, _) => right.next(),
        _ => left.next(),
    })
}

//! The nodes of the tree: leaves of keys, and inner nodes of leaves.

// Every index below comes from a search in the same vector, or is checked next to its use.
#![allow(clippy::indexing_slicing)]

use super::key::Words;
use crate::memory::vec_bytes;
use std::collections::VecDeque;

/// The number of keys in a full leaf, 2 KiB. To shift half of it costs less than a cache miss.
pub(super) const LEAF_MAX: usize = 128;
/// The number of leaves in a full inner node. With three levels, a root of 300 entries holds 5 million keys.
pub(super) const INNER_MAX: usize = 256;
/// The storage of a leaf grows by this many keys (256 bytes, the allocator's step at this size).
pub(super) const LEAF_STEP: usize = 16;
/// A leaf with fewer keys than this is merged with a neighbour if both fit in [`MERGED_MAX`].
pub(super) const LEAF_MIN: usize = LEAF_MAX / 4;
pub(super) const MERGED_MAX: usize = LEAF_MAX * 3 / 4;

/// A search compares every `STRIDE`-th key first, and then the keys between two of these.
const STRIDE: usize = 8;

/// Sorted keys, in a deque because queues are emptied from the front.
#[derive(Debug, Default)]
pub(super) struct Leaf(pub(super) VecDeque<Words>);

/// Leaves, with a lower bound for each.
#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) bounds: Vec<Words>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) len: usize,
}

/// The index of the child under which `key` belongs: the last child whose bound is not above `key`, or else the first.
/// The bound of the first child is not checked, since keys below it may have been added.
#[inline]
pub(super) fn child_of(bounds: &[Words], key: Words) -> usize {
    match bounds {
        // The ends are checked first, since queues add and remove there most often.
        [] | [_] => 0,
        [.., last] if *last <= key => bounds.len() - 1,
        [_, second, ..] if *second > key => 0,
        [_, bounds @ ..] => rank_in(bounds, key),
    }
}

/// The number of the sorted `keys` that are <= `key`. If the keys are not cached, each step of a binary search waits
/// for memory before it knows the next address. Here the processor can fetch all samples at once, and then all keys
/// between two of them.
#[inline]
fn rank_in(keys: &[Words], key: Words) -> usize {
    let chunks = keys.chunks_exact(STRIDE);
    let below = STRIDE * chunks.map(|chunk| usize::from(chunk[STRIDE - 1] <= key)).sum::<usize>();
    below + keys[below..].iter().take(STRIDE).map(|held| usize::from(*held <= key)).sum::<usize>()
}

impl Leaf {
    pub(super) fn from_sorted(keys: &[Words]) -> Leaf {
        Leaf(VecDeque::from(keys.to_vec()))
    }

    /// The number of keys <= `key`.
    #[inline]
    pub(super) fn rank(&self, key: Words) -> usize {
        match self.0.back() {
            Some(last) if *last > key => {
                let (head, tail) = self.0.as_slices();
                match tail.first() {
                    Some(first) if *first <= key => head.len() + rank_in(tail, key),
                    _ => rank_in(head, key),
                }
            }
            _ => self.0.len(),
        }
    }

    pub(super) fn insert(&mut self, key: Words) {
        self.insert_at(self.rank(key), key);
    }

    #[inline]
    pub(super) fn insert_at(&mut self, at: usize, key: Words) {
        debug_assert!(at == 0 || self.0[at - 1] != key, "a key is inserted twice");
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(self.0.len().clamp(1, LEAF_STEP));
        }
        if at == self.0.len() {
            self.0.push_back(key);
        } else {
            self.0.insert(at, key);
        }
    }

    pub(super) fn remove(&mut self, key: Words) -> bool {
        self.remove_before(self.rank(key), key)
    }

    /// Puts `new` in the place of `old` if that is the key before index `after`, and `new` belongs there as well. `end`
    /// is above all keys that this leaf may have. Returns whether it did.
    pub(super) fn replace(&mut self, after: usize, old: Words, new: Words, end: Words) -> bool {
        let next = self.0.get(after).copied().unwrap_or(end);
        match after.checked_sub(1).and_then(|at| self.0.get_mut(at)) {
            Some(held) if *held == old && old < new && new < next => {
                *held = new;
                true
            }
            _ => false,
        }
    }

    /// Removes `key` if it is the one before index `end`. Returns whether it was.
    #[inline]
    fn remove_before(&mut self, end: usize, key: Words) -> bool {
        match end.checked_sub(1) {
            Some(at) if self.0[at] == key => {
                if at == 0 {
                    self.0.pop_front();
                } else {
                    self.0.remove(at);
                }
                self.trim();
                true
            }
            _ => false,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        vec_bytes::<Words>(self.0.capacity())
    }

    /// Gives storage back once more than a fifth of it, plus a few keys, is unused.
    #[inline]
    pub(super) fn trim(&mut self) {
        let used = self.0.len();
        if self.0.capacity() > used + used / 4 + LEAF_STEP {
            self.0.shrink_to(used + LEAF_STEP / 2);
        }
    }

    /// Splits a full leaf and returns its upper part. That is half of its keys, or none if `key` goes to its end. If
    /// this is also the last leaf of its node, the new one gets room for the keys that will follow.
    pub(super) fn split(&mut self, key: Words, is_last: bool) -> Leaf {
        let at = if self.rank(key) == self.0.len() { self.0.len() } else { self.0.len() / 2 };
        if at == self.0.len() {
            return Leaf(VecDeque::with_capacity(if is_last { LEAF_MAX } else { LEAF_STEP }));
        }
        let upper = self.0.split_off(at);
        self.0.shrink_to(self.0.len() + LEAF_STEP / 2);
        Leaf(upper)
    }
}

impl Inner {
    /// The index of the leaf under which `key` belongs, and how many of the keys of that leaf are <= `key`.
    #[inline]
    pub(super) fn find(&self, key: Words) -> (usize, usize) {
        let at = child_of(&self.bounds, key);
        (at, self.leaves[at].rank(key))
    }

    /// Adds a key behind all others if it belongs there and the last leaf has room. Returns whether it did.
    #[inline]
    pub(super) fn push_last(&mut self, key: Words) -> bool {
        let Some(leaf) = self.leaves.last_mut() else { return false };
        let is_last = leaf.0.len() < LEAF_MAX && leaf.0.back().is_some_and(|last| *last < key);
        if is_last {
            leaf.insert_at(leaf.0.len(), key);
            self.len += 1;
        }
        is_last
    }

    /// Inserts a key. If the node is full, splits it and returns the upper part with its bound.
    pub(super) fn insert(&mut self, key: Words) -> Option<(Words, Inner)> {
        self.len += 1;
        let (at, rank) = self.find(key);
        let is_last = at + 1 == self.leaves.len();
        let leaf = &mut self.leaves[at];
        if leaf.0.len() < LEAF_MAX {
            leaf.insert_at(rank, key);
            return None;
        }
        let mut upper = leaf.split(key, is_last);
        let bound = upper.0.front().copied().unwrap_or(key);
        if key < bound { &mut *leaf } else { &mut upper }.insert(key);
        self.bounds.insert(at + 1, bound);
        self.leaves.insert(at + 1, upper);
        (self.leaves.len() >= INNER_MAX).then(|| self.split(at + 1))
    }

    /// Splits the node in half, or before the last leaf if that is the one just added.
    pub(super) fn split(&mut self, added: usize) -> (Words, Inner) {
        let at = if added + 1 == self.leaves.len() { added } else { self.leaves.len() / 2 };
        let bounds = self.bounds.split_off(at);
        let leaves = self.leaves.split_off(at);
        let len = leaves.iter().map(|leaf| leaf.0.len()).sum();
        self.len -= len;
        (bounds[0], Inner { bounds, leaves, len })
    }

    /// Removes the first key. Returns whether its leaf became small.
    #[inline]
    pub(super) fn pop_first(&mut self) -> bool {
        let Some(leaf) = self.leaves.first_mut() else { return true };
        self.len -= usize::from(leaf.0.pop_front().is_some());
        let small = leaf.0.len() < LEAF_MIN;
        if small {
            self.mend(0);
        }
        small
    }

    pub(super) fn remove(&mut self, key: Words) -> bool {
        let (at, rank) = self.find(key);
        let removed = self.leaves[at].remove_before(rank, key);
        if removed {
            self.len -= 1;
            self.mend(at);
        }
        removed
    }

    /// Puts `new` in the place of `old`. Returns whether `old` was here and `new` belongs there as well.
    pub(super) fn replace(&mut self, old: Words, new: Words, end: Words) -> bool {
        let (at, rank) = self.find(old);
        let end = self.bounds.get(at + 1).copied().unwrap_or(end);
        self.leaves[at].replace(rank, old, new, end)
    }

    /// Removes a leaf that has become empty, or merges it with the next one if both are small.
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

    /// The number of keys <= `key`. Counting stops once it reaches `limit`.
    pub(super) fn rank(&self, key: Words, limit: usize) -> usize {
        let (at, rank_below) = self.find(key);
        let mut rank = 0;
        for leaf in &self.leaves[..at] {
            rank += leaf.0.len();
            if rank >= limit {
                return rank;
            }
        }
        rank + rank_below
    }

    pub(super) fn heap_bytes(&self) -> usize {
        vec_bytes::<Words>(self.bounds.capacity())
            + vec_bytes::<Leaf>(self.leaves.capacity())
            + self.leaves.iter().map(Leaf::heap_bytes).sum::<usize>()
    }
}

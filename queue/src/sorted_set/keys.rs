//! A sorted set: a leaf, or a tree.

use super::key::{Key, Word, Words};
use super::node::{Leaf, LEAF_MAX};
use super::tree::Tree;
use crate::id::Sequence;
use crate::time::UnixMs;
use std::collections::VecDeque;
use std::marker::PhantomData;

/// A sorted set of unique keys. All operations but iteration cost O(log n) unless stated otherwise.
#[derive(Debug)]
pub struct Keys<A = UnixMs, B = Sequence> {
    root: Root,
    of: PhantomData<(A, B)>,
}

/// Most queues are small, and a small set is a single leaf without a tree.
#[derive(Debug)]
enum Root {
    Leaf(Leaf),
    Tree(Box<Tree>),
}

impl<A, B> Default for Keys<A, B> {
    fn default() -> Self {
        Keys { root: Root::Leaf(Leaf::default()), of: PhantomData }
    }
}

impl<A: Word, B: Word> Keys<A, B> {
    /// The empty set.
    pub(super) const NOTHING: &'static Keys<A, B> = &Keys { root: Root::Leaf(Leaf(VecDeque::new())), of: PhantomData };

    /// The number of keys.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.root {
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
    pub fn insert(&mut self, key: Key<A, B>) {
        match &mut self.root {
            Root::Leaf(leaf) if leaf.0.len() < LEAF_MAX => leaf.insert(key.words),
            Root::Leaf(leaf) => {
                let mut tree = Tree::above(std::mem::take(leaf));
                tree.insert(key.words);
                self.root = Root::Tree(Box::new(tree));
            }
            Root::Tree(tree) => tree.insert(key.words),
        }
    }

    /// Removes a key. Returns whether it was in the set.
    pub fn remove(&mut self, key: Key<A, B>) -> bool {
        match &mut self.root {
            Root::Leaf(leaf) => leaf.remove(key.words),
            Root::Tree(tree) => {
                let removed = tree.remove(key.words);
                self.mend();
                removed
            }
        }
    }

    /// Removes `old` and adds `new`, which must not be in the set. Costs no more than a search if no key is between
    /// them.
    pub fn replace(&mut self, old: Key<A, B>, new: Key<A, B>) {
        let replaced = match &mut self.root {
            Root::Leaf(leaf) => leaf.replace(leaf.rank(old.words), old.words, new.words, Words::GREATEST),
            Root::Tree(tree) => tree.replace(old.words, new.words),
        };
        if !replaced {
            self.remove(old);
            self.insert(new);
        }
    }

    /// The smallest key. O(1).
    #[inline]
    pub fn first(&self) -> Option<Key<A, B>> {
        let first = match &self.root {
            Root::Leaf(leaf) => leaf.0.front().copied(),
            Root::Tree(tree) => tree.first(),
        };
        first.map(Key::from_words)
    }

    /// The largest key.
    pub fn last(&self) -> Option<Key<A, B>> {
        self.iter_backwards().next()
    }

    /// Removes and returns the smallest key; `None` if the set is empty or its smallest key is above `limit`.
    pub fn pop_first(&mut self, limit: Key<A, B>) -> Option<Key<A, B>> {
        let key = self.first().filter(|first| first.words <= limit.words)?;
        match &mut self.root {
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
    pub fn contains(&self, key: Key<A, B>) -> bool {
        self.iter_above(key.words.just_before()).next().is_some_and(|held| held.words == key.words)
    }

    /// The number of keys <= `key`.
    pub fn rank(&self, key: Key<A, B>) -> usize {
        self.rank_up_to(key, usize::MAX)
    }

    /// The number of keys <= `key`, counted up to `limit`. O(log n + limit / keys per leaf).
    pub fn rank_up_to(&self, key: Key<A, B>, limit: usize) -> usize {
        let rank = match &self.root {
            Root::Leaf(leaf) => leaf.rank(key.words),
            Root::Tree(tree) => tree.rank(key.words, limit),
        };
        rank.min(limit)
    }

    /// The smallest key above `key`; `None` if there is none.
    pub fn first_after(&self, key: Key<A, B>) -> Option<Key<A, B>> {
        self.iter_after(Some(key)).next()
    }

    /// The keys above `key` in order, or all keys if it is `None`.
    pub fn iter_after(&self, key: Option<Key<A, B>>) -> impl Iterator<Item = Key<A, B>> + '_ {
        self.iter_above(key.map(|key| key.words))
    }

    /// The keys that begin with `major`, in order.
    pub fn iter_of(&self, major: A) -> impl Iterator<Item = Key<A, B>> + '_ {
        let end = Key::<A, B>::last_of(major).words;
        let before = Words::first_of(end).just_before();
        self.iter_above(before).take_while(move |key| key.words <= end)
    }

    fn iter_above(&self, key: Option<Words>) -> impl Iterator<Item = Key<A, B>> + '_ {
        let (leaf, tree) = self.parts();
        let leaf = leaf.map(|leaf| leaf.0.range(key.map_or(0, |key| leaf.rank(key))..).copied());
        let keys = leaf.into_iter().flatten().chain(tree.into_iter().flat_map(move |tree| tree.iter_after(key)));
        keys.map(Key::from_words)
    }

    /// The keys from the largest to the smallest.
    pub fn iter_backwards(&self) -> impl Iterator<Item = Key<A, B>> + '_ {
        let (leaf, tree) = self.parts();
        let leaf = leaf.into_iter().flat_map(|leaf| leaf.0.iter().rev().copied());
        leaf.chain(tree.into_iter().flat_map(Tree::iter_backwards)).map(Key::from_words)
    }

    /// The leaf or the tree.
    fn parts(&self) -> (Option<&Leaf>, Option<&Tree>) {
        match &self.root {
            Root::Leaf(leaf) => (Some(leaf), None),
            Root::Tree(tree) => (None, Some(tree)),
        }
    }

    /// Removes the keys for which `keep` returns `false`. O(n).
    pub fn retain(&mut self, keep: impl Fn(Key<A, B>) -> bool) {
        let kept: Vec<Key<A, B>> = self.iter_after(None).filter(|key| keep(Key::from_words(key.words))).collect();
        *self = Self::from_sorted(&kept);
    }

    /// A set of `keys`, which must be sorted and unique. O(n). The leaves are nearly full.
    pub fn from_sorted(keys: &[Key<A, B>]) -> Self {
        debug_assert!(keys.is_sorted_by(|a, b| a.words < b.words));
        let words: Vec<Words> = keys.iter().map(|key| key.words).collect();
        let root = if words.len() <= LEAF_MAX {
            Root::Leaf(Leaf::from_sorted(&words))
        } else {
            Root::Tree(Box::new(Tree::from_sorted(&words)))
        };
        Keys { root, of: PhantomData }
    }

    /// The number of bytes on the heap. O(number of leaves).
    pub fn heap_bytes(&self) -> usize {
        match &self.root {
            Root::Leaf(leaf) => leaf.heap_bytes(),
            Root::Tree(tree) => tree.heap_bytes(),
        }
    }

    /// Replaces the tree by a leaf after a removal if a leaf is enough.
    #[inline]
    fn mend(&mut self) {
        if let Root::Tree(tree) = &mut self.root {
            if let Some(leaf) = tree.sole_leaf() {
                self.root = Root::Leaf(leaf);
            }
        }
    }
}

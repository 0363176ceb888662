//! Loads what searches are about to touch into the cache, for many keys at once.
//!
//! In sets that do not fit into a cache, a search waits for memory a few times, one after another, and these waits are
//! nearly all of its cost. The steps of one search depend on each other, but those of different keys do not. So all
//! keys take one step before any takes the next, with as few instructions between two of them as possible: then their
//! waits overlap. Nothing depends on the outcome; only the searches that follow are faster.

use super::node::{Leaf, GUESS_WIDTH};
use smallvec::SmallVec;
use std::hint::black_box;

/// The most keys that are worth loading at once: enough for their waits to overlap, and few enough that what was loaded
/// is still cached when it is used.
pub(super) const FETCH_MAX: usize = 64;

/// The number of keys in a cache line of 64 bytes.
const KEYS_A_LINE: usize = 4;

/// About where a key is in a set: its leaf, and the position in that leaf, from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whereabouts<'a> {
    pub leaf: &'a Leaf,
    pub share: f64,
}

/// Loads the keys around these places, at most [`FETCH_MAX`] of them.
pub(super) fn fetch<'a>(places: impl Iterator<Item = Whereabouts<'a>>) {
    let places: SmallVec<[Whereabouts<'_>; FETCH_MAX]> = places.collect();
    black_box(places.iter().map(|place| place.leaf.0.len()).sum::<usize>());
    for nth in (0..GUESS_WIDTH).step_by(KEYS_A_LINE).chain([GUESS_WIDTH - 1]) {
        let held = places.iter().map(|place| place.leaf.0.get(place.leaf.near(place.share).start + nth));
        black_box(held.fold(0, |all, key| all ^ key.map_or(0, |key| key.major())));
    }
}

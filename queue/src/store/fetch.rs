//! Loads what searches for many messages touch into the cache, so that their waits for memory overlap.

// The segment of a place comes from a search in the same call.
#![allow(clippy::indexing_slicing)]

use super::super::id::Sequence;
use super::super::order::FETCH_MAX;
use super::{At, Store};
use smallvec::SmallVec;
use std::hint::black_box;

impl Store {
    /// Loads what searches for these messages look at into the cache, and then their first bytes. Returns the places of
    /// those that are here. See [`fetch`](super::super::order::fetch).
    pub fn fetch(&self, sequences: &[Sequence]) -> SmallVec<[At; FETCH_MAX]> {
        let touched = sequences.iter().filter_map(|sequence| {
            let (segment, first, last) = self.segments.search(*sequence)?;
            Some(self.segments[segment].touch_header(*sequence, first, last))
        });
        black_box(touched.fold(0, |all, low| all ^ low));
        let places: SmallVec<_> = sequences.iter().filter_map(|sequence| self.locate(*sequence)).collect();
        let bytes = places.iter().map(|at: &At| self.segments[at.segment()].touch_bytes(at.index()));
        black_box(bytes.fold(0, |all, byte| all ^ byte));
        places
    }
}

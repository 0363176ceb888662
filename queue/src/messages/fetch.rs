//! Loads what searches for many names touch into the cache, so that their waits for memory overlap.

use super::super::id::Sequence;
use super::super::order::{fetch, Key, FAR, FETCH_MAX};
use super::super::store::At;
use super::{hash_of, Messages};
use smallvec::SmallVec;

impl Messages {
    /// Loads what searches for these names are going to touch into the cache, for [`FETCH_MAX`] names at most. Returns
    /// the places of the messages that have them. See [`fetch`].
    pub fn fetch_named<'a>(&self, names: impl Iterator<Item = &'a [u8]>) -> SmallVec<[At; FETCH_MAX]> {
        if self.names.len() < FAR {
            return SmallVec::new();
        }
        let keys: SmallVec<[Key; FETCH_MAX]> = names.map(|name| Key::hashed(hash_of(name), Sequence::ZERO)).collect();
        fetch(keys.iter().filter_map(|key| self.names.whereabouts(*key)));
        let named = keys.iter().filter_map(|key| self.names.first_after(*key).filter(|next| next.hash() == key.hash()));
        let sequences: SmallVec<[Sequence; FETCH_MAX]> = named.map(Key::sequence).collect();
        self.store.fetch(&sequences)
    }
}

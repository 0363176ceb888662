//! Ids that stay known after their message is gone: the memory of the deduplication window.
//!
//! An id is known from the end of its message until `DEDUPE` has passed since it was accepted. That end follows from
//! the time alone, so nothing is written when it comes: a look-up compares the times. What is saved and digested must
//! not depend on the moment at which a server frees memory, however, so an id is forgotten for good by the first effect
//! that is decided after its end, on every server by the same one. [`Known::forget_up_to`] marks that moment, and costs
//! nothing; [`Known::sweep`] frees the memory later, in bounded steps.
//!
//! An id takes its own bytes and seven more in a leaf, and a key of 16 bytes in the order of acceptance. The leaves
//! hold the ids by the hash of their names, about fifty in each, and are searched from front to back: a pointer for
//! each id would take more than the search costs.

use super::memory::{sum_sampled, tree_bytes, vec_bytes};
use super::name_index::NameHash;
use super::sorted_set::{Key, OrderedKeys};
use super::time::UnixMs;
use std::collections::BTreeMap;

/// A leaf is divided when it is larger than this.
const LEAF_BYTES: usize = 2 * 1024;
/// A leaf that shrinks below this is merged with the one before it, if there is room.
const SPARSE_BYTES: usize = LEAF_BYTES / 4;
/// A leaf grows by this much: the distance between the sizes that the server's allocator offers.
const STEP_BYTES: usize = LEAF_BYTES / 8;
/// The bytes of an instant: it has 44 bits.
const TIME_BYTES: usize = 6;

/// The known ids of a queue.
///
/// A queue usually has one list of them. It needs another one if an id is added that was accepted before the instant up
/// to which the list is forgotten, while memory of the list is still to be freed. This happens after `DEDUPE` was
/// raised or a clock was set back. Each list has its own instant up to which its ids are forgotten.
#[derive(Debug, Default)]
pub(super) struct Known(Vec<Ids>);

/// Ids with the instants at which they were accepted.
#[derive(Debug, Default)]
struct Ids {
    /// The ids, in leaves by the least hash that a name in the leaf may have.
    leaves: BTreeMap<NameHash, Vec<u8>>,
    /// The same ids as (accepted, hash of the name).
    times: OrderedKeys<UnixMs, NameHash>,
    /// The ids that were accepted up to this instant are forgotten: they only wait to be freed.
    forgotten: Option<UnixMs>,
}

/// A known id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownId<'a> {
    /// The name that the producer chose.
    pub name: &'a [u8],
    /// When it was accepted.
    pub accepted: UnixMs,
}

impl Known {
    /// When the id was accepted; `None` if it was forgotten or never known. O(log n).
    pub fn accepted(&self, name: &[u8]) -> Option<UnixMs> {
        let hash = NameHash::from_name(name);
        self.0.iter().find_map(|ids| ids.accepted(name, hash).filter(|accepted| ids.remember(*accepted)))
    }

    /// Adds an id that is not known. O(log n).
    pub fn insert(&mut self, id: KnownId<'_>) {
        self.remove(id.name);
        let fitting = self.0.iter().position(|ids| ids.remember(id.accepted));
        let place = fitting.unwrap_or(self.0.len());
        if fitting.is_none() {
            self.0.push(Ids::default());
        }
        if let Some(ids) = self.0.get_mut(place) {
            ids.insert(id);
        }
    }

    /// Removes an id, and returns whether it was known. O(log n).
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let hash = NameHash::from_name(name);
        let mut known = false;
        for ids in &mut self.0 {
            if let Some(accepted) = ids.accepted(name, hash) {
                known |= ids.remember(accepted);
                ids.remove(accepted, hash, Some(name));
            }
        }
        known
    }

    /// Forgets the ids that were accepted by `instant`. O(1).
    pub fn forget_up_to(&mut self, instant: UnixMs) {
        for ids in &mut self.0 {
            if ids.times.first().is_some_and(|first| first.major() <= instant) {
                ids.forgotten = ids.forgotten.max(Some(instant));
            }
        }
    }

    /// Whether the memory of all forgotten ids was freed. O(1).
    pub fn is_swept(&self) -> bool {
        self.0.iter().all(|ids| ids.forgotten.is_none())
    }

    /// Frees the memory of at most `budget` forgotten ids. O(budget × log n).
    pub fn sweep(&mut self, mut budget: usize) {
        for ids in &mut self.0 {
            while let Some(forgotten) = ids.forgotten {
                match ids.times.first().filter(|first| first.major() <= forgotten) {
                    None => ids.forgotten = None,
                    Some(_) if budget == 0 => return,
                    Some(first) => {
                        budget -= 1;
                        ids.remove(first.major(), first.minor(), None);
                    }
                }
            }
        }
        self.0.retain(|ids| !ids.times.is_empty());
    }

    /// Whether no id is remembered, and none is to be freed.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|ids| ids.times.is_empty())
    }

    /// The number of ids in memory. O(1).
    pub fn len(&self) -> usize {
        self.0.iter().map(|ids| ids.times.len()).sum()
    }

    /// The number of ids that were accepted after `instant` and not forgotten. O(log n).
    pub fn count_after(&self, instant: Option<UnixMs>) -> usize {
        let after = |ids: &Ids| {
            let gone = instant.max(ids.forgotten).map_or(0, |instant| ids.times.rank(Key::last_of(instant)));
            ids.times.len() - gone
        };
        self.0.iter().map(after).sum()
    }

    /// The ids that are not forgotten, by the hash of their name: the same order on every server. O(n log n).
    pub fn iter(&self) -> impl Iterator<Item = KnownId<'_>> + '_ {
        // A single list is read leaf by leaf. Several lists are rare and short-lived, so they are collected and sorted.
        let (one, several) = match &self.0[..] {
            [ids] => (Some(ids.iter()), Vec::new()),
            lists => (None, sorted(lists.iter().flat_map(Ids::iter).collect())),
        };
        one.into_iter().flatten().chain(several)
    }

    /// The number of bytes on the heap. O(n / 50).
    pub fn heap_bytes(&self) -> usize {
        vec_bytes::<Ids>(self.0.capacity()) + self.0.iter().map(Ids::heap_bytes).sum::<usize>()
    }

    /// Checks that every id is where its hash says, once, and in the order of acceptance. O(n log n), for tests.
    pub fn check(&self) -> Result<(), &'static str> {
        let mut seen = Vec::new();
        for ids in &self.0 {
            let mut count = 0;
            let mut above = ids.leaves.keys().skip(1).copied();
            for (least, leaf) in &ids.leaves {
                let above = above.next();
                for id in entries(leaf) {
                    let hash = NameHash::from_name(id.name);
                    if hash < *least || above.is_some_and(|above| hash >= above) {
                        return Err("a known id is in the wrong leaf");
                    }
                    if !ids.times.contains(Key::new(id.accepted, hash)) {
                        return Err("a known id is not in the order of acceptance");
                    }
                    count += 1;
                    seen.push(id.name);
                }
                if leaf.is_empty() {
                    return Err("a leaf of known ids is empty");
                }
            }
            if count != ids.times.len() {
                return Err("the known ids are miscounted");
            }
        }
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() < all {
            return Err("an id is known twice");
        }
        Ok(())
    }
}

impl Ids {
    /// Whether an id that was accepted then is not forgotten.
    fn remember(&self, accepted: UnixMs) -> bool {
        self.forgotten.is_none_or(|forgotten| forgotten < accepted)
    }

    /// The leaf in which a name with this hash stands.
    fn leaf(&self, hash: NameHash) -> Option<&Vec<u8>> {
        self.leaves.range(..=hash).next_back().map(|(_, leaf)| leaf)
    }

    fn accepted(&self, name: &[u8], hash: NameHash) -> Option<UnixMs> {
        entries(self.leaf(hash)?).find(|id| id.name == name).map(|id| id.accepted)
    }

    fn iter<'a>(&'a self) -> impl Iterator<Item = KnownId<'a>> + 'a {
        let of_leaf = |leaf: &'a Vec<u8>| sorted(entries(leaf).filter(|id| self.remember(id.accepted)).collect());
        self.leaves.values().flat_map(of_leaf)
    }

    fn insert(&mut self, id: KnownId<'_>) {
        let hash = NameHash::from_name(id.name);
        self.times.insert(Key::new(id.accepted, hash));
        if self.leaves.is_empty() {
            self.leaves.insert(NameHash(0), Vec::new());
        }
        let Some((least, leaf)) = self.leaves.range_mut(..=hash).next_back() else { return };
        let size = TIME_BYTES + 1 + id.name.len();
        if leaf.capacity() - leaf.len() < size {
            // A first id takes what it needs: most queues know few.
            let room =
                if leaf.is_empty() { size } else { (leaf.len() + size).next_multiple_of(STEP_BYTES) - leaf.len() };
            leaf.reserve_exact(room);
        }
        leaf.extend(id.accepted.as_ms().to_le_bytes().into_iter().take(TIME_BYTES));
        leaf.push(id.name.len() as u8);
        leaf.extend_from_slice(id.name);
        if leaf.len() > LEAF_BYTES {
            let least = *least;
            self.divide(least);
        }
    }

    /// Moves the upper half of a leaf to one of its own.
    fn divide(&mut self, least: NameHash) {
        let Some(leaf) = self.leaves.get_mut(&least) else { return };
        let mut hashes: Vec<NameHash> = entries(leaf).map(|id| NameHash::from_name(id.name)).collect();
        hashes.sort_unstable();
        let middle = hashes.get(hashes.len() / 2).copied().unwrap_or_default();
        let [mut lower, mut upper] = [Vec::with_capacity(LEAF_BYTES), Vec::with_capacity(LEAF_BYTES)];
        let mut rest = &leaf[..];
        while let Some((id, entry, behind)) = first_entry(rest) {
            let half = if NameHash::from_name(id.name) < middle { &mut lower } else { &mut upper };
            half.extend_from_slice(entry);
            rest = behind;
        }
        // Ids with the same hash stay together.
        if lower.is_empty() || upper.is_empty() {
            return;
        }
        for half in [&mut lower, &mut upper] {
            half.shrink_to(half.len().next_multiple_of(STEP_BYTES));
        }
        *leaf = lower;
        self.leaves.insert(middle, upper);
    }

    /// Removes the id with this name, or, without a name, any id with this hash that was accepted at `accepted`.
    fn remove(&mut self, accepted: UnixMs, hash: NameHash, name: Option<&[u8]>) {
        self.times.remove(Key::new(accepted, hash));
        let Some((least, leaf)) = self.leaves.range_mut(..=hash).next_back() else { return };
        let is_meant = |id: &KnownId<'_>| match name {
            Some(name) => id.name == name,
            None => id.accepted == accepted && NameHash::from_name(id.name) == hash,
        };
        let mut at = 0;
        let found = entries(leaf).find(|id| {
            let meant = is_meant(id);
            at += if meant { 0 } else { TIME_BYTES + 1 + id.name.len() };
            meant
        });
        let Some(size) = found.map(|id| TIME_BYTES + 1 + id.name.len()) else { return };
        leaf.drain(at..at + size);
        if leaf.capacity() - leaf.len() > 2 * STEP_BYTES {
            leaf.shrink_to(leaf.len() + STEP_BYTES);
        }
        if leaf.len() < SPARSE_BYTES {
            let least = *least;
            self.merge(least);
        }
    }

    /// Merges a sparse leaf with the one before it, if both fit in one with room to grow.
    fn merge(&mut self, least: NameHash) {
        let Some(leaf) = self.leaves.get(&least) else { return };
        let size = leaf.len();
        let before = self.leaves.range(..least).next_back().map(|(first, before)| (*first, before.len()));
        match before {
            Some((first, held)) if held + size <= LEAF_BYTES - SPARSE_BYTES => {
                let Some(moved) = self.leaves.remove(&least) else { return };
                if let Some(before) = self.leaves.get_mut(&first) {
                    before.reserve_exact((held + size).next_multiple_of(STEP_BYTES) - held);
                    before.extend_from_slice(&moved);
                }
            }
            // The first leaf is the only one that may be empty and has none before it.
            None if size == 0 => {
                self.leaves.remove(&least);
                // The next leaf becomes the first, for all smaller hashes too.
                if let Some((_, next)) = self.leaves.pop_first() {
                    self.leaves.insert(NameHash(0), next);
                }
            }
            _ => {}
        }
    }

    fn heap_bytes(&self) -> usize {
        let leaves = sum_sampled(self.leaves.values(), |leaf| vec_bytes::<u8>(leaf.capacity()));
        self.times.heap_bytes() + leaves + tree_bytes::<NameHash, Vec<u8>>(self.leaves.len())
    }
}

/// The first entry of a leaf: the id, all bytes of the entry, and the bytes after it.
fn first_entry(leaf: &[u8]) -> Option<(KnownId<'_>, &[u8], &[u8])> {
    let (time, rest) = leaf.split_first_chunk::<TIME_BYTES>()?;
    let (length, rest) = rest.split_first()?;
    let (name, behind) = rest.split_at_checked(usize::from(*length))?;
    let mut ms = [0; size_of::<u64>()];
    ms.iter_mut().zip(time).for_each(|(to, from)| *to = *from);
    let entry = leaf.get(..leaf.len() - behind.len())?;
    Some((KnownId { name, accepted: UnixMs::new(u64::from_le_bytes(ms)) }, entry, behind))
}

/// The ids in a leaf.
fn entries(leaf: &[u8]) -> impl Iterator<Item = KnownId<'_>> {
    let mut rest = leaf;
    std::iter::from_fn(move || {
        let (id, _, behind) = first_entry(rest)?;
        rest = behind;
        Some(id)
    })
}

/// The ids by the hash of their names.
fn sorted(mut ids: Vec<KnownId<'_>>) -> Vec<KnownId<'_>> {
    ids.sort_by_cached_key(|id| (NameHash::from_name(id.name), id.name));
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(1_760_000_000_000 + ms)
    }

    fn name(nth: u64) -> Vec<u8> {
        let mut name = format!("{nth}-").into_bytes();
        name.resize(name.len().max((nth * 37 % 256) as usize), b'x');
        name
    }

    fn all(known: &Known) -> BTreeMap<Vec<u8>, UnixMs> {
        known.check().unwrap();
        known.iter().map(|id| (id.name.to_vec(), id.accepted)).collect()
    }

    #[test]
    fn ids_come_and_go_in_any_order() {
        let (mut known, mut model) = (Known::default(), BTreeMap::new());
        let mut random = 1u64;
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let name = name(random >> 40 & 0xfff);
            if random >> 60 < if step < 10_000 { 10 } else { 5 } {
                known.insert(KnownId { name: &name, accepted: at(random >> 50) });
                model.insert(name, at(random >> 50));
            } else {
                assert_eq!(known.remove(&name), model.remove(&name).is_some());
            }
            if step % 1_000 == 0 {
                assert_eq!(all(&known), model);
            }
        }
        for (name, accepted) in &model {
            assert_eq!(known.accepted(name), Some(*accepted));
        }
        let half = at(1 << 13);
        assert_eq!(known.count_after(Some(half)), model.values().filter(|accepted| **accepted > half).count());
        for name in model.keys() {
            assert!(known.remove(name));
        }
        assert!(known.is_empty());
        known.check().unwrap();
    }

    #[test]
    fn what_is_forgotten_stays_so_while_it_is_freed_step_by_step() {
        let mut known = Known::default();
        let insert = |known: &mut Known, nth: u64, ms| known.insert(KnownId { name: &name(nth), accepted: at(ms) });
        (0..1_000).for_each(|nth| insert(&mut known, nth, nth));
        known.forget_up_to(at(499));
        assert!(!known.is_swept());
        assert_eq!((known.accepted(&name(499)), known.accepted(&name(500))), (None, Some(at(500))));
        assert_eq!((known.count_after(None), known.iter().count()), (500, 500));
        // A message that was held for long ends, and its id was accepted before what is forgotten.
        insert(&mut known, 3, 3);
        insert(&mut known, 5_000, 4);
        assert_eq!((known.accepted(&name(3)), known.accepted(&name(4))), (Some(at(3)), None));
        assert_eq!(all(&known).len(), 502);
        let mut steps = 0;
        while !known.is_swept() {
            known.sweep(7);
            steps += 1;
        }
        assert_eq!(steps, 499usize.div_ceil(7));
        assert_eq!((all(&known).len(), known.count_after(None), known.count_after(Some(at(600)))), (502, 502, 399));
        known.forget_up_to(UnixMs::MAX);
        assert_eq!(all(&known).len(), 0);
        known.sweep(usize::MAX);
        assert!(known.is_empty() && known.heap_bytes() < 200, "{}", known.heap_bytes());
    }

    #[test]
    fn an_id_of_twenty_bytes_takes_about_fifty() {
        let mut known = Known::default();
        let count = if cfg!(miri) { 2_000 } else { 200_000 };
        for nth in 0..count {
            known.insert(KnownId { name: format!("order-{nth:014}").as_bytes(), accepted: at(nth / 100) });
        }
        let each = known.heap_bytes() / count as usize;
        assert!(each <= 52, "{each} bytes");
    }
}

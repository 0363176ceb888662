//! Batches that have lost their last member and were not closed, and how long they are remembered.
//!
//! That a batch is no longer remembered follows from the time alone, so a look-up compares the times. What is saved and
//! digested must not depend on the moment at which a server frees memory, however, so a batch is forgotten for good by
//! the first effect that is decided after its time, on every server by the same one. [`Idle::forget_up_to`] marks that
//! moment and costs nothing; [`Idle::pop_forgotten`] frees the memory later.

use super::BatchId;
use crate::memory::{tree_bytes, vec_bytes};
use crate::time::UnixMs;
use std::collections::BTreeSet;

/// The idle batches of a queue.
///
/// There is usually one list of them. Another one is needed for a batch that loses its last member before the instant
/// up to which a list is forgotten: the clock was set back, or is that of another server.
#[derive(Debug, Default)]
pub(super) struct Idle(Vec<List>);

#[derive(Debug, Default)]
struct List {
    /// The batches, each with the instant at which it lost its last member.
    batches: BTreeSet<(UnixMs, BatchId)>,
    /// The batches of this list that lost their last member up to this instant are forgotten: they only wait to be
    /// freed.
    forgotten: Option<UnixMs>,
}

impl List {
    /// Whether a batch of this list that lost its last member then is not forgotten.
    fn remembers(&self, ended: UnixMs) -> bool {
        self.forgotten.is_none_or(|forgotten| forgotten < ended)
    }
}

impl Idle {
    /// Adds a batch that lost its last member at `ended`. O(log n).
    pub fn insert(&mut self, ended: UnixMs, id: BatchId) {
        match self.0.iter_mut().find(|list| list.remembers(ended)) {
            Some(list) => {
                list.batches.insert((ended, id));
            }
            None => self.0.push(List { batches: BTreeSet::from([(ended, id)]), forgotten: None }),
        }
    }

    /// Removes a batch if it is one of them. O(log n).
    pub fn remove(&mut self, ended: UnixMs, id: BatchId) {
        for list in &mut self.0 {
            list.batches.remove(&(ended, id));
        }
    }

    /// Whether a batch is one of them. O(log n).
    pub fn contains(&self, ended: UnixMs, id: BatchId) -> bool {
        self.0.iter().any(|list| list.batches.contains(&(ended, id)))
    }

    /// Whether a batch is forgotten for good. O(log n).
    pub fn has_forgotten(&self, ended: UnixMs, id: BatchId) -> bool {
        self.0.iter().any(|list| !list.remembers(ended) && list.batches.contains(&(ended, id)))
    }

    /// How many batches are forgotten for good, or lost their last member up to `instant`. O(number of these).
    pub fn count_up_to(&self, instant: UnixMs) -> usize {
        let up_to = |last: UnixMs| (last, BatchId(u32::MAX));
        let count =
            |list: &List| list.batches.range(..=up_to(list.forgotten.map_or(instant, |end| end.max(instant)))).count();
        self.0.iter().map(count).sum()
    }

    /// Forgets the batches that have lost their last member up to `instant`. O(1).
    pub fn forget_up_to(&mut self, instant: UnixMs) {
        for list in &mut self.0 {
            if list.batches.first().is_some_and(|(first, _)| *first <= instant) {
                list.forgotten = list.forgotten.max(Some(instant));
            }
        }
    }

    /// Removes a batch that is forgotten, if there is one. O(log n).
    pub fn pop_forgotten(&mut self) -> Option<BatchId> {
        for list in &mut self.0 {
            let Some(forgotten) = list.forgotten else { continue };
            match list.batches.first() {
                Some((ended, _)) if *ended <= forgotten => return list.batches.pop_first().map(|(_, id)| id),
                Some(_) | None => list.forgotten = None,
            }
        }
        self.0.retain(|list| !list.batches.is_empty());
        None
    }

    /// The number of batches.
    pub fn len(&self) -> usize {
        self.0.iter().map(|list| list.batches.len()).sum()
    }

    /// The number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let lists = self.0.iter().map(|list| tree_bytes::<(UnixMs, BatchId), ()>(list.batches.len())).sum::<usize>();
        vec_bytes::<List>(self.0.capacity()) + lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(1_760_000_000_000 + ms)
    }

    #[test]
    fn what_is_forgotten_stays_so_and_what_comes_later_does_not() {
        let mut idle = Idle::default();
        (0..40).for_each(|nth| idle.insert(at(u64::from(nth)), BatchId(nth)));
        idle.forget_up_to(at(29));
        assert_eq!((idle.count_up_to(at(0)), idle.count_up_to(at(34))), (30, 35));
        // The clock goes back: these two lose their last members before the instant that is forgotten.
        idle.insert(at(3), BatchId(50));
        idle.insert(at(5), BatchId(51));
        assert!(idle.has_forgotten(at(3), BatchId(3)) && !idle.has_forgotten(at(3), BatchId(50)));
        assert_eq!((idle.count_up_to(at(0)), idle.len()), (30, 42));
        idle.remove(at(5), BatchId(51));
        assert!(!idle.contains(at(5), BatchId(51)));
        let freed: Vec<u32> = std::iter::from_fn(|| idle.pop_forgotten().map(|BatchId(nth)| nth)).collect();
        assert_eq!(freed, (0..30).collect::<Vec<u32>>());
        assert_eq!((idle.count_up_to(at(3)), idle.len()), (1, 11));
        idle.forget_up_to(at(1_000));
        while idle.pop_forgotten().is_some() {}
        assert_eq!((idle.len(), idle.0.len()), (0, 0));
    }
}

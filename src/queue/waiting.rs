//! The waiting messages, delayed and ready together, in delivery order.
//!
//! Delivery order is (priority, due, sequence), so each priority in use has one sorted set of (due, sequence), called a
//! band. The ready messages of a band are the part of its set up to now: a message becomes ready when the boundary
//! moves past it, without being moved itself. The order is therefore exact at every instant, a pop never waits for the
//! timer, and a million messages that become due together cost the timer as much as one.
//!
//! Each band keeps the number of its messages up to the boundary and the next due time beyond it, so an operation on
//! one message searches only the set of its own priority, and reads one number of each of the others.

use super::id::Sequence;
use super::order::{Key, OrderedKeys, Whereabouts};
use super::time::UnixMs;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The waiting messages of one priority.
#[derive(Debug)]
struct Band {
    priority: i8,
    keys: OrderedKeys,
    /// The number of them that are due by the boundary.
    ready: usize,
    /// The earliest due time beyond the boundary.
    next_due: Option<UnixMs>,
}

impl Band {
    fn new(priority: i8, keys: OrderedKeys) -> Band {
        Band { priority, keys, ready: 0, next_due: None }
    }

    /// Recomputes what the band keeps about `boundary`. O(log n).
    fn recount(&mut self, boundary: UnixMs) {
        self.ready = self.keys.rank(Key::end_of(boundary));
        self.next_due = self.due_after(boundary);
    }

    fn due_after(&self, now: UnixMs) -> Option<UnixMs> {
        self.keys.first_after(Key::end_of(now)).map(Key::time)
    }

    /// Records that a message with this due time was removed.
    fn removed(&mut self, due: UnixMs, boundary: UnixMs) {
        if due <= boundary {
            self.ready -= 1;
        } else if self.next_due == Some(due) {
            self.next_due = self.due_after(boundary);
        }
    }
}

/// All waiting messages.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The bands, highest priority first; none is empty. There is almost always one, and it is stored in place.
    bands: SmallVec<[Band; 1]>,
    len: usize,
    /// Messages due up to this instant are counted as ready.
    boundary: UnixMs,
    /// The number of messages that are due by the boundary.
    ready: usize,
    /// The earliest due time beyond the boundary, unless the message with that due time was removed.
    next_due: NextDue,
}

/// The earliest due time of all bands. Finding it takes a look at each of them, so the removal of the message that has
/// it only marks it as unknown: a command that removes many messages then looks once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NextDue {
    #[default]
    Nothing,
    At(UnixMs),
    Unknown,
}

impl From<Option<UnixMs>> for NextDue {
    fn from(due: Option<UnixMs>) -> Self {
        due.map_or(NextDue::Nothing, NextDue::At)
    }
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of messages that are due no later than the last [`Waiting::advance`]. O(1).
    pub fn ready(&self) -> usize {
        self.ready
    }

    /// The earliest due time after the last [`Waiting::advance`]. O(1), and O(priorities in use) after the removal of
    /// the message that had it.
    #[inline]
    pub fn next_due(&self) -> Option<UnixMs> {
        match self.next_due {
            NextDue::Nothing => None,
            NextDue::At(due) => Some(due),
            NextDue::Unknown => self.first_of_bands(),
        }
    }

    /// Adds a message. O(log n).
    pub fn insert(&mut self, priority: i8, due: UnixMs, sequence: Sequence) {
        // There is almost always one band, and it is this one.
        let at = self.bands.iter().position(|band| band.priority <= priority).unwrap_or(self.bands.len());
        if self.bands.get(at).is_none_or(|band| band.priority != priority) {
            self.bands.insert(at, Band::new(priority, OrderedKeys::default()));
        }
        let Some(band) = self.bands.get_mut(at) else { return };
        band.keys.insert(Key::at(due, sequence));
        self.len += 1;
        if due <= self.boundary {
            band.ready += 1;
            self.ready += 1;
            return;
        }
        if band.next_due.is_none_or(|next| due < next) {
            band.next_due = Some(due);
        }
        match self.next_due {
            NextDue::Nothing => self.next_due = NextDue::At(due),
            NextDue::At(next) if due < next => self.next_due = NextDue::At(due),
            NextDue::At(_) | NextDue::Unknown => {}
        }
    }

    /// Removes a message. O(log n + priorities in use).
    pub fn remove(&mut self, priority: i8, due: UnixMs, sequence: Sequence) {
        let Some(at) = self.bands.iter().position(|band| band.priority == priority) else { return };
        let Some(band) = self.bands.get_mut(at) else { return };
        if band.keys.remove(Key::at(due, sequence)) {
            self.removed(at, due);
        }
    }

    /// About where this message is, for [`fetch`](super::order::fetch).
    pub fn whereabouts(&self, priority: i8, due: UnixMs, sequence: Sequence) -> Option<Whereabouts<'_>> {
        let band = self.bands.iter().find(|band| band.priority == priority)?;
        band.keys.whereabouts(Key::at(due, sequence))
    }

    /// Whether it holds this message. O(log n).
    pub fn contains(&self, priority: i8, due: UnixMs, sequence: Sequence) -> bool {
        let band = self.bands.iter().find(|band| band.priority == priority);
        band.is_some_and(|band| band.keys.contains(Key::at(due, sequence)))
    }

    /// Records that a message with this due time was removed from the band at index `at`.
    fn removed(&mut self, at: usize, due: UnixMs) {
        let Some(band) = self.bands.get_mut(at) else { return };
        band.removed(due, self.boundary);
        if band.keys.is_empty() {
            self.bands.remove(at);
        }
        self.len -= 1;
        if due <= self.boundary {
            self.ready -= 1;
        } else if self.next_due == NextDue::At(due) {
            // With one band the answer is at hand.
            self.next_due = if self.bands.len() > 1 { NextDue::Unknown } else { self.first_of_bands().into() };
        }
    }

    fn first_of_bands(&self) -> Option<UnixMs> {
        self.bands.iter().filter_map(|band| band.next_due).min()
    }

    /// Moves the boundary to `now`, and returns how many messages that made ready. O(log n) for any number of messages.
    /// On a replica the boundary may move back, because the clocks of the replica and of its master differ.
    #[inline]
    pub fn advance(&mut self, now: UnixMs) -> usize {
        if now == self.boundary {
            return 0;
        }
        let before = std::mem::replace(&mut self.boundary, now);
        if self.next_due == NextDue::Unknown {
            self.next_due = self.first_of_bands().into();
        }
        if now < before || self.next_due().is_some_and(|next| next <= now) {
            return self.recount(before);
        }
        0
    }

    /// Recomputes what is due by the boundary, and returns how many messages became ready since it was at `before`.
    fn recount(&mut self, before: UnixMs) -> usize {
        let (now, was_ready) = (self.boundary, self.ready);
        for band in &mut self.bands {
            if now < before || band.next_due.is_some_and(|next| next <= now) {
                band.recount(now);
            }
        }
        self.ready = self.bands.iter().map(|band| band.ready).sum();
        self.next_due = self.first_of_bands().into();
        // Messages that were ready before the first advance did not become ready by it.
        if before == UnixMs::EPOCH {
            return 0;
        }
        self.ready.saturating_sub(was_ready)
    }

    /// The number of messages due no later than `now`, counted up to `limit`. O(limit / 64 + log n).
    pub fn due_by(&self, now: UnixMs, limit: usize) -> usize {
        let end = Key::end_of(now);
        self.bands.iter().fold(0, |count, band| count + band.keys.rank_up_to(end, limit - count))
    }

    /// Removes and returns the first message in delivery order that is due by `now`; `None` if there is none.
    /// O(log n + priorities in use).
    pub fn pop(&mut self, now: UnixMs) -> Option<Sequence> {
        let end = Key::end_of(now);
        let (at, key) =
            self.bands.iter_mut().enumerate().find_map(|(at, band)| Some((at, band.keys.pop_first(end)?)))?;
        self.removed(at, key.time());
        Some(key.sequence())
    }

    /// The first message in delivery order that is due by `now`: its priority and its key. O(priorities in use).
    #[inline]
    pub fn first_due(&self, now: UnixMs) -> Option<(i8, Key)> {
        let end = Key::end_of(now);
        self.bands.iter().find_map(|band| Some((band.priority, band.keys.first().filter(|first| *first <= end)?)))
    }

    /// The instant up to which messages count as ready.
    pub fn boundary(&self) -> UnixMs {
        self.boundary
    }

    /// Removes the messages for whose key (due, sequence) `keep` returns `false`. O(n).
    pub fn retain(&mut self, keep: impl Fn(Key) -> bool) {
        for band in &mut self.bands {
            band.keys.retain(&keep);
            band.recount(self.boundary);
        }
        self.bands.retain(|band| !band.keys.is_empty());
        self.len = self.bands.iter().map(|band| band.keys.len()).sum();
        self.ready = self.bands.iter().map(|band| band.ready).sum();
        self.next_due = self.first_of_bands().into();
    }

    /// The messages that are due by `now`, in delivery order.
    pub fn iter_ready(&self, now: UnixMs) -> impl Iterator<Item = Sequence> + '_ {
        self.iter_due(now).map(|(_, key)| key.sequence())
    }

    /// [`Waiting::iter_ready`], with the priority and the key of each.
    pub fn iter_due(&self, now: UnixMs) -> impl Iterator<Item = (i8, Key)> + '_ {
        let end = Key::end_of(now);
        let due = move |band| OrderedKeys::iter_after(band, None).take_while(move |key| *key <= end);
        self.bands.iter().flat_map(move |band| due(&band.keys).map(|key| (band.priority, key)))
    }

    /// The messages that are due after `now`, in the order in which they become due, and in delivery order at the same
    /// instant. The first k messages cost O(k × log(priorities in use)).
    pub fn iter_delayed(&self, now: UnixMs) -> impl Iterator<Item = Sequence> + '_ {
        self.iter_due_after(now).map(|(_, key)| key.sequence())
    }

    /// [`Waiting::iter_delayed`], with the priority and the key of each.
    pub fn iter_due_after(&self, now: UnixMs) -> impl Iterator<Item = (i8, Key)> + '_ {
        let end = Key::end_of(now);
        let mut bands: Vec<_> =
            self.bands.iter().map(|band| (band.priority, band.keys.iter_after(Some(end)))).collect();
        // The head of each band. Of equal due times that of the first band wins, which has the highest priority.
        let mut heads: BinaryHeap<Reverse<(UnixMs, usize, u64)>> = BinaryHeap::with_capacity(bands.len());
        for (nth, (_, band)) in bands.iter_mut().enumerate() {
            heads.extend(band.next().map(|key| Reverse((key.time(), nth, key.sequence().0))));
        }
        std::iter::from_fn(move || {
            let Reverse((due, nth, sequence)) = heads.pop()?;
            let (priority, band) = bands.get_mut(nth)?;
            heads.extend(band.next().map(|key| Reverse((key.time(), nth, key.sequence().0))));
            Some((*priority, Key::at(due, Sequence(sequence))))
        })
    }

    /// The earliest due time. O(priorities in use).
    pub fn earliest(&self) -> Option<UnixMs> {
        self.bands.iter().filter_map(|band| band.keys.first()).min().map(Key::time)
    }

    /// The earliest due time after `now`.
    pub fn due_after(&self, now: UnixMs) -> Option<UnixMs> {
        self.bands.iter().filter_map(|band| band.due_after(now)).min()
    }

    /// The waiting messages of a queue that is loaded, each with its priority. O(n log n).
    pub fn from_unsorted(mut keys: Vec<(i8, Key)>) -> Waiting {
        keys.sort_unstable_by_key(|(priority, key)| (Reverse(*priority), *key));
        let mut waiting = Waiting { len: keys.len(), ..Waiting::default() };
        for of_one in keys.chunk_by(|(left, _), (right, _)| left == right) {
            if let Some((priority, _)) = of_one.first() {
                let sorted: Vec<Key> = of_one.iter().map(|(_, key)| *key).collect();
                let mut band = Band::new(*priority, OrderedKeys::from_sorted(&sorted));
                band.recount(waiting.boundary);
                waiting.bands.push(band);
            }
        }
        waiting.ready = waiting.bands.iter().map(|band| band.ready).sum();
        waiting.next_due = waiting.first_of_bands().into();
        waiting
    }

    pub fn heap_bytes(&self) -> usize {
        let beside = if self.bands.spilled() { self.bands.capacity() * std::mem::size_of::<Band>() } else { 0 };
        beside + self.bands.iter().map(|band| band.keys.heap_bytes()).sum::<usize>()
    }

    pub fn allocations(&self) -> usize {
        self.bands.iter().map(|band| band.keys.allocations()).sum()
    }

    /// Checks that the counts agree with the sets, that the bands are in order, and that none is empty. O(n), for
    /// tests.
    pub fn check(&self) -> Result<(), &'static str> {
        let sorted = self.bands.iter().zip(self.bands.iter().skip(1)).all(|(one, next)| one.priority > next.priority);
        let counted = self.bands.iter().all(|band| {
            !band.keys.is_empty()
                && band.ready == band.keys.rank(Key::end_of(self.boundary))
                && band.next_due == band.due_after(self.boundary)
        });
        let summed = self.len == self.bands.iter().map(|band| band.keys.len()).sum::<usize>()
            && self.ready == self.bands.iter().map(|band| band.ready).sum::<usize>()
            && self.next_due() == self.first_of_bands();
        (sorted && counted && summed).then_some(()).ok_or("the waiting messages are miscounted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A model without an order: a list of (priority, due, sequence) that is searched for each answer.
    #[derive(Default)]
    struct Model(Vec<(i8, u64, u64)>);

    impl Model {
        fn due_by(&self, now: u64) -> usize {
            self.0.iter().filter(|(_, due, _)| *due <= now).count()
        }

        fn due_after(&self, now: u64) -> Option<UnixMs> {
            self.0.iter().map(|(_, due, _)| *due).filter(|due| *due > now).min().map(UnixMs::new)
        }

        fn first(&self, now: u64) -> Option<(i8, u64, u64)> {
            let due = self.0.iter().copied().filter(|(_, due, _)| *due <= now);
            due.min_by_key(|(priority, due, sequence)| (-i32::from(*priority), *due, *sequence))
        }

        fn remove(&mut self, message: (i8, u64, u64)) {
            self.0.retain(|held| *held != message);
        }
    }

    fn assert_same(waiting: &Waiting, model: &Model, now: u64) {
        assert_eq!(waiting.check(), Ok(()));
        assert_eq!(waiting.len(), model.0.len());
        assert_eq!(waiting.ready(), model.due_by(now));
        assert_eq!(waiting.next_due(), model.due_after(now));
        assert_eq!(waiting.earliest(), model.due_after(0));
        assert_eq!(waiting.due_by(UnixMs::new(now + 50), 7), model.due_by(now + 50).min(7));
        assert_eq!(waiting.due_after(UnixMs::new(now + 50)), model.due_after(now + 50));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn order_and_counts_are_exact(
            steps in prop::collection::vec((0u8..12, 1u64..400, -2i8..3, 0u64..40), 1..if cfg!(miri) { 40 } else { 300 }),
        ) {
            let (mut waiting, mut model, mut now) = (Waiting::default(), Model::default(), 0);
            for (sequence, (what, due, priority, passed)) in steps.iter().copied().enumerate() {
                let sequence = sequence as u64;
                match what {
                    0..=5 => {
                        waiting.insert(priority, UnixMs::new(due), Sequence(sequence));
                        model.0.push((priority, due, sequence));
                    }
                    6 | 7 => {
                        // A pop happens at the view's instant, or after it.
                        let at = now + passed;
                        let expected = model.first(at);
                        prop_assert_eq!(waiting.pop(UnixMs::new(at)), expected.map(|(_, _, sequence)| Sequence(sequence)));
                        expected.into_iter().for_each(|first| model.remove(first));
                    }
                    8 | 9 if !model.0.is_empty() => {
                        let victim = model.0[due as usize % model.0.len()];
                        waiting.remove(victim.0, UnixMs::new(victim.1), Sequence(victim.2));
                        model.remove(victim);
                    }
                    10 => now = now.saturating_sub(passed),
                    _ => now += passed,
                }
                waiting.advance(UnixMs::new(now));
                assert_same(&waiting, &model, now);
            }
            let keys = model.0.iter().map(|(priority, due, sequence)| {
                (*priority, Key::at(UnixMs::new(*due), Sequence(*sequence)))
            });
            let mut loaded = Waiting::from_unsorted(keys.collect());
            loaded.advance(UnixMs::new(now));
            assert_same(&loaded, &model, now);
            while let Some(first) = model.first(u64::MAX) {
                prop_assert_eq!(waiting.pop(UnixMs::MAX), Some(Sequence(first.2)));
                prop_assert_eq!(loaded.pop(UnixMs::MAX), Some(Sequence(first.2)));
                model.remove(first);
            }
            prop_assert!(waiting.pop(UnixMs::MAX).is_none() && waiting.bands.is_empty());
        }
    }
}

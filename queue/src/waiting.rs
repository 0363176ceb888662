//! The waiting messages, delayed and ready together, in delivery order.
//!
//! Delivery order is (priority, due, sequence), so each priority in use has one sorted set of (due, sequence), called a
//! band. The ready messages of a band are the part of its set up to now: a message becomes ready when the boundary
//! moves past it, without being moved itself. The order is therefore exact at every instant, a pop never waits for the
//! timer, and a million messages that become due together cost the timer as much as one.
//!
//! Each band keeps the number of its messages up to the boundary and the next due time beyond it, so an operation on
//! one message searches only the set of its own priority, and reads one number of each of the others.

mod band;
#[cfg(test)]
mod tests;

use super::id::Sequence;
use super::memory::vec_bytes;
use super::sorted_set::{Key, Keys};
use super::time::UnixMs;
use band::Band;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// All waiting messages.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// A band for each priority in use, highest priority first. There is almost always one, which is stored in place.
    /// The last one stays when it is empty, since its storage is soon needed again.
    bands: SmallVec<[Band; 1]>,
    /// Messages due up to this instant are counted as ready.
    boundary: UnixMs,
}

// A part of every queue, and the largest part of an empty one.
const _: () = assert!(size_of::<Waiting>() == 72);

impl Waiting {
    /// The number of messages. O(priorities in use), like every method that states no other cost.
    #[inline]
    pub fn len(&self) -> usize {
        self.sum(|band| band.keys.len())
    }

    /// The number of messages that are due no later than the last [`Waiting::advance`].
    #[inline]
    pub fn ready(&self) -> usize {
        self.sum(|band| band.ready)
    }

    /// The earliest due time after the last [`Waiting::advance`].
    #[inline]
    pub fn next_due(&self) -> Option<UnixMs> {
        match self.bands.as_slice() {
            [band] => band.next_due,
            bands => bands.iter().filter_map(|band| band.next_due).min(),
        }
    }

    /// The sum of a number over all bands. Each command needs such sums several times, usually over a single band.
    #[inline]
    fn sum(&self, number: impl Fn(&Band) -> usize) -> usize {
        match self.bands.as_slice() {
            [band] => number(band),
            bands => bands.iter().map(number).sum(),
        }
    }

    /// Adds a message. O(log n + priorities in use).
    #[inline]
    pub fn insert(&mut self, priority: i8, due: UnixMs, sequence: Sequence) {
        match self.bands.as_mut_slice() {
            [band] if band.priority == priority || band.keys.is_empty() => {
                band.priority = priority;
                band.insert(due, sequence, self.boundary);
            }
            _ => self.insert_among(priority, due, sequence),
        }
    }

    #[cold]
    fn insert_among(&mut self, priority: i8, due: UnixMs, sequence: Sequence) {
        let at = self.bands.partition_point(|band| band.priority > priority);
        if self.bands.get(at).is_none_or(|band| band.priority != priority) {
            self.bands.insert(at, Band::new(priority, Keys::default()));
        }
        self.bands.get_mut(at).into_iter().for_each(|band| band.insert(due, sequence, self.boundary));
    }

    /// Removes a message. O(log n + priorities in use).
    pub fn remove(&mut self, priority: i8, due: UnixMs, sequence: Sequence) {
        let at = match self.bands.as_slice() {
            [_] => Some(0),
            bands => bands.iter().position(|band| band.priority == priority),
        };
        let Some((at, band)) = at.and_then(|at| Some((at, self.bands.get_mut(at)?))) else { return };
        if band.priority == priority && band.keys.remove(Key::at(due, sequence)) {
            self.removed(at, due);
        }
    }

    /// Records that a message with this due time was removed from the band at an index.
    #[inline]
    fn removed(&mut self, at: usize, due: UnixMs) {
        let sole = self.bands.len() == 1;
        let Some(band) = self.bands.get_mut(at) else { return };
        band.removed(due, self.boundary);
        if !sole && band.keys.is_empty() {
            self.bands.remove(at);
            self.bands.shrink_to_fit();
        }
    }

    fn band(&self, priority: i8) -> Option<&Band> {
        self.bands.iter().find(|band| band.priority == priority)
    }

    /// Whether it holds this message. O(log n).
    pub fn contains(&self, priority: i8, due: UnixMs, sequence: Sequence) -> bool {
        self.band(priority).is_some_and(|band| band.keys.contains(Key::at(due, sequence)))
    }

    /// Moves the boundary to `now`, and returns how many messages became ready. O(log n) for any number of messages.
    /// On a replica the boundary may move back, because the clocks of the replica and of its master differ.
    #[inline]
    pub fn advance(&mut self, now: UnixMs) -> usize {
        if now == self.boundary {
            return 0;
        }
        let before = std::mem::replace(&mut self.boundary, now);
        if now < before || self.next_due().is_some_and(|next| next <= now) {
            return self.recount(before);
        }
        0
    }

    /// Recomputes what is due by the boundary, and returns how many messages became ready since it was at `before`.
    fn recount(&mut self, before: UnixMs) -> usize {
        let (now, was_ready) = (self.boundary, self.ready());
        for band in &mut self.bands {
            if now < before || band.next_due.is_some_and(|next| next <= now) {
                band.recount(now);
            }
        }
        // Messages that were ready before the first advance did not become ready by it.
        if before == UnixMs::EPOCH {
            return 0;
        }
        self.ready().saturating_sub(was_ready)
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
        let mut bands = self.bands.iter_mut().enumerate();
        let (at, key) = bands.find_map(|(at, band)| Some((at, band.keys.pop_first(end)?)))?;
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
        self.bands.shrink_to_fit();
    }

    /// The messages that are due by `now`, in delivery order.
    pub fn iter_ready(&self, now: UnixMs) -> impl Iterator<Item = Sequence> + '_ {
        self.iter_due(now).map(|(_, key)| key.sequence())
    }

    /// [`Waiting::iter_ready`], with the priority and the key of each.
    pub fn iter_due(&self, now: UnixMs) -> impl Iterator<Item = (i8, Key)> + '_ {
        let end = Key::end_of(now);
        let due = move |band| Keys::iter_after(band, None).take_while(move |key| *key <= end);
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
        // The head of each band. If due times are equal, the head of the first band wins, which has the highest
        // priority.
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
        let mut bands = SmallVec::new();
        for of_one in keys.chunk_by(|(left, _), (right, _)| left == right) {
            if let Some((priority, _)) = of_one.first() {
                let sorted: Vec<Key> = of_one.iter().map(|(_, key)| *key).collect();
                let mut band = Band::new(*priority, Keys::from_sorted(&sorted));
                band.recount(UnixMs::EPOCH);
                bands.push(band);
            }
        }
        Waiting { bands, boundary: UnixMs::EPOCH }
    }

    pub fn heap_bytes(&self) -> usize {
        let list = if self.bands.spilled() { vec_bytes::<Band>(self.bands.capacity()) } else { 0 };
        list + self.bands.iter().map(|band| band.keys.heap_bytes()).sum::<usize>()
    }

    /// Checks that the counts agree with the sets, that the bands are in order, and that none is empty. O(n), for
    /// tests.
    pub fn check(&self) -> Result<(), &'static str> {
        let bands = &self.bands;
        let sorted = bands.iter().zip(bands.iter().skip(1)).all(|(one, next)| one.priority > next.priority);
        let counted = bands.iter().all(|band| {
            band.ready == band.keys.rank(Key::end_of(self.boundary)) && band.next_due == band.due_after(self.boundary)
        });
        let filled = bands.len() < 2 || bands.iter().all(|band| !band.keys.is_empty());
        (sorted && counted && filled).then_some(()).ok_or("the waiting messages are miscounted")
    }
}

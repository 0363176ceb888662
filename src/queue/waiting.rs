//! The messages that wait, delayed and ready together, in delivery order.
//!
//! Delivery order is (priority, due, sequence), so each priority in use has one sorted set of (due, sequence). What
//! is ready is simply the part of a set up to now: a message becomes ready by the boundary moving past it, not by
//! being moved itself. So the order is exact at every instant, a pop never waits for the timer, and a million
//! messages that fall due together cost the timer as much as one.

use super::id::Sequence;
use super::order::{Key, OrderedKeys};
use super::time::UnixMs;
use smallvec::SmallVec;

/// The waiting messages of one priority.
#[derive(Debug)]
struct Band {
    priority: i8,
    keys: OrderedKeys,
}

/// All waiting messages.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Highest priority first; none is empty. Almost always there is one, and it lies here.
    bands: SmallVec<[Band; 1]>,
    len: usize,
    /// Up to this instant messages are counted as ready …
    boundary: UnixMs,
    /// … which are so many.
    ready: usize,
    /// The earliest due time beyond the boundary.
    next_due: Option<UnixMs>,
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Messages counted as ready: due no later than the last [`Waiting::advance`].
    pub fn ready(&self) -> usize {
        self.ready
    }

    /// The earliest due time beyond the last [`Waiting::advance`].
    pub fn next_due(&self) -> Option<UnixMs> {
        self.next_due
    }

    /// Adds a message.
    pub fn insert(&mut self, priority: i8, due: UnixMs, sequence: Sequence) {
        // Almost always there is one band, and it is this.
        let at = self.bands.iter().position(|band| band.priority <= priority).unwrap_or(self.bands.len());
        if self.bands.get(at).is_none_or(|band| band.priority != priority) {
            self.bands.insert(at, Band { priority, keys: OrderedKeys::default() });
        }
        if let Some(band) = self.bands.get_mut(at) {
            band.keys.insert(Key::at(due, sequence));
        }
        self.len += 1;
        if due <= self.boundary {
            self.ready += 1;
        } else if self.next_due.is_none_or(|next| due < next) {
            self.next_due = Some(due);
        }
    }

    /// Removes a message.
    pub fn remove(&mut self, priority: i8, due: UnixMs, sequence: Sequence) {
        let Some(at) = self.bands.iter().position(|band| band.priority == priority) else { return };
        let Some(band) = self.bands.get_mut(at) else { return };
        if !band.keys.remove(Key::at(due, sequence)) {
            return;
        }
        if band.keys.is_empty() {
            self.bands.remove(at);
        }
        self.len -= 1;
        if due <= self.boundary {
            self.ready -= 1;
        } else if self.next_due == Some(due) {
            self.next_due = self.due_after(self.boundary);
        }
    }

    /// Moves the boundary to `now`, and returns how many messages became ready by it: O(log n) for any number of them.
    /// On a replica it may move back: its master's clock and its own are two.
    #[inline]
    pub fn advance(&mut self, now: UnixMs) -> usize {
        if now == self.boundary {
            return 0;
        }
        let before = std::mem::replace(&mut self.boundary, now);
        if now < before || self.next_due.is_some_and(|next| next <= now) {
            let was_ready = self.ready;
            self.ready = self.due_by(now, usize::MAX);
            self.next_due = self.due_after(now);
            // What was ready before the first look has not become so by it.
            if before != UnixMs::EPOCH {
                return self.ready.saturating_sub(was_ready);
            }
        }
        0
    }

    /// Messages due no later than `now`, counted up to `limit`: O(limit / 64 + log n).
    pub fn due_by(&self, now: UnixMs, limit: usize) -> usize {
        let end = Key::end_of(now);
        self.bands.iter().fold(0, |count, band| count + band.keys.rank_up_to(end, limit - count))
    }

    /// Removes and returns the first message in delivery order.
    pub fn pop(&mut self, now: UnixMs) -> Option<Sequence> {
        let end = Key::end_of(now);
        for at in 0..self.bands.len() {
            let Some(band) = self.bands.get_mut(at) else { break };
            if let Some(key) = band.keys.pop_first(end) {
                if band.keys.is_empty() {
                    self.bands.remove(at);
                }
                self.len -= 1;
                if key.time() <= self.boundary {
                    self.ready -= 1;
                } else {
                    self.next_due = self.due_after(self.boundary);
                }
                return Some(key.sequence());
            }
        }
        None
    }

    /// Removes the messages whose due time is not to be kept: O(n).
    pub fn retain(&mut self, keep: impl Fn(UnixMs) -> bool) {
        for band in &mut self.bands {
            band.keys.retain(|key| keep(key.time()));
        }
        self.bands.retain(|band| !band.keys.is_empty());
        self.len = self.bands.iter().map(|band| band.keys.len()).sum();
        self.ready = self.due_by(self.boundary, usize::MAX);
        self.next_due = self.due_after(self.boundary);
    }

    /// What is due by `now`, in delivery order.
    pub fn iter_ready(&self, now: UnixMs) -> impl Iterator<Item = Sequence> + '_ {
        let end = Key::end_of(now);
        let due = move |band| OrderedKeys::iter_after(band, None).take_while(move |key| *key <= end);
        self.bands.iter().flat_map(move |band| due(&band.keys)).map(Key::sequence)
    }

    /// What is due later, in the order in which it falls due; at one instant in delivery order. The first k cost
    /// O(k × priorities in use).
    pub fn iter_delayed(&self, now: UnixMs) -> impl Iterator<Item = Sequence> + '_ {
        let end = Key::end_of(now);
        let mut heads: Vec<_> = self.bands.iter().map(|band| band.keys.iter_after(Some(end)).peekable()).collect();
        std::iter::from_fn(move || {
            // Of equals the first is taken, and the bands come with the highest priority first.
            let earliest = heads.iter_mut().filter_map(|head| Some((head.peek()?.time(), head)));
            let (_, head) = earliest.min_by_key(|(due, _)| *due)?;
            head.next().map(Key::sequence)
        })
    }

    /// The earliest due time.
    pub fn earliest(&self) -> Option<UnixMs> {
        self.bands.iter().filter_map(|band| band.keys.first()).min().map(Key::time)
    }

    /// The earliest due time after `now`.
    pub fn due_after(&self, now: UnixMs) -> Option<UnixMs> {
        let end = Key::end_of(now);
        self.bands.iter().filter_map(|band| band.keys.first_after(end)).min().map(Key::time)
    }

    /// All messages of `keys` at once, each with its priority: what a load hands over.
    pub fn from_unsorted(mut keys: Vec<(i8, Key)>) -> Waiting {
        keys.sort_unstable_by_key(|(priority, key)| (std::cmp::Reverse(*priority), *key));
        let mut waiting = Waiting { len: keys.len(), ..Waiting::default() };
        for of_one in keys.chunk_by(|(left, _), (right, _)| left == right) {
            if let Some((priority, _)) = of_one.first() {
                let sorted: Vec<Key> = of_one.iter().map(|(_, key)| *key).collect();
                waiting.bands.push(Band { priority: *priority, keys: OrderedKeys::from_sorted(&sorted) });
            }
        }
        waiting.ready = waiting.due_by(waiting.boundary, usize::MAX);
        waiting.next_due = waiting.due_after(waiting.boundary);
        waiting
    }

    pub fn heap_bytes(&self) -> usize {
        let beside = if self.bands.spilled() { self.bands.capacity() * std::mem::size_of::<Band>() } else { 0 };
        beside + self.bands.iter().map(|band| band.keys.heap_bytes()).sum::<usize>()
    }

    pub fn allocations(&self) -> usize {
        self.bands.iter().map(|band| band.keys.allocations()).sum()
    }
}

impl Default for UnixMs {
    fn default() -> Self {
        UnixMs::EPOCH
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same without an order: (priority, due, sequence), sorted at each question.
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
                        // A pop is at the view's instant, or beyond it.
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

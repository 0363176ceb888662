//! The names of consumers that deliveries bear.
//!
//! A name is kept once for all of its deliveries, and only while there is one of them. A delivery holds the number of
//! its consumer, and keeps it after its lease has ended until something is decided about the message: time changes no
//! record.

use super::id::ConsumerId;
use super::memory::{given, sum_spread, vec_bytes};
use super::name_index::{NameHash, NameIndex};

/// The longest name of a consumer, in bytes.
pub const CONSUMER_NAME_MAX: usize = 128;

/// Whether a consumer may have this name.
pub fn is_consumer_name(name: &[u8]) -> bool {
    (1..=CONSUMER_NAME_MAX).contains(&name.len())
}

/// The consumers of a queue.
#[derive(Debug, Default)]
pub(super) struct Consumers {
    entries: Vec<Entry>,
    /// The numbers of entries that are free.
    free: Vec<u32>,
    index: NameIndex<ConsumerId>,
    /// The consumer that was joined last: the next delivery is often of the same one.
    joined: u32,
}

#[derive(Debug, Default)]
struct Entry {
    /// Empty if the entry is free.
    name: Box<[u8]>,
    deliveries: usize,
}

impl Consumers {
    /// Whether no delivery bears a name.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Counts a delivery of the consumer with this name. O(log n).
    pub fn join(&mut self, name: &[u8]) -> ConsumerId {
        let last = ConsumerId(self.joined);
        let same = Some(last).filter(|last| self.name(*last) == name);
        let id = same.or_else(|| self.find(name)).unwrap_or_else(|| self.create(name));
        self.joined = id.0;
        self.entry(id).into_iter().for_each(|entry| entry.deliveries += 1);
        id
    }

    fn create(&mut self, name: &[u8]) -> ConsumerId {
        let entry = Entry { name: name.into(), deliveries: 0 };
        let id = match self.free.pop().map(ConsumerId) {
            Some(id) => {
                self.entry(id).into_iter().for_each(|free| *free = Entry { name: name.into(), deliveries: 0 });
                id
            }
            None => {
                self.entries.push(entry);
                ConsumerId((self.entries.len() - 1) as u32)
            }
        };
        self.index.insert(name, id);
        id
    }

    fn entry(&mut self, id: ConsumerId) -> Option<&mut Entry> {
        self.entries.get_mut(id.0 as usize)
    }

    /// A delivery of the consumer has ended. The name is forgotten with the last one. O(1), and O(log n) for the last.
    pub fn leave(&mut self, id: ConsumerId) {
        let Some(entry) = self.entry(id).filter(|entry| entry.deliveries > 0) else { return };
        entry.deliveries -= 1;
        if entry.deliveries == 0 {
            let name = std::mem::take(&mut entry.name);
            self.index.remove(&name, id);
            self.free.push(id.0);
        }
    }

    /// Counts the deliveries again. O(n).
    pub fn recount(&mut self, all: impl Iterator<Item = ConsumerId>) {
        let counts = self.count(all);
        for (number, count) in (0..).zip(counts) {
            if let Some(entry) = self.entry(ConsumerId(number)).filter(|entry| entry.deliveries > 0) {
                entry.deliveries = count.max(1);
                if count == 0 {
                    self.leave(ConsumerId(number));
                }
            }
        }
    }

    fn count(&self, all: impl Iterator<Item = ConsumerId>) -> Vec<usize> {
        let mut counts = vec![0; self.entries.len()];
        for id in all {
            counts.get_mut(id.0 as usize).into_iter().for_each(|count| *count += 1);
        }
        counts
    }

    /// The consumer with this name. O(log n).
    pub fn find(&self, name: &[u8]) -> Option<ConsumerId> {
        self.index.find(name, |id| (self.name(id) == name).then_some(id))
    }

    pub fn name(&self, id: ConsumerId) -> &[u8] {
        self.entries.get(id.0 as usize).map_or(&[], |entry| &entry.name)
    }

    /// The consumers by the hash of their names, from the one behind `hash` on.
    pub fn iter_behind(&self, hash: Option<NameHash>) -> impl Iterator<Item = (NameHash, ConsumerId)> + '_ {
        self.index.iter_behind(hash)
    }

    pub fn heap_bytes(&self) -> usize {
        let name = |number: usize| self.entries.get(number).map_or(0, |entry| given(entry.name.len()) as i64);
        let names = usize::try_from(sum_spread(self.entries.len(), name)).unwrap_or(0);
        names
            + vec_bytes::<Entry>(self.entries.capacity())
            + vec_bytes::<u32>(self.free.capacity())
            + self.index.heap_bytes()
    }

    /// Checks that each consumer has as many deliveries as `all` says, and that it is found by its name. O(n log n).
    pub fn check(&self, all: impl Iterator<Item = ConsumerId>) -> Result<(), &'static str> {
        let counts = self.count(all);
        if self.entries.iter().map(|entry| entry.deliveries).ne(counts) {
            return Err("the deliveries of a consumer are miscounted");
        }
        let used = (0..).zip(&self.entries).filter(|(_, entry)| entry.deliveries > 0);
        let mut named = 0;
        for (number, entry) in used {
            named += 1;
            if self.find(&entry.name) != Some(ConsumerId(number)) {
                return Err("a consumer is not found by its name");
            }
        }
        if named != self.index.len() || named + self.free.len() != self.entries.len() {
            return Err("the consumers are miscounted");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_as_long_as_a_delivery_bears_it() {
        let mut consumers = Consumers::default();
        let (a, b) = (consumers.join(b"a"), consumers.join(b"b"));
        assert_eq!((consumers.join(b"a"), consumers.name(a), consumers.name(b)), (a, &b"a"[..], &b"b"[..]));
        consumers.leave(a);
        consumers.leave(b);
        assert_eq!((consumers.find(b"a"), consumers.find(b"b")), (Some(a), None));
        assert_eq!(consumers.join(b"c"), b, "numbers are used again");
        assert_eq!(consumers.check([a, b].into_iter()), Ok(()));
        consumers.recount([b, b].into_iter());
        assert_eq!((consumers.find(b"a"), consumers.check([b, b].into_iter())), (None, Ok(())));
        consumers.recount(std::iter::empty());
        assert!(consumers.is_empty());
    }
}

//! Counters that a monitoring system can trust. The totals of a queue go back when its server restarts from an older
//! snapshot, when a replica takes over that counts some events for itself, and when the queue is deleted or restored. A
//! counter that goes back counts as one that began again at zero: all that ever happened would seem to have happened
//! now.
//!
//! So each counter begins at zero, and grows by what the total has gained since the previous reading.

use std::collections::{BTreeMap, BTreeSet};

/// A total as it was read last, and what was counted since it was read first.
#[derive(Clone, Copy)]
struct Count {
    total: i64,
    counted: i64,
}

/// The counters of all queues.
#[derive(Default)]
pub struct Counters(BTreeMap<Vec<u8>, BTreeMap<String, Count>>);

impl Counters {
    /// The value of a counter, now that its total was read. A total that went back adds nothing.
    pub fn count(&mut self, queue: &[u8], event: &str, total: i64) -> i64 {
        let events = self.0.entry(queue.to_vec()).or_default();
        let count = events.entry(event.to_owned()).or_insert(Count { total, counted: 0 });
        count.counted += total.saturating_sub(count.total).max(0);
        count.total = total;
        count.counted
    }

    /// Forgets the counters of all other queues. Those begin at zero if they are found again.
    pub fn keep(&mut self, queues: &[Vec<u8>]) {
        let queues: BTreeSet<&Vec<u8>> = queues.iter().collect();
        self.0.retain(|queue, _| queues.contains(queue));
    }
}

#[cfg(test)]
mod tests {
    use super::Counters;

    #[test]
    fn a_counter_begins_at_zero_and_never_goes_back() {
        let mut counters = Counters::default();
        let mut count = |total| counters.count(b"q", "died", total);
        let counted = [46, 46, 48, 40, 41, 0, 5].map(&mut count);
        assert_eq!(counted, [0, 0, 2, 2, 3, 3, 8]);
    }

    #[test]
    fn counters_of_queues_that_are_gone_are_forgotten() {
        let mut counters = Counters::default();
        for total in [3, 5] {
            counters.count(b"gone", "died", total);
            counters.count(b"there", "died", total);
        }
        counters.keep(&[b"there".to_vec()]);
        let counted = [&b"gone"[..], b"there"].map(|queue| counters.count(queue, "died", 6));
        assert_eq!(counted, [0, 3]);
    }
}

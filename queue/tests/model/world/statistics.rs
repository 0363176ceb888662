//! What the queues measure is what the model measured since each of them came into memory.

use super::World;
use dq_queue::{Histogram, Queue, Stats};

/// Since when a queue is a value in memory, and since when it decides, as positions in what the model measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Since {
    /// The number of deliveries given back uncounted by then: an older mark was lost with the value that had it.
    pub given_back: usize,
    lateness: usize,
    runtimes: usize,
}

impl World {
    /// A queue comes into memory now, and decides from now on.
    pub(super) fn since_now(&self) -> Since {
        let measured = &self.model.measured;
        Since { given_back: measured.given_back, lateness: measured.lateness.len(), runtimes: measured.runtimes.len() }
    }

    /// The same of a queue that has been in memory since `made` as a replica.
    pub(super) fn promoted_now(&self, made: Since) -> Since {
        Since { given_back: made.given_back, ..self.since_now() }
    }

    pub(super) fn check_statistics(&self) {
        self.check_queue(&self.eager.queue, self.eager.since);
        self.check_queue(&self.lazy.queue, self.lazy.since);
        // A replica decides nothing, and so measures nothing.
        if let Some(stats) = self.replica.as_ref().and_then(Queue::stats) {
            check_histogram(&stats.lateness, Vec::new());
            check_histogram(&stats.runtime, Vec::new());
            assert_eq!(stats.pops_empty, 0);
        }
    }

    fn check_queue(&self, queue: &Queue, since: Since) {
        let measured = &self.model.measured;
        let first = measured.lateness[since.lateness..].iter().filter(|delivery| {
            // What was given back before the value was made was delivered for the first time by another value.
            delivery.given_back.is_none_or(|nth| nth <= since.given_back)
        });
        let nothing = Stats::default();
        let stats = queue.stats().unwrap_or(&nothing);
        check_histogram(&stats.lateness, first.map(|delivery| delivery.ms).collect());
        check_histogram(&stats.runtime, measured.runtimes[since.runtimes..].to_vec());
        assert_eq!(stats.pops_empty, 0);
    }
}

fn check_histogram(histogram: &Histogram, values: Vec<u64>) {
    assert_eq!(histogram.sum_ms(), values.iter().sum::<u64>());
    for (bound, count) in histogram.cumulative() {
        let up_to = values.iter().filter(|value| bound.is_none_or(|bound| **value <= bound)).count();
        assert_eq!(count, up_to as u64, "up to {bound:?}");
    }
}

//! The counters of a worker.

use crate::names::QueueName;
use crate::queue::Histogram;
use crate::sync::lock;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bounds of the histogram: 1 ms, 2 ms, 4 ms and so on, to 2^22 ms, as in `DQ.STATS`.
const BOUNDS: u32 = 23;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one queue since its worker was started.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub struct QueueMetrics {
            /// The name of the queue.
            pub queue: QueueName,
            /// Handlers that run now.
            pub running: u64,
            $($(#[$doc])* pub $name: u64,)*
            /// How long handlers ran.
            pub run: Histogram,
        }

        impl QueueMetrics {
            fn new(queue: QueueName, run: Histogram) -> QueueMetrics {
                QueueMetrics { queue, running: 0, $($name: 0,)* run }
            }

            /// The counters with their names.
            pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Messages that were delivered to this worker.
    delivered,
    /// Messages that were completed and acknowledged.
    acked,
    /// Messages that were completed, but whose lease was lost before: they are delivered again, or were removed.
    late,
    /// Messages that were given back to be tried again.
    retried,
    /// Messages that became dead when they were given back.
    died,
    /// Of those two, messages whose handler panicked.
    panicked,
    /// Of those two, messages whose payload could not be decoded.
    undecodable,
    /// Messages that were given back without being begun.
    given_back,
    /// Leases that were extended.
    extended,
    /// Leases that were lost while a handler ran, or before its outcome was reported.
    leases_lost,
    /// How often the connection was lost.
    interrupted,
}

impl QueueMetrics {
    /// Counts this many acks, of which the server counted some.
    pub(super) fn ack(&mut self, all: u64, counted: u64) {
        let counted = counted.min(all);
        self.acked += counted;
        self.late += all - counted;
    }

    /// A handler has ended after this time.
    pub(super) fn end(&mut self, time: Duration) {
        self.running -= 1;
        self.run.add(time);
    }
}

/// The counters of one queue, which its pools share.
pub(super) type Counters = Arc<Mutex<QueueMetrics>>;

/// The counters of a worker, to be read at any time, while it runs and after.
#[derive(Clone, Default)]
pub struct Metrics {
    queues: Arc<Mutex<Vec<Counters>>>,
}

impl Metrics {
    /// The counters of a queue.
    pub(super) fn queue(&self, name: &QueueName) -> Counters {
        let mut queues = lock(&self.queues);
        if let Some(counters) = queues.iter().find(|counters| lock(counters).queue == *name) {
            return Arc::clone(counters);
        }
        let bounds = (0..BOUNDS).map(|number| Some(Duration::from_millis(1 << number))).chain([None]);
        let run = Histogram { buckets: bounds.map(|bound| (bound, 0)).collect(), sum: Duration::ZERO };
        let counters = Arc::new(Mutex::new(QueueMetrics::new(name.clone(), run)));
        queues.push(Arc::clone(&counters));
        counters
    }

    /// The counters of each queue.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueMetrics> {
        lock(&self.queues).iter().map(|counters| lock(counters).clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{lock, Metrics};
    use std::time::Duration;

    #[test]
    fn times_are_counted_in_the_bucket_that_holds_them() {
        let metrics = Metrics::default();
        let counters = metrics.queue(&"q".into());
        for ms in [0, 1, 2, 3, 4, 5, 10_000_000_000] {
            lock(&counters).run.add(Duration::from_millis(ms));
        }
        let run = metrics.queues().remove(0).run;
        let counts: Vec<u64> = run.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!((&counts[..4], counts.last()), (&[2, 3, 5, 6][..], Some(&7)));
        assert_eq!(run.quantile(0.5), Some(Duration::from_millis(4)));
    }
}

//! The counters of a worker.

use crate::connect::lock;
use crate::queue::Histogram;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bounds of the histogram: 1 ms, 2 ms, 4 ms and so on, to 2^22 ms, as in `DQ.STATS`.
const BOUNDS: usize = 23;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The live counters of one queue.
        #[derive(Default)]
        pub(super) struct Counters {
            pub name: String,
            $(pub $name: AtomicU64,)*
            pub running: AtomicU64,
            buckets: [AtomicU64; BOUNDS + 1],
            sum_us: AtomicU64,
        }

        /// The counters of one queue since its worker was started.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub struct QueueMetrics {
            /// The name of the queue.
            pub queue: String,
            /// Handlers that run now.
            pub running: u64,
            $($(#[$doc])* pub $name: u64,)*
            /// How long handlers ran.
            pub run: Histogram,
        }

        impl Counters {
            fn read(&self) -> QueueMetrics {
                QueueMetrics {
                    queue: self.name.clone(),
                    running: self.running.load(Relaxed),
                    $($name: self.$name.load(Relaxed),)*
                    run: self.histogram(),
                }
            }
        }

        impl QueueMetrics {
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
    /// Leases that were lost while a handler ran.
    leases_lost,
    /// How often the connection was lost.
    interrupted,
}

impl Counters {
    pub fn add(&self, counter: impl Fn(&Counters) -> &AtomicU64, count: u64) {
        counter(self).fetch_add(count, Relaxed);
    }

    /// Counts this many acks, of which the server counted some.
    pub fn acked(&self, all: u64, counted: u64) {
        let counted = counted.min(all);
        self.add(|counters| &counters.acked, counted);
        self.add(|counters| &counters.late, all - counted);
    }

    pub fn ran(&self, time: Duration) {
        let ms = time.as_millis().max(1);
        // The first bound, 2^n, that is not below the time.
        let bucket = usize::try_from(u128::BITS - (ms - 1).leading_zeros()).unwrap_or(BOUNDS).min(BOUNDS);
        if let Some(count) = self.buckets.get(bucket) {
            count.fetch_add(1, Relaxed);
        }
        self.sum_us.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    fn histogram(&self) -> Histogram {
        let mut sum = 0;
        let buckets = self.buckets.iter().enumerate().map(|(number, count)| {
            sum += count.load(Relaxed);
            ((number < BOUNDS).then(|| Duration::from_millis(1 << number)), sum)
        });
        Histogram::new(buckets.collect(), Duration::from_micros(self.sum_us.load(Relaxed)))
    }
}

/// The counters of a worker, to be read at any time, while it runs and after.
#[derive(Clone, Default)]
pub struct Metrics {
    queues: Arc<Mutex<Vec<Arc<Counters>>>>,
}

impl Metrics {
    /// The counters of a queue, which pools that serve the same queue share.
    pub(super) fn queue(&self, name: &str) -> Arc<Counters> {
        let mut queues = lock(&self.queues);
        if let Some(counters) = queues.iter().find(|counters| counters.name == name) {
            return Arc::clone(counters);
        }
        let counters = Arc::new(Counters { name: name.to_owned(), ..Counters::default() });
        queues.push(Arc::clone(&counters));
        counters
    }

    /// The counters of each queue.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueMetrics> {
        lock(&self.queues).iter().map(|counters| counters.read()).collect()
    }

    /// The metrics in the text format of Prometheus: counters `dq_worker_…_total{queue="…"}`, the gauge
    /// `dq_worker_running` and the histogram `dq_worker_run_seconds`.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let queues: Vec<(String, QueueMetrics)> =
            self.queues().into_iter().map(|queue| (label(&queue.queue), queue)).collect();
        let mut text = String::new();
        let names: Vec<&str> =
            queues.first().map(|(_, queue)| queue.counters().map(|(name, _)| name).collect()).unwrap_or_default();
        for name in names {
            let _ = writeln!(text, "# TYPE dq_worker_{name}_total counter");
            for (label, queue) in &queues {
                let value = queue.counters().find(|(other, _)| *other == name).map_or(0, |(_, value)| value);
                let _ = writeln!(text, "dq_worker_{name}_total{{queue=\"{label}\"}} {value}");
            }
        }
        let _ = writeln!(text, "# TYPE dq_worker_running gauge");
        for (label, queue) in &queues {
            let _ = writeln!(text, "dq_worker_running{{queue=\"{label}\"}} {}", queue.running);
        }
        let _ = writeln!(text, "# TYPE dq_worker_run_seconds histogram");
        for (label, queue) in &queues {
            for (bound, count) in &queue.run.buckets {
                let bound = bound.map_or("+Inf".to_owned(), |bound| bound.as_secs_f64().to_string());
                let _ = writeln!(text, "dq_worker_run_seconds_bucket{{queue=\"{label}\",le=\"{bound}\"}} {count}");
            }
            let _ = writeln!(text, "dq_worker_run_seconds_sum{{queue=\"{label}\"}} {}", queue.run.sum.as_secs_f64());
            let _ = writeln!(text, "dq_worker_run_seconds_count{{queue=\"{label}\"}} {}", queue.run.count());
        }
        text
    }
}

/// A name as the value of a label.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::Metrics;
    use std::time::Duration;

    #[test]
    fn times_are_counted_in_the_bucket_that_holds_them() {
        let metrics = Metrics::default();
        let counters = metrics.queue("a\"b");
        for ms in [0, 1, 2, 3, 4, 5, 10_000_000_000] {
            counters.ran(Duration::from_millis(ms));
        }
        let run = metrics.queues().remove(0).run;
        let counts: Vec<u64> = run.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!((&counts[..4], counts.last()), (&[2, 3, 5, 6][..], Some(&7)));
        assert_eq!(run.quantile(0.5), Some(Duration::from_millis(4)));
        let text = metrics.prometheus();
        assert!(text.contains("dq_worker_run_seconds_bucket{queue=\"a\\\"b\",le=\"0.004\"} 5\n"), "{text}");
        assert!(text.contains("dq_worker_run_seconds_bucket{queue=\"a\\\"b\",le=\"+Inf\"} 7\n"), "{text}");
        assert!(text.contains("dq_worker_acked_total{queue=\"a\\\"b\"} 0\n"), "{text}");
    }
}

//! The pool of handlers that a program describes: its queues, its size and its limits.

use crate::mode::Mode;
use crate::names::QueueName;
use crate::partitions::Partitions;
use std::time::Duration;

/// How many messages a pool handles at a time by default.
const CONCURRENCY: usize = 8;

/// The queues that a handler serves, and how.
///
/// ```
/// # use std::time::Duration;
/// // Eight at a time; if both queues have messages, five urgent ones for each other one.
/// let pool = dq_client::Pool::new(8)
///     .weighted("mail:urgent", 5)
///     .weighted("mail:bulk", 1)
///     .lease(Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Pool {
    pub(super) concurrency: usize,
    pub(super) queues: Vec<(QueueName, u32)>,
    pub(super) lease: Option<Duration>,
    pub(super) time_limit: Option<Duration>,
    pub(super) meta: bool,
    pub(super) finish_when_lost: bool,
}

impl Default for Pool {
    /// Handles up to eight messages at a time.
    fn default() -> Pool {
        Pool::new(CONCURRENCY)
    }
}

impl Pool {
    /// Handles up to `concurrency` messages at a time, at least one.
    pub fn new(concurrency: usize) -> Pool {
        let (concurrency, queues) = (concurrency.max(1), Vec::new());
        Pool {
            concurrency,
            queues,
            lease: None,
            time_limit: None,
            meta: cfg!(feature = "otel"),
            finish_when_lost: false,
        }
    }

    /// Serves this queue, with weight 1.
    pub fn queue(self, name: impl Into<QueueName>) -> Pool {
        self.weighted(name, 1)
    }

    /// Serves this queue. While several queues have messages, each gets handlers in proportion to its weight, at least
    /// 1.
    pub fn weighted(mut self, name: impl Into<QueueName>, weight: u32) -> Pool {
        self.queues.push((name.into(), weight));
        self
    }

    /// Serves all partitions of a topic, fairly. With a lower concurrency than partitions, idle partitions are looked
    /// at in turn, every tenth of a second; with a higher one, messages are delivered as soon as they are due.
    pub fn partitions<T: 'static, M: Mode>(mut self, partitions: &Partitions<T, M>) -> Pool {
        self.queues.extend(partitions.queues().iter().map(|queue| (queue.name().clone(), 1)));
        self
    }

    /// Gives handlers more of each message: [`Context::meta`](crate::Context::meta) has its headers, what was stored of
    /// earlier work, and more.
    pub fn meta(mut self) -> Self {
        self.meta = true;
        self
    }

    /// How long after the death of a worker its messages are delivered again; by default what the queue says, 30
    /// seconds unless its `LEASE` was set, or the message itself. It does not limit the work: leases are extended at
    /// half time while handlers run. It overrides the `LEASE` of messages.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How long a handler may run. Then its message is given back as failed, to be retried, and its future is dropped.
    /// A plain function cannot be ended: [`Context::lease_lost`](crate::Context::lease_lost) is true, and it occupies
    /// its place until it returns.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// The future of a handler goes on when its message is lost or its time is over, instead of being dropped:
    /// [`Context::cancelled`](crate::Context::cancelled) and [`Context::loss`](crate::Context::loss) say so. What it
    /// returns then has no effect.
    pub fn finish_when_lost(mut self) -> Self {
        self.finish_when_lost = true;
        self
    }
}

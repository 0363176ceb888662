//! A worker that runs, and how it is changed.

use super::metrics::Metrics;
use super::running_pool::RunningPool;
use super::shut_down::Stopped;
use super::signals::Signals;
use super::stop::{Stop, Stopper};
use crate::connect::Client;
use crate::error::Error;
use crate::mode::Mode;
use crate::names::QueueName;
use crate::sync::lock;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

/// A worker that was started. If it is dropped, it stops as [`Running::join`] says, in the background.
pub struct Running<M> {
    pub(super) client: Client<M>,
    pub(super) pools: Vec<Arc<RunningPool>>,
    pub(super) metrics: Metrics,
    pub(super) stop: Arc<Stop>,
    /// The task that stops the worker.
    pub(super) ended: JoinHandle<Stopped>,
    /// What passes signals on, if anything does.
    pub(super) signals: Option<AbortOnDropHandle<()>>,
}

impl<M: Mode> Running<M> {
    /// Asks the worker to stop.
    pub fn stop(&self) {
        self.stop.ask();
    }

    /// Asks the worker to stop when the process gets SIGTERM or SIGINT, as `run` does: for programs that look at the
    /// worker while it runs. A second signal ends the grace period.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a signal handler.
    pub fn stop_at_signal(&mut self) -> Result<(), Error> {
        let mut signals = Signals::listen(&self.client.io)?;
        let stop = Arc::clone(&self.stop);
        let passing_on = async move {
            loop {
                signals.next().await;
                stop.ask();
            }
        };
        self.signals = Some(AbortOnDropHandle::new(self.client.io.spawn(passing_on)));
        Ok(())
    }

    /// Whether the worker was asked to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.is_set()
    }

    /// A handle with which another thread can ask the worker to stop.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Resizes the pool of this queue to `concurrency`, at least one. Handlers that run beyond that finish their
    /// messages. Does nothing if no pool serves the queue.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a thread; then the pool has as many threads as it could get.
    pub fn set_concurrency(&self, queue: impl Into<QueueName>, concurrency: usize) -> Result<(), Error> {
        let Some(pool) = self.pool_for(&queue.into()).cloned() else { return Ok(()) };
        let grown = pool.executor.grow(concurrency);
        pool.permits.resize(pool.executor.limit(concurrency));
        // A blocked pop asked for as many messages as there were permits.
        self.client.io.spawn(async move {
            for source in &pool.sources {
                pool.end_pop(source).await;
            }
        });
        Ok(grown?)
    }

    /// Sets the length of leases in the pool of this queue, from the next delivery or extension on: see
    /// [`Pool::lease`](crate::Pool::lease). `None` is what the message or the queue says.
    pub fn set_lease(&self, queue: impl Into<QueueName>, lease: impl Into<Option<Duration>>) {
        if let Some(pool) = self.pool_for(&queue.into()) {
            let lease = lease.into();
            pool.sources.iter().for_each(|source| source.set_lease(lease));
        }
    }

    /// How long running handlers may go on after the request to stop: see `Worker::grace`.
    pub fn set_grace(&mut self, grace: Duration) {
        *lock(&self.stop.grace) = grace;
    }

    /// Whether the worker pops, or waits for messages, in all queues: their servers have answered within the last
    /// lease. It is not yet healthy before it has reached them, and stays healthy for the time of a lease without them.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.pools.iter().all(|pool| pool.is_healthy())
    }

    fn pool_for(&self, queue: &QueueName) -> Option<&Arc<RunningPool>> {
        self.pools.iter().find(|pool| pool.sources.iter().any(|source| source.name == *queue))
    }

    /// Waits until the worker is asked to stop, and until it has stopped: blocked pops are ended, messages that were
    /// not begun are given back without counting as an attempt, and running handlers get the grace period. Those that
    /// still run then lose their messages, which are given back in the same way.
    ///
    /// If the future is dropped, the worker stops in the background.
    pub fn join(mut self) -> M::Reply<Stopped> {
        let client = self.client.clone();
        client.run(|_| async move { (&mut self.ended).await.unwrap_or_default() })
    }
}

impl<M> Drop for Running<M> {
    fn drop(&mut self) {
        self.stop.ask_once();
    }
}

impl<M> fmt::Debug for Running<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("stopping", &self.stop.is_set()).finish_non_exhaustive()
    }
}

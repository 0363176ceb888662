//! A worker that runs, and how it is changed and stopped.

use super::metrics::Metrics;
use super::pool::Pool;
use super::spawn;
use super::stop::Stop;
use crate::Error;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A worker that was started. If it is dropped, it stops as [`Running::join`] says, in the background.
pub struct Running {
    /// Taken when the worker is stopped.
    pub(super) threads: Option<Threads>,
    pub(super) metrics: Metrics,
    pub(super) stop: Arc<Stop>,
}

/// The threads of a worker, by what they share.
pub(super) struct Threads {
    pub pools: Vec<Arc<Pool>>,
    pub grace: Duration,
    pub stop: Arc<Stop>,
}

/// Asks a worker to stop, from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<Stop>);

impl Stopper {
    /// Asks the worker to stop. The second time, it does not wait for running handlers any longer.
    pub fn stop(&self) {
        self.0.ask();
    }
}

/// How a worker has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stopped {
    /// Handlers that still ran at the end of the grace period. Their messages are delivered again when their leases expire.
    pub abandoned: usize,
}

impl Running {
    /// Asks the worker to stop.
    pub fn stop(&self) {
        self.stop.ask();
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

    /// Resizes the pool of this queue to `concurrency`, at least one. Handlers that run beyond that finish their messages.
    /// Does nothing if no pool serves the queue.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a thread; then the pool has as many threads as it could get.
    pub fn set_concurrency(&self, queue: impl AsRef<[u8]>, concurrency: usize) -> Result<(), Error> {
        let Some(pool) = self.pool_of(queue.as_ref()) else { return Ok(()) };
        let mut failure = None;
        // A pool that has become smaller keeps its threads, which wait.
        while failure.is_none() && pool.handlers.load(Ordering::Acquire) < concurrency {
            failure = spawn("dq-handler", pool, |pool| &pool.handlers, Pool::work).err();
        }
        pool.permits.resize(concurrency.min(pool.handlers.load(Ordering::Acquire)));
        // A blocked pop asked for as many messages as there were permits.
        (0..pool.sources.len()).for_each(|source| pool.end_pop(source));
        failure.map_or(Ok(()), Err)
    }

    /// Sets the length of leases in the pool of this queue, from the next delivery or extension on: see [`Pool::lease`](crate::Pool::lease).
    pub fn set_lease(&self, queue: impl AsRef<[u8]>, lease: Duration) {
        if let Some(pool) = self.pool_of(queue.as_ref()) {
            pool.set_lease(lease);
        }
    }

    /// How long running handlers may go on after the request to stop: see [`Worker::grace`](crate::Worker::grace).
    pub fn set_grace(&mut self, grace: Duration) {
        if let Some(threads) = &mut self.threads {
            threads.grace = grace;
        }
    }

    fn pool_of(&self, queue: &[u8]) -> Option<&Arc<Pool>> {
        self.threads.as_ref()?.pools.iter().find(|pool| pool.serves(queue))
    }

    /// Waits until the worker is asked to stop, and until it has stopped: blocked pops are ended, messages that were not
    /// begun are given back without counting as an attempt, and running handlers get the grace period.
    #[must_use = "handlers may have been abandoned"]
    pub fn join(mut self) -> Stopped {
        self.stop.wait();
        self.threads.take().map(|threads| threads.shut_down()).unwrap_or_default()
    }
}

impl Threads {
    fn shut_down(&self) -> Stopped {
        let end = Instant::now() + self.grace;
        self.pools.iter().for_each(|pool| pool.close());
        self.end_pops(end);
        let busy = |pool: &Pool| pool.handlers.load(Ordering::Acquire);
        self.until_none(end, busy, |pause| self.stop.pause(pause));
        let abandoned = self.pools.iter().map(|pool| busy(pool)).sum();
        self.pools.iter().for_each(|pool| pool.outcomes.end());
        // The outcomes of the handlers are still to be reported, however long they took.
        let latest =
            Instant::now() + self.pools.first().map_or(Duration::ZERO, |pool| 2 * pool.client.response_timeout());
        let sleep = |pause| {
            thread::sleep(pause);
            false
        };
        self.until_none(end.max(latest), |pool| pool.settling.load(Ordering::Acquire), sleep);
        Stopped { abandoned }
    }

    /// Ends blocked pops, again and again: a thread may have been about to block.
    fn end_pops(&self, end: Instant) {
        let mut pause = Duration::from_millis(2);
        loop {
            let popping: Vec<_> = self.pools.iter().filter(|pool| pool.fetchers.load(Ordering::Acquire) > 0).collect();
            if popping.is_empty() || Instant::now() >= end {
                return;
            }
            for pool in popping {
                (0..pool.sources.len()).for_each(|source| pool.end_pop(source));
            }
            if self.stop.pause(pause) {
                return;
            }
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// Waits until `count` is zero for all pools, but no longer than until `end` or until `enough` returns true.
    fn until_none(&self, end: Instant, count: impl Fn(&Pool) -> usize, enough: impl Fn(Duration) -> bool) {
        let mut pause = Duration::from_millis(1);
        while self.pools.iter().any(|pool| count(pool) > 0) && Instant::now() < end && !enough(pause) {
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(threads) = self.threads.take() else { return };
        if !self.stop.is_set() {
            self.stop.ask();
        }
        // If there is no thread for it, the messages come back when their leases expire.
        let _ = thread::Builder::new().name("dq-stop".to_owned()).spawn(move || threads.shut_down());
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("stopping", &self.stop.is_set()).finish_non_exhaustive()
    }
}

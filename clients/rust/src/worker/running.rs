//! A worker that runs, and how it is changed and stopped.

use super::context::Loss;
use super::metrics::Metrics;
use super::pool::Pool;
use super::stop::Stop;
use super::{spawn, stop_at_signal};
use crate::connect::{after, lock};
use crate::Error;
use signal_hook::iterator::Handle;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long handlers have to heed that their messages were taken from them at the end, and how long the outcomes of
/// handlers are reported if the worker was asked to stop a second time.
const TO_HEED: Duration = Duration::from_millis(300);

/// A worker that was started. If it is dropped, it stops as [`Running::join`] says, in the background.
pub struct Running {
    /// Taken when the worker is stopped.
    pub(super) threads: Option<Threads>,
    pub(super) metrics: Metrics,
    pub(super) stop: Arc<Stop>,
    /// What passes signals on, if anything does.
    pub(super) signals: Option<Handle>,
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
    /// Handlers that still ran at the end, although they were told that the grace period is over.
    pub abandoned: usize,
    /// Whether it was asked to stop a second time, and did not wait for its handlers.
    pub forced: bool,
}

impl Running {
    /// Asks the worker to stop.
    pub fn stop(&self) {
        self.stop.ask();
    }

    /// Asks the worker to stop when the process gets SIGTERM or SIGINT, as [`Worker::run`](crate::Worker::run) does: for
    /// programs that look at the worker while it runs. A second signal ends the grace period.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a thread or a signal handler.
    pub fn stop_at_signal(&mut self) -> Result<(), Error> {
        self.signals = Some(stop_at_signal(&self.stop)?);
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
        pool.sources.iter().for_each(|source| drop(pool.end_pop(source)));
        failure.map_or(Ok(()), Err)
    }

    /// Sets the length of leases in the pool of this queue, from the next delivery or extension on: see [`Pool::lease`](crate::Pool::lease).
    /// `None` is what the queue says, from the next connection on.
    pub fn set_lease(&self, queue: impl AsRef<[u8]>, lease: impl Into<Option<Duration>>) {
        if let Some(pool) = self.pool_of(queue.as_ref()) {
            pool.set_lease(lease.into());
        }
    }

    /// How long running handlers may go on after the request to stop: see [`Worker::grace`](crate::Worker::grace).
    pub fn set_grace(&mut self, grace: Duration) {
        if let Some(threads) = &mut self.threads {
            threads.grace = grace;
        }
    }

    /// Whether the worker pops, or waits for messages, in all queues: their servers have answered within the last lease.
    /// It is not yet healthy before it has reached them, and stays healthy for the time of a lease without them.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.threads.as_ref().is_some_and(|threads| threads.pools.iter().all(|pool| pool.is_healthy()))
    }

    fn pool_of(&self, queue: &[u8]) -> Option<&Arc<Pool>> {
        self.threads.as_ref()?.pools.iter().find(|pool| pool.serves(queue))
    }

    /// Waits until the worker is asked to stop, and until it has stopped: blocked pops are ended, messages that were not
    /// begun are given back without counting as an attempt, and running handlers get the grace period. Those that still run
    /// then lose their messages, which are given back in the same way.
    #[must_use = "handlers may have been abandoned"]
    pub fn join(mut self) -> Stopped {
        self.stop.wait();
        let stopped = self.threads.take().map(|threads| threads.shut_down()).unwrap_or_default();
        if let Some(signals) = self.signals.take() {
            signals.close();
        }
        stopped
    }
}

impl Threads {
    fn shut_down(&self) -> Stopped {
        let end = after(self.grace);
        self.pools.iter().for_each(|pool| pool.close());
        let timeout = self.pools.first().map_or(Duration::ZERO, |pool| pool.client.response_timeout());
        // A pop that still waits would be delivered what is given back.
        self.end_pops(end.max(Instant::now() + timeout));
        let busy = |pool: &Pool| pool.handlers.load(Ordering::Acquire);
        self.until_none(end, busy, |pause| self.stop.pause(pause));
        for pool in &self.pools {
            let leases: Vec<_> = lock(&pool.leases).values().cloned().collect();
            pool.take_from_handlers(leases, Loss::Stopping);
        }
        self.until_none(Instant::now() + TO_HEED, busy, |pause| self.stop.pause(pause));
        let abandoned = self.pools.iter().map(|pool| busy(pool)).sum();
        self.pools.iter().for_each(|pool| pool.outcomes.end());
        // The outcomes of the handlers are still to be reported, however long they took.
        let latest = |forced: bool| if forced { TO_HEED } else { 2 * timeout };
        let (asked, settling) = (Instant::now(), |pool: &Pool| pool.settling.load(Ordering::Acquire));
        let enough = |pause| {
            thread::sleep(pause);
            asked.elapsed() >= latest(self.stop.is_forced())
        };
        self.until_none(end.max(asked + latest(false)), settling, enough);
        Stopped { abandoned, forced: self.stop.is_forced() }
    }

    /// Ends blocked pops, again and again: a thread may have been about to block. Does not wait for those of a server that does
    /// not end them.
    fn end_pops(&self, end: Instant) {
        let mut pause = Duration::from_millis(2);
        let mut lost = Vec::new();
        let is_popping = |pool: &Arc<Pool>| pool.fetchers.load(Ordering::Acquire);
        loop {
            let mut left: usize = self.pools.iter().map(is_popping).sum();
            for (pool, source) in
                self.pools.iter().flat_map(|pool| pool.sources.iter().map(move |source| (pool, source)))
            {
                let server = lock(&source.popping).as_ref().map(|(server, _)| server.clone());
                if server.is_some_and(|server| lost.contains(&server)) {
                    left = left.saturating_sub(1);
                } else {
                    lost.extend(pool.end_pop(source));
                }
            }
            if left == 0 || Instant::now() >= end || self.stop.pause(pause) {
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

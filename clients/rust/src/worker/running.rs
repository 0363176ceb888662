//! A worker that runs, and how it is changed and stopped.

use super::lease::Loss;
use super::metrics::Metrics;
use super::pool::{Pool, Source};
use crate::connect::{after, lock, Address, Client};
use crate::mode::{self, Mode};
use crate::names::QueueName;
use crate::Error;
use futures_util::future::join_all;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::task::JoinHandle;
use tokio::time::{sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// How long handlers have to end after their messages were taken from them at the end, and how long the outcomes of
/// handlers are reported if the worker was asked to stop a second time.
const TO_END: Duration = Duration::from_millis(300);
/// How long the replies to pops that the server has ended may take.
const TO_END_POPS: Duration = Duration::from_millis(300);

/// The request to stop, and what has to end then.
pub(super) struct Stop {
    asked: CancellationToken,
    /// Without waiting for running handlers.
    forced: CancellationToken,
    /// How long handlers may go on after it.
    grace: Mutex<Duration>,
    /// The tasks that pop.
    pub fetchers: TaskTracker,
    /// The messages that were delivered, and whose handlers have not ended.
    pub handlers: TaskTracker,
}

impl Stop {
    pub fn new(grace: Duration) -> Stop {
        let (asked, forced) = (CancellationToken::new(), CancellationToken::new());
        let (fetchers, handlers) = (TaskTracker::new(), TaskTracker::new());
        Stop { asked, forced, grace: Mutex::new(grace), fetchers, handlers }
    }

    /// Asks to stop; the second time, without waiting for handlers.
    pub fn ask(&self) {
        if self.is_set() {
            self.forced.cancel();
        }
        self.asked.cancel();
    }

    /// Asks to stop, if nobody has.
    pub fn ask_once(&self) {
        self.asked.cancel();
    }

    pub fn is_set(&self) -> bool {
        self.asked.is_cancelled()
    }

    pub async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// Waits for this time, or until the worker is asked to stop.
    pub async fn pause(&self, time: Duration) {
        let _ = timeout(time, self.asked.cancelled()).await;
    }

    /// Waits for this until a time, or until the worker is asked to stop a second time.
    async fn wait(&self, until: Instant, what: impl Future<Output = ()>) {
        tokio::select! {
            () = what => {}
            () = sleep_until(until.into()) => {}
            () = self.forced.cancelled() => {}
        }
    }
}

/// A worker that was started. If it is dropped, it stops as [`Running::join`] says, in the background.
pub struct Running<M> {
    pub(super) client: Client<M>,
    pub(super) pools: Vec<Arc<Pool>>,
    pub(super) metrics: Metrics,
    pub(super) stop: Arc<Stop>,
    /// The task that stops the worker.
    pub(super) ended: JoinHandle<Stopped>,
    /// What passes signals on, if anything does.
    pub(super) signals: Option<AbortOnDropHandle<()>>,
}

/// The signals that ask a process to stop.
struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// They do not end the process from now on.
    fn listen(io: &Handle) -> std::io::Result<Signals> {
        let _runtime = io.enter();
        Ok(Signals { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// Waits for SIGTERM, which platforms send to a service that is to stop, or SIGINT (Ctrl-C). From the call on, they do not end
/// the process. `Worker::run` needs nothing of this; it is for a program that has more to stop than its workers.
///
/// # Errors
/// If the operating system refuses a signal handler.
pub fn shutdown_signal() -> impl Future<Output = std::io::Result<()>> + Send + 'static {
    let signals = mode::io().and_then(|io| Signals::listen(&io));
    async move {
        signals?.next().await;
        Ok(())
    }
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
    /// Handlers that still ran at the end, although their messages were taken from them after the grace period.
    pub abandoned: usize,
    /// Whether it was asked to stop a second time, and did not wait for its handlers.
    pub forced: bool,
    /// Messages of which the server has not accepted, since the worker was started, that they were handled or given back. They
    /// are delivered again when their leases expire.
    pub unreported: usize,
}

impl<M: Mode> Running<M> {
    /// Asks the worker to stop.
    pub fn stop(&self) {
        self.stop.ask();
    }

    /// Asks the worker to stop when the process gets SIGTERM or SIGINT, as `run` does: for programs that look at the worker
    /// while it runs. A second signal ends the grace period.
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

    /// Resizes the pool of this queue to `concurrency`, at least one. Handlers that run beyond that finish their messages.
    /// Does nothing if no pool serves the queue.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a thread; then the pool has as many threads as it could get.
    pub fn set_concurrency(&self, queue: impl Into<QueueName>, concurrency: usize) -> Result<(), Error> {
        let Some(pool) = self.pool_of(&queue.into()).cloned() else { return Ok(()) };
        let grown = pool.handlers.grow(concurrency);
        pool.permits.resize(pool.handlers.limit(concurrency));
        // A blocked pop asked for as many messages as there were permits.
        self.client.io.spawn(async move {
            for source in &pool.sources {
                pool.end_pop(source).await;
            }
        });
        Ok(grown?)
    }

    /// Sets the length of leases in the pool of this queue, from the next delivery or extension on: see [`Pool::lease`](crate::Pool::lease).
    /// `None` is what the message or the queue says.
    pub fn set_lease(&self, queue: impl Into<QueueName>, lease: impl Into<Option<Duration>>) {
        if let Some(pool) = self.pool_of(&queue.into()) {
            let lease = lease.into();
            pool.sources.iter().for_each(|source| source.set_lease(lease));
        }
    }

    /// How long running handlers may go on after the request to stop: see `Worker::grace`.
    pub fn set_grace(&mut self, grace: Duration) {
        *lock(&self.stop.grace) = grace;
    }

    /// Whether the worker pops, or waits for messages, in all queues: their servers have answered within the last lease.
    /// It is not yet healthy before it has reached them, and stays healthy for the time of a lease without them.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.pools.iter().all(|pool| pool.is_healthy())
    }

    fn pool_of(&self, queue: &QueueName) -> Option<&Arc<Pool>> {
        self.pools.iter().find(|pool| pool.sources.iter().any(|source| source.name == *queue))
    }

    /// Waits until the worker is asked to stop, and until it has stopped: blocked pops are ended, messages that were not
    /// begun are given back without counting as an attempt, and running handlers get the grace period. Those that still run
    /// then lose their messages, which are given back in the same way.
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

/// Waits until the worker is asked to stop, and stops it.
pub(super) async fn shut_down(pools: Vec<Arc<Pool>>, settling: Vec<JoinHandle<()>>, stop: Arc<Stop>) -> Stopped {
    stop.asked().await;
    let end = after(*lock(&stop.grace));
    pools.iter().for_each(|pool| pool.permits.close());
    let time = pools.first().map_or(Duration::ZERO, |pool| pool.core.options.response_timeout);
    // A pop that still waits would be delivered what is given back.
    stop.wait(end.max(Instant::now() + time), end_pops(&pools, &stop.fetchers)).await;
    stop.handlers.close();
    stop.wait(end, stop.handlers.wait()).await;
    for pool in &pools {
        for source in &pool.sources {
            let leases: Vec<_> = lock(&source.leases).values().cloned().collect();
            pool.take_from_handlers(leases, Loss::Stopping);
        }
    }
    let _ = timeout(TO_END, stop.handlers.wait()).await;
    let abandoned = stop.handlers.len();
    for pool in &pools {
        pool.handlers.close();
        pool.ended.cancel();
    }
    // The outcomes of the handlers are still to be reported, however long they took.
    let forced = async {
        stop.forced.cancelled().await;
        sleep(TO_END).await;
    };
    tokio::select! {
        _ = timeout_at(end.max(Instant::now() + 2 * time).into(), join_all(settling)) => {}
        () = forced => {}
    }
    let reported = pools.iter().map(|pool| pool.reporter.flush());
    let _ = timeout(TO_END, join_all(reported)).await;
    let sources = pools.iter().flat_map(|pool| &pool.sources);
    let unreported = sources.map(|source| source.not_accepted()).sum();
    Stopped { abandoned, forced: stop.forced.is_cancelled(), unreported }
}

/// Ends blocked pops, again and again: a task may have been about to block. Does not wait for those of a server that does
/// not end them, nor for a reply that does not come by a connection that is dead.
async fn end_pops(pools: &[Arc<Pool>], fetchers: &TaskTracker) {
    let (begun, mut pause) = (Instant::now(), Duration::from_millis(2));
    let mut lost: Vec<Address> = Vec::new();
    let mut sources = Vec::new();
    for pool in pools {
        sources.extend(pool.sources.iter().map(|source| (Arc::clone(pool), Arc::clone(source))));
    }
    let popping = |source: &Source| lock(&source.popping).as_ref().map(|(server, _)| server.clone());
    loop {
        let mut ending = Vec::new();
        for (pool, source) in &sources {
            if popping(source).is_some_and(|server| !lost.contains(&server)) {
                ending.push(pool.end_pop(source));
            }
        }
        lost.extend(join_all(ending).await.into_iter().flatten());
        let is_late = begun.elapsed() > TO_END_POPS;
        let is_given_up = |server: Address| is_late || lost.contains(&server);
        let given_up = sources.iter().filter(|(_, source)| popping(source).is_some_and(is_given_up)).count();
        if fetchers.len() <= given_up {
            return;
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

//! Workers: pools of threads that take messages from queues and hand them to functions.

mod context;
mod event;
mod fetch;
mod inbox;
mod metrics;
mod permits;
mod pool;
mod settle;
mod stop;

pub use context::{Context, Failure};
pub use event::Event;
pub use metrics::{Metrics, QueueMetrics};

use crate::connect::Client;
use crate::partitions::Partitions;
use crate::payload::Decode;
use crate::Error;
use inbox::Inbox;
use metrics::Counters;
use permits::Permits;
use pool::{Handler, Observer, Source, Verdict};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use stop::Stop;

/// How long a pop blocks. A worker notices after this time that its server has gone without a word.
const BLOCK: Duration = Duration::from_secs(5);
/// How long the lease of a message is after the death of its worker.
const LEASE: Duration = Duration::from_secs(30);
/// How long running handlers may go on after the request to stop.
const GRACE: Duration = Duration::from_secs(30);

/// Which queues a pool of hands serves.
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
    hands: usize,
    queues: Vec<(Vec<u8>, u32)>,
    lease: Duration,
}

impl Pool {
    /// So many messages at a time, at least one.
    pub fn new(hands: usize) -> Pool {
        Pool { hands: hands.max(1), queues: Vec::new(), lease: LEASE }
    }

    /// Serves this queue, with weight 1.
    pub fn queue(self, name: impl AsRef<[u8]>) -> Pool {
        self.weighted(name, 1)
    }

    /// Serves this queue. While several queues have messages, each gets hands in proportion to its weight, at least 1.
    pub fn weighted(mut self, name: impl AsRef<[u8]>, weight: u32) -> Pool {
        self.queues.push((name.as_ref().to_vec(), weight));
        self
    }

    /// Serves all partitions of a topic, fairly. With fewer hands than partitions, idle partitions are looked at in turn,
    /// every tenth of a second; with as many, messages are delivered as soon as they are due.
    pub fn partitions<T>(mut self, partitions: &Partitions<T>) -> Pool {
        self.queues.extend(partitions.queues().iter().map(|queue| (queue.key().to_vec(), 1)));
        self
    }

    /// How long after the death of a worker its messages are delivered again, 30 seconds by default. It is no limit for the
    /// work: leases are extended at half time while handlers run. It takes the place of the `LEASE` of messages and of
    /// queues.
    pub fn lease(mut self, lease: Duration) -> Pool {
        self.lease = lease.max(Duration::from_millis(100));
        self
    }
}

/// Runs functions on the messages of queues.
///
/// ```no_run
/// use dq_client::{Client, Context, Failure, Worker};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Mail { to: String }
///
/// fn send_mail(mail: Mail, context: &Context) -> Result<(), Failure> {
///     if mail.to.is_empty() {
///         return Err(Failure::reject("no address"));
///     }
///     println!("{} to {}", context.id(), mail.to);
///     Ok(())
/// }
///
/// fn main() -> Result<(), dq_client::Error> {
///     let client = Client::open("redis://127.0.0.1:6379")?;
///     Worker::new(client).queue("mail", 8, send_mail).run()?;
///     Ok(())
/// }
/// ```
///
/// - `Ok` acknowledges the message. A [`Failure`] gives it back: to be retried, retried after a time, or rejected. A panic
///   gives it back to be retried. A payload that cannot be decoded is rejected.
/// - A pool pops no more messages than it has free hands, and extends leases while its handlers run. If a lease is lost,
///   [`Context::lease_lost`] tells the handler, and its ack does not count.
/// - Each pool has a thread for each hand, one for each queue, and one for acks and leases; each queue has a blocked
///   connection. An idle worker does nothing.
/// - To stop at once, the user needs the right `+client|unblock`; without it a worker stops when its pops end, after up to
///   five seconds.
#[must_use = "a worker does nothing until it is started"]
pub struct Worker {
    client: Client,
    pools: Vec<(Pool, Arc<Handler>)>,
    grace: Duration,
    observer: Arc<Observer>,
    metrics: Metrics,
    stop: Arc<Stop>,
}

impl Worker {
    /// A worker without queues.
    pub fn new(client: Client) -> Worker {
        Worker {
            client,
            pools: Vec::new(),
            grace: GRACE,
            observer: Arc::new(|event| eprintln!("dq: {event}")),
            metrics: Metrics::default(),
            stop: Arc::default(),
        }
    }

    /// Runs `handler` on the messages of a queue, up to `hands` at a time.
    pub fn queue<T, F>(self, name: impl AsRef<[u8]>, hands: usize, handler: F) -> Worker
    where
        T: Decode + 'static,
        F: Fn(T, &Context) -> Result<(), Failure> + Send + Sync + 'static,
    {
        self.pool(Pool::new(hands).queue(name), handler)
    }

    /// Runs `handler` on the messages of the queues of a pool.
    pub fn pool<T, F>(mut self, pool: Pool, handler: F) -> Worker
    where
        T: Decode + 'static,
        F: Fn(T, &Context) -> Result<(), Failure> + Send + Sync + 'static,
    {
        let decoding = move |payload: &[u8], context: &Context| match T::decode(payload) {
            Err(error) => Verdict::Undecodable(error),
            Ok(value) => match handler(value, context) {
                Ok(()) => Verdict::Done,
                Err(failure) => Verdict::Failed(failure),
            },
        };
        self.pools.push((pool, Arc::new(decoding)));
        self
    }

    /// How long running handlers may go on after the request to stop, 30 seconds by default. Handlers that run longer are
    /// abandoned: their messages are delivered again when their leases end.
    pub fn grace(mut self, grace: Duration) -> Worker {
        self.grace = grace;
        self
    }

    /// What to do with reports of failures and interruptions, instead of writing them to standard error. It is called by
    /// the worker's threads, so it should not take long.
    pub fn on_event(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Worker {
        self.observer = Arc::new(observer);
        self
    }

    /// The counters of this worker, to be exported while it runs.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Works until SIGTERM or SIGINT, and stops as [`Running::join`] says. A second signal ends the grace period.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a thread or a signal handler. That servers cannot be reached is no
    /// error: the worker tries again until it can.
    pub fn run(self) -> Result<Stopped, Error> {
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let (handle, stop) = (signals.handle(), Arc::clone(&self.stop));
        thread::Builder::new()
            .name("dq-signals".to_owned())
            .spawn(move || signals.forever().for_each(|_| stop.ask()))?;
        let running = self.start();
        let stopped = running.map(Running::join);
        handle.close();
        stopped
    }

    /// Starts the threads, and returns at once. The signals of the process stay as they are.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a thread.
    pub fn start(self) -> Result<Running, Error> {
        let threads = Threads { pools: Vec::new(), grace: self.grace, stop: Arc::clone(&self.stop) };
        let mut running = Running { threads: Some(threads), metrics: self.metrics, stop: self.stop };
        for (spec, handler) in self.pools {
            let source = |(key, _): &(Vec<u8>, u32)| {
                let name = String::from_utf8_lossy(key);
                let counters: Arc<Counters> = running.metrics.queue(&name);
                Source { key: key.clone(), name: Arc::from(&*name), counters, blocked: Mutex::default() }
            };
            let weights: Vec<u32> = spec.queues.iter().map(|(_, weight)| *weight).collect();
            let pool = Arc::new(pool::Pool {
                client: self.client.clone(),
                sources: spec.queues.iter().map(source).collect(),
                handler,
                observer: Arc::clone(&self.observer),
                lease: spec.lease,
                block: BLOCK,
                permits: Permits::new(spec.hands, &weights),
                jobs: Inbox::new(),
                outcomes: Inbox::new(),
                stop: Arc::clone(&running.stop),
                leases: Mutex::default(),
                fetchers: AtomicUsize::new(0),
                hands: AtomicUsize::new(0),
                settling: AtomicUsize::new(0),
            });
            if let Some(threads) = &mut running.threads {
                threads.pools.push(Arc::clone(&pool));
            }
            spawn("dq-settle", &pool, |pool| &pool.settling, settle::run)?;
            for _ in 0..spec.hands {
                spawn("dq-hand", &pool, |pool| &pool.hands, pool::Pool::work)?;
            }
            for number in 0..pool.sources.len() {
                spawn("dq-fetch", &pool, |pool| &pool.fetchers, move |pool| fetch::run(pool, number))?;
            }
        }
        Ok(running)
    }
}

fn spawn(
    name: &str,
    pool: &Arc<pool::Pool>,
    counter: impl Fn(&pool::Pool) -> &AtomicUsize,
    run: impl FnOnce(&pool::Pool) + Send + 'static,
) -> Result<(), Error> {
    let shared = Arc::clone(pool);
    counter(pool).fetch_add(1, Ordering::AcqRel);
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || run(&shared));
    if let Err(error) = spawned {
        counter(pool).fetch_sub(1, Ordering::AcqRel);
        return Err(Error::System(error));
    }
    Ok(())
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("client", &self.client).finish_non_exhaustive()
    }
}

/// A worker that was started. If it is dropped, it stops as [`Running::join`] says, in the background.
pub struct Running {
    /// Taken when the worker is stopped.
    threads: Option<Threads>,
    metrics: Metrics,
    stop: Arc<Stop>,
}

/// The threads of a worker, by what they share.
struct Threads {
    pools: Vec<Arc<pool::Pool>>,
    grace: Duration,
    stop: Arc<Stop>,
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
    /// Handlers that still ran at the end of the grace period. Their messages are delivered again when their leases end.
    pub abandoned: usize,
}

impl Running {
    /// Asks the worker to stop.
    pub fn stop(&self) {
        self.stop.ask();
    }

    /// Something that asks the worker to stop, to be given to another thread.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
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
        let busy = |pool: &pool::Pool| pool.hands.load(Ordering::Acquire);
        self.until_none(end, busy, |pause| self.stop.pause(pause));
        let abandoned = self.pools.iter().map(|pool| busy(pool)).sum();
        self.pools.iter().for_each(|pool| pool.outcomes.end());
        // What the handlers did is still to be reported, however long they took.
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

    /// Waits until no pool counts anything, until `end`, or until `enough` says that it is enough.
    fn until_none(&self, end: Instant, count: impl Fn(&pool::Pool) -> usize, enough: impl Fn(Duration) -> bool) {
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
        // If there is no thread for it, the messages come back when their leases end.
        let _ = thread::Builder::new().name("dq-stop".to_owned()).spawn(move || threads.shut_down());
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("stopping", &self.stop.is_set()).finish_non_exhaustive()
    }
}

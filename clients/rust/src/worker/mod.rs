//! Workers: pools of threads that take messages from queues and hand them to functions.

mod calm;
mod context;
mod event;
mod fetch;
mod handoff;
mod inbox;
mod metrics;
mod notices;
mod permits;
mod pool;
mod running;
mod settle;
mod stop;

pub use context::{Context, Failure, Loss};
pub use event::Event;
pub use metrics::{Metrics, QueueMetrics};
pub use running::{Running, Stopped, Stopper};

use crate::connect::Client;
use crate::partitions::Partitions;
use crate::payload::{Decode, Encode};
use crate::queue::done;
use crate::Error;
use handoff::Handoff;
use metrics::Counters;
use permits::Permits;
use pool::{Handler, Observer, Parts, Source, SourceLease, Verdict};
use running::Threads;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::any::TypeId;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use stop::Stop;

/// How long a pop blocks, so that a dead server is noticed.
const BLOCK: Duration = Duration::from_secs(5);
/// How long running handlers may go on after the request to stop.
const GRACE: Duration = Duration::from_secs(30);
/// The longest name of a consumer.
const CONSUMER_BYTES: usize = 128;

/// A pool of threads, and the queues that it serves.
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
    concurrency: usize,
    queues: Vec<(Vec<u8>, u32)>,
    lease: Option<Duration>,
    time_limit: Option<Duration>,
    meta: bool,
}

impl Pool {
    /// Handles up to `concurrency` messages at a time, at least one.
    pub fn new(concurrency: usize) -> Pool {
        Pool { concurrency: concurrency.max(1), queues: Vec::new(), lease: None, time_limit: None, meta: false }
    }

    /// Serves this queue, with weight 1.
    pub fn queue(self, name: impl AsRef<[u8]>) -> Pool {
        self.weighted(name, 1)
    }

    /// Serves this queue. While several queues have messages, each gets threads in proportion to its weight, at least 1.
    pub fn weighted(mut self, name: impl AsRef<[u8]>, weight: u32) -> Pool {
        self.queues.push((name.as_ref().to_vec(), weight));
        self
    }

    /// Serves all partitions of a topic, fairly. With fewer threads than partitions, idle partitions are looked at in
    /// turn, every tenth of a second; with as many, messages are delivered as soon as they are due.
    pub fn partitions<T>(mut self, partitions: &Partitions<T>) -> Pool {
        self.queues.extend(partitions.queues().iter().map(|queue| (queue.key().to_vec(), 1)));
        self
    }

    /// Tells handlers more of each message: [`Context::meta`] has its headers, what was stored of earlier work, and more.
    pub fn meta(mut self) -> Pool {
        self.meta = true;
        self
    }

    /// How long after the death of a worker its messages are delivered again; by default what the queue says, 30 seconds
    /// unless its `LEASE` was set. It does not limit the work: leases are extended at half time while handlers run. It
    /// overrides the `LEASE` of messages.
    pub fn lease(mut self, lease: Duration) -> Pool {
        self.lease = Some(lease);
        self
    }

    /// How long a handler may run. Then its message is given back as failed, to be retried, and [`Context::lease_lost`]
    /// tells the handler; a thread cannot be ended, so the handler occupies its place until it returns.
    pub fn time_limit(mut self, limit: Duration) -> Pool {
        self.time_limit = Some(limit);
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
/// - `Ok` acknowledges the message. If the message is kept as done, because the queue or its push says for how long, the value
///   becomes its result, encoded as payloads are; `()` and an empty [`Raw`](crate::Raw) stand for none. A result beyond 65,536
///   bytes, or one that cannot be encoded, is lost, which [`Event::ResultLost`] says. A [`Failure`] gives it back: to be retried, retried after a time, or rejected. A panic
///   gives it back to be retried. A payload that cannot be decoded is rejected.
/// - A pool pops no more messages than it has idle threads, and extends leases while its handlers run. If a lease is lost,
///   [`Context::lease_lost`] tells the handler, and its ack does not count.
/// - An ack goes with the next pop of its queue if that follows at once (`DQ.ACKPOP`), so that a busy worker needs one
///   command for each message.
/// - Each pool has `concurrency` threads, one more for each queue, one for acks and leases, and one that listens to the notices
///   of lost messages, with a connection of its own; each queue has a blocked connection. An idle worker does nothing.
/// - The worker takes messages under the name `host:pid:name`, with the name of its connections
///   ([`Options::name`](crate::Options::name)): `DQ.CONSUMERS` and `DQ.RELEASE` know it by that, and so does `CLIENT LIST` the
///   connections that pop.
/// - To end its pops when it stops, the user needs the rights `+client|unblock +multi +exec`. If the server does not end them
///   within half a second, because the user lacks these or because writes are paused (`CLIENT PAUSE`, `FAILOVER`), the worker
///   stops without waiting for them: what is delivered to one until its connection is closed is given back, or, if the
///   process has ended, delivered again after its lease.
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
            observer: Arc::new(|event| drop(writeln!(io::stderr(), "dq: {event}"))),
            metrics: Metrics::default(),
            stop: Arc::default(),
        }
    }

    /// Runs `handler` on the messages of a queue, up to `concurrency` at a time.
    pub fn queue<T, R, F>(self, name: impl AsRef<[u8]>, concurrency: usize, handler: F) -> Worker
    where
        T: Decode + 'static,
        R: Encode + 'static,
        F: Fn(T, &Context) -> Result<R, Failure> + Send + Sync + 'static,
    {
        self.pool(Pool::new(concurrency).queue(name), handler)
    }

    /// Runs `handler` on the messages of the queues of a pool.
    pub fn pool<T, R, F>(mut self, pool: Pool, handler: F) -> Worker
    where
        T: Decode + 'static,
        R: Encode + 'static,
        F: Fn(T, &Context) -> Result<R, Failure> + Send + Sync + 'static,
    {
        let decoding = move |payload: &[u8], context: &Context| match T::decode(payload) {
            Err(error) => Verdict::Undecodable(error),
            Ok(value) => match handler(value, context) {
                Ok(result) => encoded(&result).map_or_else(Verdict::Unkept, Verdict::Done),
                Err(failure) => Verdict::Failed(failure),
            },
        };
        self.pools.push((pool, Arc::new(decoding)));
        self
    }

    /// How long running handlers may go on after the request to stop, 30 seconds by default. Handlers that run longer are
    /// told by [`Context::lease_lost`], and their messages are given back without counting as an attempt.
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

    /// Counts with these counters, which several workers can share: [`Metrics::default`] has none yet.
    pub fn metrics_in(mut self, metrics: &Metrics) -> Worker {
        self.metrics = metrics.clone();
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
        let signals = stop_at_signal(&self.stop)?;
        let stopped = self.start().map(Running::join);
        signals.close();
        stopped
    }

    /// Starts the threads, and returns at once. The signals of the process stay as they are.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a thread.
    pub fn start(self) -> Result<Running, Error> {
        let threads = Threads { pools: Vec::new(), grace: self.grace, stop: Arc::clone(&self.stop) };
        let consumer = consumer_name(self.client.name());
        let mut running = Running { threads: Some(threads), metrics: self.metrics, stop: self.stop, signals: None };
        for (spec, handler) in self.pools {
            let source = |(key, _): &(Vec<u8>, u32)| {
                // Two queues never have the same name, whatever bytes their keys have.
                let name = String::from_utf8(key.clone()).unwrap_or_else(|_| key.escape_ascii().to_string());
                let counters: Arc<Counters> = running.metrics.queue(&name);
                Source {
                    key: key.clone(),
                    name: Arc::from(name),
                    counters,
                    popping: Mutex::default(),
                    lease: SourceLease::new(spec.lease),
                    contact: Mutex::default(),
                    handoff: Handoff::default(),
                    extends_singly: AtomicBool::new(false),
                    has_lost_a_result: AtomicBool::new(false),
                }
            };
            let weights: Vec<u32> = spec.queues.iter().map(|(_, weight)| *weight).collect();
            let parts = Parts {
                client: self.client.clone(),
                sources: spec.queues.iter().map(source).collect(),
                handler,
                observer: Arc::clone(&self.observer),
                permits: Permits::new(spec.concurrency, &weights),
                block: BLOCK,
                meta: spec.meta,
                time_limit: spec.time_limit,
                stop: Arc::clone(&running.stop),
                consumer: consumer.clone(),
            };
            let pool = Arc::new(pool::Pool::new(parts));
            if let Some(threads) = &mut running.threads {
                threads.pools.push(Arc::clone(&pool));
            }
            spawn("dq-notices", &pool, |pool| &pool.listening, notices::run)?;
            spawn("dq-settle", &pool, |pool| &pool.settling, settle::run)?;
            for _ in 0..spec.concurrency {
                spawn("dq-handler", &pool, |pool| &pool.handlers, pool::Pool::work)?;
            }
            for number in 0..pool.sources.len() {
                spawn("dq-fetch", &pool, |pool| &pool.fetchers, move |pool| fetch::run(pool, number))?;
            }
        }
        Ok(running)
    }
}

/// From now on, SIGTERM and SIGINT ask the worker to stop.
fn stop_at_signal(stop: &Arc<Stop>) -> Result<Handle, Error> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let (handle, stop) = (signals.handle(), Arc::clone(stop));
    thread::Builder::new().name("dq-signals".to_owned()).spawn(move || signals.forever().for_each(|_| stop.ask()))?;
    Ok(handle)
}

/// The name under which a worker of this process takes messages: `host:pid:name`, with the name of its connections.
fn consumer_name(name: &str) -> Vec<u8> {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let mut consumer = format!("{}:{}:{name}", host.to_string_lossy(), std::process::id()).into_bytes();
    consumer.truncate(CONSUMER_BYTES);
    consumer
}

/// The result of a handler; empty if there is none.
fn encoded<R: Encode + 'static>(result: &R) -> Result<Vec<u8>, Error> {
    // Its encoding would be that of null.
    if TypeId::of::<R>() == TypeId::of::<()>() {
        return Ok(Vec::new());
    }
    let bytes = result.encode()?;
    if bytes.len() > done::RESULT_BYTES {
        return Err(done::too_large(bytes.len()));
    }
    Ok(bytes)
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

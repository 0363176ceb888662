//! Workers: they take messages from queues and hand them to handlers.

mod context;
mod event;
mod executor;
mod failure;
mod fetch;
mod guard;
mod handling;
mod handoff;
mod lease;
mod loss;
mod metrics;
mod notices;
mod outcome;
mod permits;
mod pool;
mod reporter;
mod running;
mod running_pool;
mod settle;
mod shut_down;
mod signals;
mod source;
mod stop;

pub use context::Context;
pub use event::Event;
pub use failure::Failure;
pub use loss::Loss;
pub use metrics::{Metrics, QueueMetrics};
pub use pool::Pool;
pub use running::Running;
pub use shut_down::Stopped;
pub use signals::shutdown_signal;
pub use stop::Stopper;

use crate::connect::Client;
use crate::error::Error;
use crate::mode::{Async, Blocking, Mode};
use crate::names::QueueName;
use crate::payload::{Decode, Encode};
use crate::queue::{too_large, RESULT_BYTES};
use executor::Executor;
use futures_util::FutureExt;
use outcome::Verdict;
use permits::Permits;
use reporter::{Observer, Reporter};
use running_pool::{Handler, RunningPool};
use source::Source;
use std::any::TypeId;
use std::fmt;
use std::future::{ready, Future};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;
use stop::Stop;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// How long running handlers may go on after the request to stop.
const GRACE: Duration = Duration::from_secs(30);
/// The longest name of a consumer.
const CONSUMER_BYTES: usize = 128;

/// Runs handlers on the messages of queues.
///
/// - `Ok` acknowledges the message. If the message is kept as done, because the queue or its push says for how long,
///   the value becomes its result, encoded as payloads are; `()` and an empty [`Raw`](crate::Raw) stand for none. A
///   result beyond 65,536 bytes, or one that cannot be encoded, is lost, which [`Event::ResultLost`] reports. A
///   [`Failure`] gives it back: to be retried, retried after a time, or rejected. A panic gives it back to be retried,
///   and so does a payload that cannot be decoded: a newer worker may be able to.
/// - A pool pops no more messages than handlers may begin, and extends leases while its handlers run. If a lease is
///   lost, the handler's future is dropped, unless its pool lets it [finish](Pool::finish_when_lost); a plain function
///   learns it from [`Context::lease_lost`]. Its ack does not count.
/// - An ack goes with the next pop of its queue if that follows at once (`DQ.ACKPOP`), so that a busy worker needs one
///   command for each message.
/// - Connections, leases and outcomes are kept by one thread of this crate, `dq-io`: a handler that blocks its runtime
///   keeps its message. Each queue has a connection for its pops, and each pool one for the notices of lost messages.
///   An idle worker does nothing.
/// - The worker takes messages under the name `host:pid:name`, with the name of its connections
///   ([`Options::name`](crate::Options::name)): `DQ.CONSUMERS` and `DQ.RELEASE` know it by that, and so does
///   `CLIENT LIST` the connections that pop.
/// - To end its pops when it stops, the user needs the rights `+client|unblock +multi +exec`. If the server does not
///   end them within half a second, because the user lacks these or because writes are paused (`CLIENT PAUSE`,
///   `FAILOVER`), the worker stops without waiting for them: what is delivered to one until its connection is closed is
///   given back, or, if the process has ended, delivered again after its lease.
#[must_use = "a worker does nothing until it is started"]
pub struct Worker<M> {
    client: Client<M>,
    /// Each with its handler, and whether that is a plain function.
    pools: Vec<(Pool, Box<Handler>, bool)>,
    grace: Duration,
    /// Without one, and without a subscriber of `tracing`, events go to standard error.
    observer: Option<Arc<Observer>>,
    metrics: Metrics,
}

impl Worker<Async> {
    /// Runs `handler`, an `async fn(T, Context) -> Result<R, Failure>`, on the messages of a queue, up to `concurrency`
    /// at a time, as tasks of the runtime in which the worker is started.
    pub fn queue<T, R, F, H>(self, name: impl Into<QueueName>, concurrency: usize, handler: H) -> Self
    where
        T: Decode + Send + 'static,
        R: Encode + 'static,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
        H: Fn(T, Context) -> F + Send + Sync + 'static,
    {
        self.pool(Pool::new(concurrency).queue(name), handler)
    }

    /// Runs `handler` on the messages of the queues of a pool. See [`Worker::queue`].
    pub fn pool<T, R, F, H>(mut self, pool: Pool, handler: H) -> Self
    where
        T: Decode + Send + 'static,
        R: Encode + 'static,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
        H: Fn(T, Context) -> F + Send + Sync + 'static,
    {
        let handler = handling(move |value, context| handler(value, context).map(verdict));
        self.pools.push((pool, handler, false));
        self
    }

    /// Runs a plain function on the messages of a queue, in up to `concurrency` threads.
    pub fn queue_blocking<T, R, H>(self, name: impl Into<QueueName>, concurrency: usize, handler: H) -> Self
    where
        T: Decode + 'static,
        R: Encode + 'static,
        H: Fn(T, Context) -> Result<R, Failure> + Send + Sync + 'static,
    {
        self.with_function(Pool::new(concurrency).queue(name), handler)
    }

    /// Runs a plain function on the messages of the queues of a pool, in as many threads as its concurrency.
    pub fn pool_blocking<T, R, H>(self, pool: Pool, handler: H) -> Self
    where
        T: Decode + 'static,
        R: Encode + 'static,
        H: Fn(T, Context) -> Result<R, Failure> + Send + Sync + 'static,
    {
        self.with_function(pool, handler)
    }

    /// Works until SIGTERM or SIGINT, and stops as [`Running::join`] says. A second signal ends the grace period.
    ///
    /// # Errors
    /// Those of [`Worker::start`]. That servers cannot be reached is no error: the worker tries again until it can.
    pub async fn run(self) -> Result<Stopped, Error> {
        let mut running = self.start()?;
        running.stop_at_signal()?;
        Ok(running.join().await)
    }

    /// Works until this future is ready, and stops as [`Running::join`] says. The signals of the process stay as they
    /// are.
    ///
    /// # Errors
    /// Those of [`Worker::start`].
    pub async fn run_until(self, end: impl Future<Output = ()>) -> Result<Stopped, Error> {
        let running = self.start()?;
        end.await;
        running.stop();
        Ok(running.join().await)
    }
}

impl Worker<Blocking> {
    /// Runs a plain function on the messages of a queue, in up to `concurrency` threads.
    pub fn queue<T, R, H>(self, name: impl Into<QueueName>, concurrency: usize, handler: H) -> Self
    where
        T: Decode + 'static,
        R: Encode + 'static,
        H: Fn(T, Context) -> Result<R, Failure> + Send + Sync + 'static,
    {
        self.with_function(Pool::new(concurrency).queue(name), handler)
    }

    /// Runs a plain function on the messages of the queues of a pool, in as many threads as its concurrency.
    pub fn pool<T, R, H>(self, pool: Pool, handler: H) -> Self
    where
        T: Decode + 'static,
        R: Encode + 'static,
        H: Fn(T, Context) -> Result<R, Failure> + Send + Sync + 'static,
    {
        self.with_function(pool, handler)
    }

    /// Works until SIGTERM or SIGINT, and stops as [`Running::join`] says. A second signal ends the grace period.
    ///
    /// # Errors
    /// Those of [`Worker::start`]. That servers cannot be reached is no error: the worker tries again until it can.
    pub fn run(self) -> Result<Stopped, Error> {
        let mut running = self.start()?;
        running.stop_at_signal()?;
        Ok(running.join())
    }
}

impl<M: Mode> Worker<M> {
    /// A worker without queues.
    pub fn new(client: Client<M>) -> Worker<M> {
        Worker { client, pools: Vec::new(), grace: GRACE, observer: None, metrics: Metrics::default() }
    }

    fn with_function<T, R, H>(mut self, pool: Pool, handler: H) -> Self
    where
        T: Decode + 'static,
        R: Encode + 'static,
        H: Fn(T, Context) -> Result<R, Failure> + Send + Sync + 'static,
    {
        let handler = handling(move |value, context| ready(verdict(handler(value, context))));
        self.pools.push((pool, handler, true));
        self
    }

    /// How long running handlers may go on after the request to stop, 30 seconds by default. Then their messages are
    /// given back without counting as an attempt: futures are dropped, and functions learn it from
    /// [`Context::lease_lost`].
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Calls this with events such as failures and interruptions, which go to `tracing` as well. If the program has
    /// neither this nor a subscriber of `tracing`, the worker writes them to standard error. A thread of the worker
    /// calls it, so it may take its time; if ten thousand events wait for it, further ones are lost.
    pub fn on_event(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Counts with these counters, which several workers can share: [`Metrics::default`] has none yet.
    pub fn metrics_in(mut self, metrics: &Metrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// The counters of this worker, to be exported while it runs.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Starts the worker, and returns at once. The signals of the process stay as they are.
    ///
    /// # Errors
    /// [`Error::System`] if the operating system refuses a thread. [`Error::Config`] if there are handlers that are
    /// futures, and no runtime of tokio to run them.
    pub fn start(self) -> Result<Running<M>, Error> {
        let stop = Arc::new(Stop::new(self.grace));
        let consumer = consumer_name(&self.client.core.options().name);
        let reporter = Arc::new(Reporter::start(self.observer.clone())?);
        let mut started = Vec::new();
        for (spec, handler, is_function) in self.pools {
            let executor = if is_function {
                Executor::threads()
            } else {
                let missing = |_| Error::Config("a worker with async handlers needs a runtime of tokio".to_owned());
                Executor::Tasks(Handle::try_current().map_err(missing)?)
            };
            let weights: Vec<u32> = spec.queues.iter().map(|(_, weight)| *weight).collect();
            let source = |(name, _): &(QueueName, u32)| Source::new(name, spec.lease, &self.metrics);
            let (sources, inboxes): (Vec<_>, Vec<_>) = spec.queues.iter().map(source).unzip();
            let pool = RunningPool {
                core: Arc::clone(&self.client.core),
                sources: sources.into_iter().map(Arc::new).collect(),
                handler,
                executor,
                reporter: Arc::clone(&reporter),
                permits: Permits::new(spec.concurrency, &weights),
                ended: CancellationToken::new(),
                stop: Arc::clone(&stop),
                has_tried_to_listen: AtomicBool::new(false),
                spec,
                consumer: consumer.clone(),
            };
            // If that fails, the threads end as the pools are dropped.
            pool.executor.grow(pool.spec.concurrency)?;
            started.push((Arc::new(pool), inboxes));
        }
        let io = &self.client.io;
        let pools: Vec<_> = started.iter().map(|(pool, _)| Arc::clone(pool)).collect();
        report_start(&reporter, &consumer, &pools);
        let mut settling = Vec::new();
        for (pool, inboxes) in started {
            io.spawn(notices::run(Arc::clone(&pool)));
            for (number, (source, inbox)) in pool.sources.iter().zip(inboxes).enumerate() {
                settling.push(io.spawn(settle::run(Arc::clone(&pool), Arc::clone(source), inbox)));
                stop.fetchers.spawn_on(fetch::run(Arc::clone(&pool), number), io);
            }
        }
        let ended = io.spawn(shut_down::run(pools.clone(), settling, Arc::clone(&stop)));
        let (client, metrics) = (self.client, self.metrics);
        Ok(Running { client, pools, metrics, stop, ended, signals: None })
    }
}

fn report_start(reporter: &Reporter, consumer: &[u8], pools: &[Arc<RunningPool>]) {
    let consumer = String::from_utf8_lossy(consumer).into_owned();
    let mut queues = Vec::new();
    for pool in pools {
        queues.extend(pool.spec.queues.iter().map(|(name, _)| (name.clone(), pool.spec.concurrency)));
    }
    reporter.report(move |emit| emit(&Event::Started { consumer: &consumer, queues: &queues }));
}

/// The name under which a worker of this process takes messages: `host:pid:name`, with the name of its connections.
fn consumer_name(name: &str) -> Vec<u8> {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let mut consumer = format!("{}:{}:{name}", host.to_string_lossy(), std::process::id());
    let mut end = CONSUMER_BYTES.min(consumer.len());
    while !consumer.is_char_boundary(end) {
        end -= 1;
    }
    consumer.truncate(end);
    consumer.into_bytes()
}

/// A handler that decodes payloads first.
fn handling<T: Decode + 'static, F>(handle: impl Fn(T, Context) -> F + Send + Sync + 'static) -> Box<Handler>
where
    F: Future<Output = Verdict> + Send + 'static,
{
    let handle = Arc::new(handle);
    Box::new(move |payload, context| {
        let handle = Arc::clone(&handle);
        let handling = async move {
            let begun = T::decode(&payload).map(|value| handle(value, context));
            match begun {
                Ok(handling) => handling.await,
                Err(error) => Verdict::Undecodable(error),
            }
        };
        handling.boxed()
    })
}

/// What a handler returned.
fn verdict<R: Encode + 'static>(returned: Result<R, Failure>) -> Verdict {
    let result = match returned {
        Ok(result) => result,
        Err(failure) => return Verdict::Failed(failure),
    };
    // Its encoding would be that of null.
    if TypeId::of::<R>() == TypeId::of::<()>() {
        return Verdict::Done(Vec::new());
    }
    match result.encode() {
        Ok(bytes) if bytes.len() > RESULT_BYTES => Verdict::Unkept(too_large(bytes.len())),
        Ok(bytes) => Verdict::Done(bytes),
        Err(error) => Verdict::Unkept(error),
    }
}

impl<M> fmt::Debug for Worker<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("client", &self.client).finish_non_exhaustive()
    }
}

//! Runs handlers: as tasks of the program's runtime, or in threads.

use super::context::{Context, Failure};
use super::guard::guarded;
use super::pool::{Job, Pool, Report, Verdict};
use crate::connect::lock;
use futures_util::future::BoxFuture;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{io, thread};
use tokio::runtime::Handle;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{Instrument, Span};

/// A handler with the decoding of its payloads. That of a plain function is ready when it is polled first.
pub(super) type Handler = dyn Fn(Vec<u8>, Context) -> BoxFuture<'static, Verdict> + Send + Sync;

/// What runs the handlers of a pool.
pub(super) enum Handlers {
    Tasks(Handle),
    Threads(Threads),
}

/// Threads, of which there is one for each message that waits for them.
pub(super) struct Threads {
    /// `None` once no further message comes.
    sender: Mutex<Option<Sender<Held>>>,
    receiver: Arc<Mutex<Receiver<Held>>>,
    count: AtomicUsize,
}

impl Handlers {
    pub fn threads() -> Handlers {
        let (sender, receiver) = channel();
        let (sender, receiver) = (Mutex::new(Some(sender)), Arc::new(Mutex::new(receiver)));
        Handlers::Threads(Threads { sender, receiver, count: AtomicUsize::new(0) })
    }

    /// Begins to handle messages.
    pub fn begin(&self, pool: &Arc<Pool>, jobs: Vec<Job>) {
        let held = |job| {
            let (pool, counted) = (Arc::clone(pool), pool.stop.handlers.token());
            Held { pool, job, begun: None, has_ended: false, _counted: counted }
        };
        let held = jobs.into_iter().map(held);
        match self {
            Handlers::Tasks(runtime) => {
                let held: Vec<_> = held.collect();
                // One task crosses the threads, and the others are made where they run.
                runtime.spawn(async move {
                    for held in held {
                        tokio::spawn(held.run());
                    }
                });
            }
            Handlers::Threads(threads) => {
                let sender = lock(&threads.sender).clone();
                for held in held {
                    // One that no thread takes any more is given back.
                    if let Some(sender) = &sender {
                        let _ = sender.send(held);
                    }
                }
            }
        }
    }

    /// Starts threads until there are as many as this, if it has threads.
    pub fn grow(&self, count: usize) -> io::Result<()> {
        let Handlers::Threads(threads) = self else { return Ok(()) };
        while threads.count.load(Ordering::Relaxed) < count {
            let receiver = Arc::clone(&threads.receiver);
            let next = move || lock(&receiver).recv();
            let work = move || {
                while let Ok(held) = next() {
                    held.run().now_or_never();
                }
            };
            thread::Builder::new().name("dq-handler".to_owned()).spawn(work)?;
            threads.count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How many messages can be handled at a time, at most `wanted`.
    pub fn limit(&self, wanted: usize) -> usize {
        match self {
            Handlers::Tasks(_) => wanted,
            Handlers::Threads(threads) => wanted.min(threads.count.load(Ordering::Relaxed)),
        }
    }

    /// Lets threads end once no message waits for them.
    pub fn close(&self) {
        if let Handlers::Threads(threads) = self {
            lock(&threads.sender).take();
        }
    }
}

/// The span of a handler.
fn span(context: &Context) -> Span {
    let span =
        tracing::info_span!("message", queue = %context.queue(), id = %context.id(), attempt = context.attempt());
    #[cfg(feature = "otel")]
    crate::trace::follow(&span, context);
    span
}

/// A message from its delivery to the end of its handler.
struct Held {
    pool: Arc<Pool>,
    job: Job,
    /// When its handler has begun, until that has ended.
    begun: Option<Instant>,
    /// Whether it was passed on what is to be reported.
    has_ended: bool,
    _counted: TaskTrackerToken,
}

impl Held {
    async fn run(mut self) {
        let (pool, lease) = (Arc::clone(&self.pool), Arc::clone(&self.job.lease));
        if pool.stop.is_set() || lease.is_lost() {
            return self.give_back();
        }
        lock(&lease.source.counters).running += 1;
        let begun = *self.begun.insert(Instant::now());
        if let Some(limit) = pool.spec.time_limit {
            lease.source.wake_before(lease.limit(limit));
        }
        let (payload, meta) = (std::mem::take(&mut self.job.payload), self.job.meta.take());
        let (queue, stop) = (lease.source.name.clone(), Arc::clone(&pool.stop));
        let context = Context { queue, meta, lease: Arc::clone(&lease), stop };
        let in_span = async {
            let span = span(&context);
            async { (pool.handler)(payload, context).await }.instrument(span).await
        };
        let mut handling = Box::pin(AssertUnwindSafe(in_span).catch_unwind());
        let verdict = tokio::select! {
            biased;
            verdict = &mut handling => Some(verdict),
            () = lease.lost.cancelled(), if !pool.spec.finish_when_lost => None,
        };
        // What the future holds may panic when it is dropped, which changes nothing any more.
        guarded(|| drop(handling));
        (self.begun, self.has_ended) = (None, true);
        pool.finish(lease, begun, verdict);
    }

    fn give_back(&mut self) {
        self.has_ended = true;
        self.pool.end(Arc::clone(&self.job.lease), Report::Nack(Failure::give_back()), true);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.has_ended {
            if let Some(begun) = self.begun.take() {
                lock(&self.job.lease.source.counters).end(begun.elapsed());
            }
            // The runtime of the program has ended, and handles no more messages.
            self.pool.stop.ask_once();
            self.give_back();
        }
    }
}

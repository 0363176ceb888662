//! Runs handlers: as tasks of the program's runtime, or in threads.

use super::context::Context;
use super::pool::{Job, Pool, Verdict};
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
        let held = |job| Held { pool: Arc::clone(pool), job: Some(job), _counted: pool.stop.handlers.token() };
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
    let span = tracing::info_span!("message", queue = context.queue(), id = %context.id(), attempt = context.attempt());
    #[cfg(feature = "otel")]
    crate::trace::follow(&span, context);
    span
}

/// A message from its delivery to the end of its handler.
struct Held {
    pool: Arc<Pool>,
    /// `None` once its handler has ended.
    job: Option<Job>,
    _counted: TaskTrackerToken,
}

impl Held {
    async fn run(mut self) {
        let Some((context, payload)) = self.begin() else { return };
        let (begun, pool, lease) = (Instant::now(), Arc::clone(&self.pool), Arc::clone(&context.lease));
        let span = span(&context);
        let handling =
            AssertUnwindSafe(async { (pool.handler)(payload, context).await }.instrument(span)).catch_unwind();
        let verdict = tokio::select! {
            biased;
            verdict = handling => Some(verdict),
            () = lease.until_lost(), if !pool.spec.finish_when_lost => None,
        };
        if let Some(job) = self.job.take() {
            pool.finish(job, begun, verdict);
        }
    }

    /// What the handler is given. `None`: the message was given back instead.
    fn begin(&mut self) -> Option<(Context, Vec<u8>)> {
        let mut job = self.job.take()?;
        let Some(context) = self.pool.begin(&mut job) else {
            self.pool.settle(self.pool.give_back(job));
            return None;
        };
        let payload = std::mem::take(&mut job.payload);
        self.job = Some(job);
        Some((context, payload))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            // The runtime of the program has ended, and handles no more messages.
            self.pool.stop.ask_once();
            self.pool.settle(self.pool.give_back(job));
        }
    }
}

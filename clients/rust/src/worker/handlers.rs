//! Runs handlers: as tasks of the program's runtime, or in threads.

use super::context::Context;
use super::pool::{Job, Pool, Verdict};
use crate::connect::lock;
use futures_util::FutureExt;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;
use std::{io, thread};
use tokio::runtime::Handle;
use tracing::{Instrument, Span};

/// A handler that is a future.
pub(super) type Handling = dyn Fn(Vec<u8>, Context) -> Pin<Box<dyn Future<Output = Verdict> + Send>> + Send + Sync;
/// A handler that is a plain function.
pub(super) type Working = dyn Fn(&[u8], Context) -> Verdict + Send + Sync;

/// The handler of a pool, and what runs it.
pub(super) enum Handlers {
    Tasks {
        runtime: Handle,
        handler: Arc<Handling>,
        /// Whether the future goes on when its message is lost.
        finish_when_lost: bool,
    },
    Threads {
        handler: Arc<Working>,
        threads: Arc<Threads>,
    },
}

impl Handlers {
    /// Begins to handle messages.
    pub fn begin(&self, pool: &Arc<Pool>, jobs: Vec<Job>) {
        pool.busy.fetch_add(jobs.len(), Ordering::AcqRel);
        let held = jobs.into_iter().map(|job| Held { pool: Arc::clone(pool), job: Some(job) });
        match self {
            Handlers::Tasks { runtime, handler, finish_when_lost } => {
                let (handler, finish_when_lost) = (Arc::clone(handler), *finish_when_lost);
                let held: Vec<_> = held.collect();
                // One task crosses the threads, and the others are made where they run.
                runtime.spawn(async move {
                    for held in held {
                        tokio::spawn(held.run(Arc::clone(&handler), finish_when_lost));
                    }
                });
            }
            Handlers::Threads { threads, .. } => held.for_each(|held| threads.put(held)),
        }
    }

    /// Starts threads until there are as many as this, if it has threads.
    pub fn grow(&self, count: usize) -> io::Result<()> {
        let Handlers::Threads { handler, threads } = self else { return Ok(()) };
        while threads.count() < count {
            let (handler, waiting) = (Arc::clone(handler), Arc::clone(threads));
            lock(&threads.state).count += 1;
            let work = move || {
                while let Some(held) = waiting.take() {
                    held.work(&*handler);
                }
            };
            if let Err(error) = thread::Builder::new().name("dq-handler".to_owned()).spawn(work) {
                lock(&threads.state).count -= 1;
                return Err(error);
            }
        }
        Ok(())
    }

    /// How many messages can be handled at a time, at most `wanted`.
    pub fn limit(&self, wanted: usize) -> usize {
        match self {
            Handlers::Tasks { .. } => wanted,
            Handlers::Threads { threads, .. } => wanted.min(threads.count()),
        }
    }

    /// Lets threads end once no message waits for them.
    pub fn close(&self) {
        if let Handlers::Threads { threads, .. } = self {
            lock(&threads.state).closed = true;
            threads.filled.notify_all();
        }
    }
}

/// Messages that wait for a thread. There is a thread for each of them.
#[derive(Default)]
pub(super) struct Threads {
    state: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Held>,
    count: usize,
    closed: bool,
}

impl Threads {
    fn count(&self) -> usize {
        lock(&self.state).count
    }

    fn put(&self, held: Held) {
        lock(&self.state).messages.push_back(held);
        self.filled.notify_one();
    }

    /// Waits for a message. `None`: there will be none.
    fn take(&self) -> Option<Held> {
        let mut state = lock(&self.state);
        loop {
            if let Some(held) = state.messages.pop_front() {
                return Some(held);
            }
            if state.closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
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
}

impl Held {
    async fn run(mut self, handler: Arc<Handling>, finish_when_lost: bool) {
        let Some((context, payload)) = self.begin() else { return };
        let (begun, lease) = (Instant::now(), Arc::clone(&context.lease));
        let span = span(&context);
        let handling = AssertUnwindSafe(async { handler(payload, context).await }.instrument(span)).catch_unwind();
        let verdict = tokio::select! {
            biased;
            verdict = handling => Some(verdict),
            () = lease.until_lost(), if !finish_when_lost => None,
        };
        if let Some(job) = self.job.take() {
            self.pool.finish(job, begun, verdict);
        }
    }

    fn work(mut self, handler: &Working) {
        let Some((context, payload)) = self.begin() else { return };
        let begun = Instant::now();
        let verdict = span(&context).in_scope(|| catch_unwind(AssertUnwindSafe(|| handler(&payload, context))));
        if let Some(job) = self.job.take() {
            self.pool.finish(job, begun, Some(verdict));
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
        self.pool.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

//! Handles messages, each from its delivery to the end of its handler.

use super::context::Context;
use super::executor::Work;
use super::failure::Failure;
use super::guard::{guarded, Panic};
use super::outcome::Report;
use super::running_pool::{Job, RunningPool};
use crate::sync::lock;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{Instrument, Span};

/// Begins to handle messages.
pub(super) fn begin(pool: &Arc<RunningPool>, jobs: Vec<Job>) {
    let work = |job| -> Work {
        let (pool, counted) = (Arc::clone(pool), pool.stop.handlers.token());
        Handling { pool, job, begun: None, has_ended: false, _counted: counted }.run().boxed()
    };
    pool.executor.begin(jobs.into_iter().map(work).collect());
}

/// The span of a handler.
fn span(context: &Context) -> Span {
    let span =
        tracing::info_span!("message", queue = %context.queue(), id = %context.id(), attempt = context.attempt());
    #[cfg(feature = "otel")]
    if let Some(meta) = context.meta() {
        crate::queue::trace::follow(&span, &meta.headers, context.attempt());
    }
    span
}

/// A message from its delivery to the end of its handler.
struct Handling {
    pool: Arc<RunningPool>,
    job: Job,
    /// When its handler has begun, until that has ended.
    begun: Option<Instant>,
    /// Whether its outcome was passed on.
    has_ended: bool,
    _counted: TaskTrackerToken,
}

impl Handling {
    async fn run(mut self) {
        let (pool, source) = (Arc::clone(&self.pool), Arc::clone(&self.job.source));
        let lease = Arc::clone(&self.job.lease);
        if pool.stop.is_set() || lease.is_lost() {
            return self.give_back();
        }
        lock(&source.counters).running += 1;
        let begun = *self.begun.insert(Instant::now());
        if let Some(limit) = pool.spec.time_limit {
            source.wake_before(lease.limit(limit));
        }
        let (payload, meta) = (std::mem::take(&mut self.job.payload), self.job.meta.take());
        let (queue, stop) = (source.name.clone(), Arc::clone(&pool.stop));
        let context = Context { queue, meta, lease: Arc::clone(&lease), stop };
        let in_span = async {
            let span = span(&context);
            async { (pool.handler)(payload, context).await }.instrument(span).await
        };
        let mut handling = Box::pin(AssertUnwindSafe(in_span).catch_unwind());
        let verdict = tokio::select! {
            biased;
            verdict = &mut handling => Some(verdict.map_err(Panic::from)),
            () = lease.lost.cancelled(), if !pool.spec.finish_when_lost => None,
        };
        // What the future holds may panic when it is dropped, which changes nothing any more.
        guarded(|| drop(handling));
        (self.begun, self.has_ended) = (None, true);
        pool.finish(&source, lease, begun, verdict);
    }

    fn give_back(&mut self) {
        self.has_ended = true;
        let Job { source, lease, .. } = &self.job;
        self.pool.end(source, Arc::clone(lease), Report::Nack(Failure::give_back()), true);
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        if !self.has_ended {
            if let Some(begun) = self.begun.take() {
                lock(&self.job.source.counters).end(begun.elapsed());
            }
            // The runtime of the program has ended, and handles no more messages.
            self.pool.stop.ask_once();
            self.give_back();
        }
    }
}

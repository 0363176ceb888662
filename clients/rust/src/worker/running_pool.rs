//! A pool while it runs: its handlers, the queues that it serves, and what becomes of their messages.

use super::context::Context;
use super::event::Event;
use super::executor::Executor;
use super::failure::Failure;
use super::guard::Panic;
use super::lease::Lease;
use super::loss::Loss;
use super::outcome::{Outcome, Report, Verdict};
use super::permits::Permits;
use super::pool::Pool;
use super::reporter::Reporter;
use super::source::Source;
use super::stop::Stop;
use crate::connect::{Address, Core};
use crate::queue::Meta;
use crate::sync::lock;
use crate::time::millis;
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a pop blocks, so that a dead server is noticed.
pub(super) const BLOCK: Duration = Duration::from_secs(5);

/// A message that waits for a handler.
pub(super) struct Job {
    pub payload: Vec<u8>,
    pub meta: Option<Meta>,
    pub source: Arc<Source>,
    pub lease: Arc<Lease>,
}

/// A handler with the decoding of its payloads. That of a plain function is ready when it is polled first.
pub(super) type Handler = dyn Fn(Vec<u8>, Context) -> BoxFuture<'static, Verdict> + Send + Sync;

pub(super) struct RunningPool {
    pub core: Arc<Core>,
    pub sources: Vec<Arc<Source>>,
    pub handler: Box<Handler>,
    pub executor: Executor,
    pub spec: Pool,
    pub reporter: Arc<Reporter>,
    pub permits: Permits,
    /// No further outcomes: the tasks that settle end.
    pub ended: CancellationToken,
    pub stop: Arc<Stop>,
    /// Whether it has tried to hear the notices of lost messages.
    pub has_tried_to_listen: AtomicBool,
    /// The name under which it takes messages.
    pub consumer: Vec<u8>,
}

impl RunningPool {
    /// Whether the server of each queue has answered within the last lease, or within the time of a pop that waits. It
    /// answers nothing if all handlers hang.
    pub fn is_healthy(&self) -> bool {
        let waits = BLOCK + self.core.options().response_timeout;
        let is_in_contact = |source: &Arc<Source>| {
            let contact = *lock(&source.contact);
            contact.is_some_and(|at| at.elapsed() <= source.lease().max(waits))
        };
        self.has_tried_to_listen.load(Ordering::Relaxed) && self.sources.iter().all(is_in_contact)
    }

    /// A server has extended leases. While all handlers work, nothing is popped that would be answered.
    pub fn heard(&self) {
        for source in &self.sources {
            let waits = !source.is_interrupted.load(Ordering::Relaxed) && lock(&source.popping).is_none();
            if let Some(contact) = lock(&source.contact).as_mut().filter(|_| waits) {
                *contact = Instant::now();
            }
        }
    }

    /// A handler has ended. `None`: it was dropped, because its message was lost.
    pub fn finish(
        &self,
        source: &Arc<Source>,
        lease: Arc<Lease>,
        begun: Instant,
        verdict: Option<Result<Verdict, Panic>>,
    ) {
        let counters = &source.counters;
        lock(counters).end(begun.elapsed());
        let Some(verdict) = verdict.filter(|_| !lease.is_discarded()) else {
            lock(&source.leases).remove(&lease.number);
            self.report_loss(source, &lease);
            // The report of a message that the worker took away itself has counted it.
            if !matches!(lease.loss(), Some(Loss::TimeLimit | Loss::Stopping)) {
                lock(counters).late += 1;
            }
            return self.permits.release(1);
        };
        let report = match verdict {
            Ok(Verdict::Done(result)) if result.is_empty() => Report::Ack,
            Ok(Verdict::Done(result)) => Report::Complete(result),
            Ok(Verdict::Unkept(error)) => {
                if !source.has_lost_a_result.swap(true, Ordering::Relaxed) {
                    let (queue, id) = (source.name.clone(), lease.id.clone());
                    let lost = move |emit: &dyn Fn(&Event<'_>)| {
                        emit(&Event::ResultLost { queue: &queue, id: &id, error: &error });
                    };
                    self.reporter.report(lost);
                }
                Report::Ack
            }
            Ok(Verdict::Failed(failure)) => Report::Nack(failure),
            // A newer worker may be able to.
            Ok(Verdict::Undecodable(error)) => {
                lock(counters).undecodable += 1;
                Report::Nack(Failure::retry(error))
            }
            Err(panic) => {
                lock(counters).panicked += 1;
                Report::Nack(Failure::retry(format!("panic: {}", panic.text)))
            }
        };
        self.end(source, lease, report, true);
    }

    /// Takes these messages from their handlers, which learn why, and has them given back.
    pub fn take_from_handlers(&self, source: &Arc<Source>, leases: Vec<Arc<Lease>>, loss: Loss) {
        for lease in leases {
            // The handler may have ended just now.
            if lock(&source.leases).remove(&lease.number).is_none() {
                continue;
            }
            lease.lose(Some(loss));
            self.report_loss(source, &lease);
            let failure = match self.spec.time_limit.filter(|_| loss == Loss::TimeLimit) {
                Some(limit) => Failure::retry(format!("the time limit of {} ms was over", millis(limit))),
                None => Failure::give_back(),
            };
            self.end(source, lease, Report::Nack(failure), false);
        }
    }

    /// Passes on what is to be reported of a delivery, whose lease is not extended any more.
    pub fn end(&self, source: &Source, lease: Arc<Lease>, report: Report, has_permit: bool) {
        lock(&source.leases).remove(&lease.number);
        lock(&source.unreported).insert(lease.number, Arc::clone(&lease));
        source.settle(Outcome { lease, report, repeated: false, has_permit });
    }

    /// Counts and reports once that a message was lost while it was handled, or before its outcome was reported.
    pub fn report_loss(&self, source: &Arc<Source>, lease: &Arc<Lease>) {
        let Some(reason) = lease.loss().filter(|_| lease.is_to_be_reported()) else { return };
        lock(&source.counters).leases_lost += 1;
        let (source, lease) = (Arc::clone(source), Arc::clone(lease));
        let lost = move |emit: &dyn Fn(&Event<'_>)| {
            let (queue, id, receipt) = (&source.name, &lease.id, &lease.receipt);
            emit(&Event::LeaseLost { queue, id, receipt, reason });
        };
        self.reporter.report(lost);
    }

    /// Has another task end the blocked pop of a queue, unless one is about to.
    pub fn begin_to_end_pop(self: &Arc<Self>, source: &Arc<Source>) {
        if source.is_being_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let (pool, source) = (Arc::clone(self), Arc::clone(source));
        tokio::spawn(async move {
            if pool.end_pop(&source).await.is_some() {
                source.hangs.notify_waiters();
            }
            source.is_being_ended.store(false, Ordering::Relaxed);
        });
    }

    /// Ends the blocked pop of a queue. Returns its server if that does not end it: then it ends with its time to
    /// block, or with its connection.
    pub async fn end_pop(&self, source: &Source) -> Option<Address> {
        let (server, id) = lock(&source.popping).clone()?;
        let ended = match id {
            Some(id) => self.core.end_pop(&server, source.name.as_bytes(), id).await.is_ok(),
            None => false,
        };
        (!ended).then_some(server)
    }
}

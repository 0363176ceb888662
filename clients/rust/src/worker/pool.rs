//! One pool of handlers and the queues that it serves, while it runs.

use super::context::Failure;
use super::event::Event;
use super::guard::discard;
use super::handlers::{Handler, Handlers};
use super::handoff::Handoff;
use super::lease::{Lease, Loss};
use super::metrics::{Counters, Metrics};
use super::permits::Permits;
use super::reporter::Reporter;
use super::running::Stop;
use crate::connect::{lock, Address, Core};
use crate::names::QueueName;
use crate::queue::Meta;
use crate::request::millis;
use crate::Error;
use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a pop blocks, so that a dead server is noticed.
pub(super) const BLOCK: Duration = Duration::from_secs(5);
/// A shorter lease could not be kept.
pub(super) const SHORTEST_LEASE: Duration = Duration::from_millis(100);
/// The lease that is asked for if the user may not ask for the time: the default of the server.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// What a handler made of a payload.
pub(super) enum Verdict {
    /// With the result; empty if there is none.
    Done(Vec<u8>),
    /// With a result that cannot be kept, and why.
    Unkept(Error),
    Failed(Failure),
    Undecodable(Error),
}

/// A queue of the pool.
pub(super) struct Source {
    pub name: QueueName,
    pub counters: Counters,
    /// The connection of a pop that may be blocked: its server, and its number there.
    pub popping: Mutex<Option<(Address, Option<i64>)>>,
    /// Whether a task is about to end that pop, and what tells that its server does not.
    is_being_ended: AtomicBool,
    pub hangs: Notify,
    pub handoff: Handoff,
    /// How long its leases are: as the program says, or else as the server has said last.
    lengths: Mutex<(Option<Duration>, Duration)>,
    /// Whether the server lets the user ask for its time.
    pub tells_time: AtomicBool,
    /// When its server has last answered to the task that pops.
    pub contact: Mutex<Option<Instant>>,
    /// Whether the user may not extend several leases in one command.
    pub extends_singly: AtomicBool,
    /// Whether it was reported that a result cannot be kept: once is enough.
    pub has_lost_a_result: AtomicBool,
    /// The leases to extend.
    pub leases: Mutex<HashMap<u64, Arc<Lease>>>,
    /// Those of messages whose outcome the server has not accepted yet.
    pub unreported: Mutex<HashMap<u64, Arc<Lease>>>,
    /// How many outcomes the server has refused for good.
    refused: AtomicUsize,
    /// What is to be reported, for the task that settles.
    outcomes: UnboundedSender<Outcome>,
    /// Wakes that task, because something is to be done before it looks at the leases next.
    pub changed: Notify,
    pub looks_at: Mutex<Instant>,
}

impl Source {
    /// The queue, and what its handlers have to report.
    pub fn new(name: &QueueName, lease: Option<Duration>, metrics: &Metrics) -> (Source, UnboundedReceiver<Outcome>) {
        let (outcomes, inbox) = unbounded_channel();
        let source = Source {
            name: name.clone(),
            counters: metrics.queue(name),
            popping: Mutex::default(),
            is_being_ended: AtomicBool::new(false),
            hangs: Notify::new(),
            handoff: Handoff::default(),
            lengths: Mutex::new((lease, LEASE)),
            tells_time: AtomicBool::new(true),
            contact: Mutex::default(),
            extends_singly: AtomicBool::new(false),
            has_lost_a_result: AtomicBool::new(false),
            leases: Mutex::default(),
            unreported: Mutex::default(),
            refused: AtomicUsize::new(0),
            outcomes,
            changed: Notify::new(),
            looks_at: Mutex::new(Instant::now()),
        };
        (source, inbox)
    }

    /// The lease that pops and extensions ask for. `None`: that of the message, or else of the queue.
    pub fn asked_lease(&self) -> Option<Duration> {
        let given = lock(&self.lengths).0.map(|lease| lease.max(SHORTEST_LEASE));
        // Nothing else says when such a lease ends.
        given.or_else(|| (!self.tells_time.load(Ordering::Relaxed)).then_some(LEASE))
    }

    /// How long the last lease was, or the next one will be.
    pub fn lease(&self) -> Duration {
        self.asked_lease().unwrap_or_else(|| lock(&self.lengths).1)
    }

    pub fn set_lease(&self, lease: Option<Duration>) {
        lock(&self.lengths).0 = lease;
        self.wake_before(Instant::now());
    }

    /// The server has said how long a lease is.
    pub fn learn(&self, lease: Duration) {
        lock(&self.lengths).1 = lease;
    }

    /// Has the task that settles look at the leases at this time, if it would not before.
    pub fn wake_before(&self, at: Instant) {
        if at < *lock(&self.looks_at) {
            self.changed.notify_one();
        }
    }

    /// The server has answered to these outcomes.
    pub fn answered(&self, outcomes: &[Outcome]) {
        let mut unreported = lock(&self.unreported);
        for outcome in outcomes {
            unreported.remove(&outcome.lease.number);
        }
    }

    /// The server has refused these outcomes, and nothing is reported in their place.
    pub fn refused(&self, outcomes: &[Outcome]) {
        self.answered(outcomes);
        self.refused.fetch_add(outcomes.len(), Ordering::Relaxed);
    }

    /// How many outcomes the server has not accepted.
    pub fn not_accepted(&self) -> usize {
        lock(&self.unreported).len() + self.refused.load(Ordering::Relaxed)
    }

    /// Passes an outcome to the task that settles. That one ends only after the handlers, or once these were given up; then
    /// messages come back when their leases expire.
    pub fn settle(&self, outcome: Outcome) {
        let _ = self.outcomes.send(outcome);
    }

    pub fn settle_all(&self, outcomes: Vec<Outcome>) {
        outcomes.into_iter().for_each(|outcome| self.settle(outcome));
    }
}

/// A message that waits for a handler.
pub(super) struct Job {
    pub payload: Vec<u8>,
    pub meta: Option<Meta>,
    pub lease: Arc<Lease>,
}

/// What became of a message, to be reported to the server.
pub(super) struct Outcome {
    pub lease: Arc<Lease>,
    pub report: Report,
    /// Whether the report was sent before, and may have been executed.
    pub repeated: bool,
    /// Whether it holds a permit, which is to be released.
    pub has_permit: bool,
}

pub(super) enum Report {
    Ack,
    /// An ack with a result.
    Complete(Vec<u8>),
    Nack(Failure),
}

pub(super) struct Pool {
    pub core: Arc<Core>,
    pub sources: Vec<Arc<Source>>,
    pub handler: Box<Handler>,
    pub handlers: Handlers,
    pub spec: super::Pool,
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

impl Pool {
    /// Whether the server of each queue has answered within the last lease, or within the time of a pop that waits.
    pub fn is_healthy(&self) -> bool {
        let waits = BLOCK + self.core.options.response_timeout;
        let is_in_contact = |source: &Arc<Source>| {
            let contact = *lock(&source.contact);
            contact.is_some_and(|at| at.elapsed() <= source.lease().max(waits))
        };
        self.has_tried_to_listen.load(Ordering::Relaxed) && self.sources.iter().all(is_in_contact)
    }

    /// A handler has ended. `None`: it was dropped, because its message was lost.
    pub fn finish(&self, lease: Arc<Lease>, begun: Instant, verdict: Option<Result<Verdict, Box<dyn Any + Send>>>) {
        let (source, counters) = (&lease.source, &lease.source.counters);
        lock(counters).end(begun.elapsed());
        let Some(verdict) = verdict.filter(|_| !lease.is_discarded()) else {
            lock(&source.leases).remove(&lease.number);
            self.report_loss(&lease);
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
                    let lost = move |tell: &dyn Fn(&Event<'_>)| {
                        tell(&Event::ResultLost { queue: &queue, id: &id, error: &error });
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
                let failure = Failure::retry(format!("panic: {}", text_of(panic.as_ref())));
                discard(panic);
                Report::Nack(failure)
            }
        };
        self.end(lease, report, true);
    }

    /// Takes these messages from their handlers, which are told why, and has them given back.
    pub fn take_from_handlers(&self, leases: Vec<Arc<Lease>>, loss: Loss) {
        for lease in leases {
            // The handler may have ended just now.
            if lock(&lease.source.leases).remove(&lease.number).is_none() {
                continue;
            }
            lease.lose(Some(loss));
            self.report_loss(&lease);
            let failure = match (loss, self.spec.time_limit) {
                (Loss::TimeLimit, Some(limit)) => {
                    Failure::retry(format!("the time limit of {} ms was over", millis(limit)))
                }
                _ => Failure::give_back(),
            };
            self.end(lease, Report::Nack(failure), false);
        }
    }

    /// Passes on what is to be reported of a delivery, whose lease is not extended any more. A nack takes the checkpoint along
    /// that was not sent yet.
    pub fn end(&self, lease: Arc<Lease>, mut report: Report, has_permit: bool) {
        let source = Arc::clone(&lease.source);
        lock(&source.leases).remove(&lease.number);
        lock(&source.unreported).insert(lease.number, Arc::clone(&lease));
        if let Report::Nack(Failure { nack, .. }) = &mut report {
            if let Some(bytes) = lease.take_checkpoint() {
                **nack = std::mem::take(&mut **nack).checkpoint(bytes);
            }
        }
        source.settle(Outcome { lease, report, repeated: false, has_permit });
    }

    /// Counts and reports once that a message was lost while it was handled, or before its outcome was reported.
    pub fn report_loss(&self, lease: &Arc<Lease>) {
        let Some(reason) = lease.loss().filter(|_| lease.is_to_be_reported()) else { return };
        lock(&lease.source.counters).leases_lost += 1;
        let lease = Arc::clone(lease);
        let lost = move |tell: &dyn Fn(&Event<'_>)| {
            let (queue, id, receipt) = (&lease.source.name, &lease.id, &lease.receipt);
            tell(&Event::LeaseLost { queue, id, receipt, reason });
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

    /// Ends the blocked pop of a queue. Returns its server if that does not end it: then it ends with its time to block, or
    /// with its connection.
    pub async fn end_pop(&self, source: &Source) -> Option<Address> {
        let (server, id) = lock(&source.popping).clone()?;
        let ended = match id {
            Some(id) => self.core.end_pop(&server, source.name.as_bytes(), id).await.is_ok(),
            None => false,
        };
        (!ended).then_some(server)
    }
}

/// The message of a panic.
fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

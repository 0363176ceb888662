//! One pool of handlers and the queues that it serves, while it runs.

use super::context::Failure;
use super::event::Event;
use super::handlers::{Handler, Handlers};
use super::handoff::Handoff;
use super::lease::{Lease, Loss};
use super::metrics::{Counters, Metrics};
use super::permits::Permits;
use super::running::Stop;
use crate::connect::{lock, Address, Core};
use crate::queue::Meta;
use crate::request::millis;
use crate::Error;
use std::any::Any;
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long a pop blocks, so that a dead server is noticed.
pub(super) const BLOCK: Duration = Duration::from_secs(5);
/// A shorter lease could not be kept.
pub(super) const SHORTEST_LEASE: Duration = Duration::from_millis(100);
/// The lease of a queue that does not exist yet, or whose settings the user may not read: the default of the server.
const LEASE: Duration = Duration::from_secs(30);

/// What a handler made of a payload.
pub(super) enum Verdict {
    /// With the result; empty if there is none.
    Done(Vec<u8>),
    /// With a result that cannot be kept, and why.
    Unkept(Error),
    Failed(Failure),
    Undecodable(Error),
}

pub(super) type Observer = dyn Fn(&Event<'_>) + Send + Sync;

/// A queue of the pool.
pub(super) struct Source {
    pub key: Vec<u8>,
    pub name: Arc<str>,
    pub counters: Counters,
    /// The connection of a pop that may be blocked: its server, and its number there.
    pub popping: Mutex<Option<(Address, Option<i64>)>>,
    pub handoff: Handoff,
    /// How long its leases are: as the program says, or else as the queue does.
    pub lengths: Mutex<(Option<Duration>, Option<Duration>)>,
    /// When its server has last answered to the task that pops.
    pub contact: Mutex<Option<Instant>>,
    /// Whether the user may not extend several leases in one command.
    pub extends_singly: AtomicBool,
    /// Whether it was reported that a result cannot be kept: once is enough.
    pub has_lost_a_result: AtomicBool,
}

impl Source {
    pub fn new(key: &[u8], lease: Option<Duration>, metrics: &Metrics) -> Source {
        // Two queues never have the same name, whatever bytes their keys have.
        let name = String::from_utf8(key.to_vec()).unwrap_or_else(|_| key.escape_ascii().to_string());
        Source {
            key: key.to_vec(),
            counters: metrics.queue(&name),
            name: Arc::from(name),
            popping: Mutex::default(),
            lengths: Mutex::new((lease, None)),
            contact: Mutex::default(),
            handoff: Handoff::default(),
            extends_singly: AtomicBool::new(false),
            has_lost_a_result: AtomicBool::new(false),
        }
    }

    /// How long its leases are.
    pub fn lease(&self) -> Duration {
        let (given, learned) = *lock(&self.lengths);
        given.or(learned).unwrap_or(LEASE).max(SHORTEST_LEASE)
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
    pub observer: Arc<Observer>,
    pub permits: Permits,
    /// What is to be reported, for the task that settles.
    pub outcomes: UnboundedSender<Outcome>,
    /// Wakes that task, because something is to be done earlier.
    pub changed: Notify,
    /// No further outcomes: that task ends.
    pub ended: CancellationToken,
    pub stop: Arc<Stop>,
    /// The leases to extend.
    pub leases: Mutex<HashMap<u64, Arc<Lease>>>,
    /// Whether it has tried to hear the notices of lost messages.
    pub has_tried_to_listen: AtomicBool,
    /// The name under which it takes messages.
    pub consumer: Vec<u8>,
}

impl Pool {
    pub fn set_lease(&self, lease: Option<Duration>) {
        for source in &self.sources {
            // Without one, the last one counts until the queue is asked.
            let last = source.lease();
            *lock(&source.lengths) = (lease, Some(last));
        }
        self.changed.notify_one();
    }

    /// Whether the server of each queue has answered within the last lease, or within the time of a pop that waits.
    pub fn is_healthy(&self) -> bool {
        let waits = BLOCK + self.core.options.response_timeout;
        let is_in_contact = |source: &Arc<Source>| {
            let contact = *lock(&source.contact);
            contact.is_some_and(|at| at.elapsed() <= source.lease().max(waits))
        };
        self.has_tried_to_listen.load(Ordering::Relaxed) && self.sources.iter().all(is_in_contact)
    }

    /// A panic of the program's observer must not end a task of the worker.
    pub fn report(&self, event: &Event<'_>) {
        event.trace();
        drop(catch_unwind(AssertUnwindSafe(|| (self.observer)(event))));
    }

    /// A handler has ended. `None`: it was dropped, because its message was lost.
    pub fn finish(&self, lease: Arc<Lease>, begun: Instant, verdict: Option<Result<Verdict, Box<dyn Any + Send>>>) {
        let (source, counters) = (&lease.source, &lease.source.counters);
        lock(counters).end(begun.elapsed());
        let Some(verdict) = verdict.filter(|_| !lease.is_discarded()) else {
            lock(&self.leases).remove(&lease.number);
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
                    self.report(&Event::ResultLost { queue: &source.name, id: &lease.id, error: &error });
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
                Report::Nack(Failure::retry(format!("panic: {}", text_of(panic.as_ref()))))
            }
        };
        self.end(lease, report, true);
    }

    /// Takes these messages from their handlers, which are told why, and has them given back.
    pub fn take_from_handlers(&self, leases: Vec<Arc<Lease>>, loss: Loss) {
        for lease in leases {
            // The handler may have ended just now.
            if lock(&self.leases).remove(&lease.number).is_none() {
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
        lock(&self.leases).remove(&lease.number);
        if let Report::Nack(Failure { nack, .. }) = &mut report {
            if let Some(bytes) = lease.take_checkpoint() {
                **nack = std::mem::take(&mut **nack).checkpoint(bytes);
            }
        }
        self.settle(Outcome { lease, report, repeated: false, has_permit });
    }

    /// Passes an outcome to the task that settles. That one ends only after the handlers, or once these were given up; then
    /// messages come back when their leases expire.
    pub fn settle(&self, outcome: Outcome) {
        let _ = self.outcomes.send(outcome);
    }

    pub fn settle_all(&self, outcomes: Vec<Outcome>) {
        outcomes.into_iter().for_each(|outcome| self.settle(outcome));
    }

    /// Ends the blocked pop of a queue. Returns its server if that does not end it: then it ends with its time to block, or
    /// with its connection.
    pub async fn end_pop(&self, source: &Source) -> Option<Address> {
        let (server, id) = lock(&source.popping).clone()?;
        let ended = match id {
            Some(id) => self.core.end_pop(&server, &source.key, id).await.is_ok(),
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

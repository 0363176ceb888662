//! One pool of threads and the queues that it serves, while it runs.

use super::context::{Context, Failure, Lease, Loss};
use super::event::Event;
use super::handoff::Handoff;
use super::inbox::Inbox;
use super::metrics::Counters;
use super::permits::Permits;
use super::stop::Stop;
use crate::connect::{lock, Address, Client};
use crate::queue::command::millis;
use crate::queue::{Id, Meta, Nack, Receipt};
use crate::Error;
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A shorter lease could not be kept.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);
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

pub(super) type Handler = dyn Fn(&[u8], &Context) -> Verdict + Send + Sync;
pub(super) type Observer = dyn Fn(&Event<'_>) + Send + Sync;

/// A queue of the pool.
pub(super) struct Source {
    pub key: Vec<u8>,
    pub name: Arc<str>,
    pub counters: Arc<Counters>,
    /// The connection of a pop that may be blocked: its server, and its number there.
    pub popping: Mutex<Option<(Address, Option<i64>)>>,
    pub handoff: Handoff,
    pub lease: SourceLease,
    /// When its server has last answered to the thread that pops.
    pub contact: Mutex<Option<Instant>>,
    /// Whether the user may not extend several leases in one command.
    pub extends_singly: AtomicBool,
    /// Whether it was reported that a result cannot be kept: once is enough.
    pub has_lost_a_result: AtomicBool,
}

/// How long the leases of a queue are.
pub(super) struct SourceLease {
    ms: AtomicU64,
    /// Whether the program says how long, not the queue.
    is_given: AtomicBool,
}

impl SourceLease {
    pub fn new(given: Option<Duration>) -> SourceLease {
        let lease = SourceLease { ms: AtomicU64::new(millis(LEASE)), is_given: AtomicBool::new(false) };
        lease.give(given);
        lease
    }

    pub fn get(&self) -> Duration {
        Duration::from_millis(self.ms.load(Ordering::Relaxed))
    }

    fn set(&self, lease: Duration) {
        self.ms.store(millis(lease.max(SHORTEST_LEASE)), Ordering::Relaxed);
    }

    fn give(&self, lease: Option<Duration>) {
        self.is_given.store(lease.is_some(), Ordering::Relaxed);
        lease.into_iter().for_each(|lease| self.set(lease));
    }

    /// Whether the queue is to be asked how long.
    pub fn is_of_queue(&self) -> bool {
        !self.is_given.load(Ordering::Relaxed)
    }

    /// The queue says so, or there is no queue yet.
    pub fn learn(&self, lease: Option<Duration>) {
        if self.is_of_queue() {
            self.set(lease.unwrap_or(LEASE));
        }
    }
}

/// A message that waits for a handler.
pub(super) struct Job {
    pub number: u64,
    pub payload: Vec<u8>,
    pub meta: Option<Meta>,
    pub lease: Arc<Lease>,
}

/// What became of a message, to be reported to the server.
pub(super) struct Outcome {
    pub source: usize,
    pub id: Id,
    pub attempt: u32,
    pub receipt: Receipt,
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
    Nack {
        nack: Box<Nack>,
        error: Option<String>,
    },
}

pub(super) struct Pool {
    pub client: Client,
    pub sources: Vec<Source>,
    pub handler: Arc<Handler>,
    pub observer: Arc<Observer>,
    pub block: Duration,
    /// Whether handlers are told more of each message.
    pub meta: bool,
    /// How long a handler may run.
    pub time_limit: Option<Duration>,
    pub permits: Permits,
    pub jobs: Inbox<Job>,
    pub outcomes: Inbox<Outcome>,
    pub stop: Arc<Stop>,
    /// The leases to extend.
    pub leases: Mutex<HashMap<u64, Arc<Lease>>>,
    pub fetchers: AtomicUsize,
    /// Threads that run handlers, or wait for a message.
    pub handlers: AtomicUsize,
    pub settling: AtomicUsize,
    pub listening: AtomicUsize,
    /// Whether it has tried to hear the notices of lost messages.
    pub has_tried_to_listen: AtomicBool,
    /// The name under which it takes messages.
    pub consumer: Vec<u8>,
}

/// What a pool is given.
pub(super) struct Parts {
    pub client: Client,
    pub sources: Vec<Source>,
    pub handler: Arc<Handler>,
    pub observer: Arc<Observer>,
    pub permits: Permits,
    pub block: Duration,
    pub meta: bool,
    pub time_limit: Option<Duration>,
    pub stop: Arc<Stop>,
    pub consumer: Vec<u8>,
}

impl Pool {
    pub fn new(parts: Parts) -> Pool {
        let Parts { client, sources, handler, observer, permits, block, meta, time_limit, stop, consumer } = parts;
        Pool {
            client,
            sources,
            handler,
            observer,
            block,
            meta,
            time_limit,
            permits,
            jobs: Inbox::new(),
            outcomes: Inbox::new(),
            stop,
            leases: Mutex::default(),
            fetchers: AtomicUsize::new(0),
            handlers: AtomicUsize::new(0),
            settling: AtomicUsize::new(0),
            listening: AtomicUsize::new(0),
            has_tried_to_listen: AtomicBool::new(false),
            consumer,
        }
    }

    pub fn set_lease(&self, lease: Option<Duration>) {
        self.sources.iter().for_each(|source| source.lease.give(lease));
        self.outcomes.nudge();
    }

    /// Whether the server of each queue has answered within the last lease, or within the time of a pop that waits.
    pub fn is_healthy(&self) -> bool {
        let waits = self.block + self.client.response_timeout();
        let is_in_contact = |source: &Source| {
            let contact = *lock(&source.contact);
            contact.is_some_and(|at| at.elapsed() <= source.lease.get().max(waits))
        };
        self.has_tried_to_listen.load(Ordering::Relaxed) && self.sources.iter().all(is_in_contact)
    }

    /// Whether it serves a queue of this name.
    pub fn serves(&self, name: &[u8]) -> bool {
        self.sources.iter().any(|source| source.key == name)
    }

    /// A panic of the program's observer must not end a thread of the worker.
    pub fn report(&self, event: &Event<'_>) {
        drop(catch_unwind(AssertUnwindSafe(|| (self.observer)(event))));
    }

    pub fn source(&self, number: usize) -> Option<&Source> {
        self.sources.get(number)
    }

    /// Works until the pool is closed.
    pub fn work(&self) {
        while let Some(job) = self.jobs.take() {
            let outcome = self.outcome(job);
            match outcome {
                Some(outcome) => self.settle(outcome),
                None => self.permits.release(1),
            }
        }
        self.handlers.fetch_sub(1, Ordering::AcqRel);
    }

    /// Runs the handler. Returns what is to be reported of it, unless its message was taken from it.
    fn outcome(&self, job: Job) -> Option<Outcome> {
        let Some(source) = self.source(job.lease.source) else { return Some(self.give_back(job)) };
        if self.stop.is_set() || job.lease.is_lost() {
            return Some(self.give_back(job));
        }
        let context = Context {
            queue: Arc::clone(&source.name),
            id: job.lease.id.clone(),
            attempt: job.lease.attempt,
            meta: job.meta.clone(),
            receipt: job.lease.receipt.clone(),
            lease: Arc::clone(&job.lease),
            stop: Arc::clone(&self.stop),
        };
        let counters = &source.counters;
        counters.running.fetch_add(1, Ordering::Relaxed);
        if let Some(limit) = self.time_limit {
            job.lease.limit(limit);
        }
        let begun = Instant::now();
        let verdict = catch_unwind(AssertUnwindSafe(|| (self.handler)(&job.payload, &context)));
        counters.ran(begun.elapsed());
        counters.running.fetch_sub(1, Ordering::Relaxed);
        if job.lease.is_discarded() {
            lock(&self.leases).remove(&job.number);
            // The report of a message that the worker took away itself has counted it.
            if !matches!(job.lease.loss(), Some(Loss::TimeLimit | Loss::Stopping)) {
                counters.add(|counters| &counters.late, 1);
            }
            return None;
        }
        let failed =
            |nack: Nack, error: String| Report::Nack { nack: Box::new(nack.error(error.as_str())), error: Some(error) };
        let report = match verdict {
            Ok(Verdict::Done(result)) if result.is_empty() => Report::Ack,
            Ok(Verdict::Done(result)) => Report::Complete(result),
            Ok(Verdict::Unkept(error)) => {
                if !source.has_lost_a_result.swap(true, Ordering::Relaxed) {
                    self.report(&Event::ResultLost { queue: &source.name, id: &job.lease.id, error: &error });
                }
                Report::Ack
            }
            Ok(Verdict::Failed(failure)) if failure.is_give_back() => {
                Report::Nack { nack: Box::new(failure.nack()), error: None }
            }
            Ok(Verdict::Failed(failure)) => failed(failure.nack(), failure.text().to_owned()),
            Ok(Verdict::Undecodable(error)) => {
                counters.add(|counters| &counters.undecodable, 1);
                failed(Nack::reject(), error.to_string())
            }
            Err(panic) => {
                counters.add(|counters| &counters.panicked, 1);
                failed(Nack::retry(), format!("panic: {}", text_of(panic.as_ref())))
            }
        };
        Some(self.end(job, report))
    }

    /// Takes these messages from their handlers, which are told why, and has them given back.
    pub fn take_from_handlers(&self, leases: Vec<Arc<Lease>>, loss: Loss) {
        for lease in leases {
            let was_held = {
                let mut all = lock(&self.leases);
                let before = all.len();
                all.retain(|_, other| !Arc::ptr_eq(other, &lease));
                all.len() < before
            };
            // The handler may have ended just now.
            let Some(source) = self.source(lease.source).filter(|_| was_held) else { continue };
            lease.lose(Some(loss));
            self.report_loss(source, &lease);
            let report = match (loss, self.time_limit) {
                (Loss::TimeLimit, Some(limit)) => {
                    let error = format!("the time limit of {} ms was over", millis(limit));
                    Report::Nack { nack: Box::new(Nack::retry().error(error.as_str())), error: Some(error) }
                }
                _ => Report::Nack { nack: Box::new(Nack::give_back()), error: None },
            };
            self.settle_all(vec![Outcome { has_permit: false, ..outcome_of(&lease, report) }]);
        }
    }

    pub fn give_back(&self, job: Job) -> Outcome {
        self.end(job, Report::Nack { nack: Box::new(Nack::give_back()), error: None })
    }

    /// No longer extends the lease of the message.
    fn end(&self, job: Job, report: Report) -> Outcome {
        lock(&self.leases).remove(&job.number);
        outcome_of(&job.lease, report)
    }

    /// Ends the blocked pop of a queue. Returns its server if that does not end it: then it ends with its time to block, or
    /// with its connection.
    pub fn end_pop(&self, source: &Source) -> Option<Address> {
        let (server, id) = lock(&source.popping).clone()?;
        let ended = id.is_some_and(|id| self.client.end_pop(&server, &source.key, id).is_ok());
        (!ended).then_some(server)
    }

    /// Begins no more messages. Those that wait for a handler are given back.
    pub fn close(&self) {
        self.permits.close();
        self.settle_all(self.jobs.close().into_iter().map(|job| self.give_back(job)).collect());
    }
}

/// What is to be reported of a delivery; a nack takes the checkpoint along that was not sent yet.
fn outcome_of(lease: &Lease, mut report: Report) -> Outcome {
    if let Report::Nack { nack, .. } = &mut report {
        if let Some(bytes) = lease.take_checkpoint() {
            **nack = std::mem::take(&mut **nack).checkpoint(bytes);
        }
    }
    Outcome {
        source: lease.source,
        id: lease.id.clone(),
        attempt: lease.attempt,
        receipt: lease.receipt.clone(),
        report,
        repeated: false,
        has_permit: true,
    }
}

/// The message of a panic.
fn text_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

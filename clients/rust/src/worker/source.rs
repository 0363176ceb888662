//! A queue of a pool while that runs: its leases, its connection, and what is reported to it.

use super::handoff::Handoff;
use super::lease::Lease;
use super::metrics::{Counters, Metrics};
use super::outcome::Outcome;
use crate::connect::Address;
use crate::names::QueueName;
use crate::sync::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::Notify;

/// A shorter lease could not be kept.
pub(super) const SHORTEST_LEASE: Duration = Duration::from_millis(100);
/// The lease that is asked for if the user may not ask for the time: the default of the server.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// A queue of the pool.
pub(super) struct Source {
    pub name: QueueName,
    pub counters: Counters,
    /// The connection of a pop that may be blocked: its server, and its number there.
    pub popping: Mutex<Option<(Address, Option<i64>)>>,
    /// Whether a task is about to end that pop, and the signal that its server does not.
    pub is_being_ended: AtomicBool,
    pub hangs: Notify,
    pub handoff: Handoff,
    /// How long its leases are: as the program says, or else as the server last reported.
    lengths: Mutex<(Option<Duration>, Duration)>,
    /// Whether the server lets the user ask for its time.
    pub may_ask_time: AtomicBool,
    /// When its server has last answered to the task that pops, or while that waited for a handler.
    pub contact: Mutex<Option<Instant>>,
    /// Whether its last pop has failed.
    pub is_interrupted: AtomicBool,
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
    /// How many messages the server has taken back without counting an attempt.
    pub given_back: AtomicUsize,
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
            may_ask_time: AtomicBool::new(true),
            contact: Mutex::default(),
            is_interrupted: AtomicBool::new(false),
            extends_singly: AtomicBool::new(false),
            has_lost_a_result: AtomicBool::new(false),
            leases: Mutex::default(),
            unreported: Mutex::default(),
            refused: AtomicUsize::new(0),
            given_back: AtomicUsize::new(0),
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
        given.or_else(|| (!self.may_ask_time.load(Ordering::Relaxed)).then_some(LEASE))
    }

    /// How long the last lease was, or the next one will be.
    pub fn lease(&self) -> Duration {
        self.asked_lease().unwrap_or_else(|| lock(&self.lengths).1)
    }

    pub fn set_lease(&self, lease: Option<Duration>) {
        lock(&self.lengths).0 = lease;
        self.wake_before(Instant::now());
    }

    /// The server has reported the length of a lease.
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

    /// Passes an outcome to the task that settles. That one ends only after the handlers, or once these were given up;
    /// then messages come back when their leases expire.
    pub fn settle(&self, outcome: Outcome) {
        let _ = self.outcomes.send(outcome);
    }

    pub fn settle_all(&self, outcomes: Vec<Outcome>) {
        outcomes.into_iter().for_each(|outcome| self.settle(outcome));
    }
}

//! Acks that go with the next pop of their queue, as one command.
//!
//! The thread that pops a queue waits for permits while all handlers are busy. A handler that ends then passes its ack on
//! and releases its permit, which lets that thread pop: the ack goes with the pop. In all other cases, for example while
//! the thread is blocked in a pop, the thread that settles sends the ack. So no ack waits for a pop that may not come.
//!
//! If a pool serves several queues, the permit may go to another queue. Then the thread that settles passes the acks on and
//! releases the permits, and takes acks back that no pop has taken within a moment.

use super::pool::{Outcome, Pool, Report};
use crate::connect::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The most acks of one pop, so that each command is short.
const ACKS: usize = 500;
/// How long an ack waits for a pop at most.
const PATIENCE: Duration = Duration::from_millis(1);

/// The acks that wait for the next pop of a queue.
#[derive(Default)]
pub(super) struct Handoff(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether the thread that pops waits for permits, or is about to.
    waits: bool,
    /// Whether the user may not ack and pop in one command.
    refused: bool,
    acks: Vec<Outcome>,
    /// When the first of them was passed on.
    since: Option<Instant>,
}

impl Handoff {
    /// The thread that pops goes to acquire permits, without doing anything else that takes long.
    pub fn open(&self) {
        let mut state = lock(&self.0);
        state.waits = !state.refused;
    }

    /// The thread that pops has acquired permits, or ends. Returns the acks that were passed on.
    pub fn close(&self) -> Vec<Outcome> {
        lock(&self.0).waits = false;
        self.take_back()
    }

    /// From now on, acks are not passed on.
    pub fn refuse(&self) {
        lock(&self.0).refused = true;
    }

    fn take_back(&self) -> Vec<Outcome> {
        let mut state = lock(&self.0);
        state.since = None;
        std::mem::take(&mut state.acks)
    }

    /// Passes an ack on, whose permit the caller releases. Returns an outcome that is no ack, or for which no pop waits.
    fn pass(&self, outcome: Outcome) -> Option<Outcome> {
        let mut state = lock(&self.0);
        let is_first_ack = matches!(outcome.report, Report::Ack) && outcome.has_permit && !outcome.repeated;
        if !state.waits || state.acks.len() >= ACKS || !is_first_ack {
            return Some(outcome);
        }
        state.since.get_or_insert_with(Instant::now);
        state.acks.push(Outcome { has_permit: false, ..outcome });
        None
    }

    /// When its acks have waited for long enough.
    fn overdue_at(&self) -> Option<Instant> {
        lock(&self.0).since.map(|since| since + PATIENCE)
    }
}

impl Pool {
    /// Reports the outcome of a handler.
    pub(super) fn settle(&self, outcome: Outcome) {
        let number = outcome.source;
        let Some(source) = self.source(number).filter(|_| self.sources.len() == 1) else {
            return self.settle_all(vec![outcome]);
        };
        if let Some(outcome) = source.handoff.pass(outcome) {
            self.settle_all(vec![outcome]);
        } else if !self.permits.release_to(number) {
            self.settle_all(source.handoff.take_back());
        }
    }

    /// Passes acks on to the threads that wait for the permits of these outcomes, if there are several. Returns the other
    /// outcomes.
    pub(super) fn pass_on(&self, outcomes: Vec<Outcome>) -> Vec<Outcome> {
        if self.sources.len() == 1 {
            return outcomes;
        }
        let pass = |outcome: Outcome| self.source(outcome.source)?.handoff.pass(outcome);
        outcomes.into_iter().filter_map(pass).collect()
    }

    /// The acks that were passed on, and that no pop has taken in time.
    pub(super) fn overdue(&self, now: Instant) -> Vec<Outcome> {
        let is_overdue = |handoff: &Handoff| handoff.overdue_at().is_some_and(|at| at <= now);
        let handoffs = self.sources.iter().map(|source| &source.handoff);
        handoffs.filter(|handoff| is_overdue(handoff)).flat_map(Handoff::take_back).collect()
    }

    /// When [`Pool::overdue`] is to be called next.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        if self.sources.len() == 1 {
            return None;
        }
        self.sources.iter().filter_map(|source| source.handoff.overdue_at()).min()
    }

    /// The thread that pops a queue goes on waiting: nothing may wait for its next pop.
    pub(super) fn pop_is_delayed(&self, number: usize) {
        if let Some(source) = self.source(number) {
            self.settle_all(source.handoff.take_back());
        }
    }

    /// Passes outcomes to the thread that settles. It ends only after the handlers, or once these were given up; then
    /// messages come back when their leases expire.
    pub(super) fn settle_all(&self, outcomes: Vec<Outcome>) {
        if !outcomes.is_empty() {
            drop(self.outcomes.put(outcomes));
        }
    }
}

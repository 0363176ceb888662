//! Acks that go with the next pop of their queue, as one command.
//!
//! The thread that pops a queue waits for permits while all handlers are busy. A handler that ends then passes its ack on
//! and releases its permit, which lets that thread pop: the ack goes with the pop. In all other cases, for example while
//! the thread is blocked in a pop, or if the permit goes to another queue, the thread that settles sends the ack. So no
//! ack waits for a pop that may not come.

use super::pool::{Outcome, Pool, Report};
use crate::connect::lock;
use std::sync::Mutex;

/// The most acks of one pop, so that each command is short.
const ACKS: usize = 500;

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
}

impl Handoff {
    /// The thread that pops goes to acquire permits, without doing anything else that takes long.
    pub fn open(&self) {
        let mut state = lock(&self.0);
        state.waits = !state.refused;
    }

    /// The thread that pops has acquired permits, or ends. Returns the acks that were passed on.
    pub fn close(&self) -> Vec<Outcome> {
        let mut state = lock(&self.0);
        state.waits = false;
        std::mem::take(&mut state.acks)
    }

    /// From now on, acks are not passed on.
    pub fn refuse(&self) {
        lock(&self.0).refused = true;
    }

    /// Takes the acks back, because the permit went elsewhere.
    fn take_back(&self) -> Vec<Outcome> {
        std::mem::take(&mut lock(&self.0).acks)
    }

    /// Passes an ack on. Returns an outcome that is none, or that no pop is waiting for.
    fn pass(&self, outcome: Outcome) -> Result<(), Outcome> {
        let mut state = lock(&self.0);
        if !state.waits || state.acks.len() >= ACKS || !matches!(outcome.report, Report::Ack) {
            return Err(outcome);
        }
        state.acks.push(outcome);
        Ok(())
    }
}

impl Pool {
    /// Passes the outcome of a handler to the thread that reports it.
    pub(super) fn settle(&self, outcome: Outcome) {
        let number = outcome.source;
        let Some(source) = self.source(number) else { return };
        match source.handoff.pass(Outcome { has_permit: false, ..outcome }) {
            Ok(()) => {
                if !self.permits.release_to(number) {
                    self.settle_all(source.handoff.take_back());
                }
            }
            Err(outcome) => self.settle_all(vec![Outcome { has_permit: true, ..outcome }]),
        }
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

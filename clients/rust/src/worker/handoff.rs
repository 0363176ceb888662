//! Acks that go with the next pop of their queue, as one command.
//!
//! The task that pops a queue waits for permits while all handlers are busy. The task that settles then passes acks on
//! and releases their permits, which lets that task pop: the acks go with the pop. In all other cases, for example
//! while a pop is blocked, the task that settles sends the acks. So no ack waits for a pop that may not come.
//!
//! If a pool serves several queues, the permits may go to another queue: acks that no pop has taken within a moment are
//! taken back.

use super::outcome::{Outcome, Report};
use crate::sync::lock;
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
    /// Whether the task that pops waits for permits, or is about to.
    waits: bool,
    /// Whether the user may not ack and pop in one command.
    refused: bool,
    acks: Vec<Outcome>,
    /// When the first of them was passed on.
    since: Option<Instant>,
}

impl Handoff {
    /// The task that pops goes to acquire permits, without doing anything else that takes long.
    pub fn open(&self) {
        let mut state = lock(&self.0);
        state.waits = !state.refused;
    }

    /// The task that pops has acquired permits, or ends. Returns the acks that were passed on.
    pub fn close(&self) -> Vec<Outcome> {
        lock(&self.0).waits = false;
        self.take_back()
    }

    /// From now on, acks are not passed on.
    pub fn refuse(&self) {
        lock(&self.0).refused = true;
    }

    pub fn take_back(&self) -> Vec<Outcome> {
        let mut state = lock(&self.0);
        state.since = None;
        std::mem::take(&mut state.acks)
    }

    /// Passes acks on to the task that pops. Returns the other outcomes, and the acks for which no pop waits.
    pub fn pass_on(&self, outcomes: Vec<Outcome>) -> Vec<Outcome> {
        outcomes.into_iter().filter_map(|outcome| self.pass(outcome)).collect()
    }

    /// The acks that were passed on, and that no pop has taken in time.
    pub fn overdue(&self, now: Instant) -> Vec<Outcome> {
        if self.overdue_at().is_some_and(|at| at <= now) {
            self.take_back()
        } else {
            Vec::new()
        }
    }

    /// Passes an ack on. Returns an outcome that is no ack, or for which no pop waits.
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
    pub fn overdue_at(&self) -> Option<Instant> {
        lock(&self.0).since.map(|since| since + PATIENCE)
    }
}

//! Rescheduling and promoting: a message that waits gets another due time or priority.

use super::super::id::{Id, Sequence};
use super::super::record::{Phase, Record, StateKind};
use super::super::store::At;
use super::super::time::UnixMs;
use super::super::Queue;
use super::push::Due;

/// What is to change of a message that waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reschedule {
    /// Its new due time.
    pub due: Option<Due>,
    /// Its new priority.
    pub priority: Option<i8>,
}

/// A message that was rescheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescheduled {
    /// Which.
    pub sequence: Sequence,
    /// Its due time, if that changed.
    pub due: Option<UnixMs>,
    /// Its priority, if that changed.
    pub priority: Option<i8>,
}

/// Delayed messages that were made due at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promoted {
    /// Which, in the order in which they would have fallen due.
    pub sequences: Vec<Sequence>,
    /// When they are due: the instant of the decision.
    pub due: UnixMs,
}

impl Queue {
    /// Gives a delayed or ready message another due time or priority. Its receipt goes stale and its attempts stay;
    /// with a new due time its TTL starts again. Returns `None` if there is no such message, or if it is in flight or
    /// dead. O(log n).
    pub fn reschedule(&mut self, now: UnixMs, id: &Id<'_>, to: &Reschedule) -> Option<Rescheduled> {
        let now = self.observe(now);
        let at = self.messages.find(id)?;
        let record = self.refresh(at, now);
        let waits = matches!(record.state_at(now).kind(), StateKind::Delayed | StateKind::Ready);
        waits.then(|| {
            let due = to.due.map(|due| due.from(now));
            self.move_to(at, &record, due, to.priority, now);
            Rescheduled { sequence: record.sequence, due, priority: to.priority }
        })
    }

    /// Carries out a new due time, a new priority, or both.
    pub(in crate::queue) fn move_to(
        &mut self,
        at: At,
        record: &Record,
        due: Option<UnixMs>,
        priority: Option<i8>,
        now: UnixMs,
    ) {
        let moved = due.map_or(Record { phase: Phase::Waiting, ..*record }, |due| record.moved_to(due, now));
        let priority = priority.unwrap_or(record.priority);
        self.rewrite(at, record, &Record { priority, ..moved }, now);
    }

    /// Makes the next `count` delayed messages due now; among themselves push order decides. Their TTL starts again.
    /// O(m log n) with m the messages promoted.
    pub fn promote(&mut self, now: UnixMs, count: usize) -> Promoted {
        let now = self.observe(now);
        self.catch_up_all(now);
        let sequences = self.view.in_state(now, StateKind::Delayed, count);
        self.make_due(&sequences, now, now);
        Promoted { sequences, due: now }
    }

    /// Makes the messages of `sequences` that are here due at `due`.
    pub(in crate::queue) fn make_due(&mut self, sequences: &[Sequence], due: UnixMs, now: UnixMs) {
        for sequence in sequences {
            if let Some((at, record)) = self.messages.of(*sequence) {
                self.move_to(at, &record, Some(due), None, now);
            }
        }
    }
}

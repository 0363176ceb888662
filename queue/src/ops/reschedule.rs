//! Rescheduling and promoting: a waiting message gets another due time or priority.

use super::push::Due;
use super::{At, Id, Phase, Queue, Record, Sequence, Spans, StateKind, UnixMs};

/// The changes to a waiting message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reschedule {
    /// Its new due time.
    pub due: Option<Due>,
    /// Its new priority.
    pub priority: Option<i8>,
}

/// The result of a reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescheduled {
    /// The message.
    pub sequence: Sequence,
    /// Its new due time, if that changed.
    pub due: Option<UnixMs>,
    /// Its new priority, if that changed.
    pub priority: Option<i8>,
}

/// The result of a promotion: delayed messages that became due at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promoted {
    /// The number of messages.
    pub count: usize,
    /// The messages.
    pub spans: Spans,
    /// Their new due time: the instant of the decision.
    pub due: UnixMs,
}

impl Queue {
    /// Gives a delayed or ready message another due time or priority. Its receipt becomes stale, and its attempts stay.
    /// If it gets a new due time, its TTL starts again. Returns `None` if there is no such message, or if it is in
    /// flight or dead. O(log n).
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

    /// Applies a new due time, a new priority, or both.
    pub(crate) fn move_to(&mut self, at: At, record: &Record, due: Option<UnixMs>, priority: Option<i8>, now: UnixMs) {
        let moved = due.map_or(Record { phase: Phase::Waiting, ..*record }, |due| record.moved_to(due, now));
        let priority = priority.unwrap_or(record.priority);
        let was_given_back = self.messages.was_given_back(at);
        self.claim_turn(at, record, now);
        self.rewrite(at, record, &Record { priority, ..moved }, now);
        if was_given_back {
            self.messages.mark_given_back(at);
        }
    }

    /// Makes the next `count` delayed messages due now, or those of them that are due by `until`; among themselves they
    /// are in push order. Their TTL starts again. O(m log n), where m is the number of messages promoted.
    pub fn promote(&mut self, now: UnixMs, count: usize, until: Option<UnixMs>) -> Promoted {
        let now = self.observe(now);
        self.catch_up(now);
        let chosen = match until {
            None => self.first_in(now, StateKind::Delayed, count),
            Some(until) => self.delayed_until(now, until, count),
        };
        let spans = self.messages.spans_of(chosen);
        Promoted { count: self.promote_spans(&spans, now, now), spans, due: now }
    }

    /// The next `count` delayed messages that are due by `until`.
    fn delayed_until(&self, now: UnixMs, until: UnixMs, count: usize) -> Vec<Sequence> {
        let most = self.view.due_by(until).saturating_sub(self.view.due_by(now));
        let mut chosen = self.first_in(now, StateKind::Delayed, count.min(most));
        let is_later = |at| self.messages.record(at).due > until;
        chosen.retain(|sequence| !self.messages.locate(*sequence).is_some_and(is_later));
        chosen
    }

    /// Applies the due time `due` to the messages in `spans`, and returns how many there are.
    pub(crate) fn promote_spans(&mut self, spans: &Spans, due: UnixMs, now: UnixMs) -> usize {
        let promoted = self.messages.in_spans(spans);
        self.for_each_refreshed(&promoted, now, |queue, at, record| queue.move_to(at, record, Some(due), None, now));
        promoted.len()
    }
}

//! Redriving: dead messages become live again, as if they had never been delivered.

use super::push::Due;
use super::{At, DurationMs, Id, Queue, Reason, Record, Spans, State, StateKind, UnixMs};

/// Which dead messages to redrive.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// The oldest.
    Oldest(Oldest),
    /// Those of the messages with these ids that are dead; `None` stands for an id that no message can have.
    Named(&'a [Option<Id<'a>>]),
}

/// The oldest dead messages that meet all conditions.
#[derive(Clone, Copy, Debug)]
pub struct Oldest {
    /// At most this many.
    pub count: usize,
    /// Only those that have been dead for at least this long.
    pub older: Option<DurationMs>,
    /// Only those that became dead for this reason.
    pub reason: Option<Reason>,
}

impl Oldest {
    /// The oldest `count`, whatever they died of.
    pub const fn first(count: usize) -> Oldest {
        Oldest { count, older: None, reason: None }
    }

    fn includes(&self, state: State, now: UnixMs) -> bool {
        let State::Dead { died, reason } = state else { return false };
        self.older.is_none_or(|older| now.since(died) >= older) && self.reason.is_none_or(|wanted| wanted == reason)
    }
}

/// The result of a redrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redriven {
    /// The number of messages.
    pub count: usize,
    /// The messages.
    pub spans: Spans,
    /// Their new due time.
    pub due: UnixMs,
}

impl Queue {
    /// Makes dead messages live again, with no attempts, no error and the due time `due`. O(m log n), where m is the
    /// number of messages redriven; conditions add O(d), where d is the number of dead messages.
    pub fn redrive(&mut self, now: UnixMs, which: &Which<'_>, due: Due) -> Redriven {
        let now = self.observe(now);
        let due = due.from(now);
        let chosen = match *which {
            Which::Oldest(Oldest { count, older: None, reason: None }) => {
                self.catch_up(now);
                self.view.oldest_of_dead(count)
            }
            Which::Oldest(which) => {
                self.catch_up(now);
                let mut dead = self.view.oldest_of_dead(usize::MAX);
                dead.retain(|sequence| {
                    let at = self.messages.locate(*sequence);
                    at.is_some_and(|at| which.includes(self.messages.record(at).state_at(now), now))
                });
                dead.truncate(which.count);
                dead
            }
            Which::Named(ids) => {
                let places: Vec<_> = ids.iter().flatten().filter_map(|id| self.messages.find(id)).collect();
                let records = places.into_iter().map(|at| self.messages.record(at));
                let is_dead = |record: &Record| record.state_at(now).kind() == StateKind::Dead && !record.recurring;
                let dead = records.filter(is_dead);
                dead.map(|record| record.sequence).collect()
            }
        };
        let spans = self.messages.spans_of(chosen);
        Redriven { count: self.redrive_spans(&spans, due, now), spans, due }
    }

    /// Applies a redrive of the messages in `spans`, and returns how many there are.
    pub(crate) fn redrive_spans(&mut self, spans: &Spans, due: UnixMs, now: UnixMs) -> usize {
        let redriven = self.messages.in_spans(spans);
        self.for_each_refreshed(&redriven, now, |queue, at, record| queue.revive(at, record, due, now));
        redriven.len()
    }

    /// Makes one message live again.
    fn revive(&mut self, at: At, record: &Record, due: UnixMs, now: UnixMs) {
        let revived = Record { attempts: 0, ..record.moved_to(due, now) };
        self.rewrite(at, record, &revived, now);
        self.messages.clear_errors(at);
        self.end_chain(at);
        self.tally.others().redriven += 1;
    }
}

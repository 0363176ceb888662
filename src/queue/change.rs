//! What clients think better of: cancelling, rescheduling, and making the dead live again.

use super::id::{Id, Sequence};
use super::order::Key;
use super::produce::Due;
use super::record::{Phase, Record, StateKind};
use super::store::At;
use super::time::UnixMs;
use super::Queue;
use serde::{Deserialize, Serialize};

/// Which of the dead are meant.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// The oldest, at most so many.
    Oldest(usize),
    /// These, as far as they are dead; none is an id that no message can have.
    Named(&'a [Option<Id<'a>>]),
}

/// The dead that were chosen, as others find them too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Chosen {
    /// All up to this one, by (died, sequence).
    #[serde(rename = "u")]
    UpTo(UnixMs, Sequence),
    /// These.
    #[serde(rename = "s")]
    These(Vec<Sequence>),
}

/// Dead messages that were made live again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redriven {
    /// How many.
    pub count: usize,
    /// Which.
    pub chosen: Chosen,
    /// When they are due.
    pub due: UnixMs,
}

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
    /// Removes a message in whatever state it is, and returns that. O(log n).
    pub fn cancel(&mut self, now: UnixMs, id: &Id<'_>) -> Option<(Sequence, StateKind)> {
        let now = self.tick(now);
        let at = self.find(id)?;
        let record = self.settle(at, now);
        self.drop_cancelled(at, &record);
        Some((record.sequence, record.state_at(now).kind()))
    }

    /// Carries a cancellation out.
    pub(super) fn drop_cancelled(&mut self, at: At, record: &Record) {
        self.remove(at, record);
        self.tally.rare().cancelled += 1;
    }

    /// Gives a delayed or ready message another due time or priority. Its receipt goes stale and its attempts stay;
    /// with a new due time its TTL starts again. Returns `None` if there is no such message, or if it is in flight or
    /// dead. O(log n).
    pub fn reschedule(&mut self, now: UnixMs, id: &Id<'_>, to: &Reschedule) -> Option<Rescheduled> {
        let now = self.tick(now);
        let at = self.find(id)?;
        let record = self.settle(at, now);
        let waits = matches!(record.state_at(now).kind(), StateKind::Delayed | StateKind::Ready);
        waits.then(|| {
            let due = to.due.map(|due| due.from(now));
            self.move_to(at, &record, due, to.priority, now);
            Rescheduled { sequence: record.sequence, due, priority: to.priority }
        })
    }

    /// Carries out a new due time, a new priority, or both.
    pub(super) fn move_to(&mut self, at: At, record: &Record, due: Option<UnixMs>, priority: Option<i8>, now: UnixMs) {
        let moved = due.map_or(Record { phase: Phase::Waiting, ..*record }, |due| record.moved_to(due, now));
        let priority = priority.unwrap_or(record.priority);
        self.rewrite(at, record, &Record { priority, ..moved }, now);
    }

    /// Makes the next `count` delayed messages due now; among themselves push order decides. Their TTL starts again.
    /// O(m log n) with m the messages promoted.
    pub fn promote(&mut self, now: UnixMs, count: usize) -> Promoted {
        let now = self.tick(now);
        self.settle_all(now);
        let sequences = self.in_state(now, StateKind::Delayed, count);
        self.make_due(&sequences, now, now);
        Promoted { sequences, due: now }
    }

    /// Makes the messages of `sequences` that are here due at `due`.
    pub(super) fn make_due(&mut self, sequences: &[Sequence], due: UnixMs, now: UnixMs) {
        for sequence in sequences {
            if let Some((at, record)) = self.message_of(*sequence) {
                self.move_to(at, &record, Some(due), None, now);
            }
        }
    }

    /// Makes dead messages live again, as if they had never been delivered. O(m log n), and O(n log n) at most.
    pub fn redrive(&mut self, now: UnixMs, which: &Which<'_>, due: Due) -> Redriven {
        let now = self.tick(now);
        let due = due.from(now);
        match *which {
            Which::Oldest(count) => {
                self.settle_dead(now);
                let last = self.last_of_oldest_dead(count);
                let count = last.map_or(0, |last| self.redrive_up_to(last, due, now));
                let last = last.unwrap_or(Key::at(UnixMs::EPOCH, Sequence::ZERO));
                Redriven { count, chosen: Chosen::UpTo(last.time(), last.sequence()), due }
            }
            Which::Named(ids) => {
                let mut those = Vec::new();
                for id in ids.iter().flatten() {
                    let Some(at) = self.find(id) else { continue };
                    let record = self.settle(at, now);
                    if record.state_at(now).kind() == StateKind::Dead {
                        self.revive(at, &record, due, now);
                        those.push(record.sequence);
                    }
                }
                Redriven { count: those.len(), chosen: Chosen::These(those), due }
            }
        }
    }

    /// Brings the view up to the last instant of death that is known of, which another clock may have set beyond
    /// `now`: what died before it is then noticed too.
    pub(super) fn settle_dead(&mut self, now: UnixMs) {
        self.settle_all(now);
        if let Some(last) = self.dead.last().filter(|last| last.time() > now) {
            self.settle_all(last.time());
        }
    }

    /// Revives the dead up to `last`, and says how many they were.
    pub(super) fn redrive_up_to(&mut self, last: Key, due: UnixMs, now: UnixMs) -> usize {
        let those = self.dead_up_to(last);
        if !self.is_bulk(those.len()) {
            for sequence in &those {
                if let Some((at, record)) = self.message_of(*sequence) {
                    self.revive(at, &record, due, now);
                }
            }
            return those.len();
        }
        for sequence in &those {
            if let Some((at, record)) = self.message_of(*sequence) {
                self.write_revived(at, &record, due, now);
            }
        }
        self.lay_out_anew(now);
        those.len()
    }

    /// Makes one message live again.
    pub(super) fn revive(&mut self, at: At, record: &Record, due: UnixMs, now: UnixMs) {
        self.view_at(now);
        self.unplace(at, record);
        let revived = self.write_revived(at, record, due, now);
        self.place(at, &revived, now);
    }

    /// Writes the record of a message that lives again, and leaves the view to the caller.
    fn write_revived(&mut self, at: At, record: &Record, due: UnixMs, now: UnixMs) -> Record {
        let revived = Record { attempts: 0, ..record.moved_to(due, now) };
        self.store.update(at, &revived);
        if self.store.bytes(at).error.is_some() {
            self.store.set_error(at, None);
        }
        self.tally.rare().redriven += 1;
        revived
    }
}

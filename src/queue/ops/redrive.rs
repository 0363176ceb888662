//! Redriving: dead messages become live again, as if they had never been delivered.

use super::super::id::{Id, Sequence};
use super::super::order::Key;
use super::super::record::{Record, StateKind};
use super::super::store::At;
use super::super::time::UnixMs;
use super::super::Queue;
use super::push::Due;

/// Which dead messages to redrive.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// The oldest, at most this many.
    Oldest(usize),
    /// The messages with these ids, as far as they are dead; `None` stands for an id that no message can have.
    Named(&'a [Option<Id<'a>>]),
}

/// The dead messages that were redriven, in a form from which other servers find the same ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// All up to and including this one, in the order of (died, sequence).
    UpTo(UnixMs, Sequence),
    /// These messages.
    These(Vec<Sequence>),
}

/// The result of a redrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redriven {
    /// The number of messages.
    pub count: usize,
    /// The messages.
    pub chosen: Chosen,
    /// Their new due time.
    pub due: UnixMs,
}

impl Queue {
    /// Makes dead messages live again, with no attempts, no error and the due time `due`. O(m log n), where m is the
    /// number of messages redriven.
    pub fn redrive(&mut self, now: UnixMs, which: &Which<'_>, due: Due) -> Redriven {
        let now = self.observe(now);
        let due = due.from(now);
        match *which {
            Which::Oldest(count) => {
                self.catch_up_dead(now);
                let last = self.view.last_of_oldest_dead(count);
                let count = last.map_or(0, |last| self.redrive_up_to(last, due, now));
                let last = last.unwrap_or(Key::at(UnixMs::EPOCH, Sequence::ZERO));
                Redriven { count, chosen: Chosen::UpTo(last.time(), last.sequence()), due }
            }
            Which::Named(ids) => {
                let mut those = Vec::new();
                for id in ids.iter().flatten() {
                    let Some(at) = self.messages.find(id) else { continue };
                    let record = self.refresh(at, now);
                    if record.state_at(now).kind() == StateKind::Dead {
                        self.revive(at, &record, due, now);
                        those.push(record.sequence);
                    }
                }
                Redriven { count: those.len(), chosen: Chosen::These(those), due }
            }
        }
    }

    /// Applies a redrive of all dead messages up to `last`, and returns how many there were.
    pub(in crate::queue) fn redrive_up_to(&mut self, last: Key, due: UnixMs, now: UnixMs) -> usize {
        let those = self.view.dead_up_to(last);
        self.redrive_these(&those, due, now);
        those.len()
    }

    /// Applies a redrive of those messages of `sequences` that the queue still holds.
    pub(in crate::queue) fn redrive_these(&mut self, sequences: &[Sequence], due: UnixMs, now: UnixMs) {
        for sequence in sequences {
            if let Some((at, record)) = self.messages.of(*sequence) {
                self.revive(at, &record, due, now);
            }
        }
    }

    /// Makes one message live again.
    fn revive(&mut self, at: At, record: &Record, due: UnixMs, now: UnixMs) {
        let revived = Record { attempts: 0, ..record.moved_to(due, now) };
        self.rewrite(at, record, &revived, now);
        if self.messages.bytes(at).error.is_some() {
            self.messages.set_error(at, None);
        }
        self.tally.rare().redriven += 1;
    }
}

//! Burials: a command makes a message dead.

use super::nack::stored;
use super::{At, Ended, Id, Loss, Phase, Queue, Reason, Record, Sequence, StateKind, UnixMs};
use crate::recurring::Failure;

/// The result of a burial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buried<'a> {
    /// The message.
    pub sequence: Sequence,
    /// The state that it was in.
    pub was: StateKind,
    /// Whether a message is dead now: this one, or its successor, if the successor's own TTL had ended when it took the
    /// place.
    pub died: bool,
    /// The part of the error that is stored.
    pub error: Option<&'a [u8]>,
}

impl Queue {
    /// Makes a live message dead, whether or not it was delivered; a recurring message fails its run. If the message
    /// has a successor, the successor takes its place instead. Returns `None` if there is no such message or if it is
    /// dead already. O(log n).
    pub fn bury<'a>(&mut self, now: UnixMs, id: &Id<'_>, error: Option<&'a [u8]>) -> Option<Buried<'a>> {
        let now = self.observe(now);
        let at = self.messages.find(id)?;
        let record = self.refresh(at, now);
        let was = record.state_at(now).kind();
        if was == StateKind::Dead {
            return None;
        }
        self.note_lost(at, &record, Loss::Buried, now);
        let error = error.map(stored);
        let died = if record.recurring && !record.is_successor_at(now) {
            let failure = Failure { died: now, reason: Reason::Rejected, attempts: record.attempts, copy: None };
            self.end_run(at, &record, Ended::Buried(error), Some(failure), now);
            true
        } else {
            self.reject(at, &record, error, now)
        };
        Some(Buried { sequence: record.sequence, was, error, died })
    }

    /// Applies a burial. Returns whether a message is dead now; if there is a successor, it takes the place instead.
    pub(crate) fn reject(&mut self, at: At, record: &Record, error: Option<&[u8]>, now: UnixMs) -> bool {
        if record.is_successor_at(now) {
            return self.succeed(at, record, now).kind() == StateKind::Dead;
        }
        if let Some(error) = error {
            self.add_error(at, record, error, now);
        }
        self.claim_turn(at, record, now);
        let phase = Phase::Dead { died: now, reason: Reason::Rejected };
        self.rewrite(at, record, &Record { phase, ..*record }, now);
        self.tally.count_dead(now, Reason::Rejected);
        true
    }
}

//! Giving back: a delivery ends without an ack, or a message is made dead by a command.

use super::super::id::{Id, Sequence, Target};
use super::super::record::{Phase, Reason, Record, State, StateKind};
use super::super::store::At;
use super::super::time::{DurationMs, UnixMs};
use super::super::Queue;

/// The longest error text that is kept, in bytes.
pub const ERROR_MAX: usize = 1024;

/// How a consumer gives a message back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nack<'a> {
    /// The wait until the message is due again, in place of the one that follows from `verdict`.
    pub delay: Option<DurationMs>,
    /// What went wrong; the first [`ERROR_MAX`] bytes are kept.
    pub error: Option<&'a [u8]>,
    /// What the delivery that ends counts as.
    pub verdict: Verdict,
}

/// What a delivery counts as that ends with a nack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// A failed attempt: a retry is spent, and the message waits for the queue's backoff.
    #[default]
    Failed,
    /// No attempt at all, as when a worker shuts down: the attempt is taken back, and the due time stays.
    NotCounted,
    /// The last attempt: the message becomes dead.
    Rejected,
}

/// What becomes of a message that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is due again.
    Due(UnixMs),
    /// It is dead.
    Dead {
        /// The instant of death: told, since the clock of the one who decided may be ahead of what it stamps.
        died: UnixMs,
        /// Why.
        reason: Reason,
    },
}

/// A nack that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nacked<'a> {
    /// The message.
    pub sequence: Sequence,
    /// What became of it.
    pub fate: Fate,
    /// Its attempts from now on.
    pub attempts: u32,
    /// The part of the error that is kept.
    pub error: Option<&'a [u8]>,
    /// Its state from now.
    pub state: State,
}

/// A message that was made dead by a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buried<'a> {
    /// The message.
    pub sequence: Sequence,
    /// The state that it was in.
    pub was: StateKind,
    /// The part of the error that is kept.
    pub error: Option<&'a [u8]>,
}

/// The part of an error that is kept.
fn kept(error: &[u8]) -> &[u8] {
    error.get(..ERROR_MAX).unwrap_or(error)
}

impl Queue {
    /// Gives a message back that is in flight. O(log n).
    pub fn nack<'a>(&mut self, now: UnixMs, target: &Target<'_>, nack: &Nack<'a>) -> Option<Nacked<'a>> {
        let now = self.observe(now);
        let (at, record) = self.in_flight(target, now)?;
        let dead = |reason| Fate::Dead { died: now, reason };
        let expired = record.ttl.is_some_and(|ttl| ttl.end <= now);
        let fate = match nack.verdict {
            Verdict::Rejected => dead(Reason::Rejected),
            Verdict::Failed | Verdict::NotCounted if expired => dead(Reason::Expired),
            Verdict::Failed if record.retries.spent(record.attempts) => dead(Reason::Retries),
            Verdict::Failed => {
                let wait = nack.delay.unwrap_or_else(|| self.settings.backoff.after(record.sequence, record.attempts));
                Fate::Due(now.after(wait))
            }
            Verdict::NotCounted => Fate::Due(nack.delay.map_or(record.due, |delay| now.after(delay))),
        };
        let attempts = match nack.verdict {
            Verdict::Failed | Verdict::Rejected => record.attempts,
            Verdict::NotCounted => record.attempts.saturating_sub(1),
        };
        let error = nack.error.map(kept);
        let state = self.give_back(at, &record, fate, attempts, error, now);
        Some(Nacked { sequence: record.sequence, fate, attempts, error, state })
    }

    /// Carries a nack out, after which the message has so many `attempts`.
    pub(in crate::queue) fn give_back(
        &mut self,
        at: At,
        record: &Record,
        fate: Fate,
        attempts: u32,
        error: Option<&[u8]>,
        now: UnixMs,
    ) -> State {
        let new = match fate {
            Fate::Due(due) => Record { due, attempts, phase: Phase::Waiting, ..*record },
            Fate::Dead { died, reason } => Record { attempts, phase: Phase::Dead { died, reason }, ..*record },
        };
        if error.is_some() {
            self.messages.set_error(at, error);
        }
        self.rewrite(at, record, &new, now);
        self.tally.rare().nacked += 1;
        let state = new.state_at(now);
        if let State::Dead { reason, .. } = state {
            self.tally.count_dead(reason);
        }
        state
    }

    /// Makes a live message dead, whether or not it was delivered. Returns `None` if there is no such message, or if it
    /// is dead already. O(log n).
    pub fn bury<'a>(&mut self, now: UnixMs, id: &Id<'_>, error: Option<&'a [u8]>) -> Option<Buried<'a>> {
        let now = self.observe(now);
        let at = self.messages.find(id)?;
        let record = self.refresh(at, now);
        let was = record.state_at(now).kind();
        if was == StateKind::Dead {
            return None;
        }
        let error = error.map(kept);
        self.reject(at, &record, error, now);
        Some(Buried { sequence: record.sequence, was, error })
    }

    /// Carries a burial out.
    pub(in crate::queue) fn reject(&mut self, at: At, record: &Record, error: Option<&[u8]>, now: UnixMs) {
        if error.is_some() {
            self.messages.set_error(at, error);
        }
        let phase = Phase::Dead { died: now, reason: Reason::Rejected };
        self.rewrite(at, record, &Record { phase, ..*record }, now);
        self.tally.count_dead(Reason::Rejected);
    }
}

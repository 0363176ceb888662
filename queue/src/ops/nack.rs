//! Nacks: a delivery ends without an ack.

use super::{At, DurationMs, Ended, Phase, Queue, Reason, Record, Sequence, State, UnixMs};
use crate::checkpoint;
use crate::effect::Fate;
use crate::errors::{stored_part, PastError};
use crate::id::Target;
use crate::recurring::Failure;

/// How a consumer gives a message back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nack<'a> {
    /// The delay until the message is due again; overrides the one that follows from `verdict`.
    pub delay: Option<DurationMs>,
    /// The error text; its first [`ERROR_MAX`](crate::errors::ERROR_MAX) bytes are stored.
    pub error: Option<&'a [u8]>,
    /// How the delivery counts.
    pub verdict: Verdict,
    /// The checkpoint that is stored, of at most [`CHECKPOINT_MAX`](crate::CHECKPOINT_MAX) bytes; an empty one removes
    /// what was stored.
    pub checkpoint: Option<&'a [u8]>,
}

/// How a delivery that ends with a nack counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// A failed attempt: it spends a retry, and the message is due again after the queue's backoff.
    #[default]
    Failed,
    /// No attempt, for example when a worker shuts down: the attempt is not counted, and the due time stays.
    NotCounted,
    /// The last attempt: the message becomes dead.
    Rejected,
}

/// The result of a nack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nacked<'a> {
    /// The message.
    pub sequence: Sequence,
    /// The fate of the message.
    pub fate: Fate,
    /// Its number of attempts from now on.
    pub attempts: u32,
    /// The part of the error that is stored.
    pub error: Option<&'a [u8]>,
    /// Its state after the nack.
    pub state: State,
    /// The checkpoint that is stored.
    pub checkpoint: Option<&'a [u8]>,
}

/// What a nack does to a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenBack<'a> {
    /// The fate of the message.
    pub fate: Fate,
    /// Its number of attempts from now on.
    pub attempts: u32,
    /// The error that is stored.
    pub error: Option<&'a [u8]>,
    /// The checkpoint that is stored.
    pub checkpoint: Option<&'a [u8]>,
}

/// The part of an error that is stored.
pub(super) fn stored(error: &[u8]) -> &[u8] {
    stored_part(error)
}

impl Queue {
    /// Gives back a message in flight. If a recurring message becomes dead, only its run ends. If the message has a
    /// successor, the successor takes its place. Returns `None` if the message is not in flight or the receipt is
    /// stale. O(log n).
    pub fn nack<'a>(&mut self, now: UnixMs, target: &Target<'_>, nack: &Nack<'a>) -> Option<Nacked<'a>> {
        let now = self.observe(now);
        let (at, record) = self.in_flight(target, now)?;
        let left = |attempts: u32| match nack.verdict {
            Verdict::Failed | Verdict::Rejected => attempts,
            Verdict::NotCounted => attempts.saturating_sub(1),
        };
        if record.is_successor_at(now) {
            let attempts = left(self.attempts_beside(at));
            let state = self.pass_on(at, &record, attempts, now);
            let fate = match state {
                State::Dead { died, reason } => Fate::Dead { died, reason },
                State::Delayed | State::Ready | State::InFlight => Fate::Due(record.due),
            };
            return Some(Nacked { sequence: record.sequence, fate, attempts, error: None, state, checkpoint: None });
        }
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
        let attempts = left(record.attempts);
        let error = nack.error.map(stored);
        let checkpoint = nack.checkpoint.map(checkpoint::stored);
        if let (true, Fate::Dead { died, reason }) = (record.recurring, fate) {
            let failure = Failure { died, reason, attempts, copy: None };
            self.end_run(at, &record, Ended::Nacked { error, checkpoint }, Some(failure), now);
            let state = State::Dead { died, reason };
            return Some(Nacked { sequence: record.sequence, fate, attempts, error, state, checkpoint });
        }
        let state = self.give_back(at, &record, &GivenBack { fate, attempts, error, checkpoint }, now);
        Some(Nacked { sequence: record.sequence, fate, attempts, error, state, checkpoint })
    }

    /// Applies a nack. Returns the new state of the message.
    pub(crate) fn give_back(&mut self, at: At, record: &Record, how: &GivenBack<'_>, now: UnixMs) -> State {
        let GivenBack { fate, attempts, error, checkpoint } = *how;
        if record.is_successor_at(now) {
            return self.pass_on(at, record, attempts, now);
        }
        let new = match fate {
            Fate::Due(due) => Record { due, attempts, phase: Phase::Waiting, ..*record },
            Fate::Dead { died, reason } => Record { attempts, phase: Phase::Dead { died, reason }, ..*record },
        };
        if let Some(error) = error {
            self.add_error(at, record, error, now);
        }
        if let Some(checkpoint) = checkpoint {
            self.messages.set_checkpoint(at, record, checkpoint, now);
        }
        self.rewrite(at, record, &new, now);
        if new.attempts == 0 && new.phase == Phase::Waiting {
            self.messages.mark_given_back(at);
            self.end_chain(at);
        }
        self.tally.count_nack(record.attempts, attempts);
        let state = new.state_at(now);
        if let State::Dead { died, reason } = state {
            self.tally.count_dead(died, reason);
        }
        state
    }

    /// Stores why the last delivery of a message has failed.
    pub(crate) fn add_error(&mut self, at: At, record: &Record, text: &[u8], now: UnixMs) {
        let error = PastError { attempt: record.attempts, at: now, text };
        self.messages.add_error(at, &error, self.settings.errors);
    }

    /// Applies a nack of a message that has a successor; `attempts` is its number of attempts after the nack. Returns
    /// the state of the successor.
    fn pass_on(&mut self, at: At, record: &Record, attempts: u32, now: UnixMs) -> State {
        self.tally.count_nack(self.attempts_beside(at), attempts);
        self.succeed(at, record, now)
    }

    /// The attempts of the message that is delivered and has a successor.
    fn attempts_beside(&self, at: At) -> u32 {
        self.messages.leaving(at).map_or(0, |leaving| leaving.record.attempts)
    }
}

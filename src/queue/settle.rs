//! What a consumer says of a delivery: done, not done, not yet.

use super::id::{Id, Receipt, Sequence, Target};
use super::order::Key;
use super::record::{Phase, Reason, Record, State, StateKind};
use super::store::At;
use super::time::{DurationMs, UnixMs};
use super::Queue;
use serde::{Deserialize, Serialize};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It is due again.
    #[serde(rename = "w")]
    Due(UnixMs),
    /// It is dead.
    #[serde(rename = "d")]
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
    /// Removes a message as done, if its last delivery is the one that `target` means, also where that delivery's
    /// lease has run out. O(log n).
    pub fn ack(&mut self, now: UnixMs, target: &Target<'_>) -> Option<Sequence> {
        let now = self.tick(now);
        let (at, record) = self.delivery(target, now)?;
        self.complete(at, &record);
        Some(record.sequence)
    }

    /// Removes a message as done.
    pub(super) fn complete(&mut self, at: At, record: &Record) {
        self.remove(at, record);
        self.tally.acked += 1;
    }

    /// Gives a message back that is in flight. O(log n).
    pub fn nack<'a>(&mut self, now: UnixMs, target: &Target<'_>, nack: &Nack<'a>) -> Option<Nacked<'a>> {
        let now = self.tick(now);
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
    pub(super) fn give_back(
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
            self.store.set_error(at, error);
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
        let now = self.tick(now);
        let at = self.find(id)?;
        let record = self.settle(at, now);
        let was = record.state_at(now).kind();
        if was == StateKind::Dead {
            return None;
        }
        let error = error.map(kept);
        self.reject(at, &record, error, now);
        Some(Buried { sequence: record.sequence, was, error })
    }

    /// Carries a burial out.
    pub(super) fn reject(&mut self, at: At, record: &Record, error: Option<&[u8]>, now: UnixMs) {
        if error.is_some() {
            self.store.set_error(at, error);
        }
        let phase = Phase::Dead { died: now, reason: Reason::Rejected };
        self.rewrite(at, record, &Record { phase, ..*record }, now);
        self.tally.count_dead(Reason::Rejected);
    }

    /// Starts the lease of a message in flight anew, for `lease`, else its own, else the queue's, and returns its
    /// sequence and deadline. O(log n).
    pub fn extend(
        &mut self,
        now: UnixMs,
        target: &Target<'_>,
        lease: Option<DurationMs>,
    ) -> Option<(Sequence, UnixMs)> {
        let now = self.tick(now);
        let (at, record) = self.in_flight(target, now)?;
        let lease = lease.or(record.lease).unwrap_or(self.settings.lease);
        let deadline = now.after(lease);
        self.lend_until(at, &record, deadline, now);
        Some((record.sequence, deadline))
    }

    /// Moves the deadline of a delivery.
    pub(super) fn lend_until(&mut self, at: At, record: &Record, deadline: UnixMs, now: UnixMs) {
        if let Phase::Leased { receipt, .. } = record.phase {
            let new = Record { phase: Phase::Leased { deadline, receipt }, ..*record };
            self.rewrite(at, record, &new, now);
        }
    }

    /// Drops the oldest of the dead beyond those that the settings keep, in at most `budget` steps, and returns the
    /// last one dropped: everything dead up to it is gone. A write: only a master does it.
    pub fn trim_dead(&mut self, budget: usize) -> Option<(UnixMs, Sequence)> {
        let mut last = None;
        for _ in 0..budget {
            let Some(oldest) = self.dead.first().filter(|_| self.has_excess_dead()) else { break };
            // What died before it goes before it, noticed here or not: elsewhere it may have been.
            if self.first_end(oldest.time()).is_some() {
                self.end_first(self.clock.max(oldest.time()));
            } else {
                last = self.drop_oldest_dead(oldest);
            }
        }
        last
    }

    /// Drops the oldest of the dead, unless it is beyond `limit`.
    pub(super) fn drop_oldest_dead(&mut self, limit: Key) -> Option<(UnixMs, Sequence)> {
        let key = self.dead.pop_first(limit)?;
        if let Some(at) = self.store.find(key.sequence()) {
            let record = self.store.record(at);
            self.forget(at, &record);
        }
        Some((key.time(), key.sequence()))
    }

    /// Whether [`Queue::trim_dead`] has something to do: more dead messages than `DEADLEN`, or one that is older than
    /// `DEADTTL` by the latest time that the queue was told.
    #[inline]
    pub fn has_excess_dead(&self) -> bool {
        self.settings.deadlen.is_some_and(|kept| self.dead.len() as u64 > kept)
            || self.next_drop().is_some_and(|drop| drop <= self.clock)
    }

    /// The delivery that `target` means: the last one, in flight or with its lease run out.
    fn delivery(&mut self, target: &Target<'_>, now: UnixMs) -> Option<(At, Record)> {
        let at = self.find(&target.id)?;
        let record = self.settle(at, now);
        let current: Receipt = record.receipt()?;
        target.receipt.is_none_or(|receipt| receipt == current).then_some((at, record))
    }

    /// The delivery that `target` means, if its lease still runs.
    fn in_flight(&mut self, target: &Target<'_>, now: UnixMs) -> Option<(At, Record)> {
        self.delivery(target, now).filter(|(_, record)| record.state_at(now) == State::InFlight)
    }
}

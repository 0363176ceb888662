//! What a node must know after the effects that it has applied: the contract in its simplest form, for three messages.

use crate::acts::{Name, LOOSE, NAMES};
use dq_queue::id::{Id, Receipt, Sequence};
use dq_queue::time::UnixMs;
use dq_queue::{Queue, Reason, State};

/// The redeliveries of a message.
pub const RETRIES: u32 = 1;

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Leased { receipt: u64, deadline: u64 },
    Dead { died: u64, rejected: bool },
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Known {
    pub sequence: u64,
    pub due: u64,
    /// How long it may wait, and until when.
    pub ttl: Option<(u64, u64)>,
    pub attempts: u32,
    pub phase: Phase,
    /// Whether its delivery bears the name of the consumer.
    pub named: bool,
}

/// What becomes of a message, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    Delayed,
    Ready,
    InFlight,
    Dead(u64),
}

impl Known {
    pub fn pushed(sequence: u64, due: u64, ttl: Option<u64>) -> Known {
        let ttl = ttl.map(|ttl| (ttl, due + ttl));
        Known { sequence, due, ttl, attempts: 0, phase: Phase::Waiting, named: false }
    }

    pub fn at(&self, now: u64) -> Is {
        let end = self.ttl.map_or(u64::MAX, |(_, end)| end);
        match self.phase {
            Phase::Dead { died, .. } => Is::Dead(died),
            Phase::Leased { deadline, .. } if now < deadline => Is::InFlight,
            Phase::Leased { deadline, .. } if end <= deadline || self.attempts > RETRIES => Is::Dead(deadline),
            _ if end <= now => Is::Dead(end),
            _ if now < self.due => Is::Delayed,
            _ => Is::Ready,
        }
    }

    /// It waits until `due`, and its TTL starts again.
    pub fn moved_to(&mut self, due: u64, now: u64) {
        self.due = due;
        self.phase = Phase::Waiting;
        self.ttl = self.ttl.map(|(ttl, _)| (ttl, due.max(now) + ttl));
    }
}

/// What a node knows.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub struct Belief {
    pub held: [Option<Known>; NAMES.len()],
    /// Until when the name is retained of a message that was completed.
    pub done: [u64; NAMES.len()],
    pub paused: bool,
    /// Whether dead messages may be dropped at any time.
    pub drops_dead: bool,
    pub forwards: bool,
    /// Messages that were pushed, delivered and completed.
    pub totals: [u64; 3],
    /// Whether the third message was ever pushed: what is ready cannot be counted then.
    pub loose: bool,
}

impl Belief {
    pub fn ready(&self, now: u64) -> usize {
        self.held.iter().flatten().filter(|known| known.at(now) == Is::Ready).count()
    }

    pub fn name_of(&self, sequence: Sequence) -> Option<Name> {
        self.held.iter().position(|known| known.is_some_and(|known| known.sequence == sequence.0))
    }

    /// What the queue does not know or knows wrongly.
    pub fn compare(&self, queue: &Queue, now: u64) -> Result<(), String> {
        queue.check()?;
        for (name, known) in self.held.iter().enumerate().filter(|(name, _)| *name != LOOSE) {
            let found = queue.get(UnixMs::new(now), &Id::Named(NAMES[name]));
            let is = found.map(|message| match message.state {
                State::Delayed => Is::Delayed,
                State::Ready => Is::Ready,
                State::InFlight => Is::InFlight,
                State::Dead { died, .. } => Is::Dead(died.as_ms()),
            });
            let must = known.map(|known| known.at(now));
            let dropped = self.drops_dead && is.is_none() && matches!(must, Some(Is::Dead(_)));
            if is != must && !dropped {
                return Err(format!("message {name} is {is:?} and must be {must:?}"));
            }
            let (Some(found), Some(known)) = (found, known) else { continue };
            let receipt = match known.phase {
                Phase::Leased { receipt, .. } => Some(Receipt(receipt)),
                Phase::Waiting | Phase::Dead { .. } => None,
            };
            if (found.record.receipt(), found.record.due.as_ms()) != (receipt, known.due) {
                return Err(format!("message {name} is {:?} and must be {known:?}", found.record));
            }
            let rejected = matches!(found.state, State::Dead { reason: Reason::Rejected, .. });
            if found.record.attempts != known.attempts
                || rejected != matches!(known.phase, Phase::Dead { rejected: true, .. })
            {
                return Err(format!("message {name} is {:?} and must be {known:?}", found.record));
            }
        }
        let totals = queue.totals();
        let counted = [totals.pushed, totals.delivered, totals.acked];
        if !self.loose && counted != self.totals {
            return Err(format!("{counted:?} were pushed, delivered and acked, and not {:?}", self.totals));
        }
        let held = self.held.iter().flatten().count() as u64;
        let mut advanced = queue.duplicate().map_err(|refused| refused.to_string())?;
        advanced.advance_view(UnixMs::new(now), usize::MAX);
        let counts = advanced.counts();
        let found = counts.delayed + counts.ready + counts.inflight + counts.dead;
        if !self.loose && !self.drops_dead && found != held {
            return Err(format!("{found} messages are held and not {held}"));
        }
        let ready = self.ready(now) as u64;
        (self.loose || counts.ready == ready).then_some(()).ok_or(format!("{} are ready, not {ready}", counts.ready))
    }
}

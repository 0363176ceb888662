//! What clients decided, in the form in which it travels to replicas, to the AOF and to other slots.
//!
//! An effect leaves nothing to be decided again: times are absolute, messages and receipts are named. It bears the
//! instant of the decision, which is the only clock of a server that applies it. [`apply`](super::apply) carries it
//! out, and [`wire`](super::wire) has its bytes.

use super::gate::Pause;
use super::id::{Id, Receipt, Sequence};
use super::ops::give_back::{Fate, ERROR_MAX};
use super::ops::redrive::Chosen;
use super::record::{Phase, Record, States};
use super::settings::Settings;
use super::store::Bytes;
use super::time::UnixMs;
use super::wire::Header;

/// A whole message: its record and its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Image<'a> {
    /// The record.
    pub record: Record,
    /// The name that its producer chose.
    pub name: Option<&'a [u8]>,
    /// What it carries.
    pub payload: &'a [u8],
    /// What the last consumer said of its failure.
    pub error: Option<&'a [u8]>,
}

impl Image<'_> {
    /// Whether a push could have made this.
    pub(super) fn is_new(&self) -> bool {
        self.record.phase == Phase::Waiting && self.record.attempts == 0 && self.error.is_none()
    }

    /// Whether a queue could hold this.
    pub fn is_valid(&self) -> bool {
        self.record.sequence.is_possible()
            && self.record.is_valid()
            && self.name.is_none_or(Id::is_name)
            && self.error.is_none_or(|error| error.len() <= ERROR_MAX)
    }
}

impl<'a> From<&Image<'a>> for Bytes<'a> {
    fn from(image: &Image<'a>) -> Self {
        Bytes { name: image.name, payload: image.payload, error: image.error }
    }
}

/// One delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The message.
    pub sequence: Sequence,
    /// The number of the delivery, from 1.
    pub attempt: u32,
    /// When its lease ends.
    pub deadline: UnixMs,
    /// Its receipt.
    pub receipt: Receipt,
}

/// What one command did to a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect<'a> {
    /// These messages were pushed, each in place of one of its name. The settings are present if the push created the
    /// queue.
    Push(Option<Settings>, Vec<Image<'a>>),
    /// These messages were leased.
    Deliver(Vec<Grant>),
    /// These messages were delivered for good.
    Take(Vec<Sequence>),
    /// These messages were completed.
    Ack(Vec<Sequence>),
    /// This message was given back: what became of it, its attempts from now on, and the error.
    Nack(Sequence, Fate, u32, Option<&'a [u8]>),
    /// The lease of this message ends then.
    Extend(Sequence, UnixMs),
    /// These messages were cancelled.
    Cancel(Vec<Sequence>),
    /// This message has this due time from now on, this priority, or both.
    Reschedule(Sequence, Option<UnixMs>, Option<i8>),
    /// These messages are due then.
    Promote(UnixMs, Vec<Sequence>),
    /// This message was made dead at the instant of the decision, with this error.
    Bury(Sequence, Option<&'a [u8]>),
    /// These dead messages live again, and are due then.
    Redrive(Chosen, UnixMs),
    /// All messages in one of these states were removed.
    Purge(States),
    /// These messages were purged.
    Remove(Vec<Sequence>),
    /// The queue was created with these settings.
    Create(Settings),
    /// These are the settings now.
    Alter(Settings),
    /// Delivery is suspended, or resumed, like this.
    Pause(Pause),
    /// The dead messages up to this one, by (died, sequence), were dropped.
    TrimDead(UnixMs, Sequence),
    /// The queue is created again, and its messages follow: the start of a rewritten AOF.
    Begin(Header),
    /// These are the next messages of a queue that was begun.
    Continue(Vec<Image<'a>>),
}

/// An effect and the instant of the decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped<'a> {
    /// The master's now.
    pub now: UnixMs,
    /// What was decided.
    pub effect: Effect<'a>,
}

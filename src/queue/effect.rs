//! What clients decided, as it travels to replicas, to the AOF and to other slots, and how it is carried out there.
//!
//! An effect leaves nothing to be decided again: times are absolute, messages and receipts are named. It bears the
//! instant of the decision, which is the only clock of the one who applies it: the view is first brought up to that
//! instant. It is data from outside all the same: [`Queue::apply`] refuses what no queue could have written, and
//! never panics.

use super::change::Chosen;
use super::id::{Id, Receipt, Sequence};
use super::order::Key;
use super::record::{Phase, Record, States};
use super::settings::Settings;
use super::settle::{Fate, ERROR_MAX};
use super::snapshot::Header;
use super::store::{At, Bytes};
use super::time::UnixMs;
use super::{Pause, Queue};
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes as RawBytes;

/// A whole message: its record and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image<'a> {
    /// The record.
    pub record: Record,
    /// The name that its producer chose.
    #[serde(borrow)]
    pub name: Option<&'a RawBytes>,
    /// What it carries.
    #[serde(borrow)]
    pub payload: &'a RawBytes,
    /// What the last consumer said of its failure.
    #[serde(borrow)]
    pub error: Option<&'a RawBytes>,
}

impl Image<'_> {
    /// Whether a push could have made this.
    fn is_new(&self) -> bool {
        self.record.phase == Phase::Waiting && self.record.attempts == 0 && self.error.is_none()
    }

    /// Whether a queue could hold this.
    pub fn is_valid(&self) -> bool {
        self.record.sequence.is_possible()
            && self.record.is_valid()
            && self.name.is_none_or(|name| Id::is_name(name))
            && self.error.is_none_or(|error| error.len() <= ERROR_MAX)
    }
}

impl<'a> From<&Image<'a>> for Bytes<'a> {
    fn from(image: &Image<'a>) -> Self {
        Bytes { name: image.name.map(|name| &**name), payload: image.payload, error: image.error.map(|error| &**error) }
    }
}

/// One delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What one command did to a queue. The names are short because every byte of them is written for every command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect<'a> {
    /// These messages were pushed, each in the place of one of its name; the settings are there where the queue
    /// was made by it.
    #[serde(rename = "p")]
    Push(Option<Settings>, #[serde(borrow)] Vec<Image<'a>>),
    /// These were lent.
    #[serde(rename = "d")]
    Deliver(Vec<Grant>),
    /// These were delivered for good.
    #[serde(rename = "t")]
    Take(Vec<Sequence>),
    /// These were completed.
    #[serde(rename = "a")]
    Ack(Vec<Sequence>),
    /// This message was given back: what became of it, its attempts from now on, and the error.
    #[serde(rename = "n")]
    Nack(Sequence, Fate, u32, #[serde(borrow)] Option<&'a RawBytes>),
    /// This one's lease ends then.
    #[serde(rename = "e")]
    Extend(Sequence, UnixMs),
    /// These were removed by their ids.
    #[serde(rename = "k")]
    Cancel(Vec<Sequence>),
    /// This message has this due time from now on, this priority, or both.
    #[serde(rename = "s")]
    Reschedule(Sequence, Option<UnixMs>, Option<i8>),
    /// These messages are due then.
    #[serde(rename = "f")]
    Promote(UnixMs, Vec<Sequence>),
    /// This message was made dead at the instant of the decision, with this error.
    #[serde(rename = "b")]
    Bury(Sequence, #[serde(borrow)] Option<&'a RawBytes>),
    /// These dead ones live again, and are due then.
    #[serde(rename = "r")]
    Redrive(Chosen, UnixMs),
    /// All in one of these states were removed.
    #[serde(rename = "u")]
    Purge(States),
    /// These messages were purged.
    #[serde(rename = "v")]
    Remove(Vec<Sequence>),
    /// The queue was made, with these settings.
    #[serde(rename = "m")]
    Create(Settings),
    /// These are the settings now.
    #[serde(rename = "o")]
    Alter(Settings),
    /// Delivery is suspended, or resumed, like this.
    #[serde(rename = "z")]
    Pause(Pause),
    /// The dead up to this one, by (died, sequence), were dropped.
    #[serde(rename = "x")]
    TrimDead(UnixMs, Sequence),
    /// The queue is made anew, and messages follow: the start of a rewritten AOF.
    #[serde(rename = "h")]
    Begin(Header),
    /// These are the next messages of a queue that was begun.
    #[serde(rename = "c")]
    Continue(#[serde(borrow)] Vec<Image<'a>>),
}

/// An effect and the instant of the decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped<'a> {
    /// The master's now.
    pub now: UnixMs,
    /// What was decided.
    #[serde(borrow)]
    pub effect: Effect<'a>,
}

impl<'a> Stamped<'a> {
    /// The bytes that travel.
    pub fn encode(&self, buffer: &mut Vec<u8>) -> Result<(), Refused> {
        encode(buffer, self)
    }

    /// Reads what [`Stamped::encode`] wrote. Payloads are not copied, and what is read is no larger than a small
    /// multiple of the input.
    pub fn decode(bytes: &'a [u8]) -> Result<Stamped<'a>, Refused> {
        decode(bytes)
    }
}

/// Appends a value to `buffer`.
pub(super) fn encode<T: Serialize>(buffer: &mut Vec<u8>, value: &T) -> Result<(), Refused> {
    rmp_serde::encode::write(buffer, value).map_err(|_| Refused::Malformed)
}

/// Reads a value that no other follows.
pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refused> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    let value = T::deserialize(&mut reader).map_err(|_| Refused::Malformed)?;
    // Where a byte is left, anything else comes of it than the end of the input before a value's first byte.
    match <()>::deserialize(&mut reader) {
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(value),
        _ => Err(Refused::Malformed),
    }
}

/// What became of an effect, as far as it does not say so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was carried out.
    Done,
    /// It was a push, and each of its messages took the place of another.
    OnlyReplaced,
}

/// Why bytes from outside were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// They are not what this version writes.
    Malformed,
    /// No queue could have written them.
    Impossible,
}

impl Refused {
    /// What is wrong, for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Refused::Malformed => "the bytes are damaged or of a newer version of the module",
            Refused::Impossible => "the bytes describe a state that no queue can be in",
        }
    }
}

impl Queue {
    /// The queue that an effect makes where there is none; none where it changes only one that exists.
    pub fn made_by(effect: &Effect<'_>) -> Option<Queue> {
        match effect {
            Effect::Push(settings, _) => Some(Queue::new(settings.unwrap_or_default())),
            Effect::Create(settings) => Some(Queue::new(*settings)),
            Effect::Begin(header) => Some(Queue::begin(header)),
            _ => None,
        }
    }

    /// Carries out what was decided elsewhere. An effect that is refused changed nothing.
    pub fn apply(&mut self, stamped: &Stamped<'_>) -> Result<Applied, Refused> {
        let now = stamped.now;
        self.check(&stamped.effect)?;
        // The clock is left alone: it tells the time of this server, and this is another's.
        match stamped.effect {
            Effect::Begin(_) | Effect::Continue(_) => {}
            // The clock of the one who decided may be ahead of what it stamps.
            Effect::TrimDead(died, _) | Effect::Redrive(Chosen::UpTo(died, _), _) => self.settle_all(now.max(died)),
            _ => self.settle_all(now),
        }
        match &stamped.effect {
            Effect::Push(_, images) => {
                let added = images.iter().filter(|image| !self.take_in(now, image)).count();
                if added == 0 {
                    return Ok(Applied::OnlyReplaced);
                }
            }
            Effect::Deliver(grants) => grants.iter().for_each(|grant| self.lend(grant, now)),
            Effect::Take(sequences) => {
                for sequence in sequences {
                    if let Some((at, record)) = self.message_of(*sequence) {
                        self.remove(at, &record);
                        self.tally.delivered += 1;
                    }
                }
            }
            Effect::Ack(sequences) => {
                for sequence in sequences {
                    if let Some((at, record)) = self.message_of(*sequence) {
                        self.complete(at, &record);
                    }
                }
            }
            Effect::Nack(sequence, fate, attempts, error) => {
                if let Some((at, record)) = self.message_of(*sequence) {
                    self.give_back(at, &record, *fate, *attempts, error.map(|error| &**error), now);
                }
            }
            Effect::Extend(sequence, deadline) => {
                if let Some((at, record)) = self.message_of(*sequence) {
                    self.lend_until(at, &record, *deadline, now);
                }
            }
            Effect::Cancel(sequences) => {
                for sequence in sequences {
                    if let Some((at, record)) = self.message_of(*sequence) {
                        self.drop_cancelled(at, &record);
                    }
                }
            }
            Effect::Reschedule(sequence, due, priority) => {
                if let Some((at, record)) = self.message_of(*sequence) {
                    self.move_to(at, &record, *due, *priority, now);
                }
            }
            Effect::Promote(due, sequences) => self.make_due(sequences, *due, now),
            Effect::Bury(sequence, error) => {
                if let Some((at, record)) = self.message_of(*sequence) {
                    self.reject(at, &record, error.map(|error| &**error), now);
                }
            }
            Effect::Redrive(Chosen::UpTo(died, sequence), due) => {
                self.redrive_up_to(Key::at(*died, *sequence), *due, now);
            }
            Effect::Redrive(Chosen::These(sequences), due) => {
                for sequence in sequences {
                    if let Some((at, record)) = self.message_of(*sequence) {
                        self.revive(at, &record, *due, now);
                    }
                }
            }
            Effect::Purge(states) => self.purge_as_of(now, *states),
            Effect::Remove(sequences) => self.remove_all(sequences),
            Effect::Create(settings) => {
                self.alter(*settings);
                self.pause = Pause::Off;
            }
            Effect::Alter(settings) => self.alter(*settings),
            Effect::Pause(pause) => self.pause = *pause,
            Effect::TrimDead(died, sequence) => self.drop_dead_up_to(Key::at(*died, *sequence)),
            Effect::Begin(header) => *self = Queue::begin(header),
            Effect::Continue(images) => self.extend_with(images),
        }
        Ok(Applied::Done)
    }

    /// The message of a sequence, if it is still here.
    pub(super) fn message_of(&mut self, sequence: Sequence) -> Option<(At, Record)> {
        let at = self.store.find(sequence)?;
        Some((at, self.store.record(at)))
    }

    /// Carries out a delivery.
    fn lend(&mut self, grant: &Grant, now: UnixMs) {
        if let Some((at, record)) = self.message_of(grant.sequence) {
            let phase = Phase::Leased { deadline: grant.deadline, receipt: grant.receipt };
            self.rewrite(at, &record, &Record { attempts: grant.attempt, phase, ..record }, now);
        }
        self.last_receipt = self.last_receipt.max(grant.receipt);
        self.tally.delivered += 1;
    }

    /// Refuses what no queue could have decided.
    fn check(&self, effect: &Effect<'_>) -> Result<(), Refused> {
        let possible = match effect {
            Effect::Push(settings, images) => {
                let mut last = self.last_sequence;
                settings.is_none_or(|settings| settings.are_valid())
                    && images.iter().all(|image| {
                        let follows = image.record.sequence > last;
                        last = image.record.sequence;
                        follows && image.is_valid() && image.is_new()
                    })
            }
            Effect::Deliver(grants) => grants.iter().all(|grant| grant.attempt > 0),
            Effect::Nack(sequence, _, _, error) => {
                error.is_none_or(|error| error.len() <= ERROR_MAX)
                    && self.store.locate(*sequence).is_none_or(|at| self.store.record(at).receipt().is_some())
            }
            Effect::Begin(header) => header.is_valid(),
            Effect::Continue(images) => self.may_follow(images),
            Effect::Create(settings) | Effect::Alter(settings) => settings.are_valid(),
            Effect::Bury(_, error) => error.is_none_or(|error| error.len() <= ERROR_MAX),
            Effect::Take(_) | Effect::Ack(_) | Effect::Extend(..) | Effect::Cancel(_) | Effect::Pause(_) => true,
            Effect::Reschedule(..) | Effect::Promote(..) | Effect::Redrive(..) => true,
            Effect::Purge(_) | Effect::Remove(_) | Effect::TrimDead(..) => true,
        };
        possible.then_some(()).ok_or(Refused::Impossible)
    }
}

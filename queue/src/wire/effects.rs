//! Effects: the version of the format that the reader needs, a letter, the instant of the decision in six bytes (Unix
//! ms, big-endian), and a record of its fields.

use super::codec::{Reader, Writer};
use super::numbers::{at_distance, distance, joined, split};
use super::seal::{seal, VERSION_MASK};
use super::{Refused, VERSION};
use crate::effect::{Effect, Grant, Stamped};
use crate::id::{first_tick, Sequence};
use crate::time::UnixMs;

/// The bytes of an instant, which has 44 bits.
const INSTANT: usize = 6;

/// Declares the effects: for each the version of the format that introduced it, its letter, and its fields. A field
/// that a later version adds stands after a semicolon with that version, in an effect that names its fields. The
/// letters are part of the format, and are listed in the reference of the commands.
macro_rules! effects {
    ($($since:literal $letter:literal $name:ident
        $(($($field:ident),+))?
        $({$($part:ident),+ $(; $($version:literal $new:ident),+)?})?;)*) => {
        impl Writer<'_> {
            fn effect(&mut self, effect: &Effect<'_>) -> Result<(), Refused> {
                match effect {
                    $(Effect::$name $(($($field),+))? $({$($part,)+ $($($new),+)?})? => {
                        self.needs($since);
                        self.head($letter)?;
                        $(self.record(|fields| {
                            $(fields.require($field)?;)+
                            Ok(())
                        })?;)?
                        $(self.record(|fields| {
                            $(fields.require($part)?;)+
                            $($(fields.put_since($version, $new)?;)+)?
                            Ok(())
                        })?;)?
                    })*
                }
                Ok(())
            }
        }

        impl<'a> Reader<'a> {
            fn effect(&mut self, letter: u8) -> Result<Effect<'a>, Refused> {
                match letter {
                    $($letter => {
                        $(let ($($field,)+) = self.record(|fields| {
                            $(let $field = fields.required()?;)+
                            Ok(($($field,)+))
                        })?;)?
                        $(let ($($part,)+ $($($new,)+)?) = self.record(|fields| {
                            $(let $part = fields.required()?;)+
                            $($(let $new = fields.get()?;)+)?
                            Ok(($($part,)+ $($($new,)+)?))
                        })?;)?
                        Ok(Effect::$name $(($($field),+))? $({$($part,)+ $($($new),+)?})?)
                    })*
                    ONE_PUSHED => Ok(Effect::Push(None, vec![self.get()?])),
                    ONE_DELIVERED => self.one_delivered(Vec::new()),
                    ONE_ACKED_ONE_DELIVERED => {
                        let acked = vec![self.one()?];
                        self.one_delivered(acked)
                    }
                    ONE_ACKED => Ok(Effect::Ack(vec![self.one()?])),
                    _ => Err(Refused::Malformed),
                }
            }
        }
    };
}

effects! {
    1 b'p' Push(settings, messages);
    1 b'd' Deliver {grants; 1 acked, 1 consumer};
    1 b't' Take(those);
    1 b'w' Forward(those);
    1 b'W' DeadForward(those);
    1 b'a' Ack(those);
    1 b'v' Complete {sequence, until, result};
    1 b'n' Nack {sequence, fate, attempts, error; 1 checkpoint};
    1 b'e' Extend {those; 1 checkpoint};
    1 b'k' Cancel(those, known);
    1 b's' Reschedule {sequence, due, priority};
    1 b'f' Promote(due, those);
    1 b'b' Bury(sequence, error);
    1 b'r' Redrive(those, due);
    1 b'R' Release {ended, given_back};
    1 b'u' Purge {messages, done};
    1 b'C' Batch {settings, name, last, then};
    1 b'm' Create(settings, targets);
    1 b'o' Alter(settings, targets);
    1 b'z' Pause {pause; 1 flow, 1 group};
    1 b'g' Schedule(settings, message);
    1 b'j' Declare(sequence, declared);
    1 b'q' EndRuns {how, others, ends};
    1 b'x' Trim(those);
    1 b'X' TrimDone(those);
    1 b'y' PullBack;
    1 b'h' Begin(header);
    1 b'c' Continue(messages);
    1 b'S' Batches(batches);
    1 b'K' Done(messages);
    1 b'i' Recall(ids);
    1 b'l' Leaving(leaving);
    1 b'T' Turns(turns);
    1 b'G' Gates(gates);
}

/// Shorter forms of the effects that are written most often, without the record and the lists: effects on one message,
/// and the delivery of one message after the ack of another, if it is the first delivery.
const ONE_PUSHED: u8 = b'P';
const ONE_DELIVERED: u8 = b'D';
const ONE_ACKED: u8 = b'A';
const ONE_ACKED_ONE_DELIVERED: u8 = b'B';

impl Writer<'_> {
    fn head(&mut self, letter: u8) -> Result<(), Refused> {
        let [0, 0, instant @ ..] = self.now.as_ms().to_be_bytes() else { return Err(Refused::Impossible) };
        self.raw(&[letter]);
        self.raw(&instant);
        Ok(())
    }

    /// The sequence of one message, without the length of a list.
    fn one(&mut self, sequence: Sequence) -> Result<(), Refused> {
        split(distance(sequence.0, first_tick(self.now))).iter().try_for_each(|number| self.put(number))
    }
}

impl<'a> Reader<'a> {
    fn one(&mut self) -> Result<Sequence, Refused> {
        let distance = joined(self.get()?, self.get()?);
        Ok(Sequence(at_distance(distance, first_tick(self.now))))
    }

    fn one_delivered(&mut self, acked: Vec<Sequence>) -> Result<Effect<'a>, Refused> {
        let sequence = self.one()?;
        let grant = Grant { sequence, attempt: 1, deadline: self.get()?, receipt: self.get()? };
        Ok(Effect::Deliver { grants: vec![grant], acked, consumer: None })
    }
}

impl<'a> Stamped<'a> {
    /// Appends the encoded effect to `buffer`, with its checksum.
    pub fn encode(&self, buffer: &mut Vec<u8>) -> Result<(), Refused> {
        let start = buffer.len();
        let mut to = Writer::new(buffer, self.now);
        to.raw(&[VERSION]);
        match &self.effect {
            Effect::Push(None, messages) if messages.len() == 1 => {
                to.head(ONE_PUSHED)?;
                messages.iter().try_for_each(|message| to.put(message))?;
            }
            Effect::Deliver { grants, acked, consumer: None }
                if matches!(grants[..], [Grant { attempt: 1, .. }]) && acked.len() <= 1 =>
            {
                to.head(if acked.is_empty() { ONE_DELIVERED } else { ONE_ACKED_ONE_DELIVERED })?;
                acked.iter().try_for_each(|sequence| to.one(*sequence))?;
                for grant in grants {
                    to.one(grant.sequence)?;
                    to.put(&grant.deadline)?;
                    to.put(&grant.receipt)?;
                }
            }
            Effect::Ack(those) if those.len() == 1 => {
                to.head(ONE_ACKED)?;
                those.iter().try_for_each(|sequence| to.one(*sequence))?;
            }
            effect => to.effect(effect)?,
        }
        let version = to.version();
        if let Some(first) = buffer.get_mut(start) {
            *first = version;
        }
        seal(buffer.get_mut(start..).unwrap_or_default());
        Ok(())
    }

    /// Decodes what [`Stamped::encode`] wrote, whose checksum [`unsealed`](super::unsealed) checks. Payloads are not
    /// copied, and the result is no larger than a small multiple of the input. Returns an error if the bytes are
    /// damaged or need a later version.
    pub fn decode(bytes: &'a [u8]) -> Result<Stamped<'a>, Refused> {
        let (first, rest) = bytes.split_first().ok_or(Refused::Malformed)?;
        let version = first & VERSION_MASK;
        if !(super::FIRST..=VERSION).contains(&version) {
            return Err(Refused::Version(version));
        }
        let (letter, rest) = rest.split_first().ok_or(Refused::Malformed)?;
        let (instant, fields) = rest.split_first_chunk::<INSTANT>().ok_or(Refused::Malformed)?;
        let now = instant.iter().fold(0, |now, byte| now << 8 | u64::from(*byte));
        let now = UnixMs::checked(now).ok_or(Refused::Malformed)?;
        let mut from = Reader::new(fields, now);
        let effect = from.effect(*letter)?;
        from.end()?;
        Ok(Stamped { now, effect })
    }
}

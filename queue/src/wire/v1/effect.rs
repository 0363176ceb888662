//! Effects: a letter, the instant of the decision in six bytes (Unix ms, big-endian), and the fields of the effect one
//! after the other in MessagePack.

use super::super::codec::{self, Values};
use super::super::Refused;
use super::recurring::{Declaration, Ended, RunEnd};
use super::settings::Settings;
use super::{Done, Fate, Grants, Image, KnownId, Leaving, QueueHeader, Sequences, Spans, Turns};
use serde_bytes::Bytes;

/// The bytes of an instant: enough for every possible time until the year 2248.
const INSTANT: usize = 6;

/// An effect: the instant of the decision, Unix ms, and what was decided.
#[derive(Debug)]
pub struct Stamped<'a>(pub(super) u64, pub(super) Effect<'a>);

/// Declares the effects: for each its letter and the types of its fields. The letters are part of the format, and are
/// listed in the reference of the commands. A capital is a shorter form of what is written most often.
macro_rules! effects {
    ($($letter:literal $name:ident($($field:ident: $type:ty),*);)*) => {
        /// An effect.
        #[derive(Debug)]
        pub(super) enum Effect<'a> {
            $($name($($type),*),)*
        }

        impl<'a> Effect<'a> {
            fn letter(&self) -> u8 {
                match self {
                    $(Effect::$name(..) => $letter,)*
                }
            }

            fn write(&self, _buffer: &mut Vec<u8>) -> Result<(), Refused> {
                match self {
                    $(Effect::$name($($field),*) => {
                        $(codec::encode(_buffer, $field)?;)*
                    })*
                }
                Ok(())
            }

            fn read(letter: u8, values: &mut Values<'a>) -> Result<Self, Refused> {
                match letter {
                    $($letter => Ok(Effect::$name($(values.next::<$type>()?),*)),)*
                    _ => Err(Refused::Malformed),
                }
            }
        }
    };
}

effects! {
    b'p' Push(messages: Vec<Image<'a>>, settings: Option<Settings>);
    b'P' PushOne(message: Image<'a>);
    b'd' Deliver(grants: Grants);
    b'D' DeliverOne(ms: i64, rest: i64, deadline: i64, receipt: i64, attempt: u32);
    b't' Take(those: Sequences);
    b'w' Forward(those: Sequences);
    b'a' Ack(those: Sequences);
    b'A' AckOne(ms: i64, rest: i64);
    b'v' Complete(sequence: i64, until: Option<i64>, result: Option<&'a Bytes>);
    b'n' Nack(sequence: i64, fate: Fate, attempts: u32, error: Option<&'a Bytes>);
    b'e' Extend(sequence: i64, deadline: i64);
    b'k' Cancel(those: Sequences, known: Vec<&'a Bytes>);
    b's' Reschedule(sequence: i64, due: Option<i64>, priority: Option<i8>);
    b'f' Promote(due: i64, those: Spans);
    b'b' Bury(sequence: i64, error: Option<&'a Bytes>);
    b'r' Redrive(those: Spans, due: i64);
    b'u' Purge(those: Spans, done: Spans);
    b'm' Create(settings: Settings);
    b'o' Alter(settings: Settings);
    b'z' Pause(end: u64);
    b'g' Schedule(message: Image<'a>, settings: Option<Settings>);
    b'j' Declare(sequence: i64, declared: Option<Box<Declaration>>);
    b'q' EndRuns(how: Ended<'a>, others: Sequences, ends: Vec<RunEnd>);
    b'x' Trim(those: Spans);
    b'X' TrimDone(those: Spans);
    b'y' PullBack();
    b'h' Begin(header: QueueHeader);
    b'c' Continue(messages: Vec<Image<'a>>);
    b'K' Keep(messages: Vec<Done<'a>>);
    b'i' Recall(ids: Vec<KnownId<'a>>);
    b'l' Resume(leaving: Vec<Leaving<'a>>);
    b'T' Turns(turns: Turns<'a>);
}

impl<'a> Stamped<'a> {
    /// Appends the bytes of the effect.
    pub fn write(&self, buffer: &mut Vec<u8>) -> Result<(), Refused> {
        let Stamped(now, effect) = self;
        let [0, 0, instant @ ..] = now.to_be_bytes() else { return Err(Refused::Impossible) };
        buffer.push(effect.letter());
        buffer.extend_from_slice(&instant);
        effect.write(buffer)
    }

    /// Reads what [`Stamped::write`] wrote.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Refused> {
        let (letter, rest) = bytes.split_first().ok_or(Refused::Malformed)?;
        let (instant, fields) = rest.split_first_chunk::<INSTANT>().ok_or(Refused::Malformed)?;
        let now = instant.iter().fold(0, |now, byte| now << 8 | u64::from(*byte));
        let mut values = Values::new(fields);
        let effect = Effect::read(*letter, &mut values)?;
        values.end()?;
        Ok(Stamped(now, effect))
    }
}

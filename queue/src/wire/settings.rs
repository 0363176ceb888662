//! The settings of a queue, and where it forwards.

use super::codec::{record, Decode, Encode, Reader, Writer};
use super::Refused;
use crate::forward::{Forward, ListEnd, Register, Targets};
use crate::settings::{Settings, FIELDS};

/// The codes of settings of the first version are below this, those of the second below twice this, and so on.
const CODES_OF_A_VERSION: u8 = 100;

/// For each setting that differs from [`Settings::DEFAULT`], two numbers: its code, and its value as clients see it.
impl Encode for Settings {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut numbers = Vec::new();
        for field in FIELDS {
            let number = (field.get)(self);
            if number != (field.get)(&Settings::DEFAULT) {
                to.needs(super::FIRST + field.code / CODES_OF_A_VERSION);
                numbers.extend([field.code.into(), number]);
            }
        }
        to.numbers(&numbers)
    }
}

impl Decode<'_> for Settings {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let mut settings = Settings::DEFAULT;
        from.pairs(|code, number| {
            let field = FIELDS.iter().find(|field| i64::from(field.code) == code).ok_or(Refused::Malformed)?;
            if !field.range.contains(&number) {
                return Err(Refused::Impossible);
            }
            (field.set)(&mut settings, number);
            Ok(())
        })?;
        Ok(settings)
    }
}

record!('a Targets { ; due, dead });

/// The numbers of the targets.
const STREAM: u8 = 1;
const LIST: u8 = 2;
const CHANNEL: u8 = 3;
const QUEUE: u8 = 4;

/// A target: its number, its key or name, and: the limit of a stream; or which end of a list the client named (1: the
/// left one, 2: the right one), and the set with its member.
impl Encode for Forward {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.record(|fields| {
            match self {
                Forward::Stream { key, trim } => {
                    fields.put(&STREAM)?;
                    fields.put(key)?;
                    fields.put(trim)?;
                }
                Forward::List { key, end, register } => {
                    let end: u8 = match end {
                        ListEnd::Default => 0,
                        ListEnd::Left => 1,
                        ListEnd::Right => 2,
                    };
                    fields.put(&LIST)?;
                    fields.put(key)?;
                    fields.put(&end)?;
                    fields.put(&register.as_ref().map(|register| &*register.set))?;
                    fields.put(&register.as_ref().map(|register| &*register.member))?;
                }
                Forward::Channel { name } => {
                    fields.put(&CHANNEL)?;
                    fields.put(name)?;
                }
                Forward::Queue { key } => {
                    fields.put(&QUEUE)?;
                    fields.put(key)?;
                }
            }
            Ok(())
        })
    }
}

impl Decode<'_> for Forward {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        from.record(|fields| {
            let kind: u8 = fields.get()?;
            let key = fields.get()?;
            Ok(match kind {
                STREAM => Forward::Stream { key, trim: fields.get()? },
                LIST => {
                    let end = match fields.get::<u8>()? {
                        0 => ListEnd::Default,
                        1 => ListEnd::Left,
                        2 => ListEnd::Right,
                        _ => return Err(Refused::Malformed),
                    };
                    let register = match (fields.get()?, fields.get()?) {
                        (Some(set), Some(member)) => Some(Register { set, member }),
                        (None, None) => None,
                        _ => return Err(Refused::Malformed),
                    };
                    Forward::List { key, end, register }
                }
                CHANNEL => Forward::Channel { name: key },
                QUEUE => Forward::Queue { key },
                _ => return Err(Refused::Malformed),
            })
        })
    }
}

//! Schedules, the ends of their runs, and the fate of messages that were given back.

use super::codec::{lists, record, Decode, Encode, Reader, Writer};
use super::Refused;
use crate::effect::Fate;
use crate::id::Sequence;
use crate::record::Reason;
use crate::recurring::{Declaration, Ended, Failure, Next, Recurring, RunEnd, Series};
use crate::rule::Rule;

/// The number of a rule: an interval with its offset, or a cron expression with its time zone.
const EVERY: u8 = 1;
const CRON: u8 = 2;

/// A rule, the last instant, the number of runs.
impl Encode for Series {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.record(|fields| {
            match &self.rule {
                Rule::Every { every, offset } => {
                    fields.put(&EVERY)?;
                    fields.put(every)?;
                    fields.put(offset)?;
                }
                Rule::Cron { expression, zone } => {
                    fields.put(&CRON)?;
                    fields.put(expression)?;
                    fields.put(zone)?;
                }
            }
            fields.put(&self.until)?;
            fields.put(&self.times)
        })
    }
}

impl Decode<'_> for Series {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        from.record(|fields| {
            let rule = match fields.get::<u8>()? {
                EVERY => Rule::Every { every: fields.get()?, offset: fields.get()? },
                CRON => Rule::Cron { expression: fields.get()?, zone: fields.get()? },
                _ => return Err(Refused::Malformed),
            };
            Ok(Series { rule, until: fields.get()?, times: fields.get()? })
        })
    }
}

record!('a Declaration { series, payload, retries, ttl; first, priority, lease, group, headers });
record!('a Recurring { ; series, priority, times_left, runs, failed_runs, last_run, declared });

/// How runs ended: a number, the error of a nack or a burial, and the checkpoint of a nack.
impl Encode for Ended<'_> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let number: u8 = match self {
            Ended::Acked => 0,
            Ended::Completed => 1,
            Ended::Taken => 2,
            Ended::Forwarded => 3,
            Ended::Nacked { .. } => 4,
            Ended::Buried(_) => 5,
            Ended::ByTime => 6,
        };
        to.record(|fields| {
            fields.put(&number)?;
            fields.put(&self.error())?;
            fields.put(&self.checkpoint())
        })
    }
}

impl<'a> Decode<'a> for Ended<'a> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        match from.record(|fields| Ok((fields.get::<u8>()?, fields.get()?, fields.get()?)))? {
            (4, error, checkpoint) => Ok(Ended::Nacked { error, checkpoint }),
            (5, error, None) => Ok(Ended::Buried(error)),
            (0, None, None) => Ok(Ended::Acked),
            (1, None, None) => Ok(Ended::Completed),
            (2, None, None) => Ok(Ended::Taken),
            (3, None, None) => Ok(Ended::Forwarded),
            (6, None, None) => Ok(Ended::ByTime),
            _ => Err(Refused::Malformed),
        }
    }
}

/// The end of a run: the message; when it is due next, and its new sequence; when and why the run failed, the dead
/// copy, and the number of deliveries that count.
impl Encode for RunEnd {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let (due, renewed) = match self.next {
            Next::At(due) => (Some(due), None),
            Next::Renewed(due, sequence) => (Some(due), Some(sequence)),
            Next::Over => (None, None),
        };
        to.record(|fields| {
            fields.require(&self.sequence)?;
            fields.put(&due)?;
            fields.put(&renewed)?;
            fields.put(&self.failure.map(|failure| failure.died))?;
            fields.put(&self.failure.map(|failure| failure.reason))?;
            fields.put(&self.failure.and_then(|failure| failure.copy))?;
            fields.put(&self.failure.map_or(0, |failure| failure.attempts))
        })
    }
}

impl Decode<'_> for RunEnd {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        from.record(|fields| {
            let sequence = fields.required()?;
            let next = match (fields.get()?, fields.get::<Option<Sequence>>()?) {
                (Some(due), None) => Next::At(due),
                (Some(due), Some(renewed)) => Next::Renewed(due, renewed),
                (None, None) => Next::Over,
                (None, Some(_)) => return Err(Refused::Malformed),
            };
            let failure = match (fields.get()?, fields.get::<Option<Reason>>()?, fields.get()?, fields.get()?) {
                (Some(died), Some(reason), copy, attempts) => Some(Failure { died, reason, attempts, copy }),
                (None, None, None, 0) => None,
                _ => return Err(Refused::Malformed),
            };
            Ok(RunEnd { sequence, failure, next })
        })
    }
}

lists!('a; RunEnd);

/// The fate of a message that was given back: when it is due again, or when and why it died.
impl Encode for Fate {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let (at, reason) = match self {
            Fate::Due(due) => (*due, None),
            Fate::Dead { died, reason } => (*died, Some(*reason)),
        };
        to.record(|fields| {
            fields.require(&at)?;
            fields.put(&reason)
        })
    }
}

impl Decode<'_> for Fate {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let (at, reason) = from.record(|fields| Ok((fields.required()?, fields.get::<Option<Reason>>()?)))?;
        Ok(reason.map_or(Fate::Due(at), |reason| Fate::Dead { died: at, reason }))
    }
}

//! The pieces of a whole queue other than its messages: its header, its done messages, its known ids, and the turns and
//! the gates of its groups.

use super::codec::{coded, lists, record, Decode, Encode, Reader, Writer};
use super::numbers::{at_distance, distance, time_at, time_distance, Last};
use super::Refused;
use crate::batches::{BatchState, FollowUp};
use crate::done::DoneMessage;
use crate::effect::QueueHeader;
use crate::gate::{Flow, Pause};
use crate::groups::{Claim, GroupGate, TurnState};
use crate::id::{first_tick, instant_of, Sequence};
use crate::known::KnownId;
use crate::rate::RateLog;
use crate::time::UnixMs;
use crate::Totals;

record!('a QueueHeader { settings, last_sequence, last_receipt, viewed; totals, pause, log, targets, closed });
record!('a FollowUp { payload; name, delay, priority, retries, lease, group, headers });
record!('a GroupGate<'a> { name; pause, log });
lists!('a; GroupGate<'a>);

impl Encode for Totals {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.record(|fields| self.numbers().iter().try_for_each(|total| fields.put(total)))
    }
}

impl Decode<'_> for Totals {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let mut totals = Totals::default().numbers();
        from.record(|fields| {
            totals.iter_mut().try_for_each(|total| {
                *total = fields.get()?;
                Ok(())
            })
        })?;
        Ok(Totals::from_numbers(totals))
    }
}

/// The number that stands for a pause without an end.
const ENDLESS: u64 = u64::MAX;

coded! {'a;
    /// The end of the pause in Unix ms; zero if there is none.
    Pause as u64: |pause, _| match pause {
        Pause::Off => 0,
        // A pause until 1970 has ended, so it is the same as no pause.
        Pause::Until(end) => end.as_ms(),
        Pause::Endless => ENDLESS,
    }, |number, _| match number {
        0 => Some(Pause::Off),
        ENDLESS => Some(Pause::Endless),
        end => UnixMs::checked(end).map(Pause::Until),
    };
    Flow as u8: |flow, _| match flow {
        Flow::Out => 0,
        Flow::In => 1,
        Flow::Both => 2,
    }, |number, _| match number {
        0 => Some(Flow::Out),
        1 => Some(Flow::In),
        2 => Some(Flow::Both),
        _ => None,
    };
}

/// The deliveries that the rate limit counts: for each millisecond its distance from the one before, and their number.
impl Encode for RateLog {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut last = Last(0);
        let pairs = self.pairs().flat_map(|(at, count)| [last.to(at.as_ms()), distance(count, 0)]);
        to.numbers(&pairs.collect::<Vec<_>>())
    }
}

impl Decode<'_> for RateLog {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let mut last = Last(0);
        let pairs = from.pairs(|distance, count| Ok((last.time_at(distance)?, at_distance(count, 0))))?;
        RateLog::from_pairs(pairs).ok_or(Refused::Malformed)
    }
}

/// The sequence as a distance from that of the one before, the due time as a distance from the sequence's instant, the
/// deliveries, the instant of completion as a distance from the due time, the end as a distance from that, the name,
/// the result, and when its id was accepted, as a distance from the sequence's instant.
impl Encode for Vec<DoneMessage<'_>> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut last = Last(first_tick(to.now));
        to.list(self, |to, message| {
            let created = instant_of(message.sequence.0);
            to.record(|fields| {
                fields.require(&last.to(message.sequence.0))?;
                fields.require(&time_distance(message.due, created))?;
                fields.require(&message.attempts)?;
                fields.require(&time_distance(message.done, message.due))?;
                fields.put(&time_distance(message.until, message.done))?;
                fields.put(&message.name)?;
                fields.put(&message.result)?;
                fields.put(&time_distance(message.accepted, created))
            })
        })
    }
}

impl<'a> Decode<'a> for Vec<DoneMessage<'a>> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        let mut last = Last(first_tick(from.now));
        from.list(|from| {
            from.record(|fields| {
                let sequence = last.at(fields.required()?);
                let created = instant_of(sequence);
                let due = time_at(fields.required()?, created)?;
                let attempts = fields.required()?;
                let done = time_at(fields.required()?, due)?;
                Ok(DoneMessage {
                    sequence: Sequence(sequence),
                    due,
                    attempts,
                    done,
                    until: time_at(fields.get()?, done)?,
                    name: fields.get()?,
                    result: fields.get()?,
                    accepted: time_at(fields.get()?, created)?,
                })
            })
        })
    }
}

/// When each began, as a distance from the instant of the view; its name; how many members were acked, became dead and
/// were cancelled; when the last one ended, as a distance from the beginning; and what follows.
impl Encode for Vec<BatchState<'_>> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let base = to.now;
        to.list(self, |to, batch| {
            to.record(|fields| {
                fields.require(&time_distance(batch.created, base))?;
                fields.require(&batch.name)?;
                batch.ends.iter().try_for_each(|count| fields.put(count))?;
                fields.put(&(!is_never(batch.idle)).then(|| time_distance(batch.idle, batch.created)))?;
                fields.put(&batch.then)
            })
        })
    }
}

fn is_never(idle: UnixMs) -> bool {
    idle == UnixMs::EPOCH
}

impl<'a> Decode<'a> for Vec<BatchState<'a>> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        let base = from.now;
        from.list(|from| {
            from.record(|fields| {
                let created = time_at(fields.required()?, base)?;
                let name = fields.required()?;
                let ends = [fields.get()?, fields.get()?, fields.get()?];
                let idle: Option<i64> = fields.get()?;
                let idle = idle.map_or(Ok(UnixMs::EPOCH), |idle| time_at(idle, created))?;
                Ok(BatchState { name, created, ends, idle, then: fields.get()? })
            })
        })
    }
}

/// When each was accepted, as a distance from the one before, and the name.
impl Encode for Vec<KnownId<'_>> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut last = Last(to.now.as_ms());
        to.list(self, |to, id| {
            to.record(|fields| {
                fields.require(&last.to(id.accepted.as_ms()))?;
                fields.require(&id.name)
            })
        })
    }
}

impl<'a> Decode<'a> for Vec<KnownId<'a>> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        let mut last = Last(from.now.as_ms());
        from.list(|from| {
            from.record(|fields| Ok(KnownId { accepted: last.time_at(fields.required()?)?, name: fields.required()? }))
        })
    }
}

/// The last turn of all, the last turn of the messages without a group, and their claim; then for each group its name,
/// its last turn as a distance from the last turn of all, and its claim. The first two turns are distances from the
/// smallest turn of the instant of the decision.
impl Encode for TurnState<'_> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let base = first_tick(to.now);
        let (ungrouped, claim) = self.ungrouped;
        to.array(5)?;
        to.put(&distance(self.last, base))?;
        to.put(&distance(ungrouped, base))?;
        to.put(&claim.map(|claim| claim.since))?;
        to.put(&claim.map(|claim| claim.until))?;
        to.list(&self.groups, |to, (name, turn, claim)| {
            to.record(|fields| {
                fields.require(name)?;
                fields.put(&distance(*turn, self.last))?;
                fields.put(&claim.map(|claim| claim.since))?;
                fields.put(&claim.map(|claim| claim.until))
            })
        })
    }
}

/// A claim, if both of its instants are present; an error if only one is.
fn claim(since: Option<UnixMs>, until: Option<UnixMs>) -> Result<Option<Claim>, Refused> {
    match (since, until) {
        (None, None) => Ok(None),
        (Some(since), Some(until)) => Ok(Some(Claim { since, until })),
        _ => Err(Refused::Malformed),
    }
}

impl<'a> Decode<'a> for TurnState<'a> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, Refused> {
        if from.array()? != 5 {
            return Err(Refused::Malformed);
        }
        let base = first_tick(from.now);
        let last = at_distance(from.get()?, base);
        let ungrouped = (at_distance(from.get()?, base), claim(from.get()?, from.get()?)?);
        let groups = from.list(|from| {
            from.record(|fields| {
                let (name, turn) = (fields.required()?, at_distance(fields.get()?, last));
                Ok((name, turn, claim(fields.get()?, fields.get()?)?))
            })
        })?;
        Ok(TurnState { last, ungrouped, groups })
    }
}

//! From the wire to the live types. What no value can be is refused.

use super::super::super::effect::{
    Effect as LiveEffect, Grant as LiveGrant, Image as LiveImage, Stamped as LiveStamped,
};
use super::super::super::gate::Pause;
use super::super::super::groups::TurnState;
use super::super::super::id::{Receipt, Sequence};
use super::super::super::known::KnownId as LiveKnownId;
use super::super::super::ops::give_back::Fate as LiveFate;
use super::super::super::origin::Origin as LiveOrigin;
use super::super::super::rate::RateLog;
use super::super::super::record::{self, Record, Ttl};
use super::super::super::spans::{Span, Spans as LiveSpans};
use super::super::super::time::UnixMs;
use super::super::super::Totals;
use super::super::{QueueHeader as LiveQueueHeader, Refused};
use super::effect::Effect;
use super::numbers::*;
use super::*;

impl<'a> TryFrom<Stamped<'a>> for LiveStamped<'a> {
    type Error = Refused;

    fn try_from(Stamped(now, effect): Stamped<'a>) -> Result<Self, Refused> {
        let now = time(now)?;
        let base = ticks(now);
        let sequence = |distance: i64| Sequence(at_distance(distance, base));
        let effect = match effect {
            Effect::Push(messages, settings) => {
                LiveEffect::Push(settings.map(Settings::alone).transpose()?, live_images(messages, base)?)
            }
            Effect::PushOne(message) => LiveEffect::Push(None, vec![live_image(message, base)?]),
            Effect::Deliver(grants) => LiveEffect::Deliver(live_grants(&grants, now)?),
            Effect::DeliverOne(ms, rest, deadline, receipt, attempt) => LiveEffect::Deliver(vec![LiveGrant {
                sequence: sequence(joined(ms, rest)),
                attempt,
                deadline: time_at(deadline, now)?,
                receipt: Receipt(at_distance(receipt, base)),
            }]),
            Effect::Take(those) => LiveEffect::Take(sequences(&those, base)?),
            Effect::Forward(those) => LiveEffect::Forward(sequences(&those, base)?),
            Effect::Ack(those) => LiveEffect::Ack(sequences(&those, base)?),
            Effect::AckOne(ms, rest) => LiveEffect::Ack(vec![sequence(joined(ms, rest))]),
            Effect::Complete(of, until, result) => {
                let until = until.map(|until| time_at(until, now)).transpose()?;
                LiveEffect::Complete(sequence(of), until, result.map(|result| &**result))
            }
            Effect::Nack(of, fate, attempts, error) => {
                let fate = match fate {
                    Fate::Due(due) => LiveFate::Due(time_at(due, now)?),
                    Fate::Dead(died, code) => LiveFate::Dead { died: time_at(died, now)?, reason: reason(code)? },
                };
                LiveEffect::Nack(sequence(of), fate, attempts, error.map(|error| &**error))
            }
            Effect::Extend(of, deadline) => LiveEffect::Extend(sequence(of), time_at(deadline, now)?),
            Effect::Cancel(those, names) => {
                LiveEffect::Cancel(sequences(&those, base)?, names.into_iter().map(|name| &**name).collect())
            }
            Effect::Reschedule(of, due, priority) => {
                let due = due.map(|due| time_at(due, now)).transpose()?;
                LiveEffect::Reschedule(sequence(of), due, priority)
            }
            Effect::Promote(due, those) => LiveEffect::Promote(time_at(due, now)?, spans(those, base)?),
            Effect::Bury(of, error) => LiveEffect::Bury(sequence(of), error.map(|error| &**error)),
            Effect::Redrive(those, due) => LiveEffect::Redrive(spans(those, base)?, time_at(due, now)?),
            Effect::Purge(those, ended) => LiveEffect::Purge(spans(those, base)?, spans(ended, base)?),
            Effect::Schedule(message, settings) => {
                LiveEffect::Schedule(settings.map(Settings::alone).transpose()?, live_image(message, base)?)
            }
            Effect::Declare(of, declared) => {
                let declared = declared.map(|declared| (*declared).try_into().map(Box::new)).transpose()?;
                LiveEffect::Declare(sequence(of), declared)
            }
            Effect::EndRuns(how, others, ends) => {
                let ends = ends.into_iter().map(|end| end.live(now)).collect::<Result<_, _>>()?;
                LiveEffect::EndRuns(how.into(), sequences(&others, base)?, ends)
            }
            Effect::Create(settings) => {
                let (settings, forward) = settings.live()?;
                LiveEffect::Create(settings, forward)
            }
            Effect::Alter(settings) => {
                let (settings, forward) = settings.live()?;
                LiveEffect::Alter(settings, forward)
            }
            Effect::Pause(end) => LiveEffect::Pause(pause(end)?),
            Effect::Trim(those) => LiveEffect::Trim(spans(those, base)?),
            Effect::TrimDone(those) => LiveEffect::TrimDone(spans(those, base)?),
            Effect::PullBack() => LiveEffect::PullBack,
            Effect::Begin(header) => LiveEffect::Begin(header.try_into()?),
            Effect::Continue(messages) => LiveEffect::Continue(live_images(messages, base)?),
            Effect::Keep(messages) => LiveEffect::Keep(live_done(messages, base)?),
            Effect::Recall(ids) => LiveEffect::Recall(live_known(ids)?),
            Effect::Resume(leaving) => LiveEffect::Resume(live_leaving(leaving)?),
            Effect::Turns(turns) => LiveEffect::Turns(live_turns(turns)),
        };
        Ok(LiveStamped { now, effect })
    }
}

/// Converts back what [`images`] wrote. Returns an error if a value is out of its range.
pub fn live_images(messages: Vec<Image<'_>>, base: u64) -> Result<Vec<LiveImage<'_>>, Refused> {
    let mut last = base;
    let next = |image| {
        let live = live_image(image, last)?;
        last = live.record.sequence.0;
        Ok(live)
    };
    messages.into_iter().map(next).collect()
}

fn live_image(image: Image<'_>, base: u64) -> Result<LiveImage<'_>, Refused> {
    let Image { sequence, due, payload, retries: count, name, priority, lease, ttl, attempts, phase, error, extras } =
        image;
    let Extras(origin, recurring, retain, group) = extras.unwrap_or(Extras(None, None, None, None));
    let sequence = at_distance(sequence, base);
    let due = time_at(due, instant_of(sequence))?;
    let phase = match phase {
        None => record::Phase::Waiting,
        Some(Phase::Leased(receipt, deadline)) => {
            let receipt = at_distance(receipt, sequence);
            record::Phase::Leased { deadline: time_at(deadline, instant_of(receipt))?, receipt: Receipt(receipt) }
        }
        Some(Phase::Kept(receipt, deadline)) => {
            let receipt = at_distance(receipt, sequence);
            record::Phase::Kept { deadline: time_at(deadline, instant_of(receipt))?, receipt: Receipt(receipt) }
        }
        Some(Phase::Dead(died, code)) => record::Phase::Dead { died: time_at(died, due)?, reason: reason(code)? },
    };
    let ttl = match ttl {
        Some(Ends(length, end)) => Some(Ttl { duration: duration(length)?, end: time_at(end, due)? }),
        None => None,
    };
    let lease = lease.map(duration).transpose()?;
    let recurring = recurring.map(|state| (*state).try_into().map(Box::new)).transpose()?;
    Ok(LiveImage {
        record: Record {
            sequence: Sequence(sequence),
            due,
            priority,
            retries: retries(count)?,
            lease,
            ttl,
            attempts,
            phase,
            recurring: recurring.is_some(),
        },
        name: name.map(|name| &**name),
        payload,
        error: error.map(|error| &**error),
        group: group.map(|group| &**group),
        origin: origin.map(|origin| live_origin(origin, sequence)).transpose()?,
        retain: retain.map(duration).transpose()?,
        recurring,
    })
}

fn live_origin(Origin(accepted, chain): Origin, sequence: u64) -> Result<LiveOrigin, Refused> {
    let accepted = time_at(accepted, instant_of(sequence))?;
    Ok(LiveOrigin { accepted, chain: chain.map(|chain| time_at(chain, accepted)).transpose()? })
}

/// Converts back what [`known`] wrote. Returns an error if a value is out of its range.
pub fn live_known(ids: Vec<KnownId<'_>>) -> Result<Vec<LiveKnownId<'_>>, Refused> {
    let mut last = UnixMs::EPOCH;
    let next = |KnownId(accepted, name)| {
        last = time_at(accepted, last)?;
        Ok(LiveKnownId { name, accepted: last })
    };
    ids.into_iter().map(next).collect()
}

/// Converts back what [`turns`] wrote.
pub fn live_turns(Turns(last, ungrouped, groups): Turns<'_>) -> TurnState<'_> {
    let groups = groups.into_iter().map(|(name, turn)| (&**name, at_distance(turn, last)));
    TurnState { last, ungrouped, groups: groups.collect() }
}

fn spans(Spans(distances): Spans, base: u64) -> Result<LiveSpans, Refused> {
    let mut last = base;
    let span = |pair: &[i64]| {
        let [first, length] = pair else { return Err(Refused::Malformed) };
        let first = at_distance(*first, last);
        last = at_distance(*length, first);
        Ok(Span { first: Sequence(first), last: Sequence(last) })
    };
    let live = distances.chunks(2).map(span).collect::<Result<Vec<_>, _>>()?;
    LiveSpans::new(live).ok_or(Refused::Malformed)
}

fn live_grants(Grants(numbers): &Grants, now: UnixMs) -> Result<Vec<LiveGrant>, Refused> {
    let (mut deadline, mut receipt) = (now, ticks(now));
    let (mut sequence, mut rest) = match numbers.as_slice() {
        [] => return Ok(Vec::new()),
        [ms, count, rest @ ..] => (at_distance(joined(*ms, *count), ticks(now)), rest),
        [_] => return Err(Refused::Malformed),
    };
    let mut live = Vec::with_capacity(numbers.len() / 4);
    loop {
        let [deadline_distance, receipt_distance, attempt, others @ ..] = rest else { return Err(Refused::Malformed) };
        deadline = time_at(*deadline_distance, deadline)?;
        receipt = at_distance(*receipt_distance, receipt);
        let attempt = u32::try_from(*attempt).map_err(|_| Refused::Malformed)?;
        live.push(LiveGrant { sequence: Sequence(sequence), attempt, deadline, receipt: Receipt(receipt) });
        let [sequence_distance, others @ ..] = others else { return Ok(live) };
        sequence = at_distance(*sequence_distance, sequence);
        rest = others;
    }
}

fn pause(end: u64) -> Result<Pause, Refused> {
    match end {
        0 => Ok(Pause::Off),
        ENDLESS => Ok(Pause::Endless),
        end => time(end).map(Pause::Until),
    }
}

fn rate_log(deliveries: &[u64]) -> Result<RateLog, Refused> {
    let mut last = 0;
    let pair = |pair: &[u64]| {
        let [distance, count] = pair else { return Err(Refused::Malformed) };
        last = u64::checked_add(last, *distance).ok_or(Refused::Malformed)?;
        Ok((time(last)?, *count))
    };
    let pairs = deliveries.chunks(2).map(pair).collect::<Result<Vec<_>, _>>()?;
    RateLog::from_pairs(pairs).ok_or(Refused::Malformed)
}

impl TryFrom<QueueHeader> for LiveQueueHeader {
    type Error = Refused;

    fn try_from(
        QueueHeader(settings, end, sequence, receipt, totals, viewed, log): QueueHeader,
    ) -> Result<Self, Refused> {
        let (settings, forward) = settings.live()?;
        Ok(LiveQueueHeader {
            settings,
            forward,
            pause: pause(end)?,
            last_sequence: Sequence(sequence),
            last_receipt: Receipt(receipt),
            totals: Totals::from_numbers(totals),
            viewed: time(viewed)?,
            log: rate_log(&log)?,
        })
    }
}

/// Converts back what [`leaving`] wrote. Returns an error if a value is out of its range.
pub fn live_leaving(leaving: Vec<Leaving<'_>>) -> Result<Vec<(Sequence, LiveImage<'_>)>, Refused> {
    leaving.into_iter().map(|Leaving(kept, image)| Ok((Sequence(kept), live_image(image, kept)?))).collect()
}

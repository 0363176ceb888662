//! From the live types to the wire.

use super::super::super::effect::{
    Effect as LiveEffect, Grant as LiveGrant, Image as LiveImage, Stamped as LiveStamped,
};
use super::super::super::gate::Pause;
use super::super::super::groups::TurnState;
use super::super::super::id::Sequence;
use super::super::super::known::KnownId as LiveKnownId;
use super::super::super::ops::give_back::Fate as LiveFate;
use super::super::super::rate::RateLog;
use super::super::super::record;
use super::super::super::spans::{Span, Spans as LiveSpans};
use super::super::super::time::{DurationMs, UnixMs};
use super::super::QueueHeader as LiveQueueHeader;
use super::effect::Effect;
use super::numbers::*;
use super::recurring::{Declaration, Ended, RunEnd};
use super::*;

impl<'a> From<&LiveStamped<'a>> for Stamped<'a> {
    fn from(stamped: &LiveStamped<'a>) -> Self {
        let now = stamped.now;
        let base = ticks(now);
        let from_base = |sequence: Sequence| distance(sequence.0, base);
        let from_now = |time: UnixMs| time_distance(time, now);
        let effect = match &stamped.effect {
            LiveEffect::Push(settings, messages) => match (settings, messages.as_slice()) {
                (None, [one]) => Effect::PushOne(image(one, base)),
                _ => {
                    Effect::Push(images(messages, base), settings.as_ref().map(|settings| Settings::of(settings, None)))
                }
            },
            LiveEffect::Deliver(deliveries) => match deliveries.as_slice() {
                [one] => {
                    let [ms, rest] = split(from_base(one.sequence));
                    let receipt = distance(one.receipt.0, base);
                    Effect::DeliverOne(ms, rest, from_now(one.deadline), receipt, one.attempt)
                }
                _ => Effect::Deliver(grants(deliveries, now)),
            },
            LiveEffect::Take(those) => Effect::Take(distances(those, base)),
            LiveEffect::Forward(those) => Effect::Forward(distances(those, base)),
            LiveEffect::Ack(those) => match those.as_slice() {
                [one] => {
                    let [ms, rest] = split(from_base(*one));
                    Effect::AckOne(ms, rest)
                }
                _ => Effect::Ack(distances(those, base)),
            },
            LiveEffect::Complete(sequence, until, result) => {
                Effect::Complete(from_base(*sequence), until.map(from_now), result.map(Bytes::new))
            }
            LiveEffect::Nack(sequence, fate, attempts, error) => {
                let fate = match fate {
                    LiveFate::Due(due) => Fate::Due(from_now(*due)),
                    LiveFate::Dead { died, reason } => Fate::Dead(from_now(*died), reason_code(*reason)),
                };
                Effect::Nack(from_base(*sequence), fate, *attempts, error.map(Bytes::new))
            }
            LiveEffect::Extend(sequence, deadline) => Effect::Extend(from_base(*sequence), from_now(*deadline)),
            LiveEffect::Cancel(those, names) => {
                Effect::Cancel(distances(those, base), names.iter().copied().map(Bytes::new).collect())
            }
            LiveEffect::Reschedule(sequence, due, priority) => {
                Effect::Reschedule(from_base(*sequence), due.map(from_now), *priority)
            }
            LiveEffect::Promote(due, those) => Effect::Promote(from_now(*due), spans(those, base)),
            LiveEffect::Bury(sequence, error) => Effect::Bury(from_base(*sequence), error.map(Bytes::new)),
            LiveEffect::Redrive(those, due) => Effect::Redrive(spans(those, base), from_now(*due)),
            LiveEffect::Purge(those, ended) => Effect::Purge(spans(those, base), spans(ended, base)),
            LiveEffect::Schedule(settings, message) => {
                Effect::Schedule(image(message, base), settings.as_ref().map(|settings| Settings::of(settings, None)))
            }
            LiveEffect::Declare(sequence, declared) => {
                let declared = declared.as_deref().map(|declared| Box::new(Declaration::from(declared)));
                Effect::Declare(from_base(*sequence), declared)
            }
            LiveEffect::EndRuns(how, others, ends) => {
                let ends = ends.iter().map(|end| RunEnd::of(end, now)).collect();
                Effect::EndRuns(Ended::from(*how), distances(others, base), ends)
            }
            LiveEffect::Create(settings, forward) => Effect::Create(Settings::of(settings, forward.as_deref())),
            LiveEffect::Alter(settings, forward) => Effect::Alter(Settings::of(settings, forward.as_deref())),
            LiveEffect::Pause(pause) => Effect::Pause(pause_end(*pause)),
            LiveEffect::Trim(those) => Effect::Trim(spans(those, base)),
            LiveEffect::TrimDone(those) => Effect::TrimDone(spans(those, base)),
            LiveEffect::PullBack => Effect::PullBack(),
            LiveEffect::Begin(header) => Effect::Begin(header.into()),
            LiveEffect::Continue(messages) => Effect::Continue(images(messages, base)),
            LiveEffect::Keep(messages) => Effect::Keep(done(messages, base)),
            LiveEffect::Recall(ids) => Effect::Recall(known(ids)),
            LiveEffect::Resume(beside) => Effect::Resume(leaving(beside)),
            LiveEffect::Turns(state) => Effect::Turns(turns(state)),
        };
        Stamped(now.as_ms(), effect)
    }
}

/// The wire form of messages, with the first sequence as a distance from `base`.
pub fn images<'a>(messages: &[LiveImage<'a>], base: u64) -> Vec<Image<'a>> {
    let mut last = base;
    let mut next = |live: &LiveImage<'a>| image(live, std::mem::replace(&mut last, live.record.sequence.0));
    messages.iter().map(&mut next).collect()
}

/// The wire form of a message, with its sequence as a distance from `base`.
pub fn image<'a>(live: &LiveImage<'a>, base: u64) -> Image<'a> {
    let record = &live.record;
    let sequence = record.sequence.0;
    let phase = match record.phase {
        record::Phase::Waiting => None,
        record::Phase::Leased { deadline, receipt } => {
            let begun = instant_of(receipt.0);
            Some(Phase::Leased(distance(receipt.0, sequence), time_distance(deadline, begun)))
        }
        record::Phase::Kept { deadline, receipt } => {
            let begun = instant_of(receipt.0);
            Some(Phase::Kept(distance(receipt.0, sequence), time_distance(deadline, begun)))
        }
        record::Phase::Dead { died, reason } => Some(Phase::Dead(time_distance(died, record.due), reason_code(reason))),
    };
    Image {
        sequence: distance(sequence, base),
        due: time_distance(record.due, instant_of(sequence)),
        payload: Bytes::new(live.payload),
        retries: record.retries.count(),
        name: live.name.map(Bytes::new),
        priority: record.priority,
        lease: record.lease.map(DurationMs::as_ms),
        ttl: record.ttl.map(|ttl| Ends(ttl.duration.as_ms(), time_distance(ttl.end, record.due))),
        attempts: record.attempts,
        phase,
        error: live.error.map(Bytes::new),
        extras: extras(live),
    }
}

/// The wire form of messages that are delivered beside kept ones.
pub fn leaving<'a>(leaving: &[(Sequence, LiveImage<'a>)]) -> Vec<Leaving<'a>> {
    leaving.iter().map(|(kept, live)| Leaving(kept.0, image(live, kept.0))).collect()
}

/// The wire form of known ids.
pub fn known<'a>(ids: &[LiveKnownId<'a>]) -> Vec<KnownId<'a>> {
    let mut last = UnixMs::EPOCH;
    let mut next = |live: &LiveKnownId<'a>| {
        let accepted = time_distance(live.accepted, std::mem::replace(&mut last, live.accepted));
        KnownId(accepted, Bytes::new(live.name))
    };
    ids.iter().map(&mut next).collect()
}

/// The wire form of turns.
pub fn turns<'a>(live: &TurnState<'a>) -> Turns<'a> {
    let groups = live.groups.iter().map(|(name, turn)| (Bytes::new(name), distance(*turn, live.last)));
    Turns(live.last, live.ungrouped, groups.collect())
}

/// What few messages have; `None` for the others.
fn extras<'a>(live: &LiveImage<'a>) -> Option<Extras<'a>> {
    let origin = live.origin.map(|origin| {
        let chain = origin.chain.map(|chain| time_distance(chain, origin.accepted));
        Origin(time_distance(origin.accepted, instant_of(live.record.sequence.0)), chain)
    });
    let recurring = live.recurring.as_deref().map(|state| Box::new(Recurring::from(state)));
    let retain = live.retain.map(DurationMs::as_ms);
    let group = live.group.map(Bytes::new);
    let has_any = origin.is_some() || recurring.is_some() || retain.is_some() || group.is_some();
    has_any.then_some(Extras(origin, recurring, retain, group))
}

fn spans(live: &LiveSpans, base: u64) -> Spans {
    let mut last = base;
    let both = |span: Span| {
        let first = distance(span.first.0, std::mem::replace(&mut last, span.last.0));
        [first, distance(span.last.0, span.first.0)]
    };
    Spans(live.iter().flat_map(both).collect())
}

fn grants(deliveries: &[LiveGrant], now: UnixMs) -> Grants {
    let (mut sequence, mut deadline, mut receipt) = (ticks(now), now, ticks(now));
    let mut numbers = Vec::with_capacity(4 * deliveries.len() + 1);
    for grant in deliveries {
        let from_last = distance(grant.sequence.0, std::mem::replace(&mut sequence, grant.sequence.0));
        if numbers.is_empty() {
            numbers.extend(split(from_last));
        } else {
            numbers.push(from_last);
        }
        numbers.push(time_distance(grant.deadline, std::mem::replace(&mut deadline, grant.deadline)));
        numbers.push(distance(grant.receipt.0, std::mem::replace(&mut receipt, grant.receipt.0)));
        numbers.push(grant.attempt.into());
    }
    Grants(numbers)
}

fn pause_end(pause: Pause) -> u64 {
    match pause {
        Pause::Off => 0,
        // A pause until 1970 has ended, so it is the same as no pause.
        Pause::Until(end) => end.as_ms(),
        Pause::Endless => ENDLESS,
    }
}

/// The deliveries that a rate limit counts: for each millisecond its distance from the one before, and their number.
fn deliveries(log: &RateLog) -> Vec<u64> {
    let mut last = 0;
    log.pairs().flat_map(|(at, count)| [at.as_ms() - std::mem::replace(&mut last, at.as_ms()), count]).collect()
}

impl From<&LiveQueueHeader> for QueueHeader {
    fn from(live: &LiveQueueHeader) -> Self {
        QueueHeader(
            Settings::of(&live.settings, live.forward.as_deref()),
            pause_end(live.pause),
            live.last_sequence.0,
            live.last_receipt.0,
            live.totals.numbers(),
            live.viewed.as_ms(),
            deliveries(&live.log),
        )
    }
}

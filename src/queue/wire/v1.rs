//! Version 1 of the format.
//!
//! Numbers that are close to each other are written as differences, which MessagePack stores in one to five bytes
//! instead of nine: a due time as its distance from the push, a deadline as its distance from the delivery, and each
//! sequence of a list as its distance from the one before (the first from the instant of the decision). Differences of
//! sequences and receipts wrap, so every number can be written; times are checked when they are read.

use super::super::effect::{Effect as LiveEffect, Grant as LiveGrant, Image as LiveImage, Stamped as LiveStamped};
use super::super::gate::Pause;
use super::super::id::{Receipt, Sequence};
use super::super::ops::give_back::Fate as LiveFate;
use super::super::ops::redrive::Chosen as LiveChosen;
use super::super::record::{self, Reason, Record, States, Ttl};
use super::super::settings::{Backoff, Percent, Retries, Settings as LiveSettings};
use super::super::time::{DurationMs, UnixMs};
use super::super::Totals;
use super::{Header as LiveHeader, Refused};
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

/// The bits of a sequence or a receipt below its milliseconds.
const COUNT_BITS: u32 = 20;

/// The number that stands for a pause without an end.
const ENDLESS: u64 = u64::MAX;

/// An effect: the instant of the decision, Unix ms, and what was decided.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stamped<'a>(u64, #[serde(borrow)] Effect<'a>);

/// An effect. The letters are part of the format, and are listed in the reference of the commands.
#[derive(Debug, Serialize, Deserialize)]
enum Effect<'a> {
    #[serde(rename = "p")]
    Push(Option<Settings>, #[serde(borrow)] Vec<Image<'a>>),
    #[serde(rename = "d")]
    Deliver(Vec<Grant>),
    #[serde(rename = "t")]
    Take(Vec<i64>),
    #[serde(rename = "a")]
    Ack(Vec<i64>),
    #[serde(rename = "n")]
    Nack(i64, Fate, u32, #[serde(borrow)] Option<&'a Bytes>),
    #[serde(rename = "e")]
    Extend(i64, i64),
    #[serde(rename = "k")]
    Cancel(Vec<i64>),
    #[serde(rename = "s")]
    Reschedule(i64, Option<i64>, Option<i8>),
    #[serde(rename = "f")]
    Promote(i64, Vec<i64>),
    #[serde(rename = "b")]
    Bury(i64, #[serde(borrow)] Option<&'a Bytes>),
    #[serde(rename = "r")]
    Redrive(Chosen, i64),
    #[serde(rename = "u")]
    Purge(u8),
    #[serde(rename = "v")]
    Remove(Vec<i64>),
    #[serde(rename = "m")]
    Create(Settings),
    #[serde(rename = "o")]
    Alter(Settings),
    #[serde(rename = "z")]
    Pause(u64),
    #[serde(rename = "x")]
    TrimDead(i64, i64),
    #[serde(rename = "h")]
    Begin(Header),
    #[serde(rename = "c")]
    Continue(#[serde(borrow)] Vec<Image<'a>>),
}

/// The fate of a message: due again, at a distance from now; or dead, since a distance from now and for a reason.
#[derive(Debug, Serialize, Deserialize)]
enum Fate {
    #[serde(rename = "w")]
    Due(i64),
    #[serde(rename = "d")]
    Dead(i64, u8),
}

/// The dead messages chosen: all up to (died, sequence), each as a distance from now; or a list.
#[derive(Debug, Serialize, Deserialize)]
enum Chosen {
    #[serde(rename = "u")]
    UpTo(i64, i64),
    #[serde(rename = "s")]
    These(Vec<i64>),
}

/// A delivery: the sequence as a distance from that of the grant before, the attempt, the deadline as a distance from
/// now, and the receipt as a distance from that of the grant before.
#[derive(Debug, Serialize, Deserialize)]
struct Grant(i64, u32, i64, i64);

/// A message: the sequence as a distance from that of the message before, the due time as a distance from the
/// sequence's instant, priority, retries, lease, TTL, attempts, the phase unless it is waiting, name, payload, error.
#[derive(Debug, Serialize, Deserialize)]
pub struct Image<'a>(
    i64,
    i64,
    i8,
    i32,
    Option<u64>,
    Option<Ends>,
    u32,
    Option<Phase>,
    #[serde(borrow)] Option<&'a Bytes>,
    #[serde(borrow)] &'a Bytes,
    #[serde(borrow)] Option<&'a Bytes>,
);

/// A TTL: its duration, and its end as a distance from the due time.
#[derive(Debug, Serialize, Deserialize)]
struct Ends(u64, i64);

/// A phase. Leased: the receipt as a distance from the sequence, and the deadline as a distance from the receipt's
/// instant. Dead: the instant of death as a distance from the due time, and the reason.
#[derive(Debug, Serialize, Deserialize)]
enum Phase {
    #[serde(rename = "l")]
    Leased(i64, i64),
    #[serde(rename = "d")]
    Dead(i64, u8),
}

/// Settings: lease, retries, backoff base, maximum and jitter, TTL, MAXLEN, MAXINFLIGHT, DEADLEN, DEADTTL, MAXPAYLOAD.
#[derive(Debug, Serialize, Deserialize)]
pub struct Settings(u64, i32, u64, u64, u8, u64, u64, u64, Option<u64>, u64, u64);

/// A queue without its messages: settings, the end of the pause (0 if there is none, [`ENDLESS`] if it has no end),
/// last sequence, last receipt, totals, and the instant up to which the totals count what time did.
#[derive(Debug, Serialize, Deserialize)]
pub struct Header(Settings, u64, u64, u64, [u64; Totals::NAMES.len()], u64);

// --- numbers ---

/// The distance from `base` to `number`.
fn distance(number: u64, base: u64) -> i64 {
    number.wrapping_sub(base) as i64
}

/// The number at this distance from `base`.
fn at_distance(distance: i64, base: u64) -> u64 {
    base.wrapping_add(distance as u64)
}

/// The smallest sequence or receipt of an instant.
fn ticks(instant: UnixMs) -> u64 {
    instant.as_ms() << COUNT_BITS
}

fn instant_of(ticks: u64) -> UnixMs {
    UnixMs::new(ticks >> COUNT_BITS)
}

fn time_distance(time: UnixMs, base: UnixMs) -> i64 {
    distance(time.as_ms(), base.as_ms())
}

fn time_at(distance: i64, base: UnixMs) -> Result<UnixMs, Refused> {
    UnixMs::checked(at_distance(distance, base.as_ms())).ok_or(Refused::Malformed)
}

fn time(ms: u64) -> Result<UnixMs, Refused> {
    UnixMs::checked(ms).ok_or(Refused::Malformed)
}

fn duration(ms: u64) -> Result<DurationMs, Refused> {
    DurationMs::checked(ms).ok_or(Refused::Malformed)
}

fn retries(count: i32) -> Result<Retries, Refused> {
    Retries::new(count).ok_or(Refused::Malformed)
}

const fn reason_code(reason: Reason) -> u8 {
    match reason {
        Reason::Rejected => 0,
        Reason::Expired => 1,
        Reason::Retries => 2,
    }
}

fn reason(code: u8) -> Result<Reason, Refused> {
    match code {
        0 => Ok(Reason::Rejected),
        1 => Ok(Reason::Expired),
        2 => Ok(Reason::Retries),
        _ => Err(Refused::Malformed),
    }
}

/// A list of sequences, each as its distance from the one before, and the first as its distance from `base`.
fn distances(sequences: &[Sequence], base: u64) -> Vec<i64> {
    let mut last = base;
    sequences.iter().map(|sequence| distance(sequence.0, std::mem::replace(&mut last, sequence.0))).collect()
}

fn sequences(distances: &[i64], base: u64) -> Vec<Sequence> {
    let mut last = base;
    let next = |distance: &i64| {
        last = at_distance(*distance, last);
        Sequence(last)
    };
    distances.iter().map(next).collect()
}

// --- to the wire ---

impl<'a> From<&LiveStamped<'a>> for Stamped<'a> {
    fn from(stamped: &LiveStamped<'a>) -> Self {
        let now = stamped.now;
        let base = ticks(now);
        let from_base = |sequence: Sequence| distance(sequence.0, base);
        let from_now = |time: UnixMs| time_distance(time, now);
        let effect = match &stamped.effect {
            LiveEffect::Push(settings, messages) => {
                Effect::Push(settings.as_ref().map(Settings::from), images(messages, base))
            }
            LiveEffect::Deliver(deliveries) => Effect::Deliver(grants(deliveries, now)),
            LiveEffect::Take(those) => Effect::Take(distances(those, base)),
            LiveEffect::Ack(those) => Effect::Ack(distances(those, base)),
            LiveEffect::Nack(sequence, fate, attempts, error) => {
                let fate = match fate {
                    LiveFate::Due(due) => Fate::Due(from_now(*due)),
                    LiveFate::Dead { died, reason } => Fate::Dead(from_now(*died), reason_code(*reason)),
                };
                Effect::Nack(from_base(*sequence), fate, *attempts, error.map(Bytes::new))
            }
            LiveEffect::Extend(sequence, deadline) => Effect::Extend(from_base(*sequence), from_now(*deadline)),
            LiveEffect::Cancel(those) => Effect::Cancel(distances(those, base)),
            LiveEffect::Reschedule(sequence, due, priority) => {
                Effect::Reschedule(from_base(*sequence), due.map(from_now), *priority)
            }
            LiveEffect::Promote(due, those) => Effect::Promote(from_now(*due), distances(those, base)),
            LiveEffect::Bury(sequence, error) => Effect::Bury(from_base(*sequence), error.map(Bytes::new)),
            LiveEffect::Redrive(LiveChosen::UpTo(died, sequence), due) => {
                Effect::Redrive(Chosen::UpTo(from_now(*died), from_base(*sequence)), from_now(*due))
            }
            LiveEffect::Redrive(LiveChosen::These(those), due) => {
                Effect::Redrive(Chosen::These(distances(those, base)), from_now(*due))
            }
            LiveEffect::Purge(states) => Effect::Purge(states.bits()),
            LiveEffect::Remove(those) => Effect::Remove(distances(those, base)),
            LiveEffect::Create(settings) => Effect::Create(settings.into()),
            LiveEffect::Alter(settings) => Effect::Alter(settings.into()),
            LiveEffect::Pause(pause) => Effect::Pause(pause_end(*pause)),
            LiveEffect::TrimDead(died, sequence) => Effect::TrimDead(from_now(*died), from_base(*sequence)),
            LiveEffect::Begin(header) => Effect::Begin(header.into()),
            LiveEffect::Continue(messages) => Effect::Continue(images(messages, base)),
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
        record::Phase::Dead { died, reason } => Some(Phase::Dead(time_distance(died, record.due), reason_code(reason))),
    };
    Image(
        distance(sequence, base),
        time_distance(record.due, instant_of(sequence)),
        record.priority,
        record.retries.count(),
        record.lease.map(DurationMs::as_ms),
        record.ttl.map(|ttl| Ends(ttl.duration.as_ms(), time_distance(ttl.end, record.due))),
        record.attempts,
        phase,
        live.name.map(Bytes::new),
        Bytes::new(live.payload),
        live.error.map(Bytes::new),
    )
}

fn grants(deliveries: &[LiveGrant], now: UnixMs) -> Vec<Grant> {
    let (mut sequence, mut receipt) = (ticks(now), ticks(now));
    let next = |grant: &LiveGrant| {
        Grant(
            distance(grant.sequence.0, std::mem::replace(&mut sequence, grant.sequence.0)),
            grant.attempt,
            time_distance(grant.deadline, now),
            distance(grant.receipt.0, std::mem::replace(&mut receipt, grant.receipt.0)),
        )
    };
    deliveries.iter().map(next).collect()
}

impl From<&LiveSettings> for Settings {
    fn from(live: &LiveSettings) -> Self {
        Settings(
            live.lease.as_ms(),
            live.retries.count(),
            live.backoff.base.as_ms(),
            live.backoff.max.as_ms(),
            live.backoff.jitter.get(),
            live.ttl.as_ms(),
            live.maxlen,
            live.maxinflight,
            live.deadlen,
            live.deadttl.as_ms(),
            live.maxpayload,
        )
    }
}

fn pause_end(pause: Pause) -> u64 {
    match pause {
        Pause::Off => 0,
        // A pause until 1970 has ended, so it is the same as no pause.
        Pause::Until(end) => end.as_ms(),
        Pause::Endless => ENDLESS,
    }
}

impl From<&LiveHeader> for Header {
    fn from(live: &LiveHeader) -> Self {
        Header(
            (&live.settings).into(),
            pause_end(live.pause),
            live.last_sequence.0,
            live.last_receipt.0,
            live.totals.numbers(),
            live.viewed.as_ms(),
        )
    }
}

// --- from the wire ---

impl<'a> TryFrom<Stamped<'a>> for LiveStamped<'a> {
    type Error = Refused;

    fn try_from(Stamped(now, effect): Stamped<'a>) -> Result<Self, Refused> {
        let now = time(now)?;
        let base = ticks(now);
        let sequence = |distance: i64| Sequence(at_distance(distance, base));
        let effect = match effect {
            Effect::Push(settings, messages) => {
                LiveEffect::Push(settings.map(LiveSettings::try_from).transpose()?, live_images(messages, base)?)
            }
            Effect::Deliver(grants) => LiveEffect::Deliver(live_grants(&grants, now)?),
            Effect::Take(those) => LiveEffect::Take(sequences(&those, base)),
            Effect::Ack(those) => LiveEffect::Ack(sequences(&those, base)),
            Effect::Nack(of, fate, attempts, error) => {
                let fate = match fate {
                    Fate::Due(due) => LiveFate::Due(time_at(due, now)?),
                    Fate::Dead(died, code) => LiveFate::Dead { died: time_at(died, now)?, reason: reason(code)? },
                };
                LiveEffect::Nack(sequence(of), fate, attempts, error.map(|error| &**error))
            }
            Effect::Extend(of, deadline) => LiveEffect::Extend(sequence(of), time_at(deadline, now)?),
            Effect::Cancel(those) => LiveEffect::Cancel(sequences(&those, base)),
            Effect::Reschedule(of, due, priority) => {
                let due = due.map(|due| time_at(due, now)).transpose()?;
                LiveEffect::Reschedule(sequence(of), due, priority)
            }
            Effect::Promote(due, those) => LiveEffect::Promote(time_at(due, now)?, sequences(&those, base)),
            Effect::Bury(of, error) => LiveEffect::Bury(sequence(of), error.map(|error| &**error)),
            Effect::Redrive(chosen, due) => {
                let chosen = match chosen {
                    Chosen::UpTo(died, of) => LiveChosen::UpTo(time_at(died, now)?, sequence(of)),
                    Chosen::These(those) => LiveChosen::These(sequences(&those, base)),
                };
                LiveEffect::Redrive(chosen, time_at(due, now)?)
            }
            Effect::Purge(bits) => LiveEffect::Purge(States::from_bits(bits).ok_or(Refused::Malformed)?),
            Effect::Remove(those) => LiveEffect::Remove(sequences(&those, base)),
            Effect::Create(settings) => LiveEffect::Create(settings.try_into()?),
            Effect::Alter(settings) => LiveEffect::Alter(settings.try_into()?),
            Effect::Pause(end) => LiveEffect::Pause(pause(end)?),
            Effect::TrimDead(died, of) => LiveEffect::TrimDead(time_at(died, now)?, sequence(of)),
            Effect::Begin(header) => LiveEffect::Begin(header.try_into()?),
            Effect::Continue(messages) => LiveEffect::Continue(live_images(messages, base)?),
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
    let Image(sequence, due, priority, count, lease, ttl, attempts, phase, name, payload, error) = image;
    let sequence = at_distance(sequence, base);
    let due = time_at(due, instant_of(sequence))?;
    let phase = match phase {
        None => record::Phase::Waiting,
        Some(Phase::Leased(receipt, deadline)) => {
            let receipt = at_distance(receipt, sequence);
            record::Phase::Leased { deadline: time_at(deadline, instant_of(receipt))?, receipt: Receipt(receipt) }
        }
        Some(Phase::Dead(died, code)) => record::Phase::Dead { died: time_at(died, due)?, reason: reason(code)? },
    };
    let ttl = match ttl {
        Some(Ends(length, end)) => Some(Ttl { duration: duration(length)?, end: time_at(end, due)? }),
        None => None,
    };
    let lease = lease.map(duration).transpose()?;
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
        },
        name: name.map(|name| &**name),
        payload,
        error: error.map(|error| &**error),
    })
}

fn live_grants(grants: &[Grant], now: UnixMs) -> Result<Vec<LiveGrant>, Refused> {
    let (mut sequence, mut receipt) = (ticks(now), ticks(now));
    let next = |grant: &Grant| {
        let Grant(sequence_distance, attempt, deadline, receipt_distance) = *grant;
        sequence = at_distance(sequence_distance, sequence);
        receipt = at_distance(receipt_distance, receipt);
        let deadline = time_at(deadline, now)?;
        Ok(LiveGrant { sequence: Sequence(sequence), attempt, deadline, receipt: Receipt(receipt) })
    };
    grants.iter().map(next).collect()
}

impl TryFrom<Settings> for LiveSettings {
    type Error = Refused;

    fn try_from(wire: Settings) -> Result<Self, Refused> {
        let Settings(lease, count, base, max, jitter, ttl, maxlen, maxinflight, deadlen, deadttl, maxpayload) = wire;
        let jitter = Percent::new(jitter).ok_or(Refused::Malformed)?;
        Ok(LiveSettings {
            lease: duration(lease)?,
            retries: retries(count)?,
            backoff: Backoff { base: duration(base)?, max: duration(max)?, jitter },
            ttl: duration(ttl)?,
            maxlen,
            maxinflight,
            deadlen,
            deadttl: duration(deadttl)?,
            maxpayload,
        })
    }
}

fn pause(end: u64) -> Result<Pause, Refused> {
    match end {
        0 => Ok(Pause::Off),
        ENDLESS => Ok(Pause::Endless),
        end => time(end).map(Pause::Until),
    }
}

impl TryFrom<Header> for LiveHeader {
    type Error = Refused;

    fn try_from(Header(settings, end, sequence, receipt, totals, viewed): Header) -> Result<Self, Refused> {
        Ok(LiveHeader {
            settings: settings.try_into()?,
            pause: pause(end)?,
            last_sequence: Sequence(sequence),
            last_receipt: Receipt(receipt),
            totals: Totals::from_numbers(totals),
            viewed: time(viewed)?,
        })
    }
}

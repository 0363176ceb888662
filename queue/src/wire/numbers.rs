//! Times, sequences and receipts as differences, which MessagePack stores in one to five bytes instead of nine.
//!
//! Differences of sequences and receipts wrap, so every number can be written; times are checked when they are read.

use super::codec::{coded, Decode, Encode, Reader, Writer};
use super::Refused;
use crate::effect::{Deadlines, Grant};
use crate::id::{first_tick, Receipt, Sequence, COUNT_BITS};
use crate::record::Reason;
use crate::settings::Retries;
use crate::spans::{Span, Spans};
use crate::time::{DurationMs, UnixMs};

/// The distance from `base` to `number`.
pub(super) fn distance(number: u64, base: u64) -> i64 {
    number.wrapping_sub(base) as i64
}

/// The number at this distance from `base`.
pub(super) fn at_distance(distance: i64, base: u64) -> u64 {
    base.wrapping_add(distance as u64)
}

/// The distance from `base` to `time`, in milliseconds.
pub(super) fn time_distance(time: UnixMs, base: UnixMs) -> i64 {
    distance(time.as_ms(), base.as_ms())
}

/// The time at this distance from `base`, if there is such a time.
pub(super) fn time_at(distance: i64, base: UnixMs) -> Result<UnixMs, Refused> {
    checked_time_at(distance, base).ok_or(Refused::Malformed)
}

fn checked_time_at(distance: i64, base: UnixMs) -> Option<UnixMs> {
    UnixMs::checked(at_distance(distance, base.as_ms()))
}

/// The last one of several numbers that are written as distances, each from the one before.
pub(super) struct Last(pub u64);

impl Last {
    /// The distance of the next number.
    pub fn to(&mut self, number: u64) -> i64 {
        distance(number, std::mem::replace(&mut self.0, number))
    }

    /// The next number, from its distance.
    pub fn at(&mut self, distance: i64) -> u64 {
        self.0 = at_distance(distance, self.0);
        self.0
    }

    /// The next number as a time, from its distance.
    pub fn time_at(&mut self, distance: i64) -> Result<UnixMs, Refused> {
        UnixMs::checked(self.at(distance)).ok_or(Refused::Malformed)
    }
}

/// A distance of sequences as two numbers, milliseconds and the rest: most sequences are the first of their millisecond
/// or one of the first, so both are small.
pub(super) fn split(distance: i64) -> [i64; 2] {
    let ms = distance >> COUNT_BITS;
    [ms, distance.wrapping_sub(ms << COUNT_BITS)]
}

/// The inverse of [`split`].
pub(super) fn joined(ms: i64, rest: i64) -> i64 {
    ms.wrapping_shl(COUNT_BITS).wrapping_add(rest)
}

pub(super) const fn reason_code(reason: Reason) -> u8 {
    match reason {
        Reason::Rejected => 0,
        Reason::Expired => 1,
        Reason::Retries => 2,
    }
}

pub(super) const fn reason(code: u8) -> Option<Reason> {
    match code {
        0 => Some(Reason::Rejected),
        1 => Some(Reason::Expired),
        2 => Some(Reason::Retries),
        _ => None,
    }
}

coded! {'a;
    /// A time in an effect is written as its distance from the instant of the decision.
    UnixMs as i64: |time, now| time_distance(*time, now), checked_time_at;
    DurationMs as u64: |duration, _| duration.as_ms(), |ms, _| DurationMs::checked(ms);
    Retries as i32: |retries, _| retries.count(), |count, _| Retries::new(count);
    Reason as u8: |reason, _| reason_code(*reason), |code, _| reason(code);
    /// A sequence in an effect is written as its distance from the smallest sequence of the instant of the decision.
    Sequence as i64: |sequence, now| distance(sequence.0, first_tick(now)),
        |distance, now| Some(Sequence(at_distance(distance, first_tick(now))));
    Receipt as i64: |receipt, now| distance(receipt.0, first_tick(now)),
        |distance, now| Some(Receipt(at_distance(distance, first_tick(now))));
}

/// Two numbers for the first sequence, as [`split`] makes them, and for each other one its distance from the one
/// before.
impl Encode for Vec<Sequence> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let Some((first, others)) = self.split_first() else { return to.array(0) };
        let mut last = Last(first_tick(to.now));
        to.array(self.len() + 1)?;
        split(last.to(first.0)).iter().try_for_each(|number| to.put(number))?;
        others.iter().try_for_each(|next| to.put(&last.to(next.0)))
    }
}

impl Decode<'_> for Vec<Sequence> {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let numbers = from.numbers()?;
        let (first, others) = match numbers.as_slice() {
            [] => return Ok(Vec::new()),
            [ms, rest, others @ ..] => (joined(*ms, *rest), others),
            [_] => return Err(Refused::Malformed),
        };
        let mut last = Last(first_tick(from.now));
        Ok(std::iter::once(&first).chain(others).map(|distance| Sequence(last.at(*distance))).collect())
    }
}

/// For each message its sequence, as a distance from that of the one before, and the instant.
impl Encode for Deadlines {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut last = Last(first_tick(to.now));
        to.array(2 * self.len())?;
        self.iter().try_for_each(|(sequence, at)| {
            to.put(&last.to(sequence.0))?;
            to.put(at)
        })
    }
}

impl Decode<'_> for Deadlines {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let (now, mut last) = (from.now, Last(first_tick(from.now)));
        Ok(from.pairs(|sequence, at| Ok((Sequence(last.at(sequence)), time_at(at, now)?)))?.into())
    }
}

/// For each span two numbers: its first sequence, as a distance from the end of the span before, and its last sequence,
/// as a distance from the first.
impl Encode for Spans {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut last = Last(first_tick(to.now));
        let both = |span: Span| [last.to(span.first.0), last.to(span.last.0)];
        to.numbers(&self.iter().flat_map(both).collect::<Vec<_>>())
    }
}

impl Decode<'_> for Spans {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let mut last = Last(first_tick(from.now));
        let span = |first, length| Ok(Span { first: Sequence(last.at(first)), last: Sequence(last.at(length)) });
        Spans::new(from.pairs(span)?).ok_or(Refused::Malformed)
    }
}

/// The first sequence is written as in a list of sequences; each other one as its distance from the one before. Three
/// numbers follow each: the deadline and the receipt, as distances from those of the delivery before (the first from
/// the instant of the decision), and the attempt.
impl Encode for Vec<Grant> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let (base, now) = (first_tick(to.now), to.now.as_ms());
        let (mut sequence, mut deadline, mut receipt) = (Last(base), Last(now), Last(base));
        let mut numbers = Vec::with_capacity(4 * self.len() + 1);
        for grant in self {
            let from_last = sequence.to(grant.sequence.0);
            if numbers.is_empty() {
                numbers.extend(split(from_last));
            } else {
                numbers.push(from_last);
            }
            let deadline = deadline.to(grant.deadline.as_ms());
            numbers.extend([deadline, receipt.to(grant.receipt.0), grant.attempt.into()]);
        }
        to.numbers(&numbers)
    }
}

impl Decode<'_> for Vec<Grant> {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let (base, now) = (first_tick(from.now), from.now.as_ms());
        let (mut sequence, mut deadline, mut receipt) = (Last(base), Last(now), Last(base));
        let numbers = from.numbers()?;
        let (mut distance, mut rest) = match numbers.as_slice() {
            [] => return Ok(Vec::new()),
            [ms, count, rest @ ..] => (joined(*ms, *count), rest),
            [_] => return Err(Refused::Malformed),
        };
        let mut grants = Vec::with_capacity(numbers.len() / 4);
        loop {
            let [from_deadline, from_receipt, attempt, others @ ..] = rest else { return Err(Refused::Malformed) };
            grants.push(Grant {
                sequence: Sequence(sequence.at(distance)),
                attempt: u32::try_from(*attempt).map_err(|_| Refused::Malformed)?,
                deadline: deadline.time_at(*from_deadline)?,
                receipt: Receipt(receipt.at(*from_receipt)),
            });
            let [from_sequence, others @ ..] = others else { return Ok(grants) };
            (distance, rest) = (*from_sequence, others);
        }
    }
}

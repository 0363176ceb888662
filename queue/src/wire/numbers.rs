//! Times, sequences and receipts as differences, which MessagePack stores in one to five bytes instead of nine.
//!
//! Differences of sequences and receipts wrap, so every number can be written; times are checked when they are read.

use super::codec::{Decode, Encode, Reader, Writer};
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
    UnixMs::checked(at_distance(distance, base.as_ms())).ok_or(Refused::Malformed)
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

/// A time in an effect is written as its distance from the instant of the decision.
impl Encode for UnixMs {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(&time_distance(*self, to.now))
    }
}

impl Decode<'_> for UnixMs {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        time_at(from.get()?, from.now)
    }
}

impl Encode for DurationMs {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(&self.as_ms())
    }
}

impl Decode<'_> for DurationMs {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        DurationMs::checked(from.get()?).ok_or(Refused::Malformed)
    }
}

impl Encode for Retries {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(&self.count())
    }
}

impl Decode<'_> for Retries {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        Retries::new(from.get()?).ok_or(Refused::Malformed)
    }
}

pub(super) const fn reason_code(reason: Reason) -> u8 {
    match reason {
        Reason::Rejected => 0,
        Reason::Expired => 1,
        Reason::Retries => 2,
    }
}

pub(super) const fn reason(code: u8) -> Result<Reason, Refused> {
    match code {
        0 => Ok(Reason::Rejected),
        1 => Ok(Reason::Expired),
        2 => Ok(Reason::Retries),
        _ => Err(Refused::Malformed),
    }
}

impl Encode for Reason {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(&reason_code(*self))
    }
}

impl Decode<'_> for Reason {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        reason(from.get()?)
    }
}

/// A sequence in an effect is written as its distance from the smallest sequence of the instant of the decision.
impl Encode for Sequence {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(&distance(self.0, first_tick(to.now)))
    }
}

impl Decode<'_> for Sequence {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        Ok(Sequence(at_distance(from.get()?, first_tick(from.now))))
    }
}

impl Encode for Receipt {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        to.put(&distance(self.0, first_tick(to.now)))
    }
}

impl Decode<'_> for Receipt {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        Ok(Receipt(at_distance(from.get()?, first_tick(from.now))))
    }
}

/// Two numbers for the first sequence, as [`split`] makes them, and for each other one its distance from the one
/// before.
impl Encode for Vec<Sequence> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let Some((first, others)) = self.split_first() else { return to.array(0) };
        to.array(self.len() + 1)?;
        split(distance(first.0, first_tick(to.now))).iter().try_for_each(|number| to.put(number))?;
        let mut last = first.0;
        others.iter().try_for_each(|next| to.put(&distance(next.0, std::mem::replace(&mut last, next.0))))
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
        let mut last = first_tick(from.now);
        let next = |distance| {
            last = at_distance(distance, last);
            Sequence(last)
        };
        Ok(std::iter::once(first).chain(others.iter().copied()).map(next).collect())
    }
}

/// For each message its sequence, as a distance from that of the one before, and the instant.
impl Encode for Deadlines {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut last = first_tick(to.now);
        to.array(2 * self.len())?;
        self.iter().try_for_each(|(sequence, at)| {
            to.put(&distance(sequence.0, std::mem::replace(&mut last, sequence.0)))?;
            to.put(at)
        })
    }
}

impl Decode<'_> for Deadlines {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let (now, mut last) = (from.now, first_tick(from.now));
        let both = |pair: &[i64]| {
            let [sequence, at] = *pair else { return Err(Refused::Malformed) };
            last = at_distance(sequence, last);
            Ok((Sequence(last), time_at(at, now)?))
        };
        from.numbers()?.chunks(2).map(both).collect()
    }
}

/// For each span two numbers: its first sequence, as a distance from the end of the span before, and its last sequence,
/// as a distance from the first.
impl Encode for Spans {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let mut last = first_tick(to.now);
        let both = |span: Span| {
            let first = distance(span.first.0, std::mem::replace(&mut last, span.last.0));
            [first, distance(span.last.0, span.first.0)]
        };
        to.numbers(&self.iter().flat_map(both).collect::<Vec<_>>())
    }
}

impl Decode<'_> for Spans {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let mut last = first_tick(from.now);
        let span = |pair: &[i64]| {
            let [first, length] = pair else { return Err(Refused::Malformed) };
            let first = at_distance(*first, last);
            last = at_distance(*length, first);
            Ok(Span { first: Sequence(first), last: Sequence(last) })
        };
        let spans = from.numbers()?.chunks(2).map(span).collect::<Result<_, _>>()?;
        Spans::new(spans).ok_or(Refused::Malformed)
    }
}

/// The first sequence is written as in a list of sequences; each other one as its distance from the one before. Three
/// numbers follow each: the deadline and the receipt, as distances from those of the delivery before (the first from
/// the instant of the decision), and the attempt.
impl Encode for Vec<Grant> {
    fn encode(&self, to: &mut Writer<'_>) -> Result<(), Refused> {
        let base = first_tick(to.now);
        let (mut sequence, mut deadline, mut receipt) = (base, to.now, base);
        let mut numbers = Vec::with_capacity(4 * self.len() + 1);
        for grant in self {
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
        to.numbers(&numbers)
    }
}

impl Decode<'_> for Vec<Grant> {
    fn decode(from: &mut Reader<'_>) -> Result<Self, Refused> {
        let base = first_tick(from.now);
        let (mut deadline, mut receipt) = (from.now, base);
        let numbers = from.numbers()?;
        let (mut sequence, mut rest) = match numbers.as_slice() {
            [] => return Ok(Vec::new()),
            [ms, count, rest @ ..] => (at_distance(joined(*ms, *count), base), rest),
            [_] => return Err(Refused::Malformed),
        };
        let mut grants = Vec::with_capacity(numbers.len() / 4);
        loop {
            let [from_deadline, from_receipt, attempt, others @ ..] = rest else { return Err(Refused::Malformed) };
            deadline = time_at(*from_deadline, deadline)?;
            receipt = at_distance(*from_receipt, receipt);
            let attempt = u32::try_from(*attempt).map_err(|_| Refused::Malformed)?;
            grants.push(Grant { sequence: Sequence(sequence), attempt, deadline, receipt: Receipt(receipt) });
            let [from_sequence, others @ ..] = others else { return Ok(grants) };
            sequence = at_distance(*from_sequence, sequence);
            rest = others;
        }
    }
}

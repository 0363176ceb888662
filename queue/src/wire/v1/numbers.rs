//! Numbers as differences, and what they stand for.

use super::super::super::id::Sequence;
use super::super::super::record::Reason;
use super::super::super::settings::Retries;
use super::super::super::time::{DurationMs, UnixMs};
use super::super::Refused;
use super::{Sequences, COUNT_BITS};

/// The distance from `base` to `number`.
pub(super) fn distance(number: u64, base: u64) -> i64 {
    number.wrapping_sub(base) as i64
}

/// The number at this distance from `base`.
pub(super) fn at_distance(distance: i64, base: u64) -> u64 {
    base.wrapping_add(distance as u64)
}

/// The smallest sequence or receipt of an instant.
pub(super) fn ticks(instant: UnixMs) -> u64 {
    instant.as_ms() << COUNT_BITS
}

pub(super) fn instant_of(ticks: u64) -> UnixMs {
    UnixMs::new(ticks >> COUNT_BITS)
}

pub(super) fn time_distance(time: UnixMs, base: UnixMs) -> i64 {
    distance(time.as_ms(), base.as_ms())
}

pub(super) fn time_at(distance: i64, base: UnixMs) -> Result<UnixMs, Refused> {
    UnixMs::checked(at_distance(distance, base.as_ms())).ok_or(Refused::Malformed)
}

pub(super) fn time(ms: u64) -> Result<UnixMs, Refused> {
    UnixMs::checked(ms).ok_or(Refused::Malformed)
}

pub(super) fn duration(ms: u64) -> Result<DurationMs, Refused> {
    DurationMs::checked(ms).ok_or(Refused::Malformed)
}

pub(super) fn retries(count: i32) -> Result<Retries, Refused> {
    Retries::new(count).ok_or(Refused::Malformed)
}

pub(super) const fn reason_code(reason: Reason) -> u8 {
    match reason {
        Reason::Rejected => 0,
        Reason::Expired => 1,
        Reason::Retries => 2,
    }
}

pub(super) fn reason(code: u8) -> Result<Reason, Refused> {
    match code {
        0 => Ok(Reason::Rejected),
        1 => Ok(Reason::Expired),
        2 => Ok(Reason::Retries),
        _ => Err(Refused::Malformed),
    }
}

/// A distance of sequences as two numbers, milliseconds and the rest: most sequences are the first of their millisecond
/// or one of the first, so both are small.
pub(super) fn split(distance: i64) -> [i64; 2] {
    let ms = distance >> COUNT_BITS;
    [ms, distance.wrapping_sub(ms << COUNT_BITS)]
}

/// The distance that [`split`] made two numbers of.
pub(super) fn joined(ms: i64, rest: i64) -> i64 {
    ms.wrapping_shl(COUNT_BITS).wrapping_add(rest)
}

/// The wire form of a list of sequences.
pub(super) fn distances(sequences: &[Sequence], base: u64) -> Sequences {
    let Some((first, others)) = sequences.split_first() else { return Sequences(Vec::new()) };
    let mut numbers = Vec::with_capacity(sequences.len() + 1);
    numbers.extend(split(distance(first.0, base)));
    let mut last = first.0;
    numbers.extend(others.iter().map(|next| distance(next.0, std::mem::replace(&mut last, next.0))));
    Sequences(numbers)
}

/// Converts back what [`distances`] wrote.
pub(super) fn sequences(Sequences(numbers): &Sequences, base: u64) -> Result<Vec<Sequence>, Refused> {
    let (ms, rest, others) = match numbers.as_slice() {
        [] => return Ok(Vec::new()),
        [ms, rest, others @ ..] => (*ms, *rest, others),
        [_] => return Err(Refused::Malformed),
    };
    let mut last = base;
    let distances = std::iter::once(joined(ms, rest)).chain(others.iter().copied());
    let next = |distance| {
        last = at_distance(distance, last);
        Sequence(last)
    };
    Ok(distances.map(next).collect())
}

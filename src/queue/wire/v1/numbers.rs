//! Numbers as differences, and what they stand for.

use super::super::super::id::Sequence;
use super::super::super::record::Reason;
use super::super::super::settings::Retries;
use super::super::super::time::{DurationMs, UnixMs};
use super::super::Refused;
use super::COUNT_BITS;

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

/// A list of sequences, each as its distance from the one before, and the first as its distance from `base`.
pub(super) fn distances(sequences: &[Sequence], base: u64) -> Vec<i64> {
    let mut last = base;
    sequences.iter().map(|sequence| distance(sequence.0, std::mem::replace(&mut last, sequence.0))).collect()
}

pub(super) fn sequences(distances: &[i64], base: u64) -> Vec<Sequence> {
    let mut last = base;
    let next = |distance: &i64| {
        last = at_distance(*distance, last);
        Sequence(last)
    };
    distances.iter().map(next).collect()
}

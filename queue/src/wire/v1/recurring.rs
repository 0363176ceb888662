//! Schedules, and the ends of their runs.

use super::super::super::id::Sequence;
use super::super::super::recurring::{
    Declaration as LiveDeclaration, Ended as LiveEnded, Failure as LiveFailure, Next as LiveNext,
    Recurring as LiveRecurring, RunEnd as LiveRunEnd, Series as LiveSeries,
};
use super::super::super::rule::Rule as LiveRule;
use super::super::super::time::{DurationMs, UnixMs};
use super::super::Refused;
use super::numbers::{
    at_distance, distance, duration, reason, reason_code, retries, ticks, time, time_at, time_distance,
};
use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

/// A rule: the interval and its offset, or the cron expression and its time zone.
#[derive(Debug, Serialize, Deserialize)]
enum Rule {
    #[serde(rename = "e")]
    Every(u64, u64),
    #[serde(rename = "c")]
    Cron(String, String),
}

/// A series: its rule, the last instant, the number of runs.
#[derive(Debug, Serialize, Deserialize)]
struct Series(Rule, Option<u64>, Option<u64>);

/// A declaration that is to apply: series, first due time, payload, priority, retries, lease, TTL, group.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Declaration(
    Series,
    Option<u64>,
    ByteBuf,
    i8,
    i32,
    Option<u64>,
    u64,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<ByteBuf>,
);

/// The schedule of a message: series, declared priority, runs left, runs ended, runs failed, the instant of the last
/// delivery, and what was declared for the next run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Recurring(
    Option<Series>,
    i8,
    Option<u64>,
    u64,
    u64,
    Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<Box<Declaration>>,
);

/// How runs ended, with the error of a nack or a burial.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ended<'a> {
    #[serde(rename = "a")]
    Acked,
    #[serde(rename = "v")]
    Completed,
    #[serde(rename = "t")]
    Taken,
    #[serde(rename = "f")]
    Forwarded,
    #[serde(rename = "n")]
    Nacked(#[serde(borrow)] Option<&'a Bytes>),
    #[serde(rename = "b")]
    Buried(#[serde(borrow)] Option<&'a Bytes>),
    #[serde(rename = "w")]
    ByTime,
}

/// The end of a run: the sequence as a distance from now, the failure, and what becomes of the message.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunEnd(i64, Option<Failure>, Next);

/// A failure: the instant as a distance from now, the reason, and the sequence of the dead copy as a distance from now.
#[derive(Debug, Serialize, Deserialize)]
struct Failure(i64, u8, Option<i64>);

/// The next due time as a distance from now, and a new sequence as a distance from now.
#[derive(Debug, Serialize, Deserialize)]
enum Next {
    #[serde(rename = "w")]
    At(i64),
    #[serde(rename = "d")]
    Renewed(i64, i64),
    #[serde(rename = "o")]
    Over,
}

impl From<&LiveSeries> for Series {
    fn from(live: &LiveSeries) -> Self {
        let rule = match &live.rule {
            LiveRule::Every { every, offset } => Rule::Every(every.as_ms(), offset.as_ms()),
            LiveRule::Cron { expression, zone } => Rule::Cron(expression.to_string(), zone.to_string()),
        };
        Series(rule, live.until.map(UnixMs::as_ms), live.times)
    }
}

impl TryFrom<Series> for LiveSeries {
    type Error = Refused;

    fn try_from(Series(rule, until, times): Series) -> Result<Self, Refused> {
        let rule = match rule {
            Rule::Every(every, offset) => LiveRule::Every { every: duration(every)?, offset: duration(offset)? },
            Rule::Cron(expression, zone) => LiveRule::Cron { expression: expression.into(), zone: zone.into() },
        };
        Ok(LiveSeries { rule, until: until.map(time).transpose()?, times })
    }
}

impl From<&LiveDeclaration> for Declaration {
    fn from(live: &LiveDeclaration) -> Self {
        Declaration(
            Series::from(&live.series),
            live.first.map(UnixMs::as_ms),
            ByteBuf::from(live.payload.to_vec()),
            live.priority,
            live.retries.count(),
            live.lease.map(DurationMs::as_ms),
            live.ttl.as_ms(),
            live.group.as_ref().map(|group| ByteBuf::from(group.to_vec())),
        )
    }
}

impl TryFrom<Declaration> for LiveDeclaration {
    type Error = Refused;

    fn try_from(wire: Declaration) -> Result<Self, Refused> {
        let Declaration(series, first, payload, priority, count, lease, ttl, group) = wire;
        Ok(LiveDeclaration {
            series: series.try_into()?,
            first: first.map(time).transpose()?,
            payload: payload.into_vec().into_boxed_slice(),
            priority,
            retries: retries(count)?,
            lease: lease.map(duration).transpose()?,
            ttl: duration(ttl)?,
            group: group.map(|group| group.into_vec().into_boxed_slice()),
        })
    }
}

impl From<&LiveRecurring> for Recurring {
    fn from(live: &LiveRecurring) -> Self {
        Recurring(
            live.series.as_ref().map(Series::from),
            live.priority,
            live.times_left,
            live.runs,
            live.failed_runs,
            live.last_run.map(UnixMs::as_ms),
            live.declared.as_deref().map(|declared| Box::new(Declaration::from(declared))),
        )
    }
}

impl TryFrom<Recurring> for LiveRecurring {
    type Error = Refused;

    fn try_from(wire: Recurring) -> Result<Self, Refused> {
        let Recurring(series, priority, times_left, runs, failed_runs, last_run, declared) = wire;
        Ok(LiveRecurring {
            series: series.map(LiveSeries::try_from).transpose()?,
            priority,
            times_left,
            runs,
            failed_runs,
            last_run: last_run.map(time).transpose()?,
            declared: declared.map(|declared| (*declared).try_into().map(Box::new)).transpose()?,
        })
    }
}

impl<'a> From<LiveEnded<'a>> for Ended<'a> {
    fn from(live: LiveEnded<'a>) -> Self {
        match live {
            LiveEnded::Acked => Ended::Acked,
            LiveEnded::Completed => Ended::Completed,
            LiveEnded::Taken => Ended::Taken,
            LiveEnded::Forwarded => Ended::Forwarded,
            LiveEnded::Nacked(error) => Ended::Nacked(error.map(Bytes::new)),
            LiveEnded::Buried(error) => Ended::Buried(error.map(Bytes::new)),
            LiveEnded::ByTime => Ended::ByTime,
        }
    }
}

impl<'a> From<Ended<'a>> for LiveEnded<'a> {
    fn from(wire: Ended<'a>) -> Self {
        match wire {
            Ended::Acked => LiveEnded::Acked,
            Ended::Completed => LiveEnded::Completed,
            Ended::Taken => LiveEnded::Taken,
            Ended::Forwarded => LiveEnded::Forwarded,
            Ended::Nacked(error) => LiveEnded::Nacked(error.map(|error| &**error)),
            Ended::Buried(error) => LiveEnded::Buried(error.map(|error| &**error)),
            Ended::ByTime => LiveEnded::ByTime,
        }
    }
}

impl RunEnd {
    /// The wire form of an end that was decided at `now`.
    pub(super) fn of(live: &LiveRunEnd, now: UnixMs) -> RunEnd {
        let from_now = |sequence: Sequence| distance(sequence.0, ticks(now));
        let failure = live.failure.map(|LiveFailure { died, reason, copy }| {
            Failure(time_distance(died, now), reason_code(reason), copy.map(from_now))
        });
        let next = match live.next {
            LiveNext::At(due) => Next::At(time_distance(due, now)),
            LiveNext::Renewed(due, sequence) => Next::Renewed(time_distance(due, now), from_now(sequence)),
            LiveNext::Over => Next::Over,
        };
        RunEnd(from_now(live.sequence), failure, next)
    }

    /// Converts back what [`RunEnd::of`] wrote. Returns an error if a value is out of its range.
    pub(super) fn live(self, now: UnixMs) -> Result<LiveRunEnd, Refused> {
        let RunEnd(of, failure, next) = self;
        let sequence = |distance: i64| Sequence(at_distance(distance, ticks(now)));
        let failure = match failure {
            None => None,
            Some(Failure(died, code, copy)) => {
                Some(LiveFailure { died: time_at(died, now)?, reason: reason(code)?, copy: copy.map(sequence) })
            }
        };
        let next = match next {
            Next::At(due) => LiveNext::At(time_at(due, now)?),
            Next::Renewed(due, of) => LiveNext::Renewed(time_at(due, now)?, sequence(of)),
            Next::Over => LiveNext::Over,
        };
        Ok(LiveRunEnd { sequence: sequence(of), failure, next })
    }
}

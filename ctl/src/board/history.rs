//! The counts of a queue in the last hour, or of all queues together: a small ring of samples, from which rates and
//! charts are made.

use super::latency::{between, Times};
use crate::server::QueueInfo;
use crate::text::now_ms;
use dq_client::Stats;
use std::collections::VecDeque;

/// Two samples are at least this far apart, in ms.
pub const APART: i64 = 9_000;
/// The samples of an hour, and those that rates need.
pub const HOUR: usize = 360;
pub const FEW: usize = 3;
/// The time over which rates are measured, and the shortest that gives a useful rate, in ms.
const RATE_OVER: i64 = 8_000;
const RATE_LEAST: i64 = 900;
/// The points of a small chart.
const POINTS: usize = 40;

/// The counts and totals of an instant.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// In Unix ms.
    pub at: i64,
    /// Ready, delayed, in flight and dead.
    pub counts: [i64; 4],
    /// Pushed, delivered and completed.
    pub totals: [i64; 3],
    /// Since the sample before, if deliveries are measured.
    pub times: Times,
}

impl Sample {
    /// From `DQ.INFO`.
    pub fn read(info: &QueueInfo) -> Sample {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let totals = &info.totals;
        Sample {
            at: now_ms(),
            counts: [info.ready, info.delayed, info.inflight, info.dead].map(number),
            totals: [totals.pushed, totals.delivered, totals.acked.saturating_add(totals.forwarded)].map(number),
            times: Times::default(),
        }
    }

    /// The counts and totals of several queues together.
    pub fn sum<'a>(all: impl Iterator<Item = &'a Sample>) -> Sample {
        let mut sum = Sample::read(&QueueInfo::default());
        for one in all {
            sum.counts.iter_mut().zip(one.counts).for_each(|(sum, count)| *sum += count);
            sum.totals.iter_mut().zip(one.totals).for_each(|(sum, total)| *sum += total);
        }
        sum
    }
}

#[derive(Clone, Default)]
pub struct History {
    samples: VecDeque<Sample>,
    /// The last reading, though it may be too close to the last sample to become one.
    latest: Option<Sample>,
    stats: Option<Stats>,
}

impl History {
    /// Adds a reading. At most `most` samples are kept. Returns whether it became one of them.
    pub fn add(&mut self, sample: Sample, most: usize) -> bool {
        self.latest = Some(sample);
        // A clock that was set back begins a new history.
        if self.samples.back().is_some_and(|last| last.at > sample.at) {
            self.samples.clear();
        }
        let is_apart = self.samples.back().is_none_or(|last| sample.at - last.at >= APART);
        if is_apart {
            self.samples.push_back(sample);
        }
        self.keep(most);
        is_apart
    }

    /// Keeps the last samples.
    pub fn keep(&mut self, most: usize) {
        self.samples.drain(..self.samples.len().saturating_sub(most));
    }

    /// Adds what has been measured since the last call to the last sample.
    pub fn measure(&mut self, stats: Stats) {
        if let (Some(last), Some(before)) = (self.samples.back_mut(), &self.stats) {
            last.times = between(before, &stats);
        }
        self.stats = Some(stats);
    }

    /// Messages a second in the last ten seconds, or since the first sample; `None` if that was just now, or if the
    /// total fell, by a restart for example, so that what happened before is not known.
    pub fn rate(&self, total: fn(&Sample) -> i64) -> Option<f64> {
        let last = self.latest?;
        let before = self.samples.iter().rev().find(|sample| sample.at <= last.at - RATE_OVER);
        let first = before.or(self.samples.front()).filter(|first| first.at <= last.at - RATE_LEAST)?;
        let per_second = (total(&last) - total(first)) * 100_000 / (last.at - first.at);
        let rate = per_second as f64 / 100.0;
        (rate >= 0.0).then_some(rate)
    }

    pub fn latest(&self) -> Option<&Sample> {
        self.latest.as_ref()
    }

    /// All samples, the oldest first. Between samples that are `least` ms apart, `None` is an instant at which a server
    /// could not be read.
    pub fn samples(&self, interruptions: &VecDeque<i64>, least: i64) -> Vec<(i64, Option<Sample>)> {
        let is_between = |at: &&i64| {
            let mut pairs = self.samples.iter().zip(self.samples.iter().skip(1));
            pairs.any(|(before, after)| (before.at..after.at).contains(*at) && after.at - before.at >= least)
        };
        let mut all: Vec<_> = self.samples.iter().map(|sample| (sample.at, Some(*sample))).collect();
        all.extend(interruptions.iter().filter(is_between).map(|at| (*at, None)));
        all.sort_by_key(|(at, _)| *at);
        all
    }

    /// Instants and depths for a small chart, the newest first.
    pub fn depths(&self) -> Vec<(i64, i64)> {
        let step = self.samples.len().div_ceil(POINTS).max(1);
        let depth = |&Sample { counts: [ready, delayed, inflight, _], .. }: &Sample| ready + delayed + inflight;
        self.samples.iter().rev().step_by(step).map(|sample| (sample.at, depth(sample))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{History, Sample, HOUR};

    fn sample(at: i64, pushed: i64) -> Sample {
        Sample { at, totals: [pushed, 0, 0], ..Sample::read(&crate::server::QueueInfo::default()) }
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        let mut history = History::default();
        let mut at = |at, pushed| {
            history.add(sample(at, pushed), HOUR);
            history.rate(|sample| sample.totals[0])
        };
        assert_eq!(at(0, 0), None);
        assert_eq!(at(899, 0), None, "too short to say something");
        assert_eq!(at(2_000, 2_000), Some(1_000.0));
        at(9_000, 1_000);
        at(10_000, 9_999);
        assert_eq!(at(19_000, 1_010), Some(1.0));
        assert_eq!(at(29_000, 0), None, "it fell: what was pushed is not known");
        assert_eq!(at(1_000, 0), None, "the clock was set back");
    }

    #[test]
    fn an_interruption_stands_between_the_samples() {
        let mut history = History::default();
        [10, 10_000, 30_000].into_iter().for_each(|at| _ = history.add(sample(at, at), HOUR));
        let ats = |least| {
            let rows = history.samples(&[1_000, 15_000, 90_000].into(), least);
            assert!(rows.iter().any(|(at, sample)| *at == 15_000 && sample.is_none()), "{rows:?}");
            rows.iter().map(|(at, _)| *at).collect::<Vec<_>>()
        };
        assert_eq!(ats(0), [10, 1_000, 10_000, 15_000, 30_000]);
        assert_eq!(ats(18_000), [10, 10_000, 15_000, 30_000], "it was read around the first one");
    }

    #[test]
    fn rings_and_charts_are_bounded() {
        let mut history = History::default();
        (0..1_000).for_each(|number| _ = history.add(sample(number * 10_000, 0), HOUR));
        assert_eq!(history.samples(&[].into(), 0).len(), HOUR);
        let depths = history.depths();
        assert!(depths.len() <= 40 && depths[0].0 == 999 * 10_000, "{depths:?}");
    }
}

//! The counts of a queue in the last hour, or of all queues together: a small ring of samples, from which rates and charts are
//! made.

use super::latency::{Latency, Times};
use crate::server::reply::Fields;
use crate::text::time::now_ms;
use serde_json::{json, Value as Json};
use std::collections::VecDeque;

/// Two samples are at least this far apart, in ms.
pub const APART: i64 = 9_000;
/// The samples of an hour, and those that rates need.
pub const HOUR: usize = 360;
pub const FEW: usize = 3;
/// The time over which rates are measured, and the shortest that says something, in ms.
const RATE_OVER: i64 = 8_000;
const RATE_LEAST: i64 = 900;
/// The points of a small chart.
const POINTS: usize = 40;

/// The counts and totals of an instant.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// In Unix ms.
    pub at: i64,
    ready: i64,
    delayed: i64,
    inflight: i64,
    dead: i64,
    pushed: i64,
    delivered: i64,
    completed: i64,
    /// Since the sample before, if deliveries are measured.
    times: Times,
}

impl Sample {
    /// From the fields of `DQ.INFO`.
    pub fn of_queue(info: &Fields) -> Sample {
        let number = |name: &str| info.int(name).unwrap_or(0);
        Sample::of(number, number)
    }

    /// From a count by its name, and a total by its name.
    pub fn of(count: impl Fn(&str) -> i64, total: impl Fn(&str) -> i64) -> Sample {
        Sample {
            at: now_ms(),
            ready: count("ready"),
            delayed: count("delayed"),
            inflight: count("inflight"),
            dead: count("dead"),
            pushed: total("pushed"),
            delivered: total("delivered"),
            completed: total("acked") + total("forwarded"),
            times: Times::default(),
        }
    }

    fn json(&self) -> Json {
        let Times { lateness, runtime } = self.times;
        json!([
            self.at,
            self.ready,
            self.delayed,
            self.inflight,
            self.dead,
            self.pushed,
            self.delivered,
            self.completed,
            lateness,
            runtime
        ])
    }
}

/// Messages a second; `None` if a total fell, by a restart for example, so that what happened before is not known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    pub pushed: Option<f64>,
    pub delivered: Option<f64>,
    pub completed: Option<f64>,
}

#[derive(Clone, Default)]
pub struct History {
    samples: VecDeque<Sample>,
    /// The last reading, though it may be too close to the last sample to become one.
    latest: Option<Sample>,
    latency: Latency,
}

impl History {
    /// Adds a reading. At most so many samples are kept. Returns whether it became one of them.
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

    /// Adds what `DQ.STATS` has measured since the last call to the last sample.
    pub fn measure(&mut self, info: &Fields, stats: &Fields) {
        let times = self.latency.since(info, stats, now_ms());
        if let Some(last) = self.samples.back_mut() {
            last.times.complete(times);
        }
    }

    pub fn latest(&self) -> Option<&Sample> {
        self.latest.as_ref()
    }

    /// Messages a second in the last ten seconds, or since the first sample; `None` if that was just now.
    pub fn rates(&self) -> Option<Rates> {
        let last = self.latest?;
        let before = self.samples.iter().rev().find(|sample| sample.at <= last.at - RATE_OVER);
        let first = before.or(self.samples.front()).filter(|first| first.at <= last.at - RATE_LEAST)?;
        let rate = |total: fn(&Sample) -> i64| {
            let per_second = (total(&last) - total(first)) * 100_000 / (last.at - first.at);
            #[allow(clippy::cast_precision_loss, reason = "a rate is shown with two digits after the point")]
            let rate = per_second as f64 / 100.0;
            (rate >= 0.0).then_some(rate)
        };
        Some(Rates {
            pushed: rate(|sample| sample.pushed),
            delivered: rate(|sample| sample.delivered),
            completed: rate(|sample| sample.completed),
        })
    }

    /// All samples, the oldest first: `[at, ready, delayed, inflight, dead, pushed, delivered, completed, lateness, runtime]`,
    /// of which the last two are `[median, 99 %]` in ms, or null if nothing was measured since the sample before. Between
    /// samples that are `least` ms apart, `[at]` is an instant at which a server could not be read.
    pub fn samples(&self, interruptions: &VecDeque<i64>, least: i64) -> Json {
        let is_between = |at: &&i64| {
            let mut pairs = self.samples.iter().zip(self.samples.iter().skip(1));
            pairs.any(|(before, after)| (before.at..after.at).contains(*at) && after.at - before.at >= least)
        };
        let mut rows: Vec<(i64, Json)> = self.samples.iter().map(|sample| (sample.at, sample.json())).collect();
        rows.extend(interruptions.iter().filter(is_between).map(|at| (*at, json!([at]))));
        rows.sort_by_key(|(at, _)| *at);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Depths for a small chart: `[at, depth]`, the oldest first.
    pub fn depths(&self) -> Json {
        let step = self.samples.len().div_ceil(POINTS).max(1);
        let point = |sample: &Sample| json!([sample.at, sample.ready + sample.delayed + sample.inflight]);
        // Counted from the end, so that the present is always there.
        let mut points: Vec<Json> = self.samples.iter().rev().step_by(step).map(point).collect();
        points.reverse();
        Json::Array(points)
    }
}

#[cfg(test)]
mod tests {
    use super::{History, Sample, HOUR};
    use serde_json::{json, Value as Json};

    fn sample(at: i64, pushed: i64) -> Sample {
        let total = |name: &str| if name == "pushed" { pushed } else { 0 };
        Sample { at, ..Sample::of(|_| 1, total) }
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        let mut history = History::default();
        let mut at = |at, pushed| {
            history.add(sample(at, pushed), HOUR);
            history.rates().and_then(|rates| rates.pushed)
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
            assert!(rows.as_array().unwrap().contains(&json!([15_000])), "{rows}");
            rows.as_array().unwrap().iter().map(|row| row[0].as_i64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(ats(0), [10, 1_000, 10_000, 15_000, 30_000]);
        assert_eq!(ats(18_000), [10, 10_000, 15_000, 30_000], "it was read around the first one");
    }

    #[test]
    fn rings_and_charts_are_bounded() {
        let mut history = History::default();
        (0..1_000).for_each(|number| _ = history.add(sample(number * 10_000, 0), HOUR));
        let len = |json: Json| json.as_array().unwrap().len();
        assert_eq!(len(history.samples(&[].into(), 0)), HOUR);
        let depths = history.depths();
        assert!(len(depths.clone()) <= 40 && depths.as_array().unwrap().last().unwrap()[0] == 999 * 10_000, "{depths}");
    }
}

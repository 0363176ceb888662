//! How late deliveries were and how long consumers took, between two reads of `DQ.STATS`.
//!
//! Its histograms count from the start of the server on. The difference of two of them is what happened in between.

use crate::server::reply::{int, Fields};
use dq_client::Value;

/// What a median and 99 of 100 were at most, in ms.
type Quantiles = [i64; 2];

/// The percentiles that are shown.
pub const TOLD: [i64; 3] = [50, 95, 99];

/// What was measured in a while; `None` if there was nothing to measure.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Times {
    pub lateness: Option<Quantiles>,
    pub runtime: Option<Quantiles>,
}

impl Times {
    /// Takes over what is not known yet.
    pub fn complete(&mut self, other: Times) {
        self.lateness = self.lateness.or(other.lateness);
        self.runtime = self.runtime.or(other.runtime);
    }
}

/// The histograms that were read last.
#[derive(Clone, Default)]
pub struct Latency {
    last: Option<[Histogram; 2]>,
    /// Since when the oldest message was due that was ready then, in Unix ms.
    due: i64,
}

impl Latency {
    /// What was measured since the last call; nothing at the first one. `info` are the fields of `DQ.INFO`, which were read
    /// before `stats`.
    pub fn since(&mut self, info: &Fields, stats: &Fields, now: i64) -> Times {
        // What has been delivered since was ready then, or became due later.
        let latest = now.saturating_sub(self.due);
        self.due = now.saturating_sub(info.int("oldest-ready").unwrap_or(0));
        let now = ["lateness", "runtime"].map(|name| Histogram::read(stats, name));
        let last = self.last.replace(now.clone());
        let Some([late, run]) = last else { return Times::default() };
        let [late_now, run_now] = now;
        Times {
            lateness: quantiles(&late_now.since(&late), latest),
            runtime: quantiles(&run_now.since(&run), i64::MAX),
        }
    }
}

fn quantiles(times: &Histogram, longest: i64) -> Option<Quantiles> {
    Some([times.at_most(50, longest)?, times.at_most(99, longest)?])
}

/// Times in ms, as `DQ.STATS` counts them.
#[derive(Clone, Default)]
pub struct Histogram {
    /// Upper bounds, and how many of the times do not exceed them. The last one is that of all.
    buckets: Vec<(i64, i64)>,
    sum: i64,
}

impl Histogram {
    /// `name` is `lateness` or `runtime`.
    pub fn read(stats: &Fields, name: &str) -> Histogram {
        let pair = |pair: &Value| match pair {
            Value::Array(parts) => match parts.as_slice() {
                [bound, count] => Some((int(bound).unwrap_or(i64::MAX), int(count)?)),
                _ => None,
            },
            _ => None,
        };
        let pairs = match stats.get(name) {
            Some(Value::Array(pairs)) => pairs.as_slice(),
            _ => &[],
        };
        let sum = stats.int(&format!("{name}-sum-ms")).unwrap_or(i64::MAX);
        Histogram { buckets: pairs.iter().filter_map(pair).collect(), sum }
    }

    pub fn count(&self) -> i64 {
        self.buckets.last().map_or(0, |(_, count)| *count)
    }

    /// What was measured after `last`.
    fn since(self, last: &Histogram) -> Histogram {
        // The server was restarted, so that it counts from zero again.
        let is_reset = last.buckets.iter().zip(&self.buckets).any(|((_, then), (_, now))| now < then);
        if is_reset || last.buckets.is_empty() {
            return self;
        }
        let pairs = self.buckets.iter().zip(&last.buckets);
        let buckets = pairs.map(|((bound, now), (_, then))| (*bound, now - then)).collect();
        Histogram { buckets, sum: self.sum.saturating_sub(last.sum) }
    }

    /// What [`TOLD`] of the times are at most.
    pub fn told(&self) -> [Option<i64>; 3] {
        TOLD.map(|percent| self.at_most(percent, i64::MAX))
    }

    /// What `percent` of the times are at most; `None` if there are none. It is the bound of a bucket, or what the sum leaves
    /// if all other times are as short as their buckets allow. So the bound of a single time is that time. `longest` is what none
    /// should exceed: it is used if the bucket allows it.
    fn at_most(&self, percent: i64, longest: i64) -> Option<i64> {
        let all = self.count();
        let rank = ((all.saturating_mul(percent) + 99) / 100).max(1);
        let mut others = 0_i64;
        let (mut shortest, mut below, mut found) = (0, 0, None);
        for (bound, up_to) in &self.buckets {
            let count = up_to - below;
            // Those of the bucket of that rank that are not shorter than it.
            let longer = match found {
                None if *up_to >= rank => up_to - rank + 1,
                _ => 0,
            };
            if longer > 0 {
                found = Some((if longest >= shortest { longest.min(*bound) } else { *bound }, longer));
            }
            others = others.saturating_add((count - longer).saturating_mul(shortest));
            (shortest, below) = (bound.saturating_add(1), *up_to);
        }
        found.map(|(bound, longer)| bound.min((self.sum - others).max(0) / longer))
    }
}

#[cfg(test)]
mod tests {
    use super::{Histogram, Latency, Times};
    use crate::server::reply::Fields;
    use dq_client::Value;

    /// Times in ms, in buckets up to 1, 2, 4 and 8.
    fn stats(times: &[i64]) -> Fields {
        let up_to = |bound: i64| times.iter().filter(|time| **time <= bound).count() as i64;
        let pair = |bound, count| Value::Array(vec![bound, Value::Int(count)]);
        let bounds = [1, 2, 4, 8].map(|bound| pair(Value::Int(bound), up_to(bound)));
        let buckets = bounds.into_iter().chain([pair(Value::Nil, up_to(i64::MAX))]).collect();
        let fields = [("lateness", Value::Array(buckets)), ("lateness-sum-ms", Value::Int(times.iter().sum()))];
        Fields(fields.map(|(name, value)| (name.to_owned(), value)).into())
    }

    #[test]
    fn quantiles_are_those_of_the_time_between_two_reads() {
        let (mut latency, mut now) = (Latency::default(), 0);
        let mut late = |times: &[i64]| {
            now += 10_000;
            latency.since(&Fields::default(), &stats(times), now).lateness
        };
        assert_eq!(late(&[1, 1, 1]), None);
        assert_eq!(late(&[1, 1, 1, 2, 3_000]), Some([2, 3_000]));
        assert_eq!(late(&[1, 1, 1, 2, 3_000]), None);
        assert_eq!(late(&[1, 1, 1, 2, 3_000, 5]), Some([5, 5]));
        // After a restart.
        assert_eq!(late(&[1, 1]), Some([1, 1]));
        assert_eq!(Latency::default().since(&Fields::default(), &Fields::default(), 0), Times::default());
    }

    #[test]
    fn no_delivery_was_later_than_the_oldest_message_has_waited() {
        let late = |oldest: Option<i64>, times: &[i64]| {
            let info = Fields(oldest.into_iter().map(|age| ("oldest-ready".to_owned(), Value::Int(age))).collect());
            let mut latency = Latency::default();
            latency.since(&info, &stats(&[]), 1_000);
            latency.since(&info, &stats(times), 1_001).lateness
        };
        let times = [5, 5, 7, 7, 7];
        assert_eq!(late(Some(9), &times), Some([7, 8]));
        assert_eq!(late(Some(6), &times), Some([7, 7]));
        // They were pushed as if they had been due for long, so they were not ready at the first look.
        assert_eq!(late(Some(1), &times), Some([7, 8]));
        assert_eq!(late(None, &times), Some([7, 8]));
    }

    #[test]
    fn a_bound_is_no_shorter_than_the_quantile_nor_longer_than_its_bucket() {
        let at_most = |times: &[i64], percent| Histogram::read(&stats(times), "lateness").at_most(percent, i64::MAX);
        assert_eq!(at_most(&[], 50), None);
        for (times, percent, bound) in [
            (&[5][..], 99, 5),
            (&[0, 0, 5], 99, 5),
            (&[5, 6], 50, 5),
            (&[5, 6], 99, 6),
            (&[9_999], 50, 9_999),
            (&[0, 5, 9_999], 50, 8),
            (&[5, 5, 5, 8], 25, 5),
            (&[3, 3, 3, 3], 99, 3),
        ] {
            assert_eq!(at_most(times, percent), Some(bound), "{times:?} {percent}");
        }
    }
}

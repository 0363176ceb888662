//! The lateness of deliveries and the run time of consumers, between two reads of `DQ.STATS`.
//!
//! Its histograms count from the start of the server on. The difference of two of them is what happened in between.

use crate::text::millis;
use dq_client::{Histogram, Stats};

/// Upper bounds of the median and of the 99th percentile, in ms.
type Quantiles = [u64; 2];

/// The percentiles that are shown.
pub const PERCENTILES: [u32; 3] = [50, 95, 99];

/// The quantiles of a period; `None` if nothing was measured.
#[derive(Clone, Copy, Default, Debug)]
pub struct Times {
    pub lateness: Option<Quantiles>,
    pub runtime: Option<Quantiles>,
}

pub fn between(last: &Stats, now: &Stats) -> Times {
    Times { lateness: quantiles(&last.lateness, &now.lateness), runtime: quantiles(&last.runtime, &now.runtime) }
}

/// The quantiles of the times between two reads, or of all times if the server was restarted and counts from zero
/// again.
fn quantiles(last: &Histogram, now: &Histogram) -> Option<Quantiles> {
    let mut times = now.clone();
    if now.count() >= last.count() {
        let pairs = times.buckets.iter_mut().zip(&last.buckets);
        pairs.for_each(|((_, count), (_, then))| *count = count.saturating_sub(*then));
        times.sum = now.sum.saturating_sub(last.sum);
    }
    Some([at_most(&times, 50)?, at_most(&times, 99)?])
}

/// An upper bound of `percent` of the times, in ms; `None` if there are no times. It is the bound of a bucket, capped
/// at the sum of all times.
pub fn at_most(times: &Histogram, percent: u32) -> Option<u64> {
    let bound = times.quantile(f64::from(percent) / 100.0).unwrap_or(times.sum);
    (times.count() > 0).then(|| millis(bound.min(times.sum)))
}

#[cfg(test)]
mod tests {
    use super::quantiles;
    use dq_client::Histogram;
    use std::time::Duration;

    /// Times in ms, in buckets up to 1, 2, 4 and 8.
    fn times(times: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        let up_to = |bound: u64| times.iter().filter(|time| **time <= bound).count() as u64;
        histogram.buckets = [1, 2, 4, 8].map(|ms| (Some(Duration::from_millis(ms)), up_to(ms))).into();
        histogram.buckets.push((None, up_to(u64::MAX)));
        histogram.sum = Duration::from_millis(times.iter().sum());
        histogram
    }

    #[test]
    fn quantiles_are_those_of_the_time_between_two_reads() {
        let late = |last: &[u64], now: &[u64]| quantiles(&times(last), &times(now));
        assert_eq!(late(&[1, 1, 1], &[1, 1, 1, 2, 2, 3_000]), Some([2, 3_004]));
        assert_eq!(late(&[1, 3_000], &[1, 3_000, 5]), Some([5, 5]), "the only one is no longer than the sum");
        assert_eq!(late(&[1, 1], &[1, 1]), None);
        assert_eq!(late(&[1, 1, 1, 8], &[2, 2]), Some([2, 2]), "the server was restarted");
        assert_eq!(late(&[], &[]), None);
    }
}

//! How late deliveries were and how long consumers took, between two reads of `DQ.STATS`.
//!
//! Its histograms count from the start of the server on. The difference of two of them is what happened in between.

use crate::reply::{int, Fields};
use dq_client::Value;

/// What a median and 99 of 100 were at most, in ms.
type Quantiles = [i64; 2];

/// The bound that stands for what is beyond the last one, in ms.
const BEYOND: i64 = 1 << 23;

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
#[derive(Default)]
pub struct Latency {
    last: Option<[Vec<(i64, i64)>; 2]>,
}

impl Latency {
    /// What was measured since the last call; nothing at the first one.
    pub fn since(&mut self, stats: &Fields) -> Times {
        let now = ["lateness", "runtime"].map(|name| histogram(stats.get(name)));
        let last = self.last.replace(now.clone());
        let Some([late, run]) = last else { return Times::default() };
        let [late_now, run_now] = now;
        Times { lateness: quantiles(&late, &late_now), runtime: quantiles(&run, &run_now) }
    }
}

/// Pairs of a bound and a cumulative count.
fn histogram(value: Option<&Value>) -> Vec<(i64, i64)> {
    let Some(Value::Array(pairs)) = value else { return Vec::new() };
    let pair = |pair: &Value| match pair {
        Value::Array(parts) => match parts.as_slice() {
            [bound, count] => Some((int(bound).unwrap_or(BEYOND), int(count)?)),
            _ => None,
        },
        _ => None,
    };
    pairs.iter().filter_map(pair).collect()
}

fn quantiles(last: &[(i64, i64)], now: &[(i64, i64)]) -> Option<Quantiles> {
    // The server was restarted, so that it counts from zero again.
    let is_reset = last.iter().zip(now).any(|((_, then), (_, now))| now < then);
    let then = |at: usize| last.get(at).filter(|_| !is_reset).map_or(0, |(_, count)| *count);
    let counts: Vec<(i64, i64)> =
        now.iter().enumerate().map(|(at, (bound, count))| (*bound, count - then(at))).collect();
    let all = counts.last().map(|(_, count)| *count).filter(|all| *all > 0)?;
    let quantile = |percent: i64| {
        let bound = counts.iter().find(|(_, count)| count.saturating_mul(100) >= all.saturating_mul(percent));
        bound.map_or(BEYOND, |(bound, _)| *bound)
    };
    Some([quantile(50), quantile(99)])
}

#[cfg(test)]
mod tests {
    use super::{Latency, Times, BEYOND};
    use crate::reply::Fields;
    use dq_client::Value;

    fn stats(lateness: [i64; 3]) -> Fields {
        let bounds = [Value::Int(1), Value::Int(2), Value::Nil];
        let pair = |(bound, count)| Value::Array(vec![bound, Value::Int(count)]);
        let histogram = |counts: [i64; 3]| Value::Array(bounds.clone().into_iter().zip(counts).map(pair).collect());
        let fields = [("lateness", histogram(lateness)), ("runtime", histogram([0, 0, 0]))];
        Fields(fields.map(|(name, value)| (name.to_owned(), value)).into())
    }

    #[test]
    fn quantiles_are_those_of_the_time_between_two_reads() {
        let mut latency = Latency::default();
        let mut late = |counts| latency.since(&stats(counts)).lateness;
        assert_eq!(late([100, 100, 100]), None);
        assert_eq!(late([110, 111, 112]), Some([1, BEYOND]));
        assert_eq!(late([110, 111, 112]), None);
        assert_eq!(late([110, 211, 212]), Some([2, 2]));
        // After a restart.
        assert_eq!(late([3, 3, 3]), Some([1, 1]));
        assert_eq!(Latency::default().since(&Fields::default()), Times::default());
    }
}

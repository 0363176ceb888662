//! The history of the counts of queues over the last half hour: a small ring for each queue that somebody has looked at.
//!
//! Nothing is read for queues that nobody looks at, and nothing at all if nobody looks at the page.

use super::find;
use crate::failure::Failure;
use crate::reply::Fields;
use crate::time::now_ms;
use dq_client::Client;
use serde_json::{json, Value as Json};
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often samples are taken.
const EVERY: Duration = Duration::from_secs(5);
/// Two samples are at least this far apart, in ms.
const APART: i64 = 4_000;
/// The samples of half an hour.
const SAMPLES: usize = 360;
/// The most queues that have a ring, and the most that are sampled in the background.
const RINGS: usize = 500;
const SAMPLED: usize = 100;
/// How long sampling continues after somebody has looked.
const INTEREST: Duration = Duration::from_secs(15 * 60);
/// The time over which rates are measured, in ms.
const RATE_OVER: i64 = 10_000;
/// The points of a small chart.
const POINTS: usize = 40;

/// The counts and totals of an instant. Those of all queues together have the name of no queue.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    at: i64,
    ready: i64,
    delayed: i64,
    inflight: i64,
    dead: i64,
    pushed: i64,
    delivered: i64,
    acked: i64,
}

impl Sample {
    /// From the fields of `DQ.INFO`.
    pub fn of_queue(info: &Fields) -> Sample {
        Sample::of(|name| info.int(name).unwrap_or(0), |name| info.int(name).unwrap_or(0))
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
            acked: total("acked"),
        }
    }

    fn json(&self) -> Json {
        json!([self.at, self.ready, self.delayed, self.inflight, self.dead, self.pushed, self.delivered, self.acked])
    }

    fn depth(&self) -> i64 {
        self.ready + self.delayed + self.inflight
    }
}

struct Ring {
    samples: VecDeque<Sample>,
    looked: Instant,
}

/// The rings, by the names of the queues. `None` is all queues together.
#[derive(Default)]
pub struct History {
    rings: Mutex<HashMap<Option<Vec<u8>>, Ring>>,
}

impl History {
    /// Takes samples in the background for as long as the process runs.
    pub fn start(
        client: Client,
        all: impl Fn(&Client) -> Option<Sample> + Send + 'static,
    ) -> Result<Arc<History>, Failure> {
        let history = Arc::new(History::default());
        let kept = Arc::clone(&history);
        thread::Builder::new().name("dq-history".to_owned()).spawn(move || loop {
            thread::sleep(EVERY);
            for name in kept.of_interest() {
                let sample = match &name {
                    None => all(&client),
                    Some(queue) => match find::read(&client, queue) {
                        Ok(info) => info.as_ref().map(Sample::of_queue),
                        // The others could not be read either.
                        Err(error) if error.is_transient() => break,
                        Err(_) => None,
                    },
                };
                if let Some(sample) = sample {
                    kept.add(name.as_deref(), sample, None);
                }
            }
        })?;
        Ok(history)
    }

    /// Adds a sample that was read for a request.
    pub fn look(&self, queue: Option<&[u8]>, sample: Sample) {
        self.add(queue, sample, Some(Instant::now()));
    }

    /// All samples: `[at, ready, delayed, inflight, dead, pushed, delivered, acked]`, the oldest first.
    pub fn samples(&self, queue: Option<&[u8]>) -> Json {
        self.with(queue, |samples| samples.iter().map(Sample::json).collect())
    }

    /// Depths for a small chart: `[at, depth]`, the oldest first.
    pub fn depths(&self, queue: &[u8]) -> Json {
        self.with(Some(queue), |samples| {
            let step = samples.len().div_ceil(POINTS).max(1);
            // Counted from the end, so that the present is always there.
            let mut points: Vec<Json> =
                samples.iter().rev().step_by(step).map(|sample| json!([sample.at, sample.depth()])).collect();
            points.reverse();
            Json::Array(points)
        })
    }

    /// Messages per second in the last ten seconds, or since the first sample; null if there is only one.
    pub fn rates(&self, queue: Option<&[u8]>) -> Json {
        self.with(queue, |samples| {
            let Some(last) = samples.back() else { return Json::Null };
            let before = samples.iter().rev().find(|sample| sample.at <= last.at - RATE_OVER);
            let Some(first) = before.or(samples.front()).filter(|first| first.at < last.at) else { return Json::Null };
            // A total that fell was reset, by a restart for example.
            let rate = |total: fn(&Sample) -> i64| {
                let per_second = (total(last) - total(first)).max(0) * 100_000 / (last.at - first.at);
                #[allow(clippy::cast_precision_loss, reason = "JSON has floating point numbers only")]
                let rate = per_second as f64 / 100.0;
                rate
            };
            json!({
                "pushed": rate(|sample| sample.pushed),
                "delivered": rate(|sample| sample.delivered),
                "acked": rate(|sample| sample.acked),
            })
        })
    }

    fn with(&self, queue: Option<&[u8]>, read: impl FnOnce(&VecDeque<Sample>) -> Json) -> Json {
        self.lock().get(&queue.map(<[u8]>::to_vec)).map_or(Json::Null, |ring| read(&ring.samples))
    }

    fn add(&self, queue: Option<&[u8]>, sample: Sample, looked: Option<Instant>) {
        let mut rings = self.lock();
        let name = queue.map(<[u8]>::to_vec);
        if rings.len() >= RINGS && !rings.contains_key(&name) {
            let oldest = rings.iter().min_by_key(|(_, ring)| ring.looked).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| rings.remove(&oldest));
        }
        let ring = rings.entry(name).or_insert_with(|| Ring { samples: VecDeque::new(), looked: Instant::now() });
        ring.looked = looked.unwrap_or(ring.looked);
        // A clock that was set back begins a new history.
        if ring.samples.back().is_some_and(|last| last.at > sample.at) {
            ring.samples.clear();
        }
        if ring.samples.back().is_none_or(|last| sample.at - last.at >= APART) {
            ring.samples.push_back(sample);
        }
        if ring.samples.len() > SAMPLES {
            ring.samples.pop_front();
        }
    }

    fn of_interest(&self) -> Vec<Option<Vec<u8>>> {
        let mut rings = self.lock();
        let outdated = INTEREST * 2;
        rings.retain(|_, ring| ring.looked.elapsed() < outdated);
        let mut names: Vec<_> = rings
            .iter()
            .filter(|(_, ring)| ring.looked.elapsed() < INTEREST)
            .map(|(name, ring)| (ring.looked, name.clone()))
            .collect();
        names.sort_by_key(|(looked, _)| Reverse(*looked));
        names.into_iter().take(SAMPLED).map(|(_, name)| name).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<Vec<u8>>, Ring>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{History, Sample};
    use serde_json::Value as Json;

    fn sample(at: i64, pushed: i64) -> Sample {
        let total = |name: &str| if name == "pushed" { pushed } else { 0 };
        Sample { at, ..Sample::of(|_| 1, total) }
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        let history = History::default();
        assert_eq!(history.rates(Some(b"q")), Json::Null);
        for (at, pushed) in [(0, 0), (5_000, 1_000), (6_000, 9_999), (10_000, 1_005), (15_000, 1_010)] {
            history.look(Some(b"q"), sample(at, pushed));
        }
        assert_eq!(history.rates(Some(b"q"))["pushed"], 1.0);
        assert_eq!(history.samples(Some(b"q")).as_array().unwrap().len(), 4);
        history.look(Some(b"q"), sample(20_000, 0));
        assert_eq!(history.rates(Some(b"q"))["pushed"], 0.0);
        history.look(Some(b"q"), sample(1_000, 0));
        assert_eq!(history.rates(Some(b"q")), Json::Null);
    }

    #[test]
    fn rings_and_charts_are_bounded() {
        let history = History::default();
        for number in 0..1_000 {
            history.look(None, sample(number * 5_000, 0));
            history.look(Some(&number.to_le_bytes()), sample(0, 0));
            history.look(Some(b"q"), sample(number * 5_000, 0));
        }
        assert_eq!(history.samples(None).as_array().unwrap().len(), 360);
        let depths = history.depths(b"q");
        let depths = depths.as_array().unwrap();
        assert!(depths.len() <= 40 && depths.last().unwrap()[0] == 999 * 5_000, "{depths:?}");
        assert_eq!(history.lock().len(), 500);
        assert_eq!(history.of_interest().len(), 100);
    }
}

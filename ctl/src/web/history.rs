//! The last hour of the counts of queues: a small ring for each of them, filled from the start of the process on, whether or
//! not somebody looks.
//!
//! Of more queues than there are rings, those have one that somebody has looked at last.

use super::api::put;
use super::find::{self, Names};
use super::refreshed::Refreshed;
use crate::failure::Failure;
use crate::latency::{Latency, Times};
use crate::reply::Fields;
use crate::time::now_ms;
use dq_client::Client;
use serde_json::{json, Map, Value as Json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often samples are taken.
const EVERY: Duration = Duration::from_secs(10);
/// Two samples are at least this far apart, in ms.
const APART: i64 = 9_000;
/// The samples of an hour.
const SAMPLES: usize = 360;
/// The most queues that have a ring.
const RINGS: usize = 500;
/// How old the list of queues may be.
const NAMES: Duration = Duration::from_secs(60);
/// The time over which rates are measured, and the shortest that says something, in ms.
const RATE_OVER: i64 = 8_000;
const RATE_LEAST: i64 = 2_000;
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
    completed: i64,
    died: i64,
    /// Since the sample before, if deliveries are measured.
    times: Times,
}

/// The messages that consumers or forwards have done.
pub fn completed(info: &Fields) -> i64 {
    info.int("acked").unwrap_or(0) + info.int("forwarded").unwrap_or(0)
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
            died: total("died"),
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

    fn counts(&self) -> Map<String, Json> {
        let counts =
            [("ready", self.ready), ("delayed", self.delayed), ("inflight", self.inflight), ("dead", self.dead)];
        counts.into_iter().map(|(name, number)| (name.to_owned(), json!(number))).collect()
    }

    fn depth(&self) -> i64 {
        self.ready + self.delayed + self.inflight
    }
}

struct Ring {
    samples: VecDeque<Sample>,
    /// The last reading, though it may be too close to the last sample to become one.
    latest: Sample,
    /// When somebody looked last; `None`: nobody has.
    looked: Option<Instant>,
    latency: Latency,
    /// The conditions of the queue when it was sampled last.
    conditions: Json,
}

/// The rings, by the names of the queues. `None` is all queues together.
#[derive(Default)]
pub struct History {
    rings: Mutex<HashMap<Option<Vec<u8>>, Ring>>,
    /// When a server could not be read, in Unix ms.
    interruptions: Mutex<VecDeque<i64>>,
}

impl History {
    /// Takes samples in the background for as long as the process runs. `note` is called with each queue that was read, and
    /// tells its conditions.
    pub fn start(
        client: Client,
        names: Arc<Refreshed<Names>>,
        note: impl Fn(&[u8], &Fields) -> Json + Send + 'static,
        all: impl Fn(&Client) -> Option<Sample> + Send + 'static,
    ) -> Result<Arc<History>, Failure> {
        let history = Arc::new(History::default());
        let kept = Arc::clone(&history);
        thread::Builder::new().name("dq-history".to_owned()).spawn(move || loop {
            match all(&client) {
                Some(sample) => kept.add(None, sample, None),
                None => kept.interrupt(now_ms()),
            }
            if let Ok(Some(names)) = names.get_within(NAMES) {
                kept.sample(&client, &names, &note);
            }
            thread::sleep(EVERY);
        })?;
        Ok(history)
    }

    /// Reads the queues that have a ring, and others as long as there are rings.
    fn sample(&self, client: &Client, names: &Names, note: &impl Fn(&[u8], &Fields) -> Json) {
        for name in self.sampled(&names.names).into_iter().filter(|name| !names.lost.contains(name)) {
            match find::read(client, &name) {
                Ok(Some(info)) => {
                    let conditions = note(&name, &info);
                    let mut sample = Sample::of_queue(&info);
                    if let Ok(Some(stats)) = find::read_stats(client, &name) {
                        sample.times = self.times(&name, &info, &stats);
                    }
                    self.add(Some(&name), sample, None);
                    if let Some(ring) = self.lock().get_mut(&Some(name)) {
                        ring.conditions = conditions;
                    }
                }
                Ok(None) => drop(self.lock().remove(&Some(name))),
                // The others could not be read either.
                Err(error) if error.is_transient() => return,
                Err(_) => {}
            }
        }
    }

    /// What was measured since the last time.
    fn times(&self, name: &[u8], info: &Fields, stats: &Fields) -> Times {
        self.lock()
            .get_mut(&Some(name.to_vec()))
            .map_or_else(Times::default, |ring| ring.latency.since(info, stats, now_ms()))
    }

    fn sampled(&self, names: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let rings = self.lock();
        let known: Vec<Vec<u8>> = rings.keys().flatten().cloned().collect();
        let free = RINGS.saturating_sub(rings.len());
        let others = names.iter().filter(|name| !rings.contains_key(&Some((*name).clone()))).take(free);
        known.into_iter().chain(others.cloned()).collect()
    }

    /// Adds a sample that was read for a request.
    pub fn look(&self, queue: Option<&[u8]>, sample: Sample) {
        self.add(queue, sample, Some(Instant::now()));
    }

    /// Notes that a server could not be read: it is down or loading.
    pub fn interrupt(&self, at: i64) {
        let mut interruptions = self.interruptions();
        if interruptions.back().is_none_or(|last| at - last >= APART) {
            interruptions.push_back(at);
        }
        if interruptions.len() > SAMPLES {
            interruptions.pop_front();
        }
    }

    /// All samples, the oldest first: `[at, ready, delayed, inflight, dead, pushed, delivered, completed, lateness, runtime]`,
    /// of which the last two are `[median, 99 %]` in ms, or null if nothing was measured since the sample before. Between
    /// them, `[at]` is an instant at which a server could not be read.
    pub fn samples(&self, queue: Option<&[u8]>) -> Json {
        let interruptions = self.interruptions().clone();
        self.with(queue, |Ring { samples, .. }| {
            // A queue that was read meanwhile is on another server of the cluster.
            let least = if queue.is_some() { 2 * APART } else { 0 };
            let is_between = |at: &&i64| {
                let mut pairs = samples.iter().zip(samples.iter().skip(1));
                pairs.any(|(before, after)| (before.at..after.at).contains(*at) && after.at - before.at >= least)
            };
            let mut rows: Vec<(i64, Json)> = samples.iter().map(|sample| (sample.at, sample.json())).collect();
            rows.extend(interruptions.iter().filter(is_between).map(|at| (*at, json!([at]))));
            rows.sort_by_key(|(at, _)| *at);
            rows.into_iter().map(|(_, row)| row).collect()
        })
    }

    /// Depths for a small chart: `[at, depth]`, the oldest first.
    pub fn depths(&self, queue: &[u8]) -> Json {
        self.with(Some(queue), |Ring { samples, .. }| {
            let step = samples.len().div_ceil(POINTS).max(1);
            // Counted from the end, so that the present is always there.
            let mut points: Vec<Json> =
                samples.iter().rev().step_by(step).map(|sample| json!([sample.at, sample.depth()])).collect();
            points.reverse();
            Json::Array(points)
        })
    }

    /// Messages per second in the last ten seconds, or since the first sample; null if that was just now.
    pub fn rates(&self, queue: Option<&[u8]>) -> Json {
        self.with(queue, |Ring { samples, latest: last, .. }| {
            let before = samples.iter().rev().find(|sample| sample.at <= last.at - RATE_OVER);
            let Some(first) = before.or(samples.front()).filter(|first| first.at <= last.at - RATE_LEAST) else {
                return Json::Null;
            };
            // A total that fell was reset, by a restart for example. What happened before that is not known.
            let rate = |total: fn(&Sample) -> i64| {
                let per_second = (total(last) - total(first)) * 100_000 / (last.at - first.at);
                #[allow(clippy::cast_precision_loss, reason = "JSON has floating point numbers only")]
                let rate = per_second as f64 / 100.0;
                (rate >= 0.0).then_some(rate)
            };
            json!({
                "pushed": rate(|sample| sample.pushed),
                "delivered": rate(|sample| sample.delivered),
                "completed": rate(|sample| sample.completed),
            })
        })
    }

    /// The counts that are known of all queues together and of at most so many, those in trouble first, or of `only` one: for somebody who comes while
    /// no server answers. Null if none ever did.
    pub fn last(&self, only: Option<&[u8]>, most: usize) -> Json {
        let rings = self.lock();
        let Some(all) = rings.get(&None) else { return Json::Null };
        let level = |ring: &Ring| {
            ["bad", "warning"].map(|level| !ring.conditions.to_string().contains(&format!("\"{level}\"")))
        };
        let mut known: Vec<_> = rings.iter().filter_map(|(name, ring)| Some((name.as_ref()?, ring))).collect();
        known.retain(|(name, _)| only.is_none_or(|only| name.as_slice() == only));
        known.sort_by_key(|(name, ring)| (level(ring), *name));
        let row = |(name, ring): &(&Vec<u8>, &Ring)| {
            let mut row = ring.latest.counts();
            put(&mut row, "queue", name);
            row.insert("conditions".to_owned(), ring.conditions.clone());
            Json::Object(row)
        };
        let queues: Vec<Json> = known.iter().take(most).map(row).collect();
        json!({ "at": all.latest.at, "totals": all.latest.counts(), "queues": queues, "total": known.len() })
    }

    /// How many messages have died since then, or since the first sample if that is later, and whether it is not.
    pub fn died(&self, queue: &[u8], since: i64) -> (i64, bool) {
        let rings = self.lock();
        let Some(Ring { samples, latest, .. }) = rings.get(&Some(queue.to_vec())) else { return (0, false) };
        let before = samples.iter().rev().find(|sample| sample.at <= since);
        let first = before.or(samples.front()).map_or(latest.died, |first| first.died);
        (latest.died - first, before.is_some() && latest.died >= first)
    }

    fn with(&self, queue: Option<&[u8]>, read: impl FnOnce(&Ring) -> Json) -> Json {
        self.lock().get(&queue.map(<[u8]>::to_vec)).map_or(Json::Null, read)
    }

    fn add(&self, queue: Option<&[u8]>, sample: Sample, looked: Option<Instant>) {
        let mut rings = self.lock();
        let name = queue.map(<[u8]>::to_vec);
        if rings.len() >= RINGS && !rings.contains_key(&name) {
            let of_queues = rings.iter().filter(|(name, _)| name.is_some());
            let oldest = of_queues.min_by_key(|(_, ring)| ring.looked).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| rings.remove(&oldest));
        }
        let empty = || Ring {
            samples: VecDeque::new(),
            latest: sample,
            looked: None,
            latency: Latency::default(),
            conditions: json!([]),
        };
        let ring = rings.entry(name).or_insert_with(empty);
        ring.looked = looked.or(ring.looked);
        ring.latest = sample;
        // A clock that was set back begins a new history.
        if ring.samples.back().is_some_and(|last| last.at > sample.at) {
            ring.samples.clear();
        }
        match ring.samples.back_mut() {
            Some(last) if sample.at - last.at < APART => last.times.complete(sample.times),
            _ => ring.samples.push_back(sample),
        }
        if ring.samples.len() > SAMPLES {
            ring.samples.pop_front();
        }
    }

    fn interruptions(&self) -> MutexGuard<'_, VecDeque<i64>> {
        self.interruptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<Vec<u8>>, Ring>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{History, Sample};
    use serde_json::{json, Value as Json};

    fn sample(at: i64, pushed: i64) -> Sample {
        let total = |name: &str| if name == "pushed" { pushed } else { 0 };
        Sample { at, ..Sample::of(|_| 1, total) }
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        let history = History::default();
        assert_eq!(history.rates(Some(b"q")), Json::Null);
        for (at, pushed) in [(0, 0), (9_000, 1_000), (10_000, 9_999), (19_000, 1_010)] {
            history.look(Some(b"q"), sample(at, pushed));
        }
        assert_eq!(history.rates(Some(b"q"))["pushed"], 1.0);
        assert_eq!(history.samples(Some(b"q")).as_array().unwrap().len(), 3);
        // It fell: what was pushed is not known.
        history.look(Some(b"q"), sample(29_000, 0));
        assert_eq!(history.rates(Some(b"q"))["pushed"], Json::Null);
        history.look(Some(b"q"), sample(1_000, 0));
        assert_eq!(history.rates(Some(b"q")), Json::Null);
    }

    #[test]
    fn deaths_are_counted_exactly_once_the_history_is_long_enough() {
        let history = History::default();
        assert_eq!(history.died(b"q", 0), (0, false));
        for (at, died) in [(10_000, 100), (20_000, 104), (30_000, 109)] {
            history.look(Some(b"q"), Sample { died, ..sample(at, 0) });
        }
        assert_eq!((history.died(b"q", 5_000), history.died(b"q", 21_000)), ((9, false), (5, true)));
    }

    #[test]
    fn an_interruption_stands_between_the_samples() {
        let history = History::default();
        for at in [1_000, 15_000, 16_000, 90_000] {
            history.interrupt(at);
        }
        for at in [10, 10_000, 30_000] {
            history.look(None, sample(at, at));
            history.look(Some(b"q"), sample(at, at));
        }
        let ats = |queue: Option<&[u8]>| {
            let rows = history.samples(queue);
            assert!(rows.as_array().unwrap().contains(&json!([15_000])), "{rows}");
            rows.as_array().unwrap().iter().map(|row| row[0].as_i64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(ats(None), [10, 1_000, 10_000, 15_000, 30_000]);
        assert_eq!(ats(Some(b"q")), [10, 10_000, 15_000, 30_000], "it was read around the first one");
    }

    #[test]
    fn rates_are_unknown_until_two_readings_are_apart() {
        let history = History::default();
        for at in [0, 1_999] {
            history.look(Some(b"q"), sample(at, at));
            assert_eq!(history.rates(Some(b"q")), Json::Null);
        }
        history.look(Some(b"q"), sample(2_000, 2_000));
        assert_eq!(history.rates(Some(b"q"))["pushed"], 1_000.0);
    }

    #[test]
    fn queues_that_nobody_has_looked_at_are_sampled_too() {
        let history = History::default();
        history.look(Some(b"q"), sample(0, 0));
        assert_eq!(history.sampled(&[b"other".to_vec(), b"q".to_vec()]), [b"q".to_vec(), b"other".to_vec()]);
        // Beyond the rings, those that were looked at stay.
        for number in 0..1_000_u64 {
            history.add(Some(&number.to_le_bytes()), sample(0, 0), None);
        }
        assert!(history.lock().contains_key(&Some(b"q".to_vec())));
    }

    #[test]
    fn rings_and_charts_are_bounded() {
        let history = History::default();
        for number in 0..1_000 {
            history.look(None, sample(number * 10_000, 0));
            history.look(Some(&number.to_le_bytes()), sample(0, 0));
            history.look(Some(b"q"), sample(number * 10_000, 0));
        }
        assert_eq!(history.samples(None).as_array().unwrap().len(), 360);
        let depths = history.depths(b"q");
        let depths = depths.as_array().unwrap();
        assert!(depths.len() <= 40 && depths.last().unwrap()[0] == 999 * 10_000, "{depths:?}");
        assert_eq!(history.lock().len(), 500);
        // All rings are in use, so no other queue is read.
        assert_eq!(history.sampled(&[b"other".to_vec()]).len(), 499);
    }
}

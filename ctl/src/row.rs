//! What is known of one queue: its numbers, its rates and its conditions.

use crate::condition::{Condition, Level, Recent, HELD};
use crate::reply::Fields;
use crate::trouble::Trouble;
use crate::web::history::completed;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The time over which rates are measured, like those of the page, and the shortest that says something.
const RATE_OVER: Duration = Duration::from_secs(10);
const RATE_LEAST: Duration = Duration::from_millis(900);
/// How long a queue counts as served after a look at which a client waited or held a message: between two pops it does neither.
const SERVED_SPAN: Duration = Duration::from_secs(10);
/// How long the lateness of the last deliveries is shown.
const LATE_SPAN: Duration = Duration::from_secs(60);

/// After how many looks at a queue its numbers and rates are known.
pub const LOOKS: u8 = 2;

/// A queue at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub at: Instant,
    pub info: Fields,
    /// How late 99 of 100 deliveries since the last look were at most; `None` if it was not read, or if there were none.
    pub late: Option<Duration>,
    pub recent: Recent,
}

/// What is known of a queue.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub latest: Option<Snapshot>,
    /// The totals of pushes and completions, from the look at which the rates begin to the last one.
    totals: VecDeque<(Instant, i64, i64)>,
    /// Messages a second that were pushed, and that were completed.
    pub pushed: Option<f64>,
    pub completed: Option<f64>,
    /// How late deliveries were in the last second that had any, and when that was read.
    late: Option<(Instant, Duration)>,
    /// When a consumer was seen last.
    served: Option<Instant>,
    /// The most important one first.
    pub conditions: Vec<(Condition, Level)>,
    pub trouble: Trouble,
    /// How many looks at it the sums wait for: the second one gives the rates.
    pub awaited: u8,
}

impl Row {
    /// A queue that was not read yet, for which the sums wait.
    pub fn awaiting(looks: u8) -> Row {
        Row { awaited: looks, ..Row::default() }
    }

    /// The sums of queues.
    pub fn sum(latest: Option<Snapshot>, pushed: Option<f64>, completed: Option<f64>) -> Row {
        Row { latest, pushed, completed, ..Row::default() }
    }

    pub fn number(&self, name: &str) -> i64 {
        self.latest.as_ref().and_then(|snapshot| snapshot.info.int(name)).unwrap_or(0)
    }

    /// How long the oldest ready message has been due, in ms.
    pub fn oldest(&self) -> Option<u64> {
        let age = self.latest.as_ref()?.info.int("oldest-ready")?;
        u64::try_from(age).ok()
    }

    /// What has happened lately, as far as it was looked at.
    pub fn recent(&self) -> Recent {
        self.latest.as_ref().map(|latest| latest.recent).unwrap_or_default()
    }

    pub fn has(&self, condition: Condition) -> bool {
        self.conditions.iter().any(|(one, _)| *one == condition)
    }

    /// Whether it is late while a consumer has held a message for long.
    pub fn hangs(&self) -> bool {
        self.has(Condition::Late) && self.number("oldest-inflight") >= HELD
    }

    /// The level of the most severe condition.
    pub fn level(&self) -> Option<Level> {
        self.conditions.iter().map(|(_, level)| *level).max()
    }

    /// How late 99 of 100 deliveries were at most in the last second that had any; `None` if that is long ago.
    pub fn late(&self) -> Option<Duration> {
        let now = self.latest.as_ref()?.at;
        self.late.filter(|(at, _)| now.saturating_duration_since(*at) < LATE_SPAN).map(|(_, late)| late)
    }

    /// Whether somebody takes its messages: a client waits or holds one, or one was delivered in the last minute.
    pub fn is_served(&self) -> bool {
        let Some(latest) = &self.latest else { return false };
        latest.recent.delivers || self.served.is_some_and(|at| latest.at.saturating_duration_since(at) < SERVED_SPAN)
    }

    pub fn take(&mut self, snapshot: Snapshot) {
        self.measure(snapshot.at, snapshot.info.int("pushed").unwrap_or(0), completed(&snapshot.info));
        self.late = snapshot.late.map(|late| (snapshot.at, late)).or(self.late);
        if ["waiting-clients", "inflight"].iter().any(|name| snapshot.info.int(name).is_some_and(|number| number > 0)) {
            self.served = Some(snapshot.at);
        }
        self.conditions = Condition::of(&snapshot.info, snapshot.recent);
        self.trouble = Trouble::of(&snapshot.info, &self.conditions);
        self.awaited = self.awaited.min(1);
        self.latest = Some(snapshot);
    }

    /// Measures the rates since the last look that is [`RATE_OVER`] ago, or since the first one.
    fn measure(&mut self, at: Instant, pushed: i64, completed: i64) {
        // The totals are lower if the queue was deleted and created again. What happened before is not known.
        if self.totals.back().is_some_and(|(_, before, done)| pushed < *before || completed < *done) {
            self.totals.clear();
            (self.pushed, self.completed) = (None, None);
        }
        self.totals.push_back((at, pushed, completed));
        while self.totals.get(1).is_some_and(|(next, ..)| at.saturating_duration_since(*next) >= RATE_OVER) {
            self.totals.pop_front();
        }
        let Some(&(first, pushed_then, completed_then)) = self.totals.front() else { return };
        let span = at.saturating_duration_since(first);
        if span >= RATE_LEAST {
            self.pushed = Some(rate(pushed - pushed_then, span));
            self.completed = Some(rate(completed - completed_then, span));
            self.awaited = 0;
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a rate is shown with three digits")]
fn rate(change: i64, span: Duration) -> f64 {
    change as f64 / span.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::Row;
    use crate::condition::Recent;
    use crate::reply::Fields;
    use crate::row::Snapshot;
    use dq_client::Value;
    use std::time::{Duration, Instant};

    fn snapshot(at: Instant, fields: &[(&str, i64)]) -> Snapshot {
        let fields = fields.iter().map(|(name, number)| ((*name).to_owned(), Value::Int(*number))).collect();
        Snapshot { at, info: Fields(fields), late: None, recent: Recent::default() }
    }

    #[test]
    fn a_queue_whose_consumer_is_busy_or_between_two_pops_is_served() {
        let (mut row, start) = (Row::default(), Instant::now());
        let mut at = |seconds, fields: &[(&str, i64)]| {
            row.take(snapshot(start + Duration::from_secs(seconds), fields));
            row.is_served()
        };
        assert!(!at(0, &[("ready", 1)]));
        assert!(at(1, &[("waiting-clients", 1)]));
        assert!(at(10, &[]));
        assert!(!at(11, &[]));
        assert!(at(12, &[("inflight", 1)]));
    }

    #[test]
    fn lateness_is_forgotten_after_a_minute_without_deliveries() {
        let (mut row, start) = (Row::default(), Instant::now());
        let mut at = |seconds, late| {
            let at = start + Duration::from_secs(seconds);
            let info = Fields::default();
            row.take(Snapshot { at, info, late, recent: Recent::default() });
            row.late()
        };
        let late = Some(Duration::from_millis(64));
        assert_eq!(at(0, None), None);
        assert_eq!(at(1, late), late);
        assert_eq!(at(60, None), late);
        assert_eq!(at(61, None), None);
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        let (mut row, start) = (Row::default(), Instant::now());
        let mut at = |ms, pushed, acked| {
            let at = start + Duration::from_millis(ms);
            row.take(snapshot(at, &[("pushed", pushed), ("acked", acked)]));
            (row.pushed, row.completed)
        };
        assert_eq!(at(0, 100, 0), (None, None));
        assert_eq!(at(100, 150, 0), (None, None));
        assert_eq!(at(2_000, 300, 50), (Some(100.0), Some(25.0)));
        // It was created again.
        assert_eq!(at(4_000, 0, 0), (None, None));
        // Five are completed at once every ten seconds.
        for (second, acked) in (5..40).zip((1..).map(|passed| passed / 10 * 5)) {
            let expected = if second < 14 { 0.0 } else { 0.5 };
            assert_eq!(at(second * 1_000, 0, acked), (Some(0.0), Some(expected)), "{second}");
        }
        // A queue that is read seldom has the rates since its last look.
        assert_eq!(at(60_000, 42, 15), (Some(2.0), Some(0.0)));
    }
}

//! The list of queues: their numbers, their order, and the filter.

use super::list::Widest;
use super::sort::Sort;
use super::source::Snapshot;
use super::text::named;
use crate::condition::{Condition, Level, Recent};
use crate::reply::Fields;
use crate::trouble::Trouble;
use crate::web::history::completed;
use dq_client::Value;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The time over which rates are measured, like those of the page, and the shortest that says something.
const RATE_OVER: Duration = Duration::from_secs(10);
const RATE_LEAST: Duration = Duration::from_millis(900);
/// How long a queue counts as served after a look at which a client waited or held a message: between two pops it does neither.
const SERVED_SPAN: Duration = Duration::from_secs(10);
/// How long the lateness of the last deliveries is shown.
const LATE_SPAN: Duration = Duration::from_secs(60);

/// After how many looks at a queue its numbers and rates are known.
const LOOKS: u8 = 2;

/// A late queue hangs if its consumers have held a message for this time, in ms: as long as [`Condition::words`] names it.
pub const HELD: i64 = 60_000;

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
    awaited: u8,
}

impl Row {
    pub fn number(&self, name: &str) -> i64 {
        self.latest.as_ref().and_then(|snapshot| snapshot.info.int(name)).unwrap_or(0)
    }

    /// How long the oldest ready message has been due, in ms.
    pub fn oldest(&self) -> Option<u64> {
        let age = self.latest.as_ref()?.info.int("oldest-ready")?;
        u64::try_from(age).ok()
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

    fn take(&mut self, snapshot: Snapshot) {
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

/// All queues, and the order in which they are shown.
pub struct Queues {
    rows: HashMap<Vec<u8>, Row>,
    order: Vec<Vec<u8>>,
    /// `None`: the cursor is on the first line, whichever queue that is.
    selected: Option<Vec<u8>>,
    /// The first queue on the screen.
    pub top: usize,
    pub sort: Sort,
    pub reverse: bool,
    pub filter: String,
    pub widest: Widest,
    /// Whether queues have been searched for.
    pub is_known: bool,
}

impl Queues {
    pub fn new() -> Queues {
        Queues {
            rows: HashMap::new(),
            order: Vec::new(),
            selected: None,
            top: 0,
            sort: Sort::Trouble,
            reverse: false,
            filter: String::new(),
            widest: Widest::default(),
            is_known: false,
        }
    }

    pub fn names(&mut self, names: Vec<Vec<u8>>) {
        let mut rows = HashMap::with_capacity(names.len());
        // A queue that is created later does not make the sums unknown again.
        let awaited = if self.is_known { 0 } else { LOOKS };
        for name in names {
            let row = self.rows.remove(&name).unwrap_or_else(|| Row { awaited, ..Row::default() });
            rows.insert(name, row);
        }
        self.rows = rows;
        self.is_known = true;
        self.arrange();
    }

    pub fn update(&mut self, read: Vec<(Vec<u8>, Option<Snapshot>)>) {
        for (name, snapshot) in read {
            match snapshot {
                Some(snapshot) => self.rows.entry(name).or_default().take(snapshot),
                None => drop(self.rows.remove(&name)),
            }
        }
        self.arrange();
    }

    /// Sorts and filters. The cursor stays on its queue, or on its line if the queue is gone.
    pub fn arrange(&mut self) {
        let place = self.place();
        let filter = self.filter.to_lowercase();
        let fits = |name: &[u8]| filter.is_empty() || named(name).to_lowercase().contains(&filter);
        let mut order: Vec<(&Vec<u8>, &Row)> = self.rows.iter().filter(|(name, _)| fits(name)).collect();
        let sort = self.sort;
        order.sort_by(|(a_name, a), (b_name, b)| sort.compare(a, b).then_with(|| a_name.cmp(b_name)));
        if self.reverse {
            order.reverse();
        }
        self.order = order.into_iter().map(|(name, _)| name.clone()).collect();
        if self.selected.as_ref().is_some_and(|name| !self.order.contains(name)) {
            self.go_to(place);
        }
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Of all queues, including those that the filter hides.
    pub fn all(&self) -> usize {
        self.rows.len()
    }

    /// The rows that the filter shows.
    fn listed(&self) -> impl Iterator<Item = &Row> {
        self.order.iter().filter_map(|name| self.rows.get(name))
    }

    /// The sums over the rows that the filter shows, as far as they are known.
    pub fn total(&self) -> Row {
        let number = |field: &'static str| self.listed().map(move |row| row.number(field));
        let sums = ["ready", "delayed", "inflight", "dead"].map(|field| (field, number(field).sum()));
        let oldest = number("oldest-ready").max().filter(|age| *age > 0).map(|age| ("oldest-ready", age));
        let fields = sums.into_iter().chain(oldest).map(|(name, number)| (name.to_owned(), Value::Int(number)));
        let latest =
            Snapshot { at: Instant::now(), info: Fields(fields.collect()), late: None, recent: Recent::default() };
        let has_rates = self.listed().all(|row| row.awaited == 0);
        let rate = |of: fn(&Row) -> Option<f64>| has_rates.then(|| self.listed().filter_map(of).sum());
        let latest = self.looked().is_none().then_some(latest);
        Row { latest, pushed: rate(|row| row.pushed), completed: rate(|row| row.completed), ..Row::default() }
    }

    /// How many of the queues that the filter shows were looked at, until all were.
    pub fn looked(&self) -> Option<usize> {
        let unread = self.listed().filter(|row| row.awaited == LOOKS).count();
        (unread > 0).then(|| self.len() - unread)
    }

    /// How many have a condition of this level as their most severe one.
    pub fn troubled(&self, level: Level) -> usize {
        self.listed().filter(|row| row.level() == Some(level)).count()
    }

    pub fn row(&self, name: &[u8]) -> Option<&Row> {
        self.rows.get(name)
    }

    pub fn selected(&self) -> Option<&Vec<u8>> {
        self.selected.as_ref().or(self.order.first())
    }

    /// Keeps the cursor on its queue, also if it is on the first line.
    pub fn hold(&mut self) {
        self.selected = self.selected().cloned();
    }

    /// Puts the cursor on the first line, where it stays when the order changes.
    pub fn go_first(&mut self) {
        self.selected = None;
    }

    pub fn place(&self) -> usize {
        let selected = self.selected.as_ref();
        selected.and_then(|name| self.order.iter().position(|other| other == name)).unwrap_or(0)
    }

    pub fn go_to(&mut self, place: usize) {
        self.selected = self.order.get(place.min(self.order.len().saturating_sub(1))).cloned();
    }

    /// The queues on a screen of `lines` lines, scrolled so that the cursor is among them.
    pub fn visible(&mut self, height: usize) -> Vec<Vec<u8>> {
        let height = height.max(1);
        let place = self.place();
        self.top =
            self.top.min(self.order.len().saturating_sub(height)).min(place).max((place + 1).saturating_sub(height));
        self.order.iter().skip(self.top).take(height).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Queues, Sort};
    use crate::condition::Recent;
    use crate::reply::Fields;
    use crate::top::source::Snapshot;
    use dq_client::Value;
    use std::time::{Duration, Instant};

    fn snapshot(at: Instant, fields: &[(&str, i64)]) -> Option<Snapshot> {
        let fields = fields.iter().map(|(name, number)| ((*name).to_owned(), Value::Int(*number))).collect();
        Some(Snapshot { at, info: Fields(fields), late: None, recent: Recent::default() })
    }

    fn queues(names: &[&str]) -> Queues {
        let mut queues = Queues::new();
        queues.names(names.iter().map(|name| name.as_bytes().to_vec()).collect());
        queues
    }

    fn shown(queues: &mut Queues, height: usize) -> Vec<String> {
        queues.visible(height).into_iter().map(|name| String::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn queues_are_sorted_and_filtered() {
        let mut queues = queues(&["c", "a", "b"]);
        let now = Instant::now();
        queues.update(vec![
            (b"b".to_vec(), snapshot(now, &[("dead", 5)])),
            (b"a".to_vec(), snapshot(now, &[("dead", 1)])),
        ]);
        assert_eq!(shown(&mut queues, 9), ["a", "b", "c"]);
        queues.update(vec![(b"c".to_vec(), snapshot(now, &[("closed", 1)]))]);
        assert_eq!(shown(&mut queues, 9), ["c", "a", "b"]);
        queues.sort = Sort::Dead;
        queues.arrange();
        assert_eq!(shown(&mut queues, 9), ["b", "a", "c"]);
        queues.reverse = true;
        queues.arrange();
        assert_eq!(shown(&mut queues, 9), ["c", "a", "b"]);
        queues.filter = "B".to_owned();
        queues.arrange();
        assert_eq!((shown(&mut queues, 9), queues.len(), queues.all()), (vec!["b".to_owned()], 1, 3));
    }

    #[test]
    fn the_cursor_stays_on_its_queue() {
        let mut queues = queues(&["a", "b", "c", "d"]);
        queues.go_to(2);
        assert_eq!((shown(&mut queues, 2), queues.place()), (vec!["b".to_owned(), "c".to_owned()], 2));
        queues.names(["a", "aa", "b", "c"].map(|name| name.as_bytes().to_vec()).into());
        assert_eq!(queues.selected(), Some(&b"c".to_vec()));
        queues.update(vec![(b"c".to_vec(), None)]);
        assert_eq!(queues.selected(), Some(&b"b".to_vec()));
    }

    #[test]
    fn trouble_is_on_the_screen_until_the_cursor_is_moved() {
        let mut queues = queues(&["a", "b", "c", "d"]);
        let close = |name: &str| vec![(name.as_bytes().to_vec(), snapshot(Instant::now(), &[("closed", 1)]))];
        queues.update(close("c"));
        assert_eq!((shown(&mut queues, 1), queues.selected()), (vec!["c".to_owned()], Some(&b"c".to_vec())));
        queues.hold();
        queues.update(close("a"));
        assert_eq!((shown(&mut queues, 1), queues.place()), (vec!["c".to_owned()], 1));
    }

    #[test]
    fn a_queue_whose_consumer_is_busy_or_between_two_pops_is_served() {
        let (mut queues, start) = (queues(&["a"]), Instant::now());
        let mut at = |seconds, fields: &[(&str, i64)]| {
            queues.update(vec![(b"a".to_vec(), snapshot(start + Duration::from_secs(seconds), fields))]);
            queues.row(b"a").unwrap().is_served()
        };
        assert!(!at(0, &[("ready", 1)]));
        assert!(at(1, &[("waiting-clients", 1)]));
        assert!(at(10, &[]));
        assert!(!at(11, &[]));
        assert!(at(12, &[("inflight", 1)]));
    }

    #[test]
    fn lateness_is_forgotten_after_a_minute_without_deliveries() {
        let (mut queues, start) = (queues(&["a"]), Instant::now());
        let mut at = |seconds, late| {
            let at = start + Duration::from_secs(seconds);
            let info = Fields::default();
            queues.update(vec![(b"a".to_vec(), Some(Snapshot { at, info, late, recent: Recent::default() }))]);
            queues.row(b"a").unwrap().late()
        };
        let late = Some(Duration::from_millis(64));
        assert_eq!(at(0, None), None);
        assert_eq!(at(1, late), late);
        assert_eq!(at(60, None), late);
        assert_eq!(at(61, None), None);
    }

    #[test]
    fn rates_are_those_of_the_last_ten_seconds() {
        let (mut queues, start) = (queues(&["a"]), Instant::now());
        let mut at = |ms, pushed, acked| {
            let at = start + Duration::from_millis(ms);
            queues.update(vec![(b"a".to_vec(), snapshot(at, &[("pushed", pushed), ("acked", acked)]))]);
            let row = queues.row(b"a").unwrap();
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

    #[test]
    fn sums_are_unknown_until_every_queue_was_looked_at_and_rates_until_twice() {
        let (mut queues, start) = (queues(&["a", "b"]), Instant::now());
        let look = |queues: &mut Queues, name: &str, seconds: i64| {
            let at = start + Duration::from_secs(seconds.unsigned_abs());
            queues.update(vec![(name.into(), snapshot(at, &[("ready", 2), ("pushed", 10 * seconds)]))]);
        };
        look(&mut queues, "a", 0);
        assert_eq!((queues.looked(), queues.total().latest.is_none()), (Some(1), true));
        look(&mut queues, "a", 1);
        look(&mut queues, "b", 1);
        assert_eq!((queues.looked(), queues.total().number("ready"), queues.total().pushed), (None, 4, None));
        look(&mut queues, "b", 2);
        assert_eq!(queues.total().pushed, Some(20.0));
        // A new queue counts from its first look on.
        queues.names(["a", "b", "c"].map(|name| name.as_bytes().to_vec()).into());
        assert_eq!((queues.looked(), queues.total().pushed), (None, Some(20.0)));
    }
}

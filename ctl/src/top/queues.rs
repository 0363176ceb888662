//! The list of queues: their order, and the filter.

use super::columns::Columns;
use super::deaths::Deaths;
use super::marked::Marked;
use super::sort::Sort;
use crate::condition::{Condition, Level, Recent};
use crate::dead::Newest;
use crate::output::text::named;
use crate::reply::Fields;
use crate::row::Snapshot;
use crate::row::{Row, LOOKS};
use dq_client::Value;
use std::collections::{BTreeSet, HashMap};
use std::time::Instant;

/// All queues, and the order in which they are shown.
pub struct Queues {
    rows: HashMap<Vec<u8>, Row>,
    deaths: HashMap<Vec<u8>, Deaths>,
    order: Vec<Vec<u8>>,
    /// `None`: the cursor is on the first line, whichever queue that is.
    selected: Option<Vec<u8>>,
    /// Those that are marked.
    pub marked: BTreeSet<Vec<u8>>,
    /// The first queue on the screen.
    pub top: usize,
    pub sort: Sort,
    pub reverse: bool,
    pub filter: String,
    pub columns: Columns,
    /// How many queues the user may not read, which are not among the rows.
    pub denied: usize,
    /// Whether queues have been searched for.
    pub is_known: bool,
}

impl Queues {
    pub fn new() -> Queues {
        Queues {
            rows: HashMap::new(),
            deaths: HashMap::new(),
            order: Vec::new(),
            selected: None,
            marked: BTreeSet::new(),
            top: 0,
            sort: Sort::Trouble,
            reverse: false,
            filter: String::new(),
            columns: Columns::default(),
            denied: 0,
            is_known: false,
        }
    }

    pub fn names(&mut self, names: Vec<Vec<u8>>) {
        let mut rows = HashMap::with_capacity(names.len());
        // A queue that is created later does not make the sums unknown again.
        let awaited = if self.is_known { 0 } else { LOOKS };
        for name in names {
            let row = self.rows.remove(&name).unwrap_or_else(|| Row::awaiting(awaited));
            rows.insert(name, row);
        }
        self.rows = rows;
        self.marked.retain(|name| self.rows.contains_key(name));
        self.deaths.retain(|name, _| self.rows.contains_key(name));
        self.is_known = true;
        self.arrange();
    }

    pub fn update(&mut self, read: Vec<(Vec<u8>, Option<Snapshot>)>) {
        for (name, snapshot) in read {
            match snapshot {
                Some(snapshot) => {
                    let died = snapshot.info.int("died").unwrap_or(0);
                    self.deaths.entry(name.clone()).or_default().take(snapshot.at, died);
                    self.rows.entry(name).or_default().take(snapshot);
                }
                None => {
                    self.rows.remove(&name);
                    self.marked.remove(&name);
                }
            }
        }
        self.arrange();
    }

    /// Sorts and filters. The cursor stays on its queue, or on its line if the queue is gone.
    pub fn arrange(&mut self) {
        let place = self.place();
        let mut order: Vec<(&Vec<u8>, &Row)> = self.rows.iter().filter(|(name, _)| self.fits(name)).collect();
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

    /// Whether the filter shows a queue.
    pub fn fits(&self, name: &[u8]) -> bool {
        self.filter.is_empty() || named(name).to_lowercase().contains(&self.filter.to_lowercase())
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
        Row::sum(latest, rate(|row| row.pushed), rate(|row| row.completed))
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

    /// What is known of the deaths in a queue, as it follows the condition that messages die.
    pub fn deaths(&self, name: &[u8]) -> String {
        let known = self.deaths.get(name).zip(self.rows.get(name));
        known.map_or_else(String::new, |(deaths, row)| deaths.told(row))
    }

    /// Notes the causes of the newest dead messages of a queue.
    pub fn died(&mut self, name: Vec<u8>, newest: Newest) {
        if self.rows.contains_key(&name) {
            self.deaths.entry(name).or_default().note(Instant::now(), newest);
        }
    }

    /// Of what most of the newest dead messages died, if messages of the queue die.
    pub fn cause(&self, name: &[u8]) -> Option<String> {
        let row = self.rows.get(name).filter(|row| row.has(Condition::Dying))?;
        self.deaths.get(name)?.cause(row)
    }

    pub fn selected(&self) -> Option<&Vec<u8>> {
        self.selected.as_ref().or(self.order.first())
    }

    /// Marks the queue under the cursor, or forgets its mark, and goes on. Returns false if there is none.
    pub fn mark(&mut self) -> bool {
        let Some(name) = self.selected().cloned() else { return false };
        if !self.marked.remove(&name) {
            self.marked.insert(name);
        }
        self.go_to(self.place() + 1);
        true
    }

    /// Marks all that the filter shows, also beyond the screen. Returns how many are marked then.
    pub fn mark_all(&mut self) -> usize {
        self.marked.extend(self.order.iter().cloned());
        self.marked.len()
    }

    /// Whether each queue that is marked has this field set.
    pub fn are_marked(&self, field: &str) -> bool {
        self.marked.iter().all(|name| self.row(name).is_some_and(|row| row.number(field) == 1))
    }

    /// Those that are marked, each with its number of messages in a state; with a state, only those that have some.
    pub fn marked_with(&self, state: Option<&str>) -> Marked {
        let count = |name| self.row(name).zip(state).map_or(0, |(row, state)| row.number(state).unsigned_abs());
        let counted = self.marked.iter().map(|name| (name.clone(), count(name)));
        counted.filter(|(_, count)| state.is_none() || *count > 0).collect()
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
    use crate::row::Snapshot;
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

//! How many messages of a queue have died lately and of what, and where they are moved to.

use crate::condition::RECENT;
use crate::dead::{self, Known, Newest};
use crate::output::text::{grouped, named};
use crate::row::Row;
use crate::time::{millis, span};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How often a total is kept.
const STEP: Duration = Duration::from_secs(30);
/// The longest time over which deaths are counted: for as long, messages count as dying.
const OVER: Duration = Duration::from_millis(RECENT.unsigned_abs());

/// Totals of deaths at past looks at a queue, the first one from about [`OVER`] ago.
#[derive(Default)]
pub struct Deaths {
    totals: VecDeque<(Instant, i64)>,
    /// The causes of the newest ones, as they were read in the last [`STEP`], the last ones at the end.
    newest: VecDeque<(Instant, Newest)>,
}

impl Deaths {
    pub fn take(&mut self, at: Instant, died: i64) {
        // The total is lower if the queue was deleted and created again.
        if self.totals.back().is_some_and(|(_, before)| died < *before) {
            *self = Deaths::default();
        }
        if self.totals.back().is_none_or(|(last, _)| at.saturating_duration_since(*last) >= STEP) {
            self.totals.push_back((at, died));
        }
        while self.totals.get(1).is_some_and(|(next, _)| at.saturating_duration_since(*next) >= OVER) {
            self.totals.pop_front();
        }
    }

    pub fn note(&mut self, at: Instant, newest: Newest) {
        self.newest.push_back((at, newest));
        while self.newest.front().is_some_and(|(first, _)| at.saturating_duration_since(*first) >= STEP) {
            self.newest.pop_front();
        }
    }

    /// Of what most of the newest ones died.
    pub fn cause(&self, row: &Row) -> Option<String> {
        Some(self.known(row)?.cause?.0)
    }

    fn known(&self, row: &Row) -> Option<Known> {
        let (latest, (first, before)) = (row.latest.as_ref()?, self.totals.front()?);
        let is_known = latest.at.saturating_duration_since(*first) >= OVER;
        let died = row.number("died");
        let known = |newest: &Newest| newest.known(died, (died - before, is_known));
        let unread = Newest::default();
        let last = known(self.newest.back().map_or(&unread, |(_, newest)| newest))?;
        // A reading knows of the newest dead ones, and of those that died after it. Without the readings before, the number would go
        // down with each reading although more have died.
        let earlier = self.newest.iter().filter(|_| last.has_more).filter_map(|(_, newest)| known(newest));
        let count = earlier.map(|known| known.count).fold(last.count, i64::max);
        Some(Known { count, ..last })
    }

    /// How many have died, of what most of them did, and where they are: `: 391 in 10m: timeout`, or, if none could be read,
    /// since the first of these looks: `: 217 in 2m, moved to q:dead`.
    pub fn told(&self, row: &Row) -> String {
        let died = self.known(row).and_then(|known| known.words().or_else(|| self.grown(row)));
        let moved = target(row).map(|(_, name)| format!("moved to {}", named(name)));
        let parts: Vec<String> = died.into_iter().chain(moved).collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!(": {}", parts.join(", "))
        }
    }

    fn grown(&self, row: &Row) -> Option<String> {
        let (latest, (first, before)) = (row.latest.as_ref()?, self.totals.front()?);
        let time = span(millis(latest.at.saturating_duration_since(*first)));
        let died = row.number("died") - before;
        (died > 0).then(|| format!("{} in {time}", grouped(died.unsigned_abs())))
    }
}

/// Where `DEADFORWARD` moves the dead messages of a queue: `QUEUE`, `STREAM` or `LIST`, and its name.
pub fn target(row: &Row) -> Option<(&str, &[u8])> {
    dead::target(&row.latest.as_ref()?.info)
}

/// The same as words that follow `moved to`: `the queue q:dead`.
pub fn target_in_words(row: &Row) -> Option<String> {
    target(row).map(|(kind, name)| format!("the {} {}", kind.to_lowercase(), named(name)))
}

#[cfg(test)]
mod tests {
    use super::{Deaths, OVER, STEP};
    use crate::condition::Recent;
    use crate::dead::Newest;
    use crate::reply::Fields;
    use crate::row::{Row, Snapshot};
    use dq_client::Value;
    use std::time::{Duration, Instant};

    #[test]
    fn what_most_of_the_newest_died_of_is_told_and_of_how_many_that_is_known() {
        let row = |died, dead| {
            let fields = [("died", died), ("dead", dead)].map(|(name, number)| (name.to_owned(), Value::Int(number)));
            let mut row = Row::default();
            let info = Fields(fields.into());
            row.take(Snapshot { at: Instant::now(), info, late: None, recent: Recent::default() });
            row
        };
        let told = |before: i64, counts: &[(&str, i64)], looked, died: i64| {
            // One more dies after they were read.
            let (mut deaths, row) = (Deaths::default(), row(died + 1, died + 1));
            deaths.take(Instant::now(), before);
            deaths.note(Instant::now(), Newest::of(counts, looked, died));
            deaths.told(&row)
        };
        assert_eq!(told(3, &[("timeout", 3)], 3, 3), ": 4 in 10m: timeout");
        assert_eq!(told(3, &[("timeout", 2), ("refused", 1)], 3, 3), ": 4 in 10m: timeout (2 of the newest 3)");
        assert_eq!(told(500, &[("timeout", 100)], 100, 500), ": at least 101 in 10m: timeout");
        let both = [("timeout", 98), ("refused", 2)];
        assert_eq!(told(100, &both, 100, 500), ": at least 401 in 10m: timeout (98 of the newest 100)");
    }

    #[test]
    fn at_least_so_many_is_not_less_a_moment_later() {
        let (mut deaths, start) = (Deaths::default(), Instant::now());
        let mut at = |seconds, read: bool| {
            let (at, died) = (start + Duration::from_secs(seconds), 5_000 + i64::try_from(seconds).unwrap());
            let mut row = Row::default();
            let info = Fields(["died", "dead"].map(|name| (name.to_owned(), Value::Int(died))).into());
            row.take(Snapshot { at, info, late: None, recent: Recent::default() });
            deaths.take(at, died);
            if read {
                deaths.note(at, Newest::of(&[("timeout", 100)], 100, died));
            }
            deaths.told(&row)
        };
        assert_eq!(at(0, true), ": at least 100 in 10m: timeout");
        assert_eq!(at(3, false), ": at least 103 in 10m: timeout");
        assert_eq!(at(5, true), ": at least 105 in 10m: timeout");
        assert_eq!(at(10, true), ": at least 110 in 10m: timeout");
    }

    #[test]
    fn deaths_of_the_last_ten_minutes_are_counted_with_where_they_went() {
        let (mut deaths, start) = (Deaths::default(), Instant::now());
        let mut at = |time, died, target: &str| {
            let fields = [("died", Value::Int(died)), ("deadforward", Value::BulkString(target.into()))];
            let info = Fields(fields.map(|(name, value)| (name.to_owned(), value)).into());
            let mut row = Row::default();
            row.take(Snapshot { at: start + time, info, late: None, recent: Recent::default() });
            deaths.take(start + time, died);
            deaths.told(&row)
        };
        assert_eq!(at(Duration::ZERO, 1_000, "QUEUE q:dead"), ": moved to q:dead");
        assert_eq!(at(4 * STEP, 1_217, "QUEUE q:dead"), ": 217 in 2m, moved to q:dead");
        assert_eq!(at(OVER, 1_300, "NONE"), ": 300 in 10m");
        assert_eq!(at(OVER + 4 * STEP, 1_300, "NONE"), ": 83 in 10m");
        // It was created again.
        assert_eq!(at(OVER + 5 * STEP, 3, "NONE"), "");
    }
}

//! How many messages of a queue have died lately, and where they are moved to.

use crate::condition::RECENT;
use crate::dead;
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
}

impl Deaths {
    pub fn take(&mut self, at: Instant, died: i64) {
        // The total is lower if the queue was deleted and created again.
        if self.totals.back().is_some_and(|(_, before)| died < *before) {
            self.totals.clear();
        }
        if self.totals.back().is_none_or(|(last, _)| at.saturating_duration_since(*last) >= STEP) {
            self.totals.push_back((at, died));
        }
        while self.totals.get(1).is_some_and(|(next, _)| at.saturating_duration_since(*next) >= OVER) {
            self.totals.pop_front();
        }
    }

    /// How many have died since the first of these looks, and where they are: `: 217 in 10m, moved to q:dead`.
    pub fn told(&self, row: &Row) -> String {
        let now = row.latest.as_ref().map(|snapshot| snapshot.at);
        let since = self.totals.front().zip(now).map(|((first, died), now)| (now.duration_since(*first), died));
        let died = since.map(|(time, before)| (time, row.number("died") - before)).filter(|(_, died)| *died > 0);
        let died = died.map(|(time, died)| format!("{} in {}", grouped(died.unsigned_abs()), span(millis(time))));
        let moved = target(row).map(|(_, name)| format!("moved to {}", named(name)));
        let parts: Vec<String> = died.into_iter().chain(moved).collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!(": {}", parts.join(", "))
        }
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
    use crate::reply::Fields;
    use crate::row::{Row, Snapshot};
    use dq_client::Value;
    use std::time::{Duration, Instant};

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

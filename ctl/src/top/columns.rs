//! The columns of the list of queues: which are shown, and how wide they are.

use super::list::cell;
use super::sort::Sort;
use crate::output::is_nothing;
use crate::row::Row;
use std::collections::BTreeSet;
use unicode_width::UnicodeWidthStr;

/// The last column.
pub const STATE: &str = "STATE";
/// The columns: name, least width and sort key.
pub type Column = (&'static str, usize, Option<Sort>);
const COLUMNS: [Column; 9] = [
    ("READY", 5, Some(Sort::Ready)),
    ("DELAY", 5, Some(Sort::Delayed)),
    ("FLIGHT", 6, Some(Sort::Inflight)),
    ("DEAD", 4, Some(Sort::Dead)),
    ("OLDEST", 6, Some(Sort::Oldest)),
    ("IN/s", 5, Some(Sort::Pushed)),
    ("OUT/s", 5, Some(Sort::Completed)),
    ("LATE", 5, None),
    (STATE, 7, Some(Sort::Trouble)),
];
/// The least width of the names.
pub const NAME: usize = 8;
/// To how many columns names and states are cut, one step after the other until all fit.
const STEPS: [(usize, usize); 3] = [(28, 12), (20, 12), (NAME, 7)];
/// In this order columns are left out if all does not fit after so many of these steps.
const DISPENSABLE: [(&str, usize); 9] = [
    ("LATE", 1),
    ("IN/s", 2),
    ("OUT/s", 2),
    ("DELAY", 3),
    ("FLIGHT", 3),
    ("OLDEST", 3),
    ("READY", 3),
    ("DEAD", 3),
    (STATE, 3),
];

/// The columns as they were, so that they do not jump from one look to the next, nor if the list is scrolled. They are forgotten
/// if the width of the terminal or the filter changes.
#[derive(Default)]
pub struct Columns {
    width: usize,
    filter: String,
    /// The longest name, and the widest that the columns were.
    longest: usize,
    widest: Vec<Column>,
    /// Whether names were cut at the last look.
    pub has_cut: bool,
    /// Those that had something in them.
    used: BTreeSet<&'static str>,
}

impl Columns {
    /// The width of the names, of which the longest is given, and the columns for these rows.
    pub fn of(
        &mut self,
        width: usize,
        filter: &str,
        sort: Sort,
        longest: usize,
        rows: &[&Row],
    ) -> (usize, Vec<Column>) {
        if (self.width, self.filter.as_str()) != (width, filter) {
            *self = Columns { width, filter: filter.to_owned(), ..Columns::default() };
        }
        let mut columns = natural(rows);
        columns.iter_mut().zip(&self.widest).for_each(|(column, before)| column.1 = column.1.max(before.1));
        self.longest = self.longest.max(longest);
        self.widest.clone_from(&columns);
        // The arrow of the column by which the queues are sorted needs room too.
        let sorting = columns.iter_mut().filter(|(.., by)| *by == Some(sort));
        sorting.for_each(|column| column.1 = column.1.max(column.0.len() + 1));
        let is_used =
            |name: &str| rows.iter().any(|row| row.latest.is_some() && !is_nothing(&cell(name, row, usize::MAX).1));
        self.used.extend(COLUMNS.iter().map(|(name, ..)| *name).filter(|name| is_used(name)));
        let mut found = fitted(width, self.longest, columns.clone());
        if found.0 < self.longest || found.1.len() < columns.len() {
            // Columns of zeros give way to names, as in `dqctl ls`.
            columns.retain(|(name, _, by)| *by == Some(sort) || self.used.contains(name));
            found = fitted(width, self.longest, columns);
        }
        self.has_cut = found.0 < self.longest;
        found
    }
}

/// The columns, as wide as these rows need.
fn natural(rows: &[&Row]) -> Vec<Column> {
    let natural = |(name, least, by): Column| {
        let cells = rows.iter().map(|row| cell(name, row, usize::MAX).1.width());
        (name, cells.fold(least.max(name.len()), usize::max), by)
    };
    COLUMNS.map(natural).to_vec()
}

/// The width of the name, and the columns that fit next to it.
fn fitted(width: usize, longest: usize, mut kept: Vec<Column>) -> (usize, Vec<Column>) {
    for (dispensable, steps) in DISPENSABLE {
        let mut fitting = kept.clone();
        let used: usize = fitting.iter().map(|(_, width, _)| width + 1).sum();
        let (mut name, mut excess) = (longest.max(NAME), (used + longest.max(NAME)).saturating_sub(width));
        let mut shrink = |column: &mut usize, least: usize| {
            let less = excess.min(column.saturating_sub(least));
            (*column, excess) = (*column - less, excess - less);
        };
        for &(least, least_of_state) in STEPS.iter().take(steps) {
            shrink(&mut name, least);
            if let Some((STATE, state, _)) = fitting.last_mut() {
                shrink(state, least_of_state);
            }
        }
        if excess == 0 {
            return (name, fitting);
        }
        kept.retain(|(name, ..)| *name != dispensable);
    }
    (width, kept)
}

#[cfg(test)]
mod tests {
    use crate::condition::Recent;
    use crate::reply::Fields;
    use crate::row::Snapshot;
    use crate::top::app::App;
    use crate::top::exchange::Update;
    use crate::top::view::screen;
    use crate::top::view::tests::{app, press, text};
    use crossterm::event::KeyCode;
    use dq_client::Value;
    use std::time::{Duration, Instant};

    const LONG: &str = "shop:production:orders:eu-west";

    /// Looks at a queue that has this many delayed messages.
    fn look(app: &mut App, name: &str, delayed: i64, late: Option<Duration>) {
        let info =
            Fields([("delayed", delayed), ("closed", 1)].map(|(name, n)| (name.to_owned(), Value::Int(n))).into());
        let snapshot = Snapshot { at: Instant::now(), info, late, recent: Recent::default() };
        app.update(Update::Queues(vec![(name.into(), Some(snapshot))]));
    }

    #[test]
    fn columns_do_not_jump_if_a_number_gets_shorter() {
        let mut app = app(&["mail"]);
        let mut ends = |late, width| {
            look(&mut app, "mail", 0, Some(Duration::from_millis(late)));
            let lines = text(&screen(&mut app, width, 24));
            assert!(lines[2].trim_end().ends_with("closed"), "{}", lines[2]);
            lines[2].find("closed")
        };
        let short = ends(1, 80);
        let long = ends(5_000_000, 80);
        assert!(long > short, "{long:?} {short:?}");
        assert_eq!(ends(1, 80), long);
        assert_eq!(ends(1, 81), short, "another width begins again");
    }

    #[test]
    fn a_name_that_is_cut_is_whole_while_the_cursor_is_on_it() {
        let other = format!("{LONG}:retries");
        let mut app = app(&[LONG, &other]);
        press(&mut app, &[KeyCode::Down]);
        let lines = text(&screen(&mut app, 66, 24));
        assert!(!lines[..22].iter().any(|line| line.starts_with(&other)), "{lines:?}");
        assert!(lines[22].starts_with(&other), "{lines:?}");
    }

    #[test]
    fn columns_of_zeros_give_way_to_names_until_a_queue_has_something_in_them() {
        let names = [LONG, "mail"];
        let mut app = app(&names);
        let heading = |app: &mut App| text(&screen(app, 80, 24)).swap_remove(1);
        let lines = text(&screen(&mut app, 80, 24));
        assert!(lines.iter().any(|line| line.starts_with(LONG)), "{lines:?}");
        assert!(!lines[1].contains("DELAY") && !lines[1].contains("IN/s"), "{}", lines[1]);
        look(&mut app, "mail", 7, None);
        assert!(heading(&mut app).contains("DELAY"), "{}", heading(&mut app));
        look(&mut app, "mail", 0, None);
        assert!(heading(&mut app).contains("DELAY"), "it does not come and go");
        // The column that sorts them is always shown.
        press(&mut app, &[KeyCode::Char('4')]);
        assert!(heading(&mut app).contains("FLIGHT↓"), "{}", heading(&mut app));
        press(&mut app, &[KeyCode::Char('2')]);
        let ready = heading(&mut app);
        press(&mut app, &[KeyCode::Char('3')]);
        heading(&mut app);
        press(&mut app, &[KeyCode::Char('2')]);
        assert_eq!(heading(&mut app), ready, "what once sorted them takes no room");
        press(&mut app, &[KeyCode::Char('/'), KeyCode::Char('m'), KeyCode::Char('a'), KeyCode::Enter]);
        assert!(heading(&mut app).contains("IN/s"), "short names need no room: {}", heading(&mut app));
    }
}

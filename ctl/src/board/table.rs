//! The list of queues, as `dqctl ls` prints it and `top` shows it.

use super::condition::Level;
use super::row::{Row, Status};
use super::sort::Named;
use crate::output::Column::{Name, Number, Text, Word};
use crate::output::{Cell, Column, Style, Table};
use crate::text::{separated, shown, span};

pub const COLUMNS: &[Column] = &[
    Name("queue"),
    Number("ready"),
    Number("delayed"),
    Number("inflight"),
    Number("dead"),
    Word("oldest"),
    Number("waiting"),
    Text("state"),
];

/// The same with messages a second.
pub const WATCHED: &[Column] = &[
    Name("queue"),
    Number("ready"),
    Number("delayed"),
    Number("inflight"),
    Number("dead"),
    Word("oldest"),
    Number("in/s"),
    Number("out/s"),
    Number("waiting"),
    Text("state"),
];

/// From this age in ms on, the oldest ready message is marked.
const OLD: u64 = 60_000;

/// `columns` are one of those above.
pub fn table<'a>(rows: impl IntoIterator<Item = Named<'a>>, columns: &'static [Column]) -> Table {
    let cells = |(name, row): Named| {
        let cell = |column: &Column| match column {
            Name(_) => (Style::Plain, shown(name)),
            Text(_) => (row.style(), row.state()),
            column => cell(column.name(), row),
        };
        columns.iter().map(cell).collect()
    };
    Table { columns, rows: rows.into_iter().map(cells).collect() }
}

fn cell(column: &str, row: &Row) -> Cell {
    let number = |number: u64, style: Style| {
        (style, if row.status == Status::Known { number.to_string() } else { "-".to_owned() })
    };
    let info = &row.info;
    let rate = |rate: Option<f64>| (Style::Plain, rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}")));
    let if_so = |is_so, style| if is_so { style } else { Style::Plain };
    match column {
        "ready" => number(info.ready, Style::Plain),
        "delayed" => number(info.delayed, Style::Plain),
        "inflight" => number(info.inflight, if_so(row.hangs(), Style::Warning)),
        "dead" => number(info.dead, if_so(info.dead > 0, Style::Bad)),
        "oldest" => {
            let is_old = row.oldest().is_some_and(|age| age >= OLD);
            (if_so(is_old, Style::Warning), row.oldest().map_or_else(|| "-".to_owned(), span))
        }
        "in/s" => rate(row.rate_in()),
        "out/s" => rate(row.rate_out()),
        "waiting" => number(info.waiting_clients, Style::Plain),
        // The name and the state are no cells of this kind.
        _ => (Style::Plain, String::new()),
    }
}

/// How many queues there are, and how many of them are in trouble; nothing of a single one.
pub fn summary<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> String {
    let all = rows.clone().count();
    let mut parts = vec![format!("{} queues", separated(all))];
    for (level, words) in [(Level::Bad, "in trouble"), (Level::Warning, "to look at")] {
        let count = rows.clone().filter(|row| row.level() == Some(level)).count();
        parts.extend((count > 0).then(|| format!("{} {words}", separated(count))));
    }
    if all > 1 {
        parts.join(", ")
    } else {
        String::new()
    }
}

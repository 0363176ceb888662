//! The list of queues as lines.

use super::app::App;
use super::queues::{Row, Sort};
use super::text::{count, left, right, shown, shown_bytes, Line, Style};
use crate::time::{millis, span};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// The columns of numbers: name, width and sort key.
type Column = (&'static str, usize, Option<Sort>);
const COLUMNS: [Column; 9] = [
    ("READY", 6, Some(Sort::Ready)),
    ("DELAY", 6, Some(Sort::Delayed)),
    ("FLIGHT", 6, Some(Sort::Inflight)),
    ("DEAD", 5, Some(Sort::Dead)),
    ("OLDEST", 6, Some(Sort::Oldest)),
    ("IN/s", 6, Some(Sort::Pushed)),
    ("OUT/s", 6, Some(Sort::Completed)),
    ("LATE", 6, None),
    ("STATE", 7, None),
];
/// The narrowest column of names. If there is no room for it, columns of numbers are left out.
const NAME: usize = 16;

/// The page with the list of queues.
pub fn queues_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    app.height = height;
    let queues = &mut app.queues;
    let names = queues.visible(height);
    let mut title = Line::new(Style::Bold, format!("dq {}", shown(&app.server)));
    let number = |field: &str| count(queues.sum(field));
    title.add(Style::Plain, format!("  {} queues", queues.all()));
    if !queues.filter.is_empty() {
        title.add(Style::Warning, format!("  {} with {:?}", queues.len(), shown(&queues.filter)));
    }
    let sums = ["ready", "delayed", "inflight", "dead"].map(|field| format!("{field} {}", number(field)));
    title.add(Style::Plain, format!("  {}", sums.join("  ")));
    if queues.unread() > 0 && queues.is_known {
        title.add(Style::Dim, format!("  reading {} more …", queues.unread()));
    }
    // As wide as the names need, so that the numbers are near them.
    let longest = names.iter().map(|name| shown_bytes(name).width()).max().unwrap_or(0);
    let columns = columns(width, longest);
    let mut lines = vec![title, heading(&columns, queues.sort, queues.reverse)];
    let selected = queues.selected().cloned();
    for name in names {
        let line = queues.row(&name).map_or_else(Line::default, |row| queue_line(&name, row, &columns));
        lines.push(if Some(&name) == selected.as_ref() { line.fitted(width).selected() } else { line });
    }
    if queues.len() == 0 {
        let text = if !queues.is_known {
            "Looking for queues …"
        } else if queues.all() == 0 {
            "There are no queues. A queue is created by its first push: dqctl push mail hello"
        } else {
            "No queue has that in its name."
        };
        lines.push(Line::new(Style::Dim, text));
    }
    lines
}

/// The width of the name, and the columns that fit next to it.
fn columns(width: usize, longest: usize) -> (usize, Vec<Column>) {
    let mut kept = COLUMNS.to_vec();
    for dispensable in ["LATE", "IN/s", "OUT/s", "STATE", "DELAY", "FLIGHT", "OLDEST", "DEAD", "READY"] {
        let used: usize = kept.iter().map(|(_, width, _)| width + 1).sum();
        if used + NAME <= width {
            return ((width - used).min(longest.max(NAME)), kept);
        }
        kept.retain(|(name, ..)| *name != dispensable);
    }
    (width, kept)
}

/// The column by which the queues are sorted is marked.
fn heading((name, columns): &(usize, Vec<Column>), sort: Sort, reverse: bool) -> Line {
    let style = |by: Option<Sort>| if by == Some(sort) { Style::Selected } else { Style::Bold };
    let title = if reverse { "QUEUE (reverse)" } else { "QUEUE" };
    let mut line = Line::new(style(Some(Sort::Name)), left(title, *name));
    for &(column, width, by) in columns {
        line.add(Style::Bold, " ");
        line.add(style(by), if column == "STATE" { left(column, width) } else { right(column, width) });
    }
    line
}

fn queue_line(name: &[u8], row: &Row, (name_width, columns): &(usize, Vec<Column>)) -> Line {
    let mut line = Line::new(Style::Plain, left(&shown_bytes(name), *name_width));
    for &(column, width, _) in columns {
        let (style, text) = cell(column, row);
        let text = if column == "STATE" { left(&text, width) } else { right(&text, width) };
        line.add(style, format!(" {text}"));
    }
    line
}

/// Messages a second, in at most six characters.
#[allow(clippy::cast_possible_truncation, reason = "numbers of that size are rounded anyway")]
pub fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) if rate < 999.0 => format!("{rate:.1}"),
        Some(rate) => count(rate as i64),
    }
}

pub fn late(late: Option<Duration>) -> String {
    late.map_or_else(|| "-".to_owned(), |late| span(millis(late)))
}

fn cell(column: &str, row: &Row) -> (Style, String) {
    if row.latest.is_none() {
        return (Style::Dim, if column == "STATE" { String::new() } else { "…".to_owned() });
    }
    let number = |field: &str| count(row.number(field));
    match column {
        "READY" => (Style::Plain, number("ready")),
        "DELAY" => (Style::Plain, number("delayed")),
        "FLIGHT" => (Style::Plain, number("inflight")),
        "DEAD" if row.number("dead") > 0 => (Style::Bad, number("dead")),
        "DEAD" => (Style::Plain, number("dead")),
        "OLDEST" => match row.oldest() {
            Some(age) if age >= 60_000 => (Style::Warning, span(age)),
            age => (Style::Plain, age.map_or_else(|| "-".to_owned(), span)),
        },
        "IN/s" => (Style::Plain, rate(row.pushed)),
        "OUT/s" => (Style::Plain, rate(row.completed)),
        "LATE" => (Style::Plain, late(row.late)),
        _ if row.is_failing() => (Style::Bad, "failing".to_owned()),
        _ if row.is_paused() => (Style::Warning, "paused".to_owned()),
        _ if row.number("waiting-clients") > 0 => (Style::Good, format!("wait {}", number("waiting-clients"))),
        _ => (Style::Plain, "open".to_owned()),
    }
}

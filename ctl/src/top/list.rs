//! The list of queues as lines.

use super::app::App;
use super::queues::{Queues, Row, Sort};
use super::text::{count, cut, grouped, left, named, right, shown, Line, Style};
use crate::condition::Level;
use crate::time::{millis, span};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// The last column, which takes the room that is left.
const STATE: &str = "STATE";
/// Its least width. It is shown in full if it does not need more than this part of the screen.
const STATE_WIDTH: usize = 7;
const STATE_PART: usize = 3;
/// The columns of numbers: name, width and sort key.
type Column = (&'static str, usize, Option<Sort>);
const COLUMNS: [Column; 9] = [
    ("READY", 6, Some(Sort::Ready)),
    ("DELAY", 6, Some(Sort::Delayed)),
    ("FLIGHT", 6, Some(Sort::Inflight)),
    ("DEAD", 6, Some(Sort::Dead)),
    ("OLDEST", 6, Some(Sort::Oldest)),
    ("IN/s", 6, Some(Sort::Pushed)),
    ("OUT/s", 6, Some(Sort::Completed)),
    ("LATE", 6, None),
    (STATE, STATE_WIDTH, Some(Sort::Trouble)),
];
/// The narrowest column of names. If there is no room for it, columns of numbers are left out.
const NAME: usize = 16;
/// The same if all names are shorter: the state needs the room.
const SHORT_NAME: usize = 8;

/// The page with the list of queues.
pub fn queues_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    app.height = height;
    let queues = &mut app.queues;
    let names = queues.visible(height);
    let title = title(&app.server, queues, width);
    // As wide as the names need, so that the numbers are near them.
    let longest = names.iter().map(|name| named(name).width()).max().unwrap_or(0);
    let state = names.iter().filter_map(|name| Some(cell(STATE, queues.row(name)?).1.width())).max().unwrap_or(0);
    let columns = columns(width, longest, state, queues.sort);
    let mut lines = vec![title, heading(&columns, queues.sort, queues.reverse)];
    let selected = queues.selected().cloned();
    for name in names {
        let line = queues.row(&name).map_or_else(Line::default, |row| queue_line(&name, row, &columns));
        lines.push(if Some(&name) == selected.as_ref() { line.fitted(width).selected() } else { line });
    }
    if queues.len() == 0 {
        let text = match &app.pattern {
            _ if !queues.is_known => "Looking for queues …".to_owned(),
            _ if queues.all() > 0 => format!("No queue has {:?} in its name.", shown(&queues.filter)),
            Some(pattern) => format!("No queue matches {:?}.", shown(pattern)),
            None => "There are no queues. A queue is created by its first push: dqctl push mail hello".to_owned(),
        };
        lines.push(Line::new(Style::Dim, text));
    }
    lines
}

/// What there is in all. What does not fit is left out, the least important first.
fn title(server: &str, queues: &Queues, width: usize) -> Line {
    let mut parts = Vec::new();
    // The words of the page.
    for (level, words) in [(Level::Bad, "in trouble"), (Level::Warning, "to look at")] {
        let troubled = queues.troubled(level);
        if troubled > 0 {
            parts.push((style(Some(level)), format!("{} {words}", grouped(troubled))));
        }
    }
    let noun = if queues.all() == 1 { "queue" } else { "queues" };
    parts.push((Style::Plain, format!("{} {noun}", grouped(queues.all()))));
    if !queues.filter.is_empty() {
        parts.push((Style::Warning, format!("{} with {:?}", grouped(queues.len()), shown(&queues.filter))));
    }
    for field in ["dead", "ready", "inflight", "delayed"] {
        parts.push((Style::Plain, format!("{field} {}", count(queues.sum(field)))));
    }
    if queues.unread() > 0 && queues.is_known {
        parts.push((Style::Dim, format!("reading {} more …", grouped(queues.unread()))));
    }
    let mut line = Line::new(Style::Bold, cut(&format!("dq {}", shown(server)), (width / 3).max(20)));
    let mut used = line.width();
    for (style, part) in parts {
        used += 2 + part.width();
        if used > width {
            break;
        }
        line.add(style, format!("  {part}"));
    }
    line
}

/// The width of the name, and the columns that fit next to it: the state tells more than any number.
fn columns(width: usize, longest: usize, state: usize, sort: Sort) -> (usize, Vec<Column>) {
    // The arrow of the column by which the queues are sorted needs room too.
    let with_arrow = |(name, width, by): Column| (name, width.max(name.len() + usize::from(by == Some(sort))), by);
    let mut kept = COLUMNS.map(with_arrow).to_vec();
    if let Some((STATE, last, _)) = kept.last_mut() {
        *last = state.clamp(STATE_WIDTH, (width / STATE_PART).max(STATE_WIDTH));
    }
    for dispensable in ["LATE", "IN/s", "OUT/s", "DELAY", "FLIGHT", "OLDEST", "READY", "DEAD", STATE] {
        let used: usize = kept.iter().map(|(_, width, _)| width + 1).sum();
        if used + longest.clamp(SHORT_NAME, NAME) <= width {
            let name = (width - used).min(longest.max(SHORT_NAME));
            if let Some((STATE, last, _)) = kept.last_mut() {
                *last += width - used - name;
            }
            return (name, kept);
        }
        kept.retain(|(name, ..)| *name != dispensable);
    }
    (width, kept)
}

/// The column by which the queues are sorted is marked, with an arrow up if the smallest comes first.
fn heading((name, columns): &(usize, Vec<Column>), sort: Sort, reverse: bool) -> Line {
    let style = |by: Option<Sort>| if by == Some(sort) { Style::Selected } else { Style::Bold };
    let arrow = match (sort == Sort::Name) != reverse {
        true => "↑",
        false => "↓",
    };
    let title = |name: &str, by: Option<Sort>| format!("{name}{}", if by == Some(sort) { arrow } else { "" });
    let mut line = Line::new(style(Some(Sort::Name)), left(&title("QUEUE", Some(Sort::Name)), *name));
    for &(column, width, by) in columns {
        let title = title(column, by);
        let title = if column == STATE { left(&title, width) } else { right(&title, width) };
        line.add(Style::Plain, " ");
        line.add(style(by), title);
    }
    line
}

fn queue_line(name: &[u8], row: &Row, (name_width, columns): &(usize, Vec<Column>)) -> Line {
    let mut line = Line::new(Style::Plain, left(&named(name), *name_width));
    for &(column, width, _) in columns {
        let (style, text) = cell(column, row);
        let text = if column == STATE { left(&text, width) } else { right(&text, width) };
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
        return (Style::Dim, if column == STATE { String::new() } else { "…".to_owned() });
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
        "LATE" => (Style::Plain, late(row.late())),
        _ if !row.conditions.is_empty() => {
            let words: Vec<&str> = row.conditions.iter().map(|(condition, _)| condition.as_str()).collect();
            (style(row.level()), words.join(", "))
        }
        _ if row.number("waiting-clients") > 0 => (Style::Good, format!("wait {}", number("waiting-clients"))),
        _ => (Style::Plain, "open".to_owned()),
    }
}

/// How a condition of a level looks.
pub fn style(level: Option<Level>) -> Style {
    match level {
        Some(Level::Bad) => Style::Bad,
        Some(Level::Warning) => Style::Warning,
        Some(Level::Note) | None => Style::Plain,
    }
}

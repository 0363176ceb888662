//! The list of queues as lines.

use super::app::App;
use super::columns::{Column, NAME, STATE};
use super::head::add_conditions;
use super::moves::are_held;
use super::queues::Queues;
use super::sort::Sort;
use crate::condition::{Condition, Level};
use crate::output::style;
use crate::output::text::{count, cut, grouped, left, named, named_in, right, shown, Line, Style};
use crate::row::Row;
use crate::time::{millis, span};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// The least width of a cause in the last column.
const CAUSE: usize = 12;

/// The page with the list of queues.
pub fn queues_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let has_total = app.queues.len() > 1;
    let queues = &mut app.queues;
    // The last line is about the queue under the cursor. It is kept free for it, so that the list does not move with the cursor.
    let has_more =
        queues.columns.has_cut || [Level::Bad, Level::Warning].into_iter().any(|level| queues.troubled(level) > 0);
    app.height = height.saturating_sub(usize::from(has_total) + usize::from(has_more));
    let names = queues.visible(app.height);
    let title = title(&app.server, queues, width);
    // As wide as the names need, so that the numbers are near them.
    // A mark follows a name.
    let mark = |name: &[u8]| if queues.marked.contains(name) { "*" } else { "" };
    let longest = names.iter().map(|name| named(name).width() + mark(name).len()).max().unwrap_or(0);
    let total = queues.total();
    let mut layout = std::mem::take(&mut queues.columns);
    let rows: Vec<&Row> = names.iter().filter_map(|name| queues.row(name)).chain(has_total.then_some(&total)).collect();
    let (name_width, columns) = layout.of(width, &queues.filter, queues.sort, longest, &rows);
    queues.columns = layout;
    let mut lines = vec![title, heading(name_width, &columns, queues.sort, queues.reverse)];
    if has_total {
        // Neither is a sum.
        let sums: Vec<Column> = columns.iter().copied().filter(|(name, ..)| !["LATE", STATE].contains(name)).collect();
        lines.push(queue_line(Line::new(Style::Bold, left("TOTAL", name_width)), &total, &sums, None, width));
    }
    let selected = queues.selected();
    for name in &names {
        let mark = mark(name);
        let style = if mark.is_empty() { Style::Plain } else { Style::Warning };
        let name_and_mark = format!("{}{mark}", named_in(name_width.saturating_sub(mark.len()), name));
        let start = Line::new(style, left(&name_and_mark, name_width));
        let line = queues
            .row(name)
            .map_or_else(Line::default, |row| queue_line(start, row, &columns, queues.cause(name), width));
        lines.push(if Some(name) == selected { line.fitted(width).selected() } else { line });
    }
    if queues.len() == 0 {
        let text = match &app.pattern {
            _ if !queues.is_known => "Looking for queues …".to_owned(),
            _ if queues.all() == 0 && queues.denied > 0 => {
                "The user may read none of the queues: grant it the keys and +dq.info with ACL SETUSER.".to_owned()
            }
            _ if queues.all() > 0 => format!("No queue has {:?} in its name.", shown(&queues.filter)),
            Some(pattern) => format!("No queue matches {:?}.", shown(pattern)),
            None => "There are no queues. A queue is created by its first push: dqctl push mail hello".to_owned(),
        };
        lines.push(Line::new(Style::Dim, text));
    }
    if has_more {
        lines.resize(height + 1, Line::default());
        lines.extend(queues.selected().map(|name| more(queues, name, width)));
    }
    lines
}

/// What the row of a queue may have no room for: its conditions, each with what is known of its cause, as the head of its page
/// has them, and its name.
fn more(queues: &Queues, name: &[u8], width: usize) -> Line {
    let mut line = Line::default();
    if let Some(row) = queues.row(name).filter(|row| queues.columns.has_cut || !row.conditions.is_empty()) {
        let conditions = |mut line: Line| {
            add_conditions(&mut line, row, None, &queues.deaths(name), 0, width);
            line
        };
        // The name may be cut above. Long causes leave it a third of the line.
        let room = width.saturating_sub(conditions(Line::default()).width()).max(width / 3).max(NAME);
        line = conditions(Line::new(Style::Bold, named_in(room, name)));
    }
    line
}

/// What there is in all. What does not fit is left out, the least important first.
fn title(server: &str, queues: &Queues, width: usize) -> Line {
    let mut parts = Vec::new();
    let looked = queues.looked();
    // The words of the page. Before all were looked at, nobody knows how many.
    for (level, words) in [(Level::Bad, "in trouble"), (Level::Warning, "to look at")] {
        let troubled = queues.troubled(level);
        if troubled > 0 && looked.is_none() {
            parts.push((style(Some(level)), format!("{} {words}", grouped(troubled))));
        }
    }
    let (read, style) = match looked {
        Some(looked) => (format!("read {} of ", grouped(looked)), Style::Warning),
        None => (String::new(), Style::Plain),
    };
    let all = format!("{} {}", grouped(queues.all()), if queues.all() == 1 { "queue" } else { "queues" });
    if queues.filter.is_empty() {
        parts.push((style, format!("{read}{all}")));
    } else {
        let with = format!("{read}{} with {:?}", grouped(queues.len()), shown(&queues.filter));
        parts.extend([(Style::Plain, all), (Style::Warning, with)]);
    }
    if queues.denied > 0 {
        parts.push((Style::Warning, format!("{} without permission", grouped(queues.denied))));
    }
    if !queues.marked.is_empty() {
        parts.push((Style::Warning, format!("{} marked", grouped(queues.marked.len()))));
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

/// The column by which the queues are sorted is marked, with an arrow up if the smallest comes first.
fn heading(name: usize, columns: &[Column], sort: Sort, reverse: bool) -> Line {
    let style = |by: Option<Sort>| if by == Some(sort) { Style::Selected } else { Style::Bold };
    let arrow = match (sort == Sort::Name) != reverse {
        true => "↑",
        false => "↓",
    };
    let title = |name: &str, by: Option<Sort>| format!("{name}{}", if by == Some(sort) { arrow } else { "" });
    let mut line = Line::new(style(Some(Sort::Name)), left(&title("QUEUE", Some(Sort::Name)), name));
    for &(column, width, by) in columns {
        let title = title(column, by);
        let title = if column == STATE { left(&title, width) } else { right(&title, width) };
        line.add(Style::Plain, " ");
        line.add(style(by), title);
    }
    line
}

/// Adds the columns to a line that begins with the name. The state is followed by why messages die, if the screen has room.
fn queue_line(mut line: Line, row: &Row, columns: &[Column], cause: Option<String>, screen: usize) -> Line {
    for &(column, width, _) in columns {
        let (style, text) = cell(column, row, width);
        let room = screen.saturating_sub(line.width() + 1);
        if let Some(text) = cause.as_ref().filter(|_| column == STATE).and_then(|cause| with_cause(row, cause, room)) {
            line.add(style, format!(" {text}"));
            continue;
        }
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

/// A limit: the server counts times by powers of two.
pub fn late(late: Option<Duration>) -> String {
    late.map_or_else(|| "-".to_owned(), |late| format!("≤{}", span(millis(late))))
}

/// A cell. Only a state can be wider than `width`.
pub fn cell(column: &str, row: &Row, width: usize) -> (Style, String) {
    if row.latest.is_none() {
        return (Style::Dim, if column == STATE { String::new() } else { "…".to_owned() });
    }
    let number = |field: &str| count(row.number(field));
    match column {
        "READY" => (Style::Plain, number("ready")),
        "DELAY" => (Style::Plain, number("delayed")),
        "FLIGHT" => (if are_held(row) { Style::Warning } else { Style::Plain }, number("inflight")),
        "DEAD" if row.number("dead") > 0 => (Style::Bad, number("dead")),
        "DEAD" => (Style::Plain, number("dead")),
        "OLDEST" => match row.oldest() {
            Some(age) if age >= 60_000 => (Style::Warning, span(age)),
            age => (Style::Plain, age.map_or_else(|| "-".to_owned(), span)),
        },
        "IN/s" => (Style::Plain, rate(row.pushed)),
        "OUT/s" => (Style::Plain, rate(row.completed)),
        "LATE" => (Style::Plain, late(row.late())),
        _ if !row.conditions.is_empty() => (style(row.level()), states(row, width)),
        _ if row.is_served() => (Style::Good, "served".to_owned()),
        _ => (Style::Plain, "open".to_owned()),
    }
}

/// The same words for a queue that hangs or whose limit consumers hold, with the age of the oldest message in flight: `late (held 8m)`.
fn with_age(row: &Row, words: &[&str]) -> Option<String> {
    let held = if row.hangs() { Condition::Late } else { Condition::Occupied }.as_str();
    are_held(row).then(|| words.join(", ").replace(held, &format!("{held} (held {})", held_for(row))))
}

/// For how long the oldest message in flight has been held.
fn held_for(row: &Row) -> String {
    span(u64::try_from(row.number("oldest-inflight")).unwrap_or(0))
}

/// The same words for a queue whose messages die, with the cause: `messages die (timeout), late`; `None` if there is too little room.
fn with_cause(row: &Row, cause: &str, width: usize) -> Option<String> {
    let dying = Condition::Dying.as_str();
    let words: Vec<&str> = row.conditions.iter().map(|(condition, _)| condition.as_str()).collect();
    let words = with_age(row, &words).unwrap_or_else(|| words.join(", "));
    let room = width.checked_sub(words.width() + " ()".len()).filter(|room| *room >= CAUSE)?;
    // A cause such as `(rejected)` has these signs already.
    let cause = cut(&shown(cause), room);
    let cause = if cause.starts_with('(') { cause } else { format!("({cause})") };
    Some(words.replacen(dying, &format!("{dying} {cause}"), 1))
}

/// The conditions in at most `width` columns. Of those that do not fit it is said how many there are.
fn states(row: &Row, width: usize) -> String {
    let words: Vec<&str> = row.conditions.iter().map(|(condition, _)| condition.as_str()).collect();
    let whole = with_age(row, &words).map(|text| (text, String::new()));
    // Why it is late says more than that it is.
    let held = row.hangs().then(|| format!("held {}", held_for(row)));
    let why = |word| held.as_deref().filter(|_| word == Condition::Late.as_str()).unwrap_or(word);
    let words: Vec<&str> = words.into_iter().map(why).collect();
    let with_rest = |kept: usize, text: String| match words.len() - kept {
        0 => (text, String::new()),
        rest => (text, format!(" +{rest}")),
    };
    let parts = (1..=words.len()).rev().filter_map(|kept| Some(with_rest(kept, words.get(..kept)?.join(", "))));
    let first = row.conditions.first().map_or("", |(condition, _)| condition.in_short());
    let mut all = whole.into_iter().chain(parts);
    let fitting = all.find(|(text, rest)| text.width() + rest.len() <= width);
    let (text, rest) = fitting.unwrap_or_else(|| with_rest(1, first.to_owned()));
    format!("{}{rest}", cut(&text, width.saturating_sub(rest.len())))
}

//! The head of the page of a queue: its conditions with what is known of their causes, and its numbers.

use super::entries::Entry;
use super::list::{late, rate};
use crate::condition::{Condition, HELD};
use crate::message;
use crate::output::style;
use crate::output::text::{bytes, count, cut, grouped, named, shown, Line, Style};
use crate::row::Row;
use crate::time::span;
use unicode_width::UnicodeWidthStr;

/// The least columns of a condition that is cut: enough for its name.
const LEAST: usize = 20;

/// The numbers of the queue. The last ones are left out if there is no room for them.
pub fn numbers(row: &Row, width: usize) -> String {
    let number = |text: String| if row.latest.is_none() { "-".to_owned() } else { text };
    let parts = [
        format!("oldest {}", row.oldest().map_or_else(|| "-".to_owned(), span)),
        format!("in {}/s", rate(row.pushed)),
        format!("out {}/s", rate(row.completed)),
        format!("late {}", late(row.late())),
        format!("waiting clients {}", number(row.number("waiting-clients").to_string())),
        format!("payloads {}", number(bytes(row.number("payload-bytes")))),
    ];
    let mut all = (1..=parts.len()).rev().filter_map(|count| Some(parts.get(..count)?.join("  ")));
    all.find(|line| line.width() <= width).unwrap_or_default()
}

/// Adds the conditions to a line, each with what is known of its cause, and how many groups are paused.
pub fn add_conditions(line: &mut Line, row: &Row, holder: Option<&Entry>, deaths: &str, paused: usize, width: usize) {
    let texts = row.conditions.iter().map(|(condition, level)| {
        (Some(*condition), style(Some(*level)), format!("  {}", in_full(*condition, row, holder, deaths)))
    });
    let mut texts: Vec<_> = texts.collect();
    if paused > 0 {
        let groups = if paused == 1 { "group" } else { "groups" };
        texts.push((None, Style::Warning, format!("  {} {groups} paused", grouped(paused))));
    }
    let mut excess = (line.width() + texts.iter().map(|(.., text)| text.width()).sum::<usize>()).saturating_sub(width);
    for (condition, style, text) in texts {
        // A long error hides no other condition.
        let can_be_cut = matches!(condition, Some(Condition::Failing | Condition::Dying));
        let most = if can_be_cut { text.width().saturating_sub(excess).max(LEAST) } else { usize::MAX };
        let kept = cut(&text, most);
        excess = excess.saturating_sub(text.width() - kept.width());
        line.add(style, kept);
    }
}

/// A condition with what is known of its cause.
fn in_full(condition: Condition, row: &Row, holder: Option<&Entry>, deaths: &str) -> String {
    let Some(info) = row.latest.as_ref().map(|snapshot| &snapshot.info) else { return String::new() };
    match (condition, holder) {
        (Condition::Failing, _) => {
            let errors = ["forward-error", "deadforward-error"].map(|name| shown(&info.text(name)));
            let errors: Vec<_> = errors.into_iter().filter(|error| !error.is_empty()).collect();
            let colon = if errors.is_empty() { "" } else { ": " };
            format!("{}{colon}{}", condition.as_str(), errors.join("; "))
        }
        (Condition::Late | Condition::Occupied, Some(holder)) if row.number("oldest-inflight") >= HELD => {
            let age = span(u64::try_from(holder.age()).unwrap_or(0));
            format!("{}: {} holds one for {age}", condition.as_str(), named(&holder.name))
        }
        (Condition::Full, _) => {
            let held = ["ready", "delayed", "inflight"].into_iter().map(|state| row.number(state)).sum::<i64>();
            format!("full: {} of MAXLEN {}", count(held), count(row.number("maxlen")))
        }
        (Condition::Paused, _) => match info.int("paused-until") {
            Some(end) => format!("paused, ends {}", message::distance(end)),
            None => "paused until resumed".to_owned(),
        },
        (Condition::Late | Condition::Dead, _) => condition.words(info, row.recent()),
        (Condition::Dying, _) => format!("{}{deaths}", condition.as_str()),
        _ => condition.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::in_full;
    use crate::condition::{Condition, Recent};
    use crate::reply::Fields;
    use crate::row::{Row, Snapshot};
    use crate::time::now_ms;
    use dq_client::Value;
    use std::time::Instant;

    #[test]
    fn a_condition_is_shown_with_its_limit_or_its_end() {
        let head = |condition, fields: &[(&str, i64)]| {
            let info = Fields(fields.iter().map(|(name, number)| ((*name).to_owned(), Value::Int(*number))).collect());
            let mut row = Row::default();
            row.take(Snapshot { at: Instant::now(), info, late: None, recent: Recent::default() });
            in_full(condition, &row, None, "")
        };
        let full = [("ready", 150), ("delayed", 49), ("inflight", 1), ("maxlen", 200)];
        assert_eq!(head(Condition::Full, &full), "full: 200 of MAXLEN 200");
        assert_eq!(head(Condition::Paused, &[("paused", 1)]), "paused until resumed");
        let end = now_ms() + 90_500;
        assert_eq!(head(Condition::Paused, &[("paused", 1), ("paused-until", end)]), "paused, ends in 1m30s");
    }
}

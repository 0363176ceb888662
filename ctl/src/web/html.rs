//! Pieces of HTML that several views have. The template writes text only as text, so nothing that a queue holds becomes
//! markup.

use crate::board::{Condition, Level};
use crate::server::QueueInfo;
use crate::text::{distance, instant, shown};
use maud::{html, Markup};
use percent_encoding::{percent_encode, NON_ALPHANUMERIC};

/// Whether a name contains this text, ignoring case.
pub fn contains(name: &[u8], part: &[u8]) -> bool {
    part.is_empty() || name.windows(part.len()).any(|at| at.eq_ignore_ascii_case(part))
}

/// The address of a view.
pub fn address(view: &str, params: &[(&str, &[u8])]) -> String {
    let pairs = params.iter().map(|(name, value)| format!("{name}={}", percent_encode(value, NON_ALPHANUMERIC)));
    let query = pairs.collect::<Vec<_>>().join("&");
    format!("#/{view}{}{query}", if query.is_empty() { "" } else { "?" })
}

/// The id of an element that is about something with these names, by which the page finds it again in the next view.
/// The ids of the page's own elements have no slash, so that a queue called `done` or `search` is none of them.
pub fn element(kind: &str, names: &[&[u8]]) -> String {
    names.iter().fold(kind.to_owned(), |id, name| format!("{id}/{}", percent_encode(name, NON_ALPHANUMERIC)))
}

pub fn queue_url(queue: &[u8]) -> String {
    address("queue", &[("queue", queue)])
}

pub fn tab_url(queue: &[u8], tab: &str) -> String {
    address("queue", &[("queue", queue), ("tab", tab.as_bytes())])
}

/// A link to a queue, whose long name loses its middle where it does not fit.
pub fn queue_link(queue: &[u8]) -> Markup {
    named_link(&queue_url(queue), &shown(queue))
}

/// How many characters at the end of a long name are always visible: names often differ only there.
const END: usize = 14;

pub fn named_link(href: &str, name: &str) -> Markup {
    let split = name.char_indices().rev().nth(END).map_or(0, |(at, _)| at);
    let (start, end) = name.split_at(split);
    html! { a.cut href=(href) title=(name) { span { (start) } span { (end) } } }
}

/// An instant in Unix ms, by its distance.
pub fn time(unix_ms: Option<i64>) -> Markup {
    match unix_ms {
        Some(at) => html! { time title=(instant(at)) { (distance(at)) } },
        None => html! { "–" },
    }
}

/// The conditions of a queue, each with a link to where they are seen.
pub fn conditions(queue: &[u8], info: &QueueInfo, conditions: &[(Condition, Level)]) -> Markup {
    html! {
        @for (condition, level) in conditions {
            a class={ "chip " (level.as_str()) } href=(tab_url(queue, tab_of(*condition))) {
                (condition.words(info))
            }
        }
    }
}

/// The tab that shows what a condition is about.
fn tab_of(condition: Condition) -> &'static str {
    match condition {
        Condition::Dying | Condition::Dead => "dead",
        Condition::Late | Condition::Occupied => "consumers",
        Condition::GroupsHeld => "groups",
        Condition::Letters => "letters",
        Condition::Failing | Condition::Full => "details",
        Condition::Paused | Condition::Closed | Condition::Refused | Condition::Unserved | Condition::Limited => {
            "ready"
        }
    }
}

/// A text in which each command of a terminal can be copied.
pub fn advice(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split("; ").enumerate() {
            @if number > 0 { "; " }
            @let (words, command) = command_in(part);
            (words)
            @if let Some(command) = command {
                code { (command) } " "
                button.quiet type="button" data-copy=(command) { "Copy" }
            }
        }
    }
}

/// A part of a sentence, and the command with which it ends. A command without its arguments cannot be copied.
fn command_in(part: &str) -> (&str, Option<&str>) {
    let place = ["dqctl ", "redis-cli "].iter().filter_map(|program| part.find(program)).min();
    let (words, command) = part.split_at(place.unwrap_or(part.len()));
    let end = [" and ", " or ", " with ", " lists ", " shows ", " adds "];
    let is_whole = command.split(' ').count() > 2 && !end.iter().any(|word| command.contains(word));
    if is_whole {
        (words, Some(command))
    } else {
        (part, None)
    }
}

/// A definition list.
pub fn pairs(pairs: &[(String, String)]) -> Markup {
    html! { dl.pairs { @for (name, value) in pairs { div { dt { (name) } dd { (value) } } } } }
}

/// A head of a table whose cells have these names.
pub fn head(columns: &[&str]) -> Markup {
    html! {
        thead { tr {
            @for (place, name) in columns.iter().enumerate() {
                th scope="col" class=[(place > 0).then_some("num")] { (name) }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::element;

    #[test]
    fn elements_of_different_names_have_different_ids() {
        assert_eq!(element("queue", &[b"search"]), "queue/search");
        assert_ne!(element("consumer", &[b"a b", b"c"]), element("consumer", &[b"a", b"b c"]));
        assert_ne!(element("consumer", &[b"a/b", b"c"]), element("consumer", &[b"a", b"b/c"]));
        assert_ne!(element("queue", &[b"\xff"]), element("queue", &[b"\\xff"]));
    }
}

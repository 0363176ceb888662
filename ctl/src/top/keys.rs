//! What the keys do, on the last line and in the help.

use super::app::App;
use super::listing::Listing;
use super::text::{left, Line, Style};

const HELP: &[(&str, &str)] = &[
    ("Up Down, j k", "move; PageUp, PageDown, Home, End, g, G too"),
    ("Enter", "open the queue, then the message"),
    ("Esc", "go back; in the list, forget the filter"),
    ("Tab, Space", "in a queue: the next state; mark messages, for c and r"),
    ("/", "filter queues by name, or messages by id, error or payload; anew"),
    ("f", "find a message by its id in all queues"),
    ("s S, 1 to 9", "in the list: sort by the next column; reverse; by that column"),
    ("p P", "pause the queue, or resume it (a closed one too); pause for a time"),
    ("R N", "redrive all dead messages of the queue; run all delayed ones now"),
    ("X", "in a queue: purge the messages of the state that is shown"),
    ("c r n, t b", "a message: cancel or delete, redrive, run now; nack, bury"),
    ("w o e i", "in a queue: who holds messages, groups, why they died, details"),
    ("r, p", "there: release what it holds, redrive the cause; pause the group"),
    ("q", "leave"),
    ("", "Each change is done only after a question that is answered with y."),
    ("OLDEST", "how long the oldest ready message has been due"),
    ("IN/s OUT/s", "messages a second that were pushed; acked or forwarded"),
    ("LATE", "99 of 100 deliveries of the last busy second were at most so late"),
    ("STATE", "forwarding fails, full, no consumer (nobody takes what is ready),"),
    ("", "messages die, late, paused, closed, at a limit (rate, in flight),"),
    ("", "groups held (o), served (has consumers), open; +2: two more"),
];

pub fn help() -> Vec<Line> {
    let mut lines = vec![Line::new(Style::Bold, "Keys"), Line::default()];
    for (keys, text) in HELP {
        let mut line = Line::new(Style::Bold, left(keys, 14));
        line.add(Style::Plain, *text);
        lines.push(line);
    }
    lines
}

/// The keys that do something now, the least important only if the line has room for them. The help has all.
pub fn keys(app: &App, width: usize) -> Vec<String> {
    let queue = app.queue.as_ref().map(|page| &page.name).or_else(|| app.queues.selected());
    let row = queue.and_then(|name| app.queues.row(name));
    let has = |field: &str| row.is_some_and(|row| row.number(field) > 0);
    let pause = if has("paused") || has("closed") { "p resume" } else { "p pause" };
    let (state, cancel) = (app.state(), format!("c {}", app.removal().verb()));
    let is_gone = app.message.as_ref().is_some_and(|page| matches!(page.message, Some(None)));
    let is_there = app.selected_id().is_some() && !is_gone;
    let of_message = [
        (cancel.as_str(), is_there),
        ("r redrive", is_there && state == "dead"),
        ("n run now", is_there && state == "delayed"),
        ("t nack", is_there && state == "inflight" && app.message.is_some()),
        ("b bury", is_there && state == "inflight" && app.message.is_some()),
    ];
    let entry = app.listing.as_ref().and_then(|page| Some((page.listing, page.selected()?)));
    let of_entry = match entry {
        Some((Listing::Groups, group)) if group.is_paused() => "p resume",
        Some((Listing::Groups, _)) => "p pause",
        Some((Listing::Consumers, _)) => "r release",
        Some((Listing::Schedules, _)) => "n run now",
        Some((Listing::Causes | Listing::Letters | Listing::Batches, _)) | None => "r redrive",
    };
    let enter = if matches!(entry, Some((Listing::Schedules, _))) { "Enter open" } else { "Enter messages" };
    let all = match (&app.message, &app.queue) {
        _ if app.details.is_some() => vec![("Esc back", true), ("? keys", true), ("q leave", true)],
        (None, Some(_)) if app.listing.is_some() => vec![
            (enter, entry.is_some()),
            (of_entry, entry.is_some_and(|(listing, _)| !matches!(listing, Listing::Letters | Listing::Batches))),
            ("Esc back", true),
            ("? keys", true),
            ("q leave", true),
        ],
        (Some(_), _) => [&of_message[..], &[("Esc back", true), ("? keys", true), ("q leave", true)]].concat(),
        (None, Some(_)) => {
            let whole = [
                ("R all", state == "dead" && has("dead") && !app.is_partial()),
                ("N all", state == "delayed" && has("delayed") && !app.is_partial()),
                ("X purge", has(&state) && !app.is_partial()),
                (pause, true),
                ("e causes", state == "dead" && has("dead") || app.has_letters()),
                ("w consumers", state == "inflight" && has("inflight")),
                ("o groups", state != "dead" && has("groups")),
                // The line has no room for more.
                (if state == "dead" || state == "delayed" { "Esc" } else { "Esc back" }, true),
                ("? keys", true),
            ];
            [&[("Tab state", true)], &of_message[..], &whole].concat()
        }
        (None, None) if app.findings.is_open => vec![
            ("Enter open", app.findings.has_queue()),
            ("d look again", true),
            ("Esc back", true),
            ("? keys", true),
            ("q leave", true),
        ],
        (None, None) => vec![
            ("Enter open", row.is_some()),
            ("/ filter", true),
            ("s sort", true),
            (pause, row.is_some()),
            ("R redrive", has("dead")),
            ("N run now", has("delayed")),
            ("? keys", true),
            ("q leave", true),
        ],
    };
    let mut keys: Vec<String> = all.into_iter().filter(|(_, does)| *does).map(|(key, _)| key.to_owned()).collect();
    let more = match (&app.queue, &app.listing, &app.message) {
        (None, ..) if app.findings.is_open => Vec::new(),
        (None, ..) => vec![("f find", true), ("d doctor", true)],
        (Some(_), None, None) if app.details.is_none() => vec![
            ("/ filter", is_there),
            ("Space mark", is_there),
            ("w consumers", has("inflight") && state != "inflight"),
            ("o groups", has("groups") && state == "dead"),
            ("B batches", has("batches")),
            ("i details", true),
            ("s schedules", true),
        ],
        (Some(_), ..) => Vec::new(),
    };
    let mut place = 1;
    for (key, _) in more.into_iter().filter(|(_, does)| *does) {
        if keys.join("  ").len() + 2 + key.len() <= width {
            keys.insert(place, key.to_owned());
            place += 1;
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use crate::reply::Fields;
    use crate::top::source::Update;
    use crate::top::view::screen;
    use crate::top::view::tests::{app, press, text};
    use crossterm::event::KeyCode;
    use dq_client::Value;

    #[test]
    fn a_wide_line_has_more_keys() {
        let mut app = app(&["mail"]);
        press(&mut app, &[KeyCode::Enter]);
        let message = Fields(vec![("id".to_owned(), Value::BulkString(b"m".into()))]);
        app.update(Update::Messages(b"mail".to_vec(), "ready", vec![message]));
        let mut last = |width| text(&screen(&mut app, width, 24)).swap_remove(23);
        assert_eq!(last(72).trim_end(), "Tab state  / filter  c cancel  X purge  p pause  Esc back  ? keys");
        let all =
            "Tab state  / filter  Space mark  i details  s schedules  c cancel  X purge  p pause  Esc back  ? keys";
        assert_eq!(last(110).trim_end(), all);
    }
}

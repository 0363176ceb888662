//! The keys of a page, on the last line.

use super::app::App;
use super::listing::Listing;
use super::moves::Place;
use crate::condition::Condition;
use crate::dead::is_letter;

/// The keys that do something now, the least important only if the line has room for them. The help has all.
pub fn keys(app: &App, width: usize) -> Vec<String> {
    let queue = app.queue.as_ref().map(|page| &page.name).or_else(|| app.queues.selected());
    let row = queue.and_then(|name| app.queues.row(name));
    let has = |field: &str| row.is_some_and(|row| row.number(field) > 0);
    let pause = if has("paused") { "p resume" } else { "p pause" };
    let (state, cancel) = (app.state(), format!("c {}", app.removal().verb()));
    let is_gone = app.message.as_ref().is_some_and(|page| matches!(page.message, Some(None)));
    let is_there = app.selected_id().is_some() && !is_gone;
    let of_message = [
        (cancel.as_str(), is_there),
        ("r redrive", is_there && state == "dead"),
        ("r send back", is_there && app.selected_message().is_some_and(is_letter)),
        ("n run now", is_there && state == "delayed"),
        ("t nack", is_there && state == "inflight" && app.message.is_some()),
        ("b bury", is_there && app.can_bury().is_some() && app.message.is_some()),
    ];
    // What a setting holds back is helped by another setting.
    let is_limited = row.is_some_and(|row| {
        [Condition::Full, Condition::Occupied, Condition::Limited].into_iter().any(|condition| row.has(condition))
    });
    // A paused group without messages is not counted by the server.
    let has_groups = has("groups") || app.queue.as_ref().is_some_and(|page| page.paused_groups > 0);
    let entry = app.listing.as_ref().and_then(|page| Some((page.listing, page.selected()?)));
    // What consumers without a name hold cannot be released together.
    let has_name = entry.is_some_and(|(_, entry)| !entry.name.is_empty());
    let of_entry = match entry {
        Some((Listing::Groups, group)) if group.is_paused() => "p resume",
        Some((Listing::Groups, _)) => "p pause",
        Some((Listing::Consumers | Listing::Holders, _)) => "r release",
        Some((Listing::Schedules, _)) => "n run now",
        Some((Listing::Letters, _)) => "r send back",
        Some((Listing::Causes | Listing::Batches, _)) | None => "r redrive",
    };
    let leads = app.listing.as_ref().zip(row).is_some_and(|(page, row)| page.leads_to(row).is_some());
    let is_opened = leads || matches!(entry, Some((Listing::Schedules, _)));
    let enter = if is_opened { "Enter open" } else { "Enter messages" };
    let place = app.place();
    let all = match place {
        Place::Details => vec![("A alter", true), ("Esc back", true), ("? keys", true), ("q leave", true)],
        Place::Listing(_) => vec![
            (enter, entry.is_some() || leads),
            (of_entry, has_name && entry.is_some_and(|(listing, _)| listing != Listing::Batches)),
            ("u release uncounted", has_name && entry.is_some_and(|(listing, _)| listing.keys().contains('u'))),
            ("c delete", entry.is_some_and(|(listing, _)| listing.keys().contains('c'))),
            ("Esc back", true),
            ("? keys", true),
            ("q leave", true),
        ],
        Place::Message => [&of_message[..], &[("Esc back", true), ("? keys", true), ("q leave", true)]].concat(),
        Place::Messages => {
            let whole = [
                ("R all", state == "dead" && has("dead") && !app.is_partial()),
                ("N all", state == "delayed" && has("delayed") && !app.is_partial()),
                ("X purge", has(&state) && !app.is_partial()),
                (pause, true),
                ("A alter", is_limited),
                ("e causes", state == "dead" && (has("dead") || has("deadforwarded")) || app.has_letters()),
                ("w consumers", state == "inflight" && has("inflight")),
                ("o groups", state != "dead" && has_groups),
                // The line has no room for more.
                (if state == "dead" || state == "delayed" { "Esc" } else { "Esc back" }, true),
                ("? keys", true),
            ];
            [&[("Tab state", true)], &of_message[..], &whole].concat()
        }
        Place::Found => {
            vec![("Enter open", true), ("f find", true), ("Esc back", true), ("? keys", true), ("q leave", true)]
        }
        Place::Findings => vec![
            ("Enter open", app.findings.has_queue()),
            ("d look again", true),
            ("Esc back", true),
            ("? keys", true),
            ("q leave", true),
        ],
        Place::Queues if !app.queues.marked.is_empty() => vec![
            ("Space mark", true),
            (if app.queues.are_marked("paused") { "p resume" } else { "p pause" }, true),
            (if app.queues.are_marked("closed") { "C open" } else { "C close" }, true),
            ("R redrive", !app.queues.marked_with(Some("dead")).is_empty()),
            ("N run now", !app.queues.marked_with(Some("delayed")).is_empty()),
            ("Esc forget marks", true),
            ("? keys", true),
            ("q leave", true),
        ],
        Place::Queues => vec![
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
    let more = match place {
        Place::Queues => vec![
            ("d doctor", true),
            ("w consumers", app.queues.marked.is_empty()),
            ("f find", true),
            ("Space mark", app.queues.marked.is_empty()),
            ("a mark all", !app.queues.filter.is_empty()),
        ],
        Place::Messages => vec![
            ("a mark all", is_there && app.is_partial()),
            ("/ filter", is_there),
            ("Space mark", is_there),
            ("w consumers", has("inflight") && state != "inflight"),
            ("o groups", has_groups && state == "dead"),
            ("B batches", has("batches")),
            ("i details", true),
            ("A alter", !is_limited),
            ("s schedules", true),
        ],
        Place::Listing(_) => vec![("/ filter", entry.is_some())],
        Place::Found | Place::Findings | Place::Message | Place::Details => Vec::new(),
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
    use crate::top::exchange::Update;
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
            "Tab state  / filter  Space mark  i details  A alter  s schedules  c cancel  X purge  p pause  Esc back  ? keys";
        assert_eq!(last(120).trim_end(), all);
    }
}

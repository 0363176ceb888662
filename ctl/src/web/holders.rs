//! Who holds messages back: consumers with their deliveries, of one queue or of all, and groups.

use super::html::{act, address, contains, head, named_link, queue_link, time};
use super::{App, Params, View};
use crate::board::{consumers, groups::each, Group, Holder, Status};
use crate::server::{Failure, Fields};
use crate::text::{messages, now_ms, separated, shown};
use dq_client::Error;
use maud::{html, Markup};
use serde_json::json;
use std::cmp::Reverse;
use std::time::{Duration, Instant};

/// How long queues are read at most, the rows with which no further one is read, and those that are listed.
const READ: Duration = Duration::from_secs(2);
const ROWS: usize = 20_000;
const LISTED: usize = 500;
/// The most groups that are looked at.
const GROUPS: usize = 500_000;

/// The consumers of one queue.
pub fn of_queue(app: &App, queue: &[u8], info: &Fields) -> Result<Markup, Failure> {
    let (mut rows, unnamed) = consumers::read(&app.client, queue, info)?;
    rows.sort_by_key(|row| row.since);
    Ok(html! {
        (table(app, &rows, false))
        @if unnamed > 0 { p.dim { (messages(unnamed)) " in flight with consumers that have no name: they pop without AS." } }
        @if rows.is_empty() && unnamed == 0 { p.empty { "No consumer holds a message." } }
    })
}

/// The consumers of all queues, those that hold a message for longest first.
pub fn everywhere(app: &App, params: &Params) -> Result<View, Failure> {
    let part = params.bytes("contains").unwrap_or_default();
    let is_known = app.board.wait()?.is_known;
    let queues: Vec<(Vec<u8>, Fields)> = app.board.rows(|rows| {
        let with_consumers = rows.iter().filter(|(_, row)| row.status == Status::Known && row.number("consumers") > 0);
        with_consumers.map(|(name, row)| (name.clone(), row.info.clone())).collect()
    });
    let (mut rows, mut read, end) = (Vec::new(), 0, Instant::now() + READ);
    for (name, info) in &queues {
        if Instant::now() > end || rows.len() > ROWS {
            break;
        }
        match consumers::read(&app.client, name, info) {
            Ok((found, _)) => rows.extend(found),
            Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
            Err(error) => return Err(error.into()),
        }
        read += 1;
    }
    rows.retain(|row| contains(&row.queue, part) || contains(&row.consumer, part));
    rows.sort_by_key(|row| row.since);
    let body = html! {
        div.head { h1 { "Consumers" } }
        form.filters id="filters" data-view="consumers" {
            label { "Filter" input type="search" name="contains" value=(params.text("contains")) placeholder="Consumer, queue"; }
        }
        (table(app, &rows, true))
        @if !is_known { p { "Looking for consumers…" } }
        @else if rows.is_empty() { p.empty { "No such consumer holds a message." } }
        @if read < queues.len() { p.dim { "Not all queues were read, so there may be more." } }
    };
    Ok(View { title: "Consumers".to_owned(), body })
}

fn table(app: &App, rows: &[Holder], has_queue: bool) -> Markup {
    html! {
        @if !rows.is_empty() {
            table.cards {
                (head(&["Consumer", "Queue", "Messages", "Longest since", ""]))
                tbody { @for row in rows.iter().take(LISTED) {
                    @let (queue, consumer) = (shown(&row.queue), shown(&row.consumer));
                    tr id={ (queue) " " (consumer) } {
                        td.name { (named_link(&address("queue", &[("queue", &row.queue), ("tab", b"inflight"), ("consumer", &row.consumer)]), &consumer)) }
                        td.num data-label="Queue" { @if has_queue { (queue_link(&row.queue)) } }
                        td.num data-label="Messages" { (separated(row.messages)) }
                        td.num data-label="Longest since" { (time(Some(row.since))) }
                        td { @if app.allow_writes { (act("Release", &json!({ "act": "release", "queue": queue, "consumer": consumer }), &json!({}))) } }
                    }
                } }
            }
        }
    }
}

/// The groups of a queue: first those that are held back, so that they can be resumed however many others there are.
pub fn groups(app: &App, queue: &[u8], info: &Fields, params: &Params) -> Result<Markup, Failure> {
    let part = params.bytes("contains").unwrap_or_default();
    let (mut found, mut looked, limit) = (Vec::new(), 0, info.int("groupinflight").unwrap_or(0));
    for group in each(&app.client, queue).take(GROUPS) {
        let group = group?;
        looked += 1;
        found.extend(Some(group).filter(|group| contains(group.name.as_bytes(), part)));
        if found.len() >= ROWS {
            break;
        }
    }
    found.sort_by_cached_key(|group| Reverse((group.is_paused(), !held_back(group, limit).is_empty(), group.waiting)));
    let name = shown(queue);
    Ok(html! {
        form.filters id="filters" data-view="queue" {
            label { "Filter" input type="search" name="contains" value=(params.text("contains")) placeholder="Part of a name"; }
            p.dim { (separated(found.len())) " groups" @if looked >= GROUPS { " at least" } }
        }
        @if app.allow_writes { (act("Pause a group by name", &json!({ "act": "pause", "queue": name }), &json!({ "group": "", "for": "" }))) }
        table.cards {
            (head(&["Group", "Waiting", "Occupied by", "Oldest due", "Held back", ""]))
            tbody { @for group in found.iter().take(LISTED) {
                @let tab = if group.oldest_due > Some(now_ms()) { "delayed" } else { "ready" };
                tr id=(group.name) {
                    td.name { (named_link(&address("queue", &[("queue", queue), ("tab", tab.as_bytes()), ("group", group.name.as_bytes())]), &group.name)) }
                    td.num data-label="Waiting" { (group.waiting) }
                    td.num data-label="Occupied by" { (group.occupied) }
                    td.num data-label="Oldest due" { (time(group.oldest_due)) }
                    td.num data-label="Held back" { (held_back(group, limit)) }
                    td { @if app.allow_writes {
                        @let what = if group.is_paused() { ("Resume", "resume") } else { ("Pause", "pause") };
                        (act(what.0, &json!({ "act": what.1, "queue": name, "group": group.name }), &json!({ "for": "" })))
                    } }
                }
            } }
        }
        @if found.is_empty() { p.empty { "No such group has a message that is not dead, and none is paused." } }
    })
}

fn held_back(group: &Group, limit: i64) -> &'static str {
    match group.paused_until {
        None => "paused until it is resumed",
        Some(until) if until > 0 => "paused for a time",
        _ if group.next_delivery > Some(now_ms()) => "at its rate",
        _ if limit > 0 && group.waiting > 0 && group.occupied >= limit => "at its limit",
        _ => "",
    }
}

//! Who holds messages back: consumers with their deliveries, of one queue or of all, and groups.

use super::app::{App, Problem, View};
use super::find::{self, contains};
use super::html::{act, address, head, named_link, queue_link, time};
use super::params::Params;
use super::presence::Presence;
use crate::board::groups::{each, Group};
use crate::board::row::Status;
use crate::board::Board;
use crate::server::failure::Failure;
use crate::server::reply::Fields;
use crate::text::name::shown;
use crate::text::number::messages;
use crate::text::number::separated;
use crate::text::time::now_ms;
use dq_client::{Client, Error};
use maud::{html, Markup};
use serde_json::json;
use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How long queues are read at most, the rows with which no further one is read, and those that are listed.
const READ: Duration = Duration::from_secs(5);
const ROWS: usize = 20_000;
const LISTED: usize = 500;
/// The most groups that are looked at.
const GROUPS: usize = 500_000;

/// The messages that one consumer holds in one queue.
pub struct Holder {
    queue: Vec<u8>,
    consumer: Vec<u8>,
    messages: u64,
    /// When the oldest of these deliveries began, in Unix ms.
    since: i64,
}

/// The holders of all queues, those that hold a message for longest first, and whether all queues were read.
#[derive(Default)]
pub struct Holders {
    rows: Vec<Holder>,
    is_whole: bool,
}

impl Holders {
    /// Reads the queues that have messages in flight, as long as the time allows it.
    pub fn read(client: &Client, board: &Board) -> Result<Holders, Failure> {
        if !board.wait()?.is_known {
            return Ok(Holders::default());
        }
        let names: Vec<Vec<u8>> = board.rows(|rows| {
            rows.iter().filter(|(_, row)| row.status != Status::Lost).map(|(name, _)| name.clone()).collect()
        });
        let (mut rows, end, mut is_whole) = (Vec::new(), Instant::now() + READ, true);
        for name in &names {
            is_whole = Instant::now() < end && rows.len() < ROWS;
            if !is_whole {
                break;
            }
            match of(client, name) {
                Ok(found) => rows.extend(found),
                Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        rows.sort_by_key(|row| row.since);
        Ok(Holders { rows, is_whole })
    }
}

fn of(client: &Client, queue: &[u8]) -> Result<Vec<Holder>, Error> {
    let mut rows = Vec::new();
    if find::read(client, queue)?.is_some_and(|info| info.number("consumers") > 0) {
        for consumer in client.queue::<()>(queue).consumers() {
            let consumer = consumer?;
            let since = consumer.oldest_delivery.duration_since(UNIX_EPOCH).unwrap_or_default();
            let since = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
            rows.push(Holder { queue: queue.to_vec(), consumer: consumer.name, messages: consumer.inflight, since });
        }
    }
    rows.sort_by_key(|row| row.since);
    Ok(rows)
}

/// The consumers of one queue.
pub fn of_queue(app: &App, queue: &[u8], info: &Fields) -> Result<Markup, Problem> {
    let rows = of(&app.client, queue)?;
    let named: u64 = rows.iter().map(|row| row.messages).sum();
    let unnamed = info.number("inflight").saturating_sub(named);
    Ok(html! {
        (table(app, &rows.iter().collect::<Vec<_>>(), false))
        @if unnamed > 0 { p.dim { (messages(unnamed)) " in flight with consumers that have no name: they pop without AS." } }
        @if rows.is_empty() && unnamed == 0 { p.empty { "No consumer holds a message." } }
    })
}

/// The consumers of all queues, and the clients that pop.
pub fn everywhere(app: &App, params: &Params) -> Result<View, Problem> {
    let part = params.bytes("contains").unwrap_or_default();
    let holders = app.holders.get()?;
    let is_wanted = |row: &&Holder| contains(&row.queue, part) || contains(&row.consumer, part);
    let rows: Vec<&Holder> = holders.iter().flat_map(|holders| &holders.rows).filter(is_wanted).collect();
    let clients = app.clients.get().ok().flatten();
    let poppers = clients.iter().flat_map(|clients| &clients.listed.poppers);
    let mut poppers: Vec<_> =
        poppers.filter(|(one, _)| contains(one.name.as_bytes(), part) || contains(one.host.as_bytes(), part)).collect();
    poppers.sort_by_key(|(_, connections)| connections.last_active);
    let body = html! {
        div.head { h1 { "Consumers" } }
        form.filters id="filters" data-view="consumers" {
            label { "Filter" input type="search" name="contains" value=(params.text("contains")) placeholder="Consumer, queue, host"; }
        }
        (table(app, &rows, true))
        @match &holders {
            None => p { "Looking for consumers…" },
            Some(holders) => {
                @if rows.is_empty() { p.empty { "No such consumer holds a message." } }
                @if !holders.is_whole { p.dim { "Not all queues were read, so there may be more." } }
            }
        }
        h2 { "Clients that pop" }
        @if clients.is_none() { p.dim { "The server lists them for users with the rights +client|list and +client|info." } }
        table.cards {
            (head(&["Client", "Host", "Library", "Connections", "Waiting", "Last active"]))
            tbody { @for (one, connections) in poppers.iter().take(LISTED) {
                tr {
                    td.name { (if one.name.is_empty() { "–" } else { &one.name }) }
                    td.num data-label="Host" { (one.host) }
                    td.num data-label="Library" { (one.library) }
                    td.num data-label="Connections" { (connections.count) }
                    td.num data-label="Waiting" { (connections.waiting) }
                    td.num data-label="Last active" { (time(Some(connections.last_active))) }
                }
            } }
        }
    };
    Ok(View { title: "Consumers".to_owned(), body })
}

fn table(app: &App, rows: &[&Holder], has_queue: bool) -> Markup {
    let clients = app.clients.get().ok().flatten();
    html! {
        @if !rows.is_empty() {
            table.cards {
                (head(&["Consumer", "Queue", "Messages", "Longest since", "Connections", ""]))
                tbody { @for row in rows.iter().take(LISTED) {
                    @let (queue, consumer) = (shown(&row.queue), shown(&row.consumer));
                    tr id={ (queue) " " (consumer) } {
                        td.name { (named_link(&address("queue", &[("queue", &row.queue), ("tab", b"inflight"), ("consumer", &row.consumer)]), &consumer)) }
                        td.num data-label="Queue" { @if has_queue { (queue_link(&row.queue)) } }
                        td.num data-label="Messages" { (separated(row.messages)) }
                        td.num data-label="Longest since" { (time(Some(row.since))) }
                        td.num data-label="Connections" { (connections(clients.as_deref(), rows, row)) }
                        td { @if app.allow_writes { (act("Release", &json!({ "act": "release", "queue": queue, "consumer": consumer }), &json!({}))) } }
                    }
                } }
            }
        }
    }
}

/// How many connections have the name of a consumer, if that can be told.
fn connections(clients: Option<&Presence>, rows: &[&Holder], row: &Holder) -> String {
    let others = rows.iter().filter(|other| other.queue == row.queue);
    let known = clients.and_then(|clients| {
        let others_have = others.clone().any(|other| clients.has(&other.consumer));
        clients.connections(&row.consumer, others_have)
    });
    match known {
        Some(0) => "none of this name".to_owned(),
        Some(number) => number.to_string(),
        None => "–".to_owned(),
    }
}

/// The groups of a queue: first those that are held back, so that they can be resumed however many others there are.
pub fn groups(app: &App, queue: &[u8], info: &Fields, params: &Params) -> Result<Markup, Problem> {
    let part = params.bytes("contains").unwrap_or_default();
    let (mut found, mut looked, limit) = (Vec::new(), 0, info.int("groupinflight").unwrap_or(0));
    each(&app.client, queue, |group| {
        looked += 1;
        if contains(group.name.as_bytes(), part) {
            found.push(group);
        }
        Ok(if found.len() < ROWS && looked < GROUPS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
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

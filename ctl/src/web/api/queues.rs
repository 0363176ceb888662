//! The queues: a page of the list, one of them, and its groups and consumers.

use super::messages::{cut, BEGINNING};
use super::{put, Answer, Api, Params, Problem};
use crate::batches;
use crate::board::condition::{begins_with_letter, Condition, Level};
use crate::board::history::Rates;
use crate::board::latency::Histogram;
use crate::board::row::{Row, Status};
use crate::board::sort::{Named, Sort};
use crate::clients::Popper;
use crate::failure::Failure;
use crate::groups::{self as of_groups, Group, Held};
use crate::reply;
use crate::time::now_ms;
use crate::web::deaths;
use crate::web::find::{self, contains};
use crate::web::holders::Holder;
use crate::web::presence::Presence;
use clap::ValueEnum;
use dq_client::{cmd, Error, Resend, Value};
use serde_json::{json, Map, Value as Json};
use std::cmp::Reverse;
use std::collections::HashSet;

/// The most queues of one answer.
const QUEUES: i64 = 200;
/// The most groups or consumers that are kept, that are looked at for a part of their name, and that are listed.
const READ: usize = 20_000;
const SEARCHED: usize = 500_000;
const LISTED: i64 = 500;
/// The most messages whose batches are listed.
const READ_MESSAGES: usize = 5_000;

pub fn queues(api: &Api, params: &Params) -> Answer {
    params.only(&["contains", "state", "sort", "reverse", "offset", "limit"])?;
    let part = params.bytes("contains")?.unwrap_or_default();
    let sort = params.text("sort")?.map_or(Ok(Sort::State), |word| Sort::from_str(&word, true));
    let words: Vec<String> = Sort::value_variants().iter().map(|sort| sort.name()).collect();
    let sort = sort.map_err(|_| Problem::wrong(format!("sort must be one of: {}", words.join(", "))))?;
    let is_reversed = params.int("reverse", 0, 1)? == Some(1);
    let offset = size(params.int("offset", 0, i64::MAX)?.unwrap_or(0));
    let limit = size(params.int("limit", 1, QUEUES)?.unwrap_or(50));
    let state = params.text("state")?;
    let about = api.board.wait()?;
    if !about.is_known {
        return Ok(json!({ "total": 0, "offset": 0, "queues": [], "searching": true }));
    }
    // Every other order needs all queues.
    let sort = if about.is_read { sort } else { Sort::Queue };
    let compare = |a: &Named, b: &Named| if is_reversed { sort.compare(*b, *a) } else { sort.compare(*a, *b) };
    let (names, all, troubled) = api.board.rows(|rows| {
        let has_state = |row: &Row, state: &str| row.conditions.iter().any(|(one, _)| one.as_str() == state);
        let named = rows.iter().map(|(name, row)| (name.as_slice(), row));
        let mut chosen: Vec<Named> = named
            .filter(|(name, row)| contains(name, &part) && state.as_deref().is_none_or(|state| has_state(row, state)))
            .collect();
        chosen.sort_by(compare);
        let count = |level| chosen.iter().filter(|(_, row)| row.level() == Some(level)).count();
        let names: Vec<Vec<u8>> = chosen.iter().map(|(name, _)| name.to_vec()).collect();
        (names, rows.len(), [Level::Bad, Level::Warning].map(count))
    });
    let mut looked: Vec<(&[u8], Row, Json)> = Vec::new();
    for name in names.iter().skip(offset).take(limit) {
        if api.board.rows(|rows| rows.get(name).is_some_and(|row| row.status == Status::Lost)) {
            looked.push((name, Row::default(), Json::from("its server does not answer")));
            continue;
        }
        match api.board.look(name) {
            Ok(Some(row)) => looked.push((name, row, Json::Null)),
            // It was deleted or replaced since it was found.
            Ok(None) | Err(Error::WrongType(_)) => {}
            Err(error) if api.client.is_cluster() || matches!(error, Error::NoPermission(_)) => {
                looked.push((name, Row::default(), Json::from(Failure::from(error).to_string())));
            }
            Err(error) => return Err(error.into()),
        }
    }
    looked.sort_by(|(a_name, a, _), (b_name, b, _)| compare(&(*a_name, a), &(*b_name, b)));
    let rows: Vec<Json> = looked.into_iter().map(|(name, row, error)| object(api, name, &row, error)).collect();
    Ok(json!({
        "total": names.len(),
        "offset": offset,
        "queues": rows,
        "all": all,
        "limited": about.is_limited,
        "failed": about.missing.iter().collect::<Vec<_>>(),
        "sorted": about.is_read,
        "searching": !about.is_read && state.is_some(),
        "troubled": about.is_read.then_some(troubled),
        "now": now_ms(),
    }))
}

/// A row of the list.
fn object(api: &Api, name: &[u8], row: &Row, error: Json) -> Json {
    let mut object = row.info.json();
    if error.is_null() {
        add_conditions(api, name, row, &mut object);
        object.insert("rates".to_owned(), json!(row.rates().map(Rates::json)));
        object.insert("depths".to_owned(), row.history.depths());
    } else {
        object.insert("error".to_owned(), error);
    }
    put(&mut object, "queue", name);
    Json::Object(object)
}

pub fn queue(api: &Api, params: &Params) -> Answer {
    params.only(&["queue"])?;
    let name = params.needed("queue")?;
    let row = api.board.look(&name)?.ok_or_else(no_queue)?;
    let stats = find::read_stats(&api.client, &name)?;
    let mut answer = Map::new();
    put(&mut answer, "queue", &name);
    add_conditions(api, &name, &row, &mut answer);
    // A user who may not read the groups still sees how many messages they hold.
    let held = of_groups::held(&api.client, &name, &row.info).unwrap_or_default();
    answer.insert("held".to_owned(), held.iter().take(of_groups::MOST_NAMED).map(Held::json).collect());
    answer.insert("held-groups".to_owned(), json!(held.len()));
    answer.insert("paused-groups".to_owned(), json!(row.number("paused-groups")));
    answer.insert("info".to_owned(), Json::Object(row.info.json()));
    answer.insert("letters".to_owned(), json!(begins_with_letter(&api.client, &name)));
    let told = |name| stats.as_ref().map(|stats| Histogram::read(stats, name).told());
    answer.insert("times".to_owned(), json!({ "lateness": told("lateness"), "runtime": told("runtime") }));
    answer.insert("stats".to_owned(), stats.map_or(Json::Null, |stats| Json::Object(stats.json())));
    answer.insert("rates".to_owned(), json!(row.rates().map(Rates::json)));
    answer.insert("history".to_owned(), api.samples(Some(&name)));
    answer.insert("now".to_owned(), json!(now_ms()));
    Ok(Json::Object(answer))
}

/// Adds the conditions of a queue, the most important first, and what died lately if that is one of them.
fn add_conditions(api: &Api, name: &[u8], row: &Row, object: &mut Map<String, Json>) {
    if row.has(Condition::Dying) {
        object.insert("deaths".to_owned(), deaths::recent(&api.client, &api.board, name, &row.info));
    }
    object.insert("conditions".to_owned(), Condition::json(&row.conditions));
}

/// The groups of a queue: first those that are paused, then others that are held back, then those with the most messages that
/// wait.
pub fn groups(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "count", "contains"])?;
    let queue = params.needed("queue")?;
    let limit = find::read(&api.client, &queue)?.and_then(|info| info.int("groupinflight")).unwrap_or(0);
    let mut rows = rows_of(api, params, "DQ.GROUPS")?;
    let rank = |row: &Vec<Value>| {
        let group = Group::read(row);
        let is_full = limit > 0 && group.waiting > 0 && group.occupied >= limit;
        let is_held = is_full || group.next_delivery > Some(now_ms());
        Reverse((group.is_paused(), is_held, group.waiting))
    };
    let paused = rows.items.iter().filter(|row| Group::read(row).is_paused()).count();
    rows.items.sort_by_cached_key(rank);
    let numbers = ["waiting", "occupied", "oldest-due", "paused-until", "next-delivery"];
    let mut answer = rows.listed(params, "group", &numbers)?;
    answer.insert("paused".to_owned(), json!(paused));
    Ok(Json::Object(answer))
}

/// The consumers that hold messages, those that hold one for longest first; of all queues if none is named.
pub fn consumers(api: &Api, params: &Params) -> Answer {
    if params.bytes("queue")?.is_none() {
        return all_consumers(api, params);
    }
    params.only(&["queue", "count"])?;
    let mut rows = rows_of(api, params, "DQ.CONSUMERS")?;
    rows.items.sort_by_key(|item| Reverse(item.get(1).and_then(reply::int)));
    let mut answer = rows.listed(params, "consumer", &["messages", "since"])?;
    if let Some(Json::Array(consumers)) = answer.get_mut("consumers") {
        consumers.sort_by_key(|consumer| consumer.get("since").and_then(Json::as_i64));
        let clients = api.clients.get().ok().flatten();
        let name = |consumer: &Json| consumer.get("consumer").and_then(Json::as_str).unwrap_or_default().to_owned();
        let has = clients.as_ref().is_some_and(|clients| consumers.iter().any(|one| clients.has(name(one).as_bytes())));
        for consumer in consumers {
            let number = clients.as_ref().and_then(|clients| clients.connections(name(consumer).as_bytes(), has));
            if let Some(consumer) = consumer.as_object_mut() {
                consumer.insert("connections".to_owned(), json!(number));
            }
        }
    }
    Ok(Json::Object(answer))
}

fn all_consumers(api: &Api, params: &Params) -> Answer {
    params.only(&["contains", "count"])?;
    let part = params.bytes("contains")?.unwrap_or_default();
    let wanted = size(params.int("count", 1, LISTED)?.unwrap_or(LISTED));
    // Read for the first time, it may take longer than a request waits.
    let Some(holders) = api.holders.get()? else { return Ok(json!({ "consumers": [], "searching": true })) };
    let found: Vec<&Holder> = holders.rows.iter().filter(|row| row.contains(&part)).collect();
    let (clients, is_searching) = match api.clients.get() {
        Ok(clients) => (clients.clone(), clients.is_none()),
        Err(_) => (None, false),
    };
    Ok(json!({
        "consumers": rows(&holders.rows, found.iter().take(wanted), clients.as_deref()),
        "total": found.len(),
        "queues": holders.queues,
        "read": holders.read,
        "searching": holders.queues.is_none(),
        "clients": clients.map_or(Json::Null, |clients| poppers(&clients, &part, wanted)),
        "searching-clients": is_searching,
        "now": now_ms(),
    }))
}

/// Holders, with the connections of their names; null if they cannot be told.
fn rows<'a>(all: &[Holder], wanted: impl Iterator<Item = &'a &'a Holder>, clients: Option<&Presence>) -> Vec<Json> {
    let is_known = |row: &Holder, clients: &Presence| row.consumer.as_ref().is_some_and(|name| clients.has(name));
    let queues_of = |clients| all.iter().filter(|row| is_known(row, clients)).map(|row| &row.queue).collect();
    let known: HashSet<&Vec<u8>> = clients.map(queues_of).unwrap_or_default();
    let connections = |row: &Holder| clients?.connections(row.consumer.as_ref()?, known.contains(&row.queue));
    wanted.map(|row| row.json(connections(row))).collect()
}

/// The clients that take messages, those that have not asked for longest first.
fn poppers(clients: &Presence, part: &[u8], wanted: usize) -> Json {
    let found = &clients.listed.poppers;
    let is_wanted = |popper: &Popper| [&popper.name, &popper.host].iter().any(|text| contains(text.as_bytes(), part));
    let mut found: Vec<_> = found.iter().filter(|(popper, _)| is_wanted(popper)).collect();
    found.sort_by_key(|(_, connections)| connections.last_active);
    found.into_iter().take(wanted).map(|(popper, connections)| Json::Object(popper.json(*connections))).collect()
}

/// The batches of the messages of a queue, those with the most messages left first.
pub fn batches(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "batch"])?;
    let queue = params.needed("queue")?;
    let found = match params.bytes("batch")? {
        None => batches::find(&api.client, &queue, READ_MESSAGES)?.ok_or_else(no_queue)?,
        Some(name) => {
            let fields = batches::info(&api.client, &queue, &name)?;
            batches::Found {
                batches: fields.into_iter().map(|fields| (name.clone(), fields)).collect(),
                is_limited: false,
                empty: 0,
            }
        }
    };
    let mut batches: Vec<Map<String, Json>> = found
        .batches
        .into_iter()
        .map(|(name, fields)| {
            let mut batch = cut(fields, BEGINNING);
            put(&mut batch, "batch", &name);
            batch
        })
        .collect();
    batches.sort_by_key(|batch| Reverse(batch.get("left").and_then(Json::as_i64)));
    Ok(json!({ "batches": batches, "limited": found.is_limited, "now": now_ms() }))
}

/// What a command with a cursor lists: items that are a name and numbers.
struct Rows {
    items: Vec<Vec<Value>>,
    is_limited: bool,
}

/// Reads the items whose name has the part `contains`.
fn rows_of(api: &Api, params: &Params, command: &str) -> Result<Rows, Problem> {
    let (queue, part) = (params.needed("queue")?, params.bytes("contains")?.unwrap_or_default());
    let (mut cursor, mut items, mut looked) = (b"0".to_vec(), Vec::new(), 0);
    loop {
        let command = cmd(command).arg(&queue).arg(&cursor).arg("COUNT").arg(1_000).clone();
        let mut page = reply::list(api.client.call(&command, Resend::Harmless)?)?.into_iter();
        let Some(Value::BulkString(next)) = page.next() else { break };
        for item in reply::list(page.next().unwrap_or(Value::Nil))? {
            let item = reply::list(item)?;
            looked += 1;
            if matches!(item.first(), Some(Value::BulkString(name)) if contains(name, &part)) {
                items.push(item);
            }
        }
        cursor = next;
        if cursor == b"0" || items.len() >= READ || looked >= SEARCHED {
            break;
        }
    }
    Ok(Rows { items, is_limited: cursor != b"0" })
}

impl Rows {
    /// The first ones as objects.
    fn listed(&self, params: &Params, noun: &str, numbers: &[&str]) -> Result<Map<String, Json>, Problem> {
        let wanted = size(params.int("count", 1, LISTED)?.unwrap_or(LISTED));
        let object = |item: &Vec<Value>| {
            let mut object = Map::new();
            if let Some(Value::BulkString(name)) = item.first() {
                put(&mut object, noun, name);
            }
            for (name, number) in numbers.iter().zip(item.iter().skip(1)) {
                object.insert((*name).to_owned(), json!(reply::int(number)));
            }
            Json::Object(object)
        };
        let shown: Vec<Json> = self.items.iter().take(wanted).map(object).collect();
        Ok(Map::from_iter([
            (format!("{noun}s"), Json::Array(shown)),
            ("total".to_owned(), json!(self.items.len())),
            ("limited".to_owned(), json!(self.is_limited)),
            ("now".to_owned(), json!(now_ms())),
        ]))
    }
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub fn no_queue() -> Problem {
    Problem::new(404, "there is no queue of this name")
}

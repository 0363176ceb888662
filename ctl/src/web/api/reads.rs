//! Reads: the servers, the queues, and their messages.

use super::{put, Answer, Api, Params, Problem};
use crate::failure::Failure;
use crate::reply::{self, Fields};
use crate::time::now_ms;
use crate::web::find::{self, Order};
use crate::web::history::Sample;
use dq_client::{cmd, Client, Error, Resend, Value};
use serde_json::{json, Map, Value as Json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The most queues, and the most messages, of one answer.
const QUEUES: i64 = 200;
const MESSAGES: i64 = 500;
/// What is shown of a payload in a list, and of the payload of one message.
const BEGINNING: usize = 240;
const WHOLE: usize = 1024 * 1024;
/// Fewer messages are listed if their payloads together are larger than this.
const LISTED_BYTES: i64 = 8 * 1024 * 1024;
/// How long an id is searched for, and how many messages are found at most.
const SEARCH: Duration = Duration::from_secs(3);
const FOUND: usize = 50;

/// The fields of `INFO dq`, added up over all servers, without their prefix.
pub type Totals = BTreeMap<String, i64>;

/// The servers with their versions or errors, and their totals.
pub fn servers(client: &Client) -> Result<(Vec<Json>, Totals), Problem> {
    let (mut servers, mut totals) = (Vec::new(), Totals::new());
    for server in client.servers()? {
        // The second attempt opens another connection, if the first one was closed by the server meanwhile.
        let command = cmd("INFO").arg("server").arg("dq").clone();
        let info = client.call_on(&server, &command).or_else(|_| client.call_on(&server, &command));
        let name = server.to_string();
        match info {
            Ok(info) => {
                let info = reply::text(&info).unwrap_or_default();
                let field = |name: &str| {
                    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
                };
                let version = match (field("valkey_version"), field("redis_version")) {
                    (Some(version), _) => format!("Valkey {version}"),
                    (None, Some(version)) => format!("Redis {version}"),
                    (None, None) => String::new(),
                };
                let counts = info.lines().filter_map(|line| line.strip_prefix("dq_")?.trim().split_once(':'));
                for (name, number) in counts {
                    if let Ok(number) = number.parse::<i64>() {
                        *totals.entry(name.to_owned()).or_default() += number;
                    }
                }
                servers.push(json!({ "server": name, "version": version }));
            }
            Err(error @ Error::NoPermission(_)) => return Err(error.into()),
            Err(error) => servers.push(json!({ "server": name, "error": Failure::from(error).to_string() })),
        }
    }
    if let Some(error) = servers.iter().map(|server| server.get("error")).collect::<Option<Vec<_>>>() {
        let text = error.first().and_then(|error| error.as_str()).unwrap_or("there is no server");
        return Err(Problem::new(503, text));
    }
    Ok((servers, totals))
}

/// A sample of all queues together.
pub fn sample(totals: &Totals) -> Sample {
    let number = |name: &str| totals.get(name).copied().unwrap_or(0);
    Sample::of(number, |name| number(&format!("total_{name}")))
}

pub fn server(api: &Api, params: &Params) -> Answer {
    params.only(&[])?;
    let (servers, totals) = servers(&api.client)?;
    api.history.look(None, sample(&totals));
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "writes": api.allow_writes,
        "cluster": api.client.is_cluster(),
        "now": now_ms(),
        "servers": servers,
        "totals": totals,
        "rates": api.history.rates(None),
        "history": api.history.samples(None),
    }))
}

pub fn queues(api: &Api, params: &Params) -> Answer {
    params.only(&["contains", "sort", "offset", "limit"])?;
    let part = params.bytes("contains")?.unwrap_or_default().to_ascii_lowercase();
    let order = params.text("sort")?.map_or(Some(Order::Name), |word| Order::of(&word));
    let order = order
        .ok_or_else(|| Problem::wrong("sort must be one of: name, ready, delayed, inflight, dead, oldest-ready"))?;
    let offset = size(params.int("offset", 0, i64::MAX)?.unwrap_or(0));
    let limit = size(params.int("limit", 1, QUEUES)?.unwrap_or(50));
    let Some(known) = api.find.names()? else {
        return Ok(json!({ "total": 0, "offset": 0, "queues": [], "searching": true }));
    };
    let contains = |name: &[u8]| part.is_empty() || name.windows(part.len()).any(|at| at.eq_ignore_ascii_case(&part));
    let mut names: Vec<&Vec<u8>> = known.names.iter().filter(|name| contains(name)).collect();
    let is_sorted = api.find.sort(&mut names, order)?;
    let mut rows = Vec::new();
    for name in names.iter().skip(offset).take(limit) {
        let mut row = Map::new();
        match find::read(&api.client, name) {
            Ok(Some(info)) => {
                api.seen(name, Some(Sample::of_queue(&info)));
                row = info.json();
                row.insert("rates".to_owned(), api.history.rates(Some(name)));
                row.insert("depths".to_owned(), api.history.depths(name));
            }
            // It was deleted since it was found.
            Ok(None) => {
                api.seen(name, None);
                continue;
            }
            Err(Error::WrongType(_)) => continue,
            Err(error @ Error::NoPermission(_)) => {
                row.insert("error".to_owned(), Json::from(Failure::from(error).to_string()));
            }
            Err(error) if api.client.is_cluster() => {
                row.insert("error".to_owned(), Json::from(Failure::from(error).to_string()));
            }
            Err(error) => return Err(error.into()),
        }
        put(&mut row, "queue", name);
        rows.push(Json::Object(row));
    }
    Ok(json!({
        "total": names.len(),
        "offset": offset,
        "queues": rows,
        "all": known.names.len(),
        "limited": known.is_limited,
        "failed": known.failed,
        "sorted": is_sorted,
        "now": now_ms(),
    }))
}

pub fn queue(api: &Api, params: &Params) -> Answer {
    params.only(&["queue"])?;
    let name = params.needed("queue")?;
    let Some(info) = find::read(&api.client, &name)? else {
        api.seen(&name, None);
        return Err(no_queue());
    };
    api.seen(&name, Some(Sample::of_queue(&info)));
    let stats = Fields::read(api.client.call(cmd("DQ.STATS").arg(&name), Resend::Harmless)?)?;
    let mut answer = Map::new();
    put(&mut answer, "queue", &name);
    answer.insert("info".to_owned(), Json::Object(info.json()));
    answer.insert("stats".to_owned(), stats.map_or(Json::Null, |stats| Json::Object(stats.json())));
    answer.insert("rates".to_owned(), api.history.rates(Some(&name)));
    answer.insert("history".to_owned(), api.history.samples(Some(&name)));
    answer.insert("now".to_owned(), json!(now_ms()));
    Ok(Json::Object(answer))
}

pub fn messages(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "state", "count", "group"])?;
    let name = params.needed("queue")?;
    let state = state(params)?.unwrap_or_else(|| "ready".to_owned());
    let wanted = params.int("count", 1, MESSAGES)?.unwrap_or(50);
    let Some(info) = find::read(&api.client, &name)? else { return Err(no_queue()) };
    let held: i64 = ["delayed", "ready", "inflight", "dead"].iter().filter_map(|state| info.int(state)).sum();
    let average = info.int("payload-bytes").unwrap_or(0) / held.max(1);
    let count = wanted.min(LISTED_BYTES / average.max(1)).max(1);
    let mut command = cmd("DQ.PEEK");
    command.arg(&name).arg(&state).arg("COUNT").arg(count);
    if let Some(group) = params.bytes("group")? {
        command.arg("GROUP").arg(group);
    }
    let list = reply::list(api.client.call(&command, Resend::Harmless)?)?;
    let messages = shown(list, BEGINNING)?;
    Ok(json!({ "state": state, "total": info.int(&state), "messages": messages, "now": now_ms() }))
}

pub fn message(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "id"])?;
    let (queue, id) = (params.needed("queue")?, params.needed("id")?);
    let reply = api.client.call(cmd("DQ.GET").arg(&queue).arg(&id), Resend::Harmless)?;
    let message = Fields::read(reply)?.ok_or_else(|| Problem::new(404, "the queue has no message of this id"))?;
    Ok(json!({ "message": cut(message, WHOLE), "now": now_ms() }))
}

pub fn schedules(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "cursor", "count"])?;
    let (next, list) = page(api, params, "DQ.SCAN", &["RECURRING"])?;
    Ok(json!({ "cursor": next, "messages": shown(list, BEGINNING)?, "now": now_ms() }))
}

pub fn groups(api: &Api, params: &Params) -> Answer {
    params.only(&["queue", "cursor", "count"])?;
    let (next, list) = page(api, params, "DQ.GROUPS", &[])?;
    let mut groups = Vec::new();
    for group in list {
        let group = reply::list(group)?;
        let number = |position: usize| group.get(position).and_then(reply::int);
        let mut object = Map::new();
        if let Some(Value::BulkString(name)) = group.first() {
            put(&mut object, "group", name);
        }
        object.insert("waiting".to_owned(), json!(number(1)));
        object.insert("occupied".to_owned(), json!(number(2)));
        object.insert("oldest-due".to_owned(), json!(number(3)));
        groups.push(Json::Object(object));
    }
    Ok(json!({ "cursor": next, "groups": groups, "now": now_ms() }))
}

/// Looks for an id in one queue or in all of them.
pub fn search(api: &Api, params: &Params) -> Answer {
    params.only(&["id", "queue"])?;
    let id = params.needed("id")?;
    let names = match params.bytes("queue")? {
        Some(queue) => vec![queue],
        None => api.find.names()?.map(|known| known.names.clone()).unwrap_or_default(),
    };
    let (mut found, mut searched, began) = (Vec::new(), 0, Instant::now());
    for name in &names {
        if found.len() >= FOUND || began.elapsed() > SEARCH {
            break;
        }
        searched += 1;
        let message = match api.client.call(cmd("DQ.GET").arg(name).arg(&id), Resend::Harmless) {
            Ok(reply) => Fields::read(reply)?,
            Err(Error::WrongType(_) | Error::NoPermission(_)) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some(message) = message {
            let mut message = cut(message, BEGINNING);
            put(&mut message, "queue", name);
            found.push(Json::Object(message));
        }
    }
    Ok(json!({ "found": found, "searched": searched, "queues": names.len(), "now": now_ms() }))
}

/// A page of a command with a cursor.
fn page(api: &Api, params: &Params, name: &str, options: &[&str]) -> Result<(String, Vec<Value>), Problem> {
    let mut command = cmd(name);
    command.arg(params.needed("queue")?).arg(params.bytes("cursor")?.unwrap_or_else(|| b"0".to_vec()));
    command.arg("COUNT").arg(params.int("count", 1, MESSAGES)?.unwrap_or(100));
    command.arg(options);
    let mut page = reply::list(api.client.call(&command, Resend::Harmless)?)?.into_iter();
    let next = page.next().as_ref().and_then(reply::text).unwrap_or_else(|| "0".to_owned());
    Ok((next, reply::list(page.next().unwrap_or(Value::Nil))?))
}

fn shown(list: Vec<Value>, limit: usize) -> Result<Vec<Json>, Problem> {
    let mut messages = Vec::new();
    for message in list {
        if let Some(message) = Fields::read(message)? {
            messages.push(Json::Object(cut(message, limit)));
        }
    }
    Ok(messages)
}

/// A message as an object, with the first bytes of its payload and the size of it.
fn cut(mut message: Fields, limit: usize) -> Map<String, Json> {
    let mut size = None;
    for (name, value) in &mut message.0 {
        if let (true, Value::BulkString(payload)) = (name == "payload", value) {
            size = Some(payload.len());
            if payload.len() > limit {
                payload.truncate(limit);
                // No character is cut in two, so that text stays valid UTF-8.
                if let Err(error) = std::str::from_utf8(payload) {
                    payload.truncate(if error.error_len().is_none() { error.valid_up_to() } else { limit });
                }
            }
        }
    }
    let mut object = message.json();
    if let Some(size) = size {
        object.insert("payload-size".to_owned(), json!(size));
    }
    object
}

/// A state by its name; `None` if none is given.
pub fn state(params: &Params) -> Result<Option<String>, Problem> {
    const STATES: [&str; 5] = ["delayed", "ready", "inflight", "dead", "done"];
    match params.text("state")? {
        Some(state) if !STATES.contains(&state.as_str()) => {
            Err(Problem::wrong(format!("state must be one of: {}", STATES.join(", "))))
        }
        state => Ok(state),
    }
}

pub fn no_queue() -> Problem {
    Problem::new(404, "there is no queue of this name")
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

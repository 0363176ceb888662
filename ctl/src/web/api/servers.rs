//! The servers: what they hold together, and what `dqctl doctor` finds.

use super::{put, Answer, Api, Params, Problem};
use crate::board::condition::Condition;
use crate::board::history::{Rates, Sample};
use crate::board::row::Row;
use crate::board::Board;
use crate::failure::Failure;
use crate::findings;
use crate::reply;
use crate::time::now_ms;
use crate::web::{deaths, find};
use dq_client::{cmd, Client, Error};
use serde_json::{json, Value as Json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// The shortest time between two looks of the doctor. If a look takes long, the next one is later.
const DOCTOR: Duration = Duration::from_secs(5);

/// The most queues of which the last known counts are told: those of a page of the list.
const LAST: usize = 50;

/// What `dqctl doctor` finds, and when it looked, in Unix ms.
pub struct Examined {
    looked: i64,
    findings: Vec<Json>,
}

impl Examined {
    pub fn new(client: &Client, board: &Board) -> Result<Examined, Failure> {
        let looked = now_ms();
        let findings = findings::examine(client)?.into_iter();
        Ok(Examined { looked, findings: findings.map(|one| with_deaths(client, board, one.json().into())).collect() })
    }
}

/// Adds to the finding that messages of a queue die how many did, and of what.
fn with_deaths(client: &Client, board: &Board, finding: Json) -> Json {
    let Json::Object(mut finding) = finding else { return finding };
    if finding.get("check").and_then(Json::as_str) == Some("dying") {
        // A name that is no text is there in both forms.
        let mut named = finding.clone();
        if named.contains_key("queue-base64") {
            named.remove("queue");
        }
        let finding_of = Params::Body(named);
        if let Ok(Some(queue)) = finding_of.bytes("queue") {
            if let Ok(Some(info)) = find::read(client, &queue) {
                finding.insert("deaths".to_owned(), deaths::recent(client, board, &queue, &info));
            }
        }
    }
    Json::Object(finding)
}

/// The fields of `INFO dq`, added up over all servers, without their prefix.
pub type Totals = BTreeMap<String, i64>;

/// The servers with their versions or errors, and their totals.
pub fn servers(client: &Client) -> Result<(Vec<Json>, Totals), Problem> {
    let (mut servers, mut totals) = (Vec::new(), Totals::new());
    for server in client.servers()? {
        // The second attempt opens another connection, if the first one was closed by the server meanwhile.
        let command = cmd("INFO").arg("server").arg("persistence").arg("dq").clone();
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
                if !info.lines().any(|line| line.starts_with("dq_")) {
                    let error = Failure::from(Error::NoModule(name.clone())).to_string();
                    servers.push(json!({ "server": name, "error": error, "module": false }));
                    continue;
                }
                // What it has loaded so far is not what it holds.
                if field("loading") == Some("1") {
                    servers.push(json!({ "server": name, "error": format!("{name} is loading its data") }));
                    continue;
                }
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
        let has_no_module = servers.iter().any(|server| server.get("module").is_some());
        return Err(Problem::new(if has_no_module { 501 } else { 503 }, text));
    }
    Ok((servers, totals))
}

/// A sample of all queues together; `None` if some could not be read, without which the totals are too low.
pub fn sample(found: &Result<(Vec<Json>, Totals), Problem>) -> Option<Sample> {
    let (servers, totals) = found.as_ref().ok()?;
    let number = |name: &str| totals.get(name).copied().unwrap_or(0);
    let is_whole = servers.iter().all(|server| server.get("error").is_none());
    is_whole.then(|| Sample::of(number, |name| number(&format!("total_{name}"))))
}

pub fn server(api: &Api, params: &Params) -> Answer {
    params.only(&[])?;
    let found = servers(&api.client);
    api.board.look_at_all(sample(&found));
    let (servers, totals) = found?;
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "writes": api.allow_writes,
        "cluster": api.client.is_cluster(),
        "now": now_ms(),
        "servers": servers,
        "totals": totals,
        "rates": api.board.history(None, |all, _| all.rates().map(Rates::json)),
        "history": api.samples(None),
    }))
}

/// What was known of the queues, or of one, when the servers answered last. It asks none of them.
pub fn last(api: &Api, params: &Params) -> Answer {
    params.only(&["queue"])?;
    let only = params.bytes("queue")?;
    let all = api.board.history(None, |all, _| all.latest().copied()).flatten();
    let last = all.map(|all| {
        let (queues, total) = api.board.rows(|rows| {
            let mut known: Vec<(&Vec<u8>, &Row)> =
                rows.iter().filter(|(_, row)| row.history.latest().is_some()).collect();
            known.retain(|(name, _)| only.as_ref().is_none_or(|only| *name == only));
            known.sort_by_key(|(_, row)| Reverse(row.level()));
            (known.iter().take(LAST).map(|(name, row)| last_known(name, row)).collect::<Vec<_>>(), known.len())
        });
        json!({ "at": all.at, "totals": all.counts(), "queues": queues, "total": total })
    });
    Ok(json!({ "last": last, "history": api.samples(None), "now": now_ms() }))
}

/// The last counts of a queue, with its conditions then.
fn last_known(name: &[u8], row: &Row) -> Json {
    let mut object = row.history.latest().map(Sample::counts).unwrap_or_default();
    put(&mut object, "queue", name);
    object.insert("conditions".to_owned(), Condition::json(&row.conditions));
    Json::Object(object)
}

/// What `dqctl doctor` finds, the most important first; null while it looks for the first time. `again` asks for a look that begins now.
pub fn doctor(api: &Api, params: &Params) -> Answer {
    params.only(&["again"])?;
    if params.int("again", 0, 1)? == Some(1) {
        api.doctor.outdate();
    }
    let found = api.doctor.get_within(DOCTOR)?;
    let looked = found.as_ref().map(|found| found.looked);
    let findings = found.map(|found| found.findings.clone());
    Ok(json!({ "findings": findings, "looked": looked, "looking": api.doctor.is_behind(), "now": now_ms() }))
}

//! The search for messages: those of an id in all queues, and those whose ids begin with it.

use super::messages::{cut, BEGINNING};
use super::{put, Answer, Api, Params, Problem};
use crate::board::row::Status;
use crate::board::scan;
use crate::reply::Fields;
use crate::time::now_ms;
use crate::web::find;
use dq_client::{cmd, Error, Resend};
use serde_json::{json, Map, Value as Json};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long each of the two searches may take.
const SEARCH: Duration = Duration::from_secs(3);
/// How many messages are found, unless the request says it, and at most.
const FOUND: usize = 50;
const MOST: i64 = 500;

/// Looks in one queue or in all of them.
pub fn search(api: &Api, params: &Params) -> Answer {
    params.only(&["id", "queue", "count"])?;
    // Of a receipt, the id. An id has no #.
    let id: Vec<u8> = params.needed("id")?.into_iter().take_while(|byte| *byte != b'#').collect();
    if id.is_empty() {
        return Err(Problem::wrong("id is empty"));
    }
    api.board.wait()?;
    let (names, lost) = match params.bytes("queue")? {
        Some(queue) => (vec![queue], 0),
        None => api.board.rows(|rows| {
            let reachable = rows.iter().filter(|(_, row)| row.status != Status::Lost);
            let names: Vec<Vec<u8>> = reachable.map(|(name, _)| name.clone()).collect();
            let lost = rows.len() - names.len();
            (names, lost)
        }),
    };
    let wanted = params.int("count", 1, MOST)?.and_then(|count| usize::try_from(count).ok()).unwrap_or(FOUND);
    let mut found = Found { messages: Vec::new(), wanted, id, end: Instant::now() + SEARCH };
    let mut searched = 0;
    for name in &names {
        if found.is_over() {
            break;
        }
        searched += 1;
        match api.client.call(cmd("DQ.GET").arg(name).arg(&found.id), Resend::Harmless) {
            Ok(reply) => Fields::read(reply)?.into_iter().for_each(|message| found.add(name, message)),
            Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Ids are found at once; for their beginnings, all messages have to be looked at.
    found.end = Instant::now() + SEARCH;
    let (mut scanned, mut looked, exact) = (0, 0, found.messages.len());
    for name in &names {
        if found.is_over() {
            break;
        }
        match look_through(api, name, &mut found, &mut looked) {
            Ok(ControlFlow::Continue(())) => scanned += 1,
            Ok(ControlFlow::Break(())) => {}
            Err(problem) if problem.status == 403 || problem.status == 409 => {}
            Err(problem) => return Err(problem),
        }
    }
    // Those of this very id stay first; a scan finds the others in no order.
    if let Some(others) = found.messages.get_mut(exact..) {
        others.sort_by_cached_key(|message| {
            (message.get("queue").map(Json::to_string), message.get("id").map(Json::to_string))
        });
    }
    let has_more = found.messages.len() > wanted;
    found.messages.truncate(wanted);
    Ok(json!({
        "found": found.messages,
        "more": has_more,
        "searched": searched,
        "scanned": scanned,
        "looked": looked,
        "queues": names.len() + lost,
        "lost": lost,
        "now": now_ms(),
    }))
}

/// Looks at all messages of a queue, unless it takes too long.
fn look_through(api: &Api, name: &[u8], found: &mut Found, looked: &mut usize) -> Result<ControlFlow<()>, Problem> {
    let Some(info) = find::read(&api.client, name)? else { return Ok(ControlFlow::Continue(())) };
    let mut ended = ControlFlow::Continue(());
    scan::pages(&api.client, name, &info, &[], |page| {
        *looked += page.len();
        for message in page {
            let id = message.bytes("id");
            if id.starts_with(&found.id) && id != found.id && !found.is_enough() {
                found.add(name, message);
            }
        }
        if found.is_over() {
            ended = ControlFlow::Break(());
        }
        Ok(ended)
    })?;
    Ok(ended)
}

struct Found {
    messages: Vec<Json>,
    /// How many are shown. One more is looked for, which says whether there are more.
    wanted: usize,
    id: Vec<u8>,
    end: Instant,
}

impl Found {
    fn add(&mut self, queue: &[u8], message: Fields) {
        let mut message: Map<String, Json> = cut(message, BEGINNING);
        put(&mut message, "queue", queue);
        self.messages.push(Json::Object(message));
    }

    fn is_enough(&self) -> bool {
        self.messages.len() > self.wanted
    }

    fn is_over(&self) -> bool {
        self.is_enough() || Instant::now() >= self.end
    }
}

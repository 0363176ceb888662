//! Messages in large numbers, mostly dead ones: by cause, and redriven or deleted by conditions.
//!
//! All of them have to be read, so a request does as much as it can in a few seconds, and says whether there is more.

use super::messages::{cut, BEGINNING};
use super::queues::no_queue;
use super::{put, Answer, Api, Params, Problem};
use crate::dead::{bury_these, cause_of, pages, pages_from, redrive_these, send_back, since, Among, Filter, SentBack};
use crate::failure::Failure;
use crate::message::recurs;
use crate::reply::{int, list, text, Fields};
use crate::time::now_ms;
use dq_client::{cmd, Cmd, Resend, State};
use serde_json::{json, Map, Value as Json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long one request reads, unless it asks for less, in ms.
const READ: i64 = 4_000;
/// The most messages, causes and former queues that are listed, and the most of these that are counted: each message can have
/// its own.
const MESSAGES: i64 = 500;
const LISTED: usize = 200;
const COUNTED: usize = 10_000;
/// What selects messages, and for how long, in requests of both kinds.
const SELECTS: [&str; 9] = ["state", "cause", "from", "text", "group", "older", "attempts", "before", "within"];

/// Which messages are meant.
struct Selection {
    cause: Option<String>,
    /// The queue in which a letter died.
    from: Option<Vec<u8>>,
    /// A part of the id, the error, the payload or the group, in lower case.
    text: Option<String>,
    group: Option<Vec<u8>>,
    attempts: i64,
    /// Only those that had died, or come into their state, by then, in Unix ms.
    before: i64,
    filter: Filter,
}

impl Selection {
    fn of(params: &Params) -> Result<Selection, Problem> {
        let older = params.int("older", 0, i64::MAX)?.and_then(|ms| u64::try_from(ms).ok());
        Ok(Selection {
            cause: params.text("cause")?,
            from: params.bytes("from")?,
            text: params.text("text")?.map(|text| text.to_lowercase()),
            group: params.bytes("group")?,
            attempts: params.int("attempts", 0, i64::MAX)?.unwrap_or(0),
            before: params.int("before", 0, i64::MAX)?.unwrap_or(i64::MAX),
            filter: Filter { among: among(params)?, older: older.map(Duration::from_millis), ..Filter::default() },
        })
    }

    /// Whether a message fits, whatever its cause and former queue.
    fn fits(&self, message: &Fields) -> bool {
        let contains = |part: &String| {
            ["id", "error", "payload", "group"].iter().any(|name| message.text(name).to_lowercase().contains(part))
        };
        self.text.as_ref().is_none_or(contains)
            && self.group.as_ref().is_none_or(|group| message.bytes("group") == group)
            && message.int("attempt").unwrap_or(0) >= self.attempts
            && since(message).unwrap_or(0) <= self.before
    }

    fn is_of_cause(&self, message: &Fields) -> bool {
        self.cause.as_ref().is_none_or(|cause| cause_of(message) == *cause)
    }

    fn is_from(&self, message: &Fields) -> bool {
        self.from.as_ref().is_none_or(|from| message.bytes("from") == from)
    }

    fn selects(&self, message: &Fields) -> bool {
        self.fits(message) && self.is_of_cause(message) && self.is_from(message)
    }
}

/// The selected messages. Causes are counted whichever is selected, and former queues likewise, so that another one can be chosen.
pub fn dead(api: &Api, params: &Params) -> Answer {
    params.only(&[&["queue", "count"], &SELECTS[..]].concat())?;
    let (queue, selection, within) = (params.needed("queue")?, Selection::of(params)?, within(params)?);
    let mut first = First::new(
        selection.filter.among,
        usize::try_from(params.int("count", 1, MESSAGES)?.unwrap_or(50)).unwrap_or(50),
    );
    let (mut causes, mut origins) = (Tally::new(), Tally::new());
    let (mut selected, mut recurring, mut is_partial, began) = (0_u64, 0, false, Instant::now());
    let exists = pages(&api.client, &queue, &selection.filter, |mut page| {
        page.retain(|message| selection.fits(message));
        for message in &page {
            let died = message.int("died").unwrap_or(0);
            if selection.is_from(message) {
                causes.add(cause_of(message), died);
            }
            if message.get("from").is_some() && selection.is_of_cause(message) {
                origins.add(message.bytes("from").to_vec(), died);
            }
        }
        page.retain(|message| selection.is_of_cause(message) && selection.is_from(message));
        selected += u64::try_from(page.len()).unwrap_or(0);
        recurring += page.iter().filter(|message| recurs(message)).count();
        first.add(page);
        is_partial = began.elapsed() >= within;
        Ok(if is_partial { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !exists {
        return Err(no_queue());
    }
    Ok(json!({
        "all-causes": causes.0.len(),
        "causes": causes.listed("cause", String::as_bytes),
        "all-origins": origins.0.len(),
        "origins": origins.listed("from", Vec::as_slice),
        "selected": selected,
        "recurring": recurring,
        "messages": first.messages.into_iter().map(|(_, message)| Json::Object(message)).collect::<Vec<Json>>(),
        "partial": is_partial,
        "took": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "now": now_ms(),
    }))
}

/// How many messages there are of each cause or former queue, and when the newest of them died.
struct Tally<K>(HashMap<K, (u64, i64)>);

impl<K: Ord + Hash> Tally<K> {
    fn new() -> Tally<K> {
        Tally(HashMap::new())
    }

    fn add(&mut self, key: K, died: i64) {
        if self.0.len() < COUNTED || self.0.contains_key(&key) {
            let counted = self.0.entry(key).or_insert((0, died));
            *counted = (counted.0 + 1, counted.1.max(died));
        }
    }

    /// The most frequent first, each as an object with its `name`.
    fn listed(self, name: &str, bytes: impl Fn(&K) -> &[u8]) -> Vec<Json> {
        let mut counted: Vec<_> = self.0.into_iter().collect();
        counted.sort_by(|(a, (many, _)), (b, (more, _))| more.cmp(many).then_with(|| a.cmp(b)));
        let object = |(key, (count, newest)): (K, (u64, i64))| {
            let mut object = Map::from_iter([("count".to_owned(), json!(count)), ("newest".to_owned(), json!(newest))]);
            put(&mut object, name, bytes(&key));
            Json::Object(object)
        };
        counted.into_iter().take(LISTED).map(object).collect()
    }
}

/// The first of many messages in the order of `DQ.PEEK`, of which only the beginnings of the payloads are kept.
struct First {
    among: Among,
    most: usize,
    messages: Vec<(Place, Map<String, Json>)>,
}

/// What a message is sorted by.
type Place = [i64; 3];

/// Those that died or ended come the newest first, and others as they leave their state.
fn place(among: Among, message: &Fields) -> Place {
    let number = |name: &str| message.int(name).unwrap_or(0);
    match among {
        Among::State(State::Ready) => [number("priority").saturating_neg(), number("due"), number("created")],
        Among::State(State::Delayed) => [number("due"), number("priority").saturating_neg(), number("created")],
        Among::State(State::Inflight) => [number("deadline"), number("created"), 0],
        Among::State(_) | Among::Letters => {
            [since(message).unwrap_or(0).saturating_neg(), number("created").saturating_neg(), 0]
        }
    }
}

impl First {
    fn new(among: Among, most: usize) -> First {
        First { among, most, messages: Vec::new() }
    }

    fn add(&mut self, page: Vec<Fields>) {
        let placed = |message: Fields| (place(self.among, &message), message);
        let mut page: Vec<(Place, Fields)> = page.into_iter().map(placed).collect();
        page.sort_by_key(|(place, _)| *place);
        page.truncate(self.most);
        self.messages.extend(page.into_iter().map(|(place, message)| (place, cut(message, BEGINNING))));
        self.messages.sort_by_key(|(place, _)| *place);
        self.messages.truncate(self.most);
    }
}

/// Redrives, buries, runs now or deletes the selected messages, at most `count` of them, from the cursor of the last request on. The cursor of
/// the answer says where to go on if the time was not enough.
pub fn change_dead(api: &Api, params: &Params) -> Answer {
    params.only(&[&["queue", "do", "delay", "error", "count", "cursor"], &SELECTS[..]].concat())?;
    let (queue, selection, within) = (params.needed("queue")?, Selection::of(params)?, within(params)?);
    let action = params.text("do")?.unwrap_or_default();
    let (delay, error, mut sent) = (delay(params)?, params.bytes("error")?, SentBack::default());
    let most = params.int("count", 1, i64::MAX)?.and_then(|most| u64::try_from(most).ok()).unwrap_or(u64::MAX);
    let cursor = params.text("cursor")?.unwrap_or_else(|| "0".to_owned());
    if cursor.parse::<u64>().is_err() {
        return Err(Problem::wrong("cursor must be 0, or that of the last answer"));
    }
    let mut cursor = cursor.into_bytes();
    let mut change = |ids: &[&[u8]]| match action.as_str() {
        "redrive" if selection.filter.among == Among::Letters => {
            let before = sent.sent;
            let did = send_back(&api.client, &queue, ids, delay, &mut sent);
            did.map_err(|failure| failure.after_change(sent.sent - before, "sent back"))?;
            Ok(sent.sent - before)
        }
        "redrive" => redrive_these(&api.client, &queue, ids, delay),
        "bury" => bury_these(&api.client, &queue, ids, error.as_deref()),
        "promote" => promote_these(api, &queue, ids),
        _ => {
            let states = list(api.client.call(cmd("DQ.CANCEL").arg(&queue).arg(ids), Resend::Never)?)?;
            Ok(states.iter().filter_map(text).map(|_| 1).sum::<u64>())
        }
    };
    let is_possible = match (action.as_str(), selection.filter.among) {
        ("delete", _) => true,
        ("redrive", among) => matches!(among, Among::Letters | Among::State(State::Dead)),
        ("bury", among) => matches!(among, Among::State(State::Ready | State::Delayed)),
        ("promote", among) => among == Among::State(State::Delayed),
        _ => false,
    };
    if !is_possible {
        let actions =
            "delete, redrive of dead messages or letters, bury of ready or delayed messages, or promote of delayed messages";
        return Err(Problem::wrong(format!("do must be {actions}")));
    }
    let (mut changed, began) = (0, Instant::now());
    let exists = pages_from(&api.client, &queue, &selection.filter, &mut cursor, |page| {
        let selected = page.iter().filter(|message| selection.selects(message));
        let rest = usize::try_from(most - changed).unwrap_or(usize::MAX);
        let ids: Vec<&[u8]> = selected.map(|message| message.bytes("id")).take(rest).collect();
        if !ids.is_empty() {
            changed += change(&ids).map_err(|failure| failure.after_change(changed, "changed"))?;
        }
        let ends = changed >= most || began.elapsed() >= within;
        Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !exists {
        return Err(no_queue());
    }
    let next = if changed >= most { Cow::from("0") } else { String::from_utf8_lossy(&cursor) };
    Ok(json!({ "changed": changed, "left": sent.left(), "cursor": next }))
}

/// Makes messages due now, unless they are neither delayed nor ready any more. Returns how many.
fn promote_these(api: &Api, queue: &[u8], ids: &[&[u8]]) -> Result<u64, Failure> {
    let now = |id: &&[u8]| cmd("DQ.RESCHEDULE").arg(queue).arg(*id).arg("DELAY").arg(0).clone();
    let commands: Vec<Cmd> = ids.iter().map(now).collect();
    let mut promoted = 0;
    for reply in api.client.batch(&commands) {
        promoted += u64::from(int(&reply?) == Some(1));
    }
    Ok(promoted)
}

/// How long a request works at most.
fn within(params: &Params) -> Result<Duration, Problem> {
    let ms = params.int("within", 0, READ)?.unwrap_or(READ);
    Ok(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
}

/// Of which messages some are meant: dead ones if nothing is said.
pub fn among(params: &Params) -> Result<Among, Problem> {
    match params.text("state")?.as_deref() {
        None => Ok(Among::default()),
        Some("letters") => Ok(Among::Letters),
        Some(state) => state
            .parse()
            .map(Among::State)
            .map_err(|_| Problem::wrong("state must be one of: delayed, ready, inflight, dead, done, letters")),
    }
}

/// How long redriven messages wait.
pub fn delay(params: &Params) -> Result<Duration, Problem> {
    let ms = params.int("delay", 0, super::writes::LONGEST)?;
    Ok(Duration::from_millis(ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0)))
}

//! Dead messages in large numbers: by cause, and redriven or deleted by conditions.
//!
//! All of them have to be read, so a request does as much as it can in a few seconds, and says whether there is more.

use super::messages::{cut, BEGINNING};
use super::queues::no_queue;
use super::{Answer, Api, Params, Problem};
use crate::dead::{cause_of, pages, Condition, Filter};
use crate::reply::{int, list, text, Fields};
use crate::time::now_ms;
use dq_client::{cmd, Resend};
use serde_json::{json, Value as Json};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How long one request reads.
const READ: Duration = Duration::from_secs(4);
/// The most messages and causes that are listed.
const MESSAGES: i64 = 500;
const CAUSES: usize = 200;
/// What selects messages, in requests of both kinds.
const SELECTS: [&str; 6] = ["cause", "text", "group", "older", "attempts", "before"];

/// Which dead messages are meant.
struct Selection {
    cause: Option<String>,
    /// A part of the id, the error, the payload or the group, in lower case.
    text: Option<String>,
    group: Option<Vec<u8>>,
    attempts: i64,
    /// Only those that had died by then, in Unix ms.
    before: i64,
    filter: Filter,
}

impl Selection {
    fn of(params: &Params) -> Result<Selection, Problem> {
        let older = params.int("older", 0, i64::MAX)?.and_then(|ms| u64::try_from(ms).ok());
        Ok(Selection {
            cause: params.text("cause")?,
            text: params.text("text")?.map(|text| text.to_lowercase()),
            group: params.bytes("group")?,
            attempts: params.int("attempts", 0, i64::MAX)?.unwrap_or(0),
            before: params.int("before", 0, i64::MAX)?.unwrap_or(i64::MAX),
            filter: Filter { conditions: Vec::<Condition>::new(), older: older.map(Duration::from_millis) },
        })
    }

    /// Whether a message fits, whatever its cause.
    fn fits(&self, message: &Fields) -> bool {
        let contains = |part: &String| {
            ["id", "error", "payload", "group"].iter().any(|name| message.text(name).to_lowercase().contains(part))
        };
        self.text.as_ref().is_none_or(contains)
            && self.group.as_ref().is_none_or(|group| message.bytes("group") == group)
            && message.int("attempt").unwrap_or(0) >= self.attempts
            && message.int("died").unwrap_or(0) <= self.before
    }

    fn is_of_cause(&self, message: &Fields) -> bool {
        self.cause.as_ref().is_none_or(|cause| cause_of(message) == *cause)
    }
}

/// The selected messages, the newest first, and how many there are of each cause.
pub fn dead(api: &Api, params: &Params) -> Answer {
    params.only(&[&["queue", "count"], &SELECTS[..]].concat())?;
    let (queue, selection) = (params.needed("queue")?, Selection::of(params)?);
    let wanted = usize::try_from(params.int("count", 1, MESSAGES)?.unwrap_or(50)).unwrap_or(50);
    let (mut causes, mut newest) = (HashMap::<String, (u64, i64)>::new(), Vec::<Fields>::new());
    let (mut selected, mut is_partial, began) = (0_u64, false, Instant::now());
    let exists = pages(&api.client, &queue, &selection.filter, |page| {
        for message in page.into_iter().filter(|message| selection.fits(message)) {
            let died = message.int("died").unwrap_or(0);
            let cause = causes.entry(cause_of(&message)).or_insert((0, died));
            *cause = (cause.0 + 1, cause.1.max(died));
            if selection.is_of_cause(&message) {
                selected += 1;
                newest.push(message);
            }
        }
        newest.sort_by_key(|message| std::cmp::Reverse((message.int("died"), message.int("created"))));
        newest.truncate(wanted);
        is_partial = began.elapsed() > READ;
        Ok(if is_partial { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !exists {
        return Err(no_queue());
    }
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by(|(a, (many, _)), (b, (more, _))| more.cmp(many).then_with(|| a.cmp(b)));
    let all_causes = causes.len();
    let cause = |(cause, (count, newest))| json!({ "cause": cause, "count": count, "newest": newest });
    Ok(json!({
        "causes": causes.into_iter().take(CAUSES).map(cause).collect::<Vec<Json>>(),
        "all-causes": all_causes,
        "selected": selected,
        "messages": newest.into_iter().map(|message| Json::Object(cut(message, BEGINNING))).collect::<Vec<Json>>(),
        "partial": is_partial,
        "took": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "now": now_ms(),
    }))
}

/// Redrives or deletes the selected messages. `more` says that the time was not enough for all of them.
pub fn change_dead(api: &Api, params: &Params) -> Answer {
    params.only(&[&["queue", "do", "delay"], &SELECTS[..]].concat())?;
    let (queue, selection) = (params.needed("queue")?, Selection::of(params)?);
    let action = params.text("do")?.unwrap_or_default();
    let delay = params.int("delay", 0, super::writes::LONGEST)?.unwrap_or(0);
    let change = |ids: &[&[u8]]| match action.as_str() {
        "redrive" => {
            let mut command = cmd("DQ.REDRIVE");
            command.arg(&queue).arg("IDS").arg(ids.len()).arg(ids).arg("DELAY").arg(delay);
            Ok::<i64, dq_client::Error>(int(&api.client.call(&command, Resend::Never)?).unwrap_or(0))
        }
        _ => {
            let states = list(api.client.call(cmd("DQ.CANCEL").arg(&queue).arg(ids), Resend::Never)?);
            Ok(states.unwrap_or_default().iter().filter_map(text).map(|_| 1).sum())
        }
    };
    if !matches!(action.as_str(), "redrive" | "delete") {
        return Err(Problem::wrong("do must be redrive or delete"));
    }
    let (mut changed, mut has_more, began) = (0, false, Instant::now());
    let exists = pages(&api.client, &queue, &selection.filter, |page| {
        let fits = |message: &&Fields| selection.fits(message) && selection.is_of_cause(message);
        let ids: Vec<&[u8]> = page.iter().filter(fits).map(|message| message.bytes("id")).collect();
        if !ids.is_empty() {
            changed += change(&ids)?;
        }
        has_more = began.elapsed() > READ;
        Ok(if has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !exists {
        return Err(no_queue());
    }
    Ok(json!({ "changed": changed, "more": has_more }))
}

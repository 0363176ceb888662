//! How many messages of a queue have died in the last minutes, and of what: for queues of which `condition` says that messages
//! die.

use super::api::put;
use super::history::History;
use crate::condition::RECENT;
use crate::dead::cause_of;
use crate::first::{self, Most};
use crate::reply::Fields;
use crate::time::now_ms;
use dq_client::{cmd, Client};
use serde_json::{json, Value as Json};
use std::collections::HashMap;

/// The most dead messages that are read, and about the most bytes of their payloads: a page shows many queues.
const READ: i64 = 100;
const BYTES: i64 = 128 * 1024;

/// How many died lately, by the history or, if it is shorter, at least those that are seen among the newest dead messages. Of the
/// latter, the most frequent cause is told, and how many of how many that were `read` are `of-cause`. None are read if the user may
/// not, or if they were moved: then it is told where to, but not the cause, because those that came last are the last in the order of
/// another queue, of which only the first ones are read at little cost. Null if it is not known that one died.
pub fn recent(client: &Client, history: &History, queue: &[u8], info: &Fields) -> Json {
    let since = now_ms().saturating_sub(RECENT);
    let (causes, looked) = causes(client, queue, info, since);
    let read: i64 = causes.values().sum();
    let (grown, is_known) = history.died(queue, since);
    let count = grown.max(read);
    if count == 0 {
        return Json::Null;
    }
    let total = |name: &str| info.int(name).unwrap_or(0);
    // Without the history, they are all that died only if none has ever left the dead, by a limit or by a redrive, or if none died before.
    let is_all = count >= total("died") || read < looked && total("dead") >= total("died");
    let has_more = !is_known && !is_all;
    let frequent = causes.into_iter().max_by(|(a, many), (b, more)| many.cmp(more).then_with(|| b.cmp(a)));
    let (cause, of) = frequent.unzip();
    let mut told =
        json!({ "count": count, "more": has_more, "read": read, "cause": cause, "of-cause": of.unwrap_or(0) });
    let target = info.bytes("deadforward");
    if let (Some(told), 0, false) = (told.as_object_mut(), read, matches!(target, b"" | b"NONE")) {
        put(told, "moved-to", target);
    }
    told
}

/// The causes of those of the newest dead messages that died since then, and at how many was looked.
fn causes(client: &Client, queue: &[u8], info: &Fields, since: i64) -> (HashMap<String, i64>, i64) {
    let peek = cmd("DQ.PEEK").arg(queue).arg("dead").clone();
    let newest = first::read(client, &peek, info, Most { messages: READ, bytes: BYTES }).unwrap_or_default();
    let mut causes = HashMap::new();
    for message in &newest {
        if message.int("died").is_some_and(|died| died > since) {
            *causes.entry(cause_of(message)).or_default() += 1;
        }
    }
    (causes, i64::try_from(newest.len()).unwrap_or(i64::MAX))
}

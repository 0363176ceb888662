//! How many messages of a queue have died in the last minutes, and of what: for queues of which `condition` says that messages
//! die.

use super::find;
use crate::condition::RECENT;
use crate::dead::cause_of;
use crate::reply::{self, Fields};
use crate::time::now_ms;
use dq_client::{cmd, Client, Resend};
use serde_json::{json, Value as Json};
use std::collections::HashMap;

/// The most dead messages that are read, and about the most bytes of their payloads: a page shows many queues.
const READ: i64 = 100;
const BYTES: i64 = 128 * 1024;

/// Those of the newest dead messages that died lately: how many, their most frequent cause, and how many are `of-cause`. There may
/// be `more`. Null if none did, or if the user may not read them.
pub fn recent(client: &Client, queue: &[u8], info: &Fields) -> Json {
    let count = find::fitting(info, READ, BYTES);
    let command = cmd("DQ.PEEK").arg(queue).arg("dead").arg("COUNT").arg(count).clone();
    let since = now_ms().saturating_sub(RECENT);
    let mut causes = HashMap::<String, i64>::new();
    for message in
        client.call(&command, Resend::Harmless).ok().and_then(|list| reply::list(list).ok()).unwrap_or_default()
    {
        let Ok(Some(message)) = Fields::read(message) else { continue };
        if message.int("died").is_some_and(|died| died > since) {
            *causes.entry(cause_of(&message)).or_default() += 1;
        }
    }
    let died: i64 = causes.values().sum();
    let has_more = died >= count && info.int("dead").is_some_and(|dead| dead > died);
    let most = causes.into_iter().max_by(|(a, many), (b, more)| many.cmp(more).then_with(|| b.cmp(a)));
    most.map_or(Json::Null, |(cause, of)| json!({ "count": died, "more": has_more, "cause": cause, "of-cause": of }))
}

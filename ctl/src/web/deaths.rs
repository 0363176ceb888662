//! How many messages of a queue have died in the last minutes, and of what: for queues of which `condition` says that messages
//! die.

use super::api::put;
use crate::board::condition::RECENT;
use crate::board::Board;
use crate::dead::{target, Known, Newest};
use crate::reply::Fields;
use crate::time::now_ms;
use dq_client::Client;
use serde_json::{json, Value as Json};

/// How many died lately, by the history or, if it is shorter, at least those that are seen among the newest dead messages. Of the
/// latter, the most frequent cause is told, and how many of how many that were `read` are `of-cause`. None are read if the user may
/// not, or if they were moved: then it is told where to, but not the cause, because those that came last are the last in the order of
/// another queue, of which only the first ones are read at little cost. Null if it is not known that one died.
pub fn recent(client: &Client, board: &Board, queue: &[u8], info: &Fields) -> Json {
    let since = now_ms().saturating_sub(RECENT);
    let newest = Newest::read(client, queue, info);
    let died = board.history(Some(queue), |history, _| history.died(since)).unwrap_or_default();
    let Some(Known { count, has_more, read, left, cause }) = newest.known(info.int("died").unwrap_or(0), died) else {
        return Json::Null;
    };
    let (cause, of) = cause.unzip();
    let mut told = json!({ "count": count, "more": has_more, "read": read, "left": left, "cause": cause,
        "of-cause": of.unwrap_or(0) });
    if let (Some(told), 0, Some(_)) = (told.as_object_mut(), read, target(info)) {
        put(told, "moved-to", info.bytes("deadforward"));
    }
    told
}

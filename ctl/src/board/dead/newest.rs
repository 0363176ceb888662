//! The most frequent cause of recent deaths.

use super::cause_of;
use crate::board::condition::RECENT;
use crate::board::scan::first;
use crate::server::QueueInfo;
use crate::text::{millis, now_ms, visible};
use dq_client::blocking::Client;
use std::collections::BTreeMap;

/// The most dead messages that are read, and about the most bytes of their payloads: a page shows many queues.
const READ: u64 = 100;
const BYTES: u64 = 128 * 1024;

/// The most frequent cause of the deaths of the last minutes, with its share: `timeout (98 of the newest 100)`. `None`
/// if no message that died then is still dead.
pub fn frequent_cause(client: &Client, queue: &[u8], info: &QueueInfo) -> Option<String> {
    let recent = i64::try_from(millis(RECENT)).unwrap_or(i64::MAX);
    let since = now_ms().saturating_sub(recent);
    let mut newest = first(client, queue, "dead", info, (READ, BYTES)).ok()?;
    newest.retain(|message| message.died().is_some_and(|died| died > since));
    let mut causes = BTreeMap::<String, usize>::new();
    newest.iter().for_each(|message| *causes.entry(cause_of(message)).or_default() += 1);
    let (cause, number) = causes.iter().max_by_key(|(_, number)| **number)?;
    Some(format!("{} ({number} of the newest {})", visible(cause), newest.len()))
}

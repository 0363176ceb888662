//! What `DEADFORWARD` has moved from queues to other ones: when it died shows only there.

use super::{as_it_died, target_queue};
use crate::reply::Fields;
use crate::scan;
use dq_client::{cmd, Client, Resend};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// The most messages, and the most bytes of payloads, of another queue that are read to find the newest that died here.
const MESSAGES: i64 = 10_000;
const BYTES: i64 = 4 * 1024 * 1024;

/// When the newest of the messages of each queue died that were moved to another one, in Unix ms.
type Deaths = HashMap<Vec<u8>, i64>;

/// The queues to which others move their dead messages. Each is read once, since it may be that of thousands; `None`: it was not
/// read to its end.
#[derive(Default)]
pub struct Targets(HashMap<Vec<u8>, Option<Deaths>>);

impl Targets {
    /// When the newest of the messages that were moved died, in Unix ms. Not known if it is not in a queue, if somebody has taken
    /// it from there or may not read it, or if that would be a lot to read.
    pub fn newest_death(&mut self, client: &Client, name: &[u8], info: &Fields) -> Option<i64> {
        if info.int("died").unwrap_or(0) == 0 {
            return None;
        }
        let queue = target_queue(info)?;
        let deaths = self.0.entry(queue.to_vec()).or_insert_with(|| deaths(client, queue));
        deaths.as_ref()?.get(name).copied()
    }
}

/// Reads the letters of a queue.
fn deaths(client: &Client, target: &[u8]) -> Option<Deaths> {
    let reply = client.call(cmd("DQ.INFO").arg(target), Resend::Harmless).ok()?;
    let info = Fields::read(reply).ok().flatten()?;
    let number = |name: &str| info.int(name).unwrap_or(0);
    let messages: i64 = ["delayed", "ready", "inflight", "dead"].into_iter().map(number).sum();
    if messages > MESSAGES || number("payload-bytes") > BYTES {
        return None;
    }
    let mut deaths = Deaths::new();
    let read = scan::pages(client, target, &info, &[], |page| {
        for letter in page.into_iter().filter_map(as_it_died) {
            let newest = deaths.entry(letter.bytes("from").to_vec()).or_default();
            *newest = letter.int("died").unwrap_or(0).max(*newest);
        }
        Ok(ControlFlow::Continue(()))
    });
    read.ok().map(|()| deaths)
}

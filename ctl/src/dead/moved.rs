//! What `DEADFORWARD` has moved from queues to other ones: when it died and of what shows only there.

use super::{as_it_died, cause_of, target_queue};
use crate::reply::Fields;
use crate::scan;
use dq_client::{cmd, Client, Resend};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// The most messages, and the most bytes of payloads, of another queue that are read to find the newest that died here.
const MESSAGES: i64 = 10_000;
const BYTES: i64 = 4 * 1024 * 1024;

/// The messages of one queue that were moved to another one.
#[derive(Default)]
struct Letters {
    /// When the newest one died, in Unix ms.
    newest: i64,
    /// How many died of each cause.
    causes: BTreeMap<String, usize>,
}

/// Those of each queue, by its name.
type Deaths = HashMap<Vec<u8>, Letters>;

/// The queues to which others move their dead messages. Each is read once, since it may be that of thousands; `None`: it was not
/// read to its end.
#[derive(Default)]
pub struct Targets(HashMap<Vec<u8>, Option<Deaths>>);

impl Targets {
    /// What was moved from a queue. Not known if it is not in a queue, if somebody has taken it from there or may not read it, or
    /// if that would be a lot to read.
    fn letters(&mut self, client: &Client, name: &[u8], info: &Fields) -> Option<&Letters> {
        if info.int("died").unwrap_or(0) == 0 {
            return None;
        }
        let queue = target_queue(info)?;
        let deaths = self.0.entry(queue.to_vec()).or_insert_with(|| deaths(client, queue));
        deaths.as_ref()?.get(name)
    }

    /// When the newest of the messages that were moved died, in Unix ms.
    pub fn newest_death(&mut self, client: &Client, name: &[u8], info: &Fields) -> Option<i64> {
        self.letters(client, name, info).map(|letters| letters.newest)
    }

    /// Of what most of them died: `; 12 of the 15 that are there died of: timed out`.
    pub fn cause(&mut self, client: &Client, name: &[u8], info: &Fields) -> Option<String> {
        let causes = &self.letters(client, name, info)?.causes;
        let (cause, count) = causes.iter().max_by_key(|(_, count)| **count)?;
        let all: usize = causes.values().sum();
        Some(format!("; {count} of the {all} that are there died of: {cause}"))
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
            let letters = deaths.entry(letter.bytes("from").to_vec()).or_default();
            letters.newest = letter.int("died").unwrap_or(0).max(letters.newest);
            *letters.causes.entry(cause_of(&letter)).or_default() += 1;
        }
        Ok(ControlFlow::Continue(()))
    });
    read.ok().map(|()| deaths)
}

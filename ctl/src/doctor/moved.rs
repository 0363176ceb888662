//! Queues whose dead messages `DEADFORWARD` moves away: when one died shows only where they are, or in a second look.

use super::finding::{About, Findings, Subject};
use super::queues::number;
use crate::advice::quoted;
use crate::condition::moves_dead;
use crate::dead::as_it_died;
use crate::name::shown;
use crate::reply::Fields;
use crate::scan;
use crate::time::now_ms;
use crate::trouble::Trouble;
use crate::wording::messages;
use dq_client::{cmd, Client, Error, Resend};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// The most messages, and the most bytes of payloads, of another queue that are read to find the newest that died here.
const MESSAGES: i64 = 1_000;
const BYTES: i64 = 4 * 1024 * 1024;

/// A queue whose messages died at a time that is not known.
pub struct Moved {
    died: i64,
    trouble: Trouble,
}

impl Moved {
    /// `None` if no message was moved.
    pub fn of(info: &Fields, trouble: Trouble) -> Option<Moved> {
        let died = number(info, "died");
        (died > 0 && moves_dead(info)).then_some(Moved { died, trouble })
    }
}

/// When the newest message of each queue died, in Unix ms, by the name of the queue.
type Deaths = HashMap<Vec<u8>, i64>;

/// The queues to which others move their dead messages. Each is read once, since it may be that of thousands; `None`: it was not
/// read to its end.
#[derive(Default)]
pub struct Targets(HashMap<Vec<u8>, Option<Deaths>>);

impl Targets {
    /// How long ago the newest of the messages that were moved died, in ms. Not known if they are not in a queue, if somebody has
    /// taken them from there or may not read them, or if that would be a lot to read.
    pub fn newest_death(&mut self, client: &Client, name: &[u8], info: &Fields) -> Option<i64> {
        if number(info, "died") == 0 {
            return None;
        }
        let target = info.bytes("deadforward").strip_prefix(b"QUEUE ")?;
        let deaths = self.0.entry(target.to_vec()).or_insert_with(|| deaths(client, target));
        deaths.as_ref()?.get(name).map(|at| now_ms().saturating_sub(*at).max(0))
    }
}

/// Reads the letters of a queue.
fn deaths(client: &Client, target: &[u8]) -> Option<Deaths> {
    let reply = client.call(cmd("DQ.INFO").arg(target), Resend::Harmless).ok()?;
    let info = Fields::read(reply).ok().flatten()?;
    let messages: i64 = ["delayed", "ready", "inflight", "dead"].iter().map(|state| number(&info, state)).sum();
    if messages > MESSAGES || number(&info, "payload-bytes") > BYTES {
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

/// Reports that messages die, and where they are.
pub fn die(info: &Fields, about: &mut About) {
    let mut what = format!("messages have died in the last 10 minutes; it has {} dead", number(info, "dead"));
    if moves_dead(info) {
        what = format!("messages have died in the last 10 minutes, and are moved to {}", target(info));
    }
    about.warning("dying", what, "they are not delivered again", &advice(info));
}

/// Where the dead messages are moved, as it is set.
fn target(info: &Fields) -> String {
    shown(info.bytes("deadforward"))
}

fn advice(info: &Fields) -> String {
    match info.bytes("deadforward").strip_prefix(b"QUEUE ") {
        Some(queue) => format!("look with dqctl dead {} --letters --by-error", quoted(&shown(queue))),
        None if moves_dead(info) => "look there".to_owned(),
        None => "look with dqctl dead QUEUE --by-error".to_owned(),
    }
}

/// Whether more messages have died since; if not, what two looks do not show.
pub fn check_again(client: &Client, name: &[u8], before: &Moved, findings: &mut Findings) -> Result<(), Error> {
    let about = &mut findings.about(Subject::Queue(name.to_vec()));
    about.trouble = before.trouble;
    let reply = client.call(cmd("DQ.INFO").arg(name), Resend::Harmless)?;
    let Ok(Some(info)) = Fields::read(reply) else { return Ok(()) };
    let died = number(&info, "died");
    if died > before.died {
        die(&info, about);
        return Ok(());
    }
    let died = messages(u64::try_from(died).unwrap_or(0));
    let what = format!("{died} died since it was created; its dead ones are moved to {}", target(&info));
    let why = "whether any died lately does not show in seconds";
    about.note("moved", what, why, &format!("{}; dqctl ls --watch and top show whether messages die", advice(&info)));
    Ok(())
}

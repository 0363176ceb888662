//! Queues whose dead messages `DEADFORWARD` moves away: when one died shows only where they are, or in a second look.

use super::finding::{About, Findings, Subject, DYING};
use super::queues::number;
use crate::advice::quoted;
use crate::condition::moves_dead;
use crate::dead::{as_it_died, cause_of, target, target_in_words, target_queue, Newest};
use crate::name::shown;
use crate::reply::Fields;
use crate::scan;
use crate::time::now_ms;
use crate::trouble::Trouble;
use crate::wording::messages;
use dq_client::{cmd, Client, Error, Resend};
use std::collections::{BTreeMap, HashMap};
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
        if number(info, "died") == 0 {
            return None;
        }
        let queue = target_queue(info)?;
        let deaths = self.0.entry(queue.to_vec()).or_insert_with(|| deaths(client, queue));
        deaths.as_ref()?.get(name)
    }

    /// How long ago the newest of the messages that were moved died, in ms.
    pub fn newest_death(&mut self, client: &Client, name: &[u8], info: &Fields) -> Option<i64> {
        self.letters(client, name, info).map(|letters| now_ms().saturating_sub(letters.newest).max(0))
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
    let messages: i64 = ["delayed", "ready", "inflight", "dead"].iter().map(|state| number(&info, state)).sum();
    if messages > MESSAGES || number(&info, "payload-bytes") > BYTES {
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

/// Reports that messages die, of what most of them did, and where they are. `moved` is what is known of those that were moved.
pub fn die(client: &Client, name: &[u8], info: &Fields, moved: &str, about: &mut About) {
    let what = match target_in_words(info).filter(|_| moves_dead(info)) {
        Some(target) => format!("messages have died in the last 10 minutes, and are moved to {target}{moved}"),
        None => {
            let known = Newest::read(client, name, info).known(number(info, "died"), (0, false));
            let lately = known.and_then(|known| known.words()).map_or_else(
                || "messages have died in the last 10 minutes".to_owned(),
                |words| format!("messages have died: {words}"),
            );
            format!("{lately}; it has {} dead", number(info, "dead"))
        }
    };
    about.warning(DYING, what, "they are not delivered again", &advice(info));
}

fn advice(info: &Fields) -> String {
    let Some((kind, name)) = target(info).filter(|_| moves_dead(info)) else {
        return "look with dqctl dead QUEUE --by-error".to_owned();
    };
    let name = quoted(&shown(name));
    match kind {
        "QUEUE" => format!("look with dqctl dead {name} --letters --by-error"),
        "STREAM" => format!("look with redis-cli XREVRANGE {name} + - COUNT 10"),
        _ => format!("look with redis-cli LRANGE {name} 0 9"),
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
        die(client, name, &info, "", about);
        return Ok(());
    }
    let died = messages(u64::try_from(died).unwrap_or(0));
    let what = format!(
        "{died} died since it was created; its dead ones are moved to {}",
        target_in_words(&info).unwrap_or_default()
    );
    let why = "whether any died lately does not show in seconds";
    about.note("moved", what, why, &format!("{}; dqctl ls --watch and top show whether messages die", advice(&info)));
    Ok(())
}

//! Looks at a queue that forwards and at its target, in one transaction each, until the run is over.

use super::history::{Entry, Look};
use super::stage::{Link, NOBODY, QUEUE};
use crate::support::{eventually, Random, Reply};

/// The key to which the queue forwards.
const TARGET: &str = "{run}target";

/// How many of the newest entries of the target a short look reads.
const TAIL: usize = 50;

/// Where the queue of a run forwards.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    Stream,
    Left,
    Right,
}

impl Target {
    pub fn any(chance: &mut Random) -> Target {
        *chance.one_of(&[Target::Stream, Target::Stream, Target::Left, Target::Right])
    }

    /// The setting of the queue.
    pub fn setting(self) -> &'static str {
        match self {
            Target::Stream => "FORWARD STREAM {run}target",
            Target::Left => "FORWARD LIST {run}target LEFT REGISTER {run}names target",
            Target::Right => "FORWARD LIST {run}target",
        }
    }

    /// The command that reads all of it, and the one that reads its newest entries.
    fn reads(self) -> (String, String) {
        match self {
            Target::Stream => (format!("XRANGE {TARGET} - +"), format!("XREVRANGE {TARGET} + - COUNT {TAIL}")),
            Target::Left => (format!("LRANGE {TARGET} 0 -1"), format!("LRANGE {TARGET} 0 {}", TAIL - 1)),
            Target::Right => (format!("LRANGE {TARGET} 0 -1"), format!("LRANGE {TARGET} -{TAIL} -1")),
        }
    }
}

/// Looks until the run is over. Returns what was seen.
pub fn watch(mut link: Link<'_>, target: Target) -> Vec<Look> {
    let mut looks = Vec::new();
    while !link.stage.over() {
        let whole = link.chance.below(12) == 0;
        looks.extend(look(&mut link, target, whole));
        // Nobody pushes to this queue, so the pop only waits, and the client leaves a server that is no longer the
        // master.
        let pause = 1 + link.chance.below(20);
        link.say(&[format!("DQ.POP {NOBODY} BLOCK {pause}")]);
    }
    looks
}

/// Waits until everything is forwarded. Returns what is in the target then.
pub fn finish(mut link: Link<'_>, target: Target) -> Look {
    eventually("all messages are forwarded", || link.say(&[format!("DQ.LEN {QUEUE}")]).1[0].int() == 0);
    assert_eq!(link.say(&[format!("DQ.LEN {QUEUE} dead")]).1[0].int(), 0, "nothing dies where nothing is delivered");
    look(&mut link, target, true).expect("the server is up")
}

/// Reads the target, and if it reads the whole of it, the queue too. `None` if the connection broke.
fn look(link: &mut Link<'_>, target: Target, whole: bool) -> Option<Look> {
    let (all, newest) = target.reads();
    let scan = format!("DQ.SCAN {QUEUE} 0 COUNT 1000000");
    let (span, replies) = match whole {
        true => link.say(&["MULTI", &scan, &all, "EXEC", "TIME"]),
        false => link.say(&[newest.as_str(), "TIME"]),
    };
    let (mut queue, mut found) = (None, replies.first()?);
    if whole {
        let Some(Reply::Array(both)) = replies.get(3) else { return None };
        let payload = |message: &Reply| message.fields().text("payload");
        queue = Some(both[0].items()[1].items().iter().map(payload).collect());
        found = &both[1];
    }
    let Reply::Array(found) = found else { return None };
    let latest = link.stage.latest_anywhere(replies.last()).unwrap_or(i64::MAX);
    let mut target: Vec<Entry> = found.iter().map(entry).collect();
    // The time of the queue stands still a little later than that of the stream.
    let stands_still = link.stage.has_been_set_back();
    for entry in &mut target {
        entry.added = entry.added.filter(|_| !stands_still).map(|at| at + link.stage.error());
    }
    Some(Look { span, latest, queue, target })
}

/// An entry of a stream, or an element of a list.
fn entry(reply: &Reply) -> Entry {
    let Reply::Array(parts) = reply else { return Entry { payload: reply.text(), id: None, due: None, added: None } };
    let fields = parts[1].fields();
    let number = |text: &str| text.parse::<i64>().expect("a number");
    Entry {
        payload: fields.text("payload"),
        id: Some(fields.text("id")),
        due: Some(number(&fields.text("due"))),
        added: parts[0].text().split('-').next().map(number),
    }
}

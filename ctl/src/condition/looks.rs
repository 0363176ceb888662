//! What several looks at a queue tell: what the fields of `DQ.INFO` do not say at one time.

use super::UNSERVED;
use crate::dead::is_letter;
use crate::reply::{self, Fields};
use crate::time::span;
use dq_client::{cmd, Client, Resend};

/// A queue has a consumer for this time after a delivery, in ms, although nobody waits: consumers can poll without `BLOCK`.
pub const POLLED: i64 = 60_000;
/// For this time in ms a rate limit counts after it was seen.
const LIMITED: i64 = 10_000;
/// If so many first messages died in other queues, all that are ready count as such.
const LETTERS: usize = 10;

/// What has happened in a queue in the last minutes, as far as somebody has looked at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recent {
    /// How long ago the newest death was that is known, in ms.
    pub newest_death: Option<i64>,
    pub delivers: bool,
    /// The rate limit held deliveries back a moment ago: between two of them it may not, if consumers poll.
    pub limited: bool,
    /// Nothing was ever delivered, and the first ready messages died in other queues.
    pub letters: bool,
}

/// The totals of one queue that tell what happens in it between two looks.
#[derive(Clone, Copy, Default, Debug)]
pub struct Looks {
    died: Total,
    delivered: Total,
    /// When the rate limit was last seen to hold deliveries back, in Unix ms.
    limited: Option<i64>,
    /// How many were dead at the last look.
    dead: Option<i64>,
    /// Whether the first ready messages died in other queues, if that was read.
    letters: Option<bool>,
}

/// What the fields of `DQ.INFO` do not say.
#[derive(Clone, Copy, Default, Debug)]
pub struct Peeked {
    /// When the newest dead message died, in Unix ms.
    pub newest_death: Option<i64>,
    pub(super) letters: Option<bool>,
}

/// A total that was seen last, and when it grew, in Unix ms.
#[derive(Clone, Copy, Default, Debug)]
struct Total {
    seen: Option<i64>,
    grew: Option<i64>,
}

impl Total {
    fn note(&mut self, now: i64, total: i64) {
        if self.seen.is_some_and(|seen| total > seen) {
            self.grew = Some(now);
        }
        self.seen = Some(total);
    }

    fn has_grown(&self, now: i64, within: i64) -> bool {
        self.grew.is_some_and(|at| now.saturating_sub(at) < within)
    }
}

impl Looks {
    /// Reads what is not known yet. What the user may not read stays unknown.
    pub fn peek(&self, client: &Client, queue: &[u8], info: &Fields) -> Peeked {
        let dead = info.int("dead").unwrap_or(0);
        // If some are no longer dead, the newest one may be among them.
        let is_unknown = dead > 0 && self.dead.is_none_or(|seen| dead < seen);
        let is_untouched =
            info.int("delivered") == Some(0) && info.int("oldest-ready").is_some_and(|age| age >= UNSERVED);
        let are_letters = || {
            let ready = first(client, queue, "ready", LETTERS);
            !ready.is_empty() && ready.iter().all(is_letter)
        };
        let newest_death = || first(client, queue, "dead", 1).first().and_then(|message| message.int("died"));
        Peeked {
            newest_death: if is_unknown { newest_death() } else { None },
            letters: self.letters.or_else(|| is_untouched.then(are_letters)),
        }
    }

    /// Notes the fields of `DQ.INFO`, and what was peeked at with them.
    pub fn note(&mut self, now: i64, info: &Fields, peeked: Peeked) -> Recent {
        let total = |name: &str| info.int(name).unwrap_or(0);
        self.dead = Some(total("dead"));
        self.died.grew = peeked.newest_death.or(self.died.grew);
        self.died.note(now, total("died"));
        self.delivered.note(now, total("delivered"));
        if info.int("next-delivery").is_some() {
            self.limited = Some(now);
        }
        self.letters = peeked.letters.filter(|_| total("ready") > 0);
        Recent {
            newest_death: self.died.grew.map(|at| now.saturating_sub(at).max(0)),
            delivers: self.delivered.has_grown(now, POLLED),
            limited: self.limited.is_some_and(|at| now.saturating_sub(at) < LIMITED),
            letters: self.letters == Some(true) && total("delivered") == 0,
        }
    }
}

/// Whether the first message that waits in a queue died in another one.
pub fn begins_with_letter(client: &Client, queue: &[u8]) -> bool {
    let first = |state: &str| first(client, queue, state, 1).into_iter().next();
    ["ready", "delayed"].into_iter().find_map(first).is_some_and(|one| is_letter(&one))
}

/// The first messages of a state; of dead ones, the newest. None if the user may not read them.
fn first(client: &Client, queue: &[u8], state: &str, count: usize) -> Vec<Fields> {
    let command = cmd("DQ.PEEK").arg(queue).arg(state).arg("COUNT").arg(count).clone();
    let messages = client.call(&command, Resend::Harmless).ok().and_then(|reply| reply::list(reply).ok());
    messages.unwrap_or_default().into_iter().filter_map(|message| Fields::read(message).ok().flatten()).collect()
}

impl Recent {
    pub fn has_death(&self, within: i64) -> bool {
        self.newest_death.is_some_and(|ago| ago < within)
    }

    /// `30 dead, the newest 6h ago`.
    pub fn dead(&self, info: &Fields) -> String {
        let newest = self.newest_death.and_then(|ago| u64::try_from(ago).ok());
        let newest = newest.map_or_else(String::new, |ago| format!(", the newest {} ago", span(ago)));
        format!("{} dead{newest}", info.int("dead").unwrap_or(0))
    }
}

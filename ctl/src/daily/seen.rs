//! What is seen of a queue in one look, or in several.

use super::queues::read;
use crate::condition::{moves_dead, Condition, Looks};
use crate::dead::Targets;
use crate::failure::Failure;
use crate::row::{Row, Snapshot};
use crate::time::now_ms;
use dq_client::Client;
use std::time::{Duration, Instant};

/// The time from a first look that shows no consumer to the second one. Consumers that poll without `BLOCK` neither wait nor
/// hold a message between two pops, but most of them take one in this time.
pub const AGAIN: Duration = Duration::from_secs(1);

/// What was seen of a queue, from which its rates and what happens in it follow.
#[derive(Default)]
pub struct Seen {
    looks: Looks,
    pub row: Row,
}

impl Seen {
    /// Looks at the queue, and for the first time at what was moved from it. False if it does not exist.
    pub fn look(&mut self, client: &Client, name: &[u8], targets: &mut Targets) -> Result<bool, Failure> {
        let Some(info) = read(client, name)? else { return Ok(false) };
        let mut peeked = self.looks.peek(client, name, &info);
        if self.row.latest.is_none() && moves_dead(&info) {
            peeked.newest_death = peeked.newest_death.or_else(|| targets.newest_death(client, name, &info));
        }
        let recent = self.looks.note(now_ms(), &info, peeked);
        self.row.take(Snapshot { at: Instant::now(), info, late: None, recent });
        Ok(true)
    }

    /// Whether no consumer was seen, so that another look can tell more. A queue from which nothing was ever taken has no
    /// consumer that polls.
    pub fn is_unclear(&self) -> bool {
        self.row.has(Condition::Unserved) && self.row.number("delivered") > 0
    }
}

//! How many messages an act would change.

use super::Meant;
use crate::board::{batches, each_page, is_older, recurs, scan, Among, Filter};
use crate::cli::{Act, PurgeArgs};
use crate::server::{get_all, reply, Failure, Fields};
use crate::text::{now_ms, MessageId, QueueName};
use dq_client::{blocking::Client, Raw, State};

impl Act {
    /// How many messages of a queue it would change; `None` if that does not exist.
    pub fn count(&self, client: &Client, queue: &QueueName) -> Result<Option<u64>, Failure> {
        let name = queue.as_bytes();
        let Some(info) = reply::info(client, name)? else { return Ok(None) };
        let number = match self.meant() {
            Meant::Queue => held(&info, &State::ALL),
            Meant::Ids(ids) => {
                let ids: Vec<&[u8]> = ids.iter().map(MessageId::as_bytes).collect();
                let messages = get_all(client, name, &ids)?;
                messages.iter().flatten().filter(|message| self.fits(message)).count() as u64
            }
            Meant::States(states) => self.of_states(client, name, &info, &states)?,
            Meant::Selected(filter) => {
                let mut counted = 0;
                each_page(client, name, &filter, |page| counted += page.len() as u64)?;
                counted.min(filter.oldest.map_or(u64::MAX, u64::from))
            }
            Meant::Consumer(consumer) => held_by(client, name, consumer)?,
            Meant::Batch(batch) => {
                batches::info(client, name, batch.as_bytes())?.map_or(0, |batch| batch.number("left"))
            }
        };
        Ok(Some(number.min(self.limit())))
    }

    /// The most messages that its options allow.
    pub fn limit(&self) -> u64 {
        match self {
            Act::Redrive(args) => args.target.count,
            Act::Promote(args) => args.count,
            Act::Purge(args) => args.count,
            Act::Release(args) => args.count,
            _ => None,
        }
        .map_or(u64::MAX, u64::from)
    }

    /// Whether a message whose id was given is in a state in which it can be changed.
    pub fn fits(&self, message: &Fields) -> bool {
        let state = message.text("state");
        match self {
            Act::Redrive(args) if args.letters => crate::board::dead::is_letter(message),
            Act::Redrive(_) => state == "dead",
            Act::Promote(_) => state == "delayed",
            Act::Bury(_) => state != "dead" && state != "done",
            _ => true,
        }
    }

    fn of_states(&self, client: &Client, queue: &[u8], info: &Fields, states: &[State]) -> Result<u64, Failure> {
        let all = held(info, states);
        match self {
            Act::Purge(args) if args.group.is_some() || args.older.is_some() => to_purge(client, args, queue, states),
            Act::Purge(args) if !args.recurring => {
                Ok(all.saturating_sub(count_recurring(client, queue, info, states)?))
            }
            _ => Ok(all),
        }
    }
}

/// How many messages are in these states.
pub fn held(info: &Fields, states: &[State]) -> u64 {
    states.iter().map(|state| info.number(state.as_str())).sum()
}

/// How many messages of these states recur.
pub fn count_recurring(client: &Client, queue: &[u8], info: &Fields, states: &[State]) -> Result<u64, Failure> {
    let mut recurring = 0;
    if info.number("schedules") > 0 {
        let is_meant = |message: &&Fields| states.iter().any(|state| message.text("state") == state.as_str());
        scan::each_page(client, queue, info, &["RECURRING"], |page| {
            recurring += page.iter().filter(is_meant).count() as u64;
        })?;
    }
    Ok(recurring)
}

/// How many messages a purge would remove of a group or of an age, which the counts of the queue do not know.
fn to_purge(client: &Client, args: &PurgeArgs, queue: &[u8], states: &[State]) -> Result<u64, Failure> {
    let mut number = 0;
    let is_meant = |message: &&Fields| {
        args.group.as_ref().is_none_or(|group| message.bytes("group") == group.as_bytes())
            && args.older.is_none_or(|age| is_older(message, age, now_ms()))
            && (args.recurring || !recurs(message))
    };
    for state in states {
        let all = Filter { among: Among::State(*state), ..Filter::default() };
        each_page(client, queue, &all, |page| number += page.iter().filter(is_meant).count() as u64)?;
    }
    Ok(number)
}

/// How many messages a consumer holds.
fn held_by(client: &Client, queue: &[u8], name: &str) -> Result<u64, Failure> {
    for consumer in client.queue::<Raw>(queue).consumers() {
        let consumer = consumer?;
        if consumer.name == name.as_bytes() {
            return Ok(consumer.inflight);
        }
    }
    Ok(0)
}

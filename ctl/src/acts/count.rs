//! How many messages an act would change.

use super::change::{Change, Scope};
use crate::board::{batches, each_page};
use crate::cli::Act;
use crate::server::{get_all, info, Failure};
use crate::text::{MessageId, QueueName};
use dq_client::{blocking::Client, Raw, State};

impl Act {
    /// How many messages of a queue it would change; `None` if the queue does not exist.
    pub fn count(&self, client: &Client, queue: &QueueName) -> Result<Option<u64>, Failure> {
        let (name, change) = (queue.as_bytes(), self.change());
        let Some(info) = info::read(client, name)? else { return Ok(None) };
        let number = match change.scope() {
            Scope::Queue(_) => info.count_all(&State::ALL),
            Scope::Ids(ids) => {
                let ids: Vec<&[u8]> = ids.iter().map(MessageId::as_bytes).collect();
                let messages = get_all(client, name, &ids)?;
                messages.iter().flatten().filter(|message| change.fits(message)).count() as u64
            }
            Scope::States(states) => change.count_states(client, name, &info, &states)?,
            Scope::Selected(filter) => {
                let mut counted = 0;
                each_page(client, name, &filter, |page| counted += page.len() as u64)?;
                counted.min(filter.oldest.map_or(u64::MAX, u64::from))
            }
            Scope::Consumer(consumer) => held_by(client, name, consumer)?,
            Scope::Batch(batch) => {
                batches::info(client, name, batch.as_bytes())?.map_or(0, |batch| batch.number("left"))
            }
        };
        Ok(Some(number.min(limit(change))))
    }
}

/// The most messages that the options of an act allow.
pub fn limit(change: &dyn Change) -> u64 {
    change.limit().map_or(u64::MAX, u64::from)
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

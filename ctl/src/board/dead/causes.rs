//! Dead messages counted by their causes.

use super::cause::cause_of;
use super::{each_page, Filter};
use crate::server::Failure;
use crate::text::{shown, QueueName};
use dq_client::blocking::Client;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The most causes that are kept apart: a queue can have as many as dead messages. The others are counted together.
const MOST: usize = 10_000;
/// The cause under which the others are counted.
const OTHERS: &str = "(other causes)";

/// The dead messages of one cause.
#[derive(Default)]
pub struct Cause {
    pub count: u64,
    /// When the first and the last of them died, in Unix ms.
    pub oldest: i64,
    pub newest: i64,
    /// The id of the last one.
    pub id: String,
    /// How many of them are in each queue.
    pub queues: BTreeMap<String, u64>,
}

/// The dead messages of some queues by cause: the errors, without what differs from message to message.
#[derive(Default)]
pub struct Causes(HashMap<String, Cause>);

impl Causes {
    /// Adds the selected messages of a queue. Returns whether it exists.
    pub fn add(&mut self, client: &Client, queue: &[u8], filter: &Filter) -> Result<bool, Failure> {
        let name = QueueName::from_bytes(queue).to_string();
        each_page(client, queue, filter, |page| {
            for message in page {
                let mut text = cause_of(&message);
                if self.0.len() >= MOST && !self.0.contains_key(&text) {
                    text = OTHERS.to_owned();
                }
                let died = message.died().unwrap_or(0);
                let cause = self.0.entry(text).or_insert_with(|| Cause { oldest: died, ..Cause::default() });
                cause.count += 1;
                *cause.queues.entry(name.clone()).or_default() += 1;
                cause.oldest = cause.oldest.min(died);
                if died >= cause.newest {
                    (cause.newest, cause.id) = (died, shown(message.id()));
                }
            }
        })
    }

    /// The most frequent first.
    pub fn sorted(self) -> Vec<(String, Cause)> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_by(|(a, one), (b, other)| (Reverse(one.count), a).cmp(&(Reverse(other.count), b)));
        all
    }
}

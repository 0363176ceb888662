//! Dead messages counted by their causes.

use super::cause::cause_of;
use super::{pages, Among, Filter};
use crate::server::Failure;
use crate::text::{shown, QueueName};
use dq_client::blocking::Client;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// The most causes that are kept apart: a queue can have as many as dead messages. The others are counted together.
const MOST: usize = 10_000;
/// The cause under which the others are counted.
const OTHERS: &str = "(other causes)";

/// The dead messages of one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The error, without what differs from message to message.
    pub text: String,
    pub count: u64,
    /// When the first and the last of them died, in Unix ms.
    pub oldest: i64,
    pub newest: i64,
    /// The id of the last one.
    pub id: String,
    /// Of letters, the queues in which they died, and how many of them in each.
    pub from: BTreeMap<Vec<u8>, u64>,
}

/// The selected dead messages by cause, the most frequent first. `None` if the queue does not exist.
pub fn causes(client: &Client, queue: &[u8], filter: &Filter) -> Result<Option<Vec<Cause>>, Failure> {
    let mut causes = HashMap::<String, Cause>::new();
    let exists = pages(client, queue, filter, |page| {
        for message in page {
            let mut text = cause_of(&message);
            if causes.len() >= MOST && !causes.contains_key(&text) {
                text = OTHERS.to_owned();
            }
            let died = message.int("died").unwrap_or(0);
            let cause = causes.entry(text).or_insert_with_key(|text| Cause {
                text: text.clone(),
                count: 0,
                oldest: died,
                newest: i64::MIN,
                id: String::new(),
                from: BTreeMap::new(),
            });
            cause.count += 1;
            if filter.among == Among::Letters {
                *cause.from.entry(message.bytes("from").to_vec()).or_default() += 1;
            }
            cause.oldest = cause.oldest.min(died);
            if died >= cause.newest {
                (cause.newest, cause.id) = (died, shown(message.bytes("id")));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if !exists {
        return Ok(None);
    }
    let mut causes: Vec<Cause> = causes.into_values().collect();
    causes.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.text.cmp(&b.text)));
    Ok(Some(causes))
}

/// The causes of several queues, added up.
#[derive(Default)]
pub struct Causes(HashMap<String, (Cause, Vec<(String, u64)>)>);

impl Causes {
    /// Adds what one queue has of a cause.
    pub fn add(&mut self, queue: &QueueName, cause: Cause) {
        let place = (queue.to_string(), cause.count);
        match self.0.get_mut(&cause.text) {
            Some((all, places)) => {
                places.push(place);
                all.count += cause.count;
                all.oldest = all.oldest.min(cause.oldest);
                if cause.newest > all.newest {
                    (all.newest, all.id) = (cause.newest, cause.id);
                }
            }
            None => drop(self.0.insert(cause.text.clone(), (cause, vec![place]))),
        }
    }

    /// The most frequent first, and where they are: the queue with the most of each first.
    pub fn sorted(self) -> (Vec<Cause>, Vec<Vec<(String, u64)>>) {
        let mut all: Vec<_> = self.0.into_values().collect();
        all.sort_by(|(a, _), (b, _)| b.count.cmp(&a.count).then_with(|| a.text.cmp(&b.text)));
        all.iter_mut().for_each(|(_, places)| places.sort_by_key(|(_, count)| Reverse(*count)));
        all.into_iter().unzip()
    }
}

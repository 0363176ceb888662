//! Explains why an act left things as they are, and where the messages are that it did not find.

use super::change::{Change, Scope};
use super::report::Report;
use super::site::Site;
use crate::board::{target_in_words, target_queue, Among};
use crate::server::{info, quoted, reply::no_such_queue, QueueInfo};
use crate::text::{shown, MessageId, QueueName};
use dq_client::{blocking::Client, State};

/// Why a message was left alone: it is in none of the states that the act needs. It is named by its id or by a receipt.
pub fn why_not(change: &dyn Change, site: &Site, message: &MessageId) -> Vec<String> {
    let (queue, needed) = (site.queue, change.needed());
    let (id, receipt) = (&message.id(), Some(message).filter(|message| message.id() != **message));
    // A user who may not look has already been answered by the command itself.
    let Ok(found) = site.message(id.as_bytes()) else {
        return vec![format!("the queue {queue} has no such message that is {needed}: {message}")];
    };
    vec![match (found.as_ref().map(|message| (message.state(), message.text("state"))), receipt) {
        (None, _) => no_such_id(site.client, queue, id),
        (Some((Some(State::Inflight), _)), Some(receipt)) => {
            format!("the message {id} of the queue {queue} was delivered again, so this receipt is stale: {receipt}")
        }
        // A letter that a consumer has, or that has no place to go, is counted with the others that stay.
        (Some((Some(State::Inflight), _)), None) if change.sends_letters() => return Vec::new(),
        (Some((state, word)), _) => {
            let state = if state == Some(State::Inflight) { "in flight" } else { &word };
            format!("the message {id} of the queue {queue} is {state}, and not {needed}")
        }
    }]
}

/// Reports that a queue does not know an id, or that there is no such queue.
pub fn no_such_id(client: &Client, queue: &QueueName, id: &MessageId) -> String {
    let info = match info::read(client, queue.as_bytes()) {
        Ok(None) => return no_such_queue(queue),
        info => info.ok().flatten(),
    };
    // It may be one of those that were moved away.
    let elsewhere = info.and_then(|info| where_the_dead_are(queue, &info)).map(|text| format!("; {text}"));
    format!("the queue {queue} has no such message: {id}{}", elsewhere.unwrap_or_default())
}

/// Adds to a report why nothing was changed.
pub fn nothing(change: &dyn Change, site: &Site, mut report: Report) -> Report {
    let queue = site.queue;
    let is_about_dead = match change.scope() {
        Scope::States(states) => states.contains(&State::Dead),
        Scope::Selected(filter) => filter.among == Among::default(),
        Scope::Consumer(consumer) => {
            let text = format!("the consumer {consumer} holds no message of the queue {queue}");
            return report.note(format!("{text}; dqctl consumers lists those that hold some"));
        }
        Scope::Batch(batch) => {
            return report.note(format!("the queue {queue} has no batch {batch}: it has ended, or was never begun"))
        }
        Scope::Queue(_) | Scope::Ids(_) => false,
    };
    let info = if is_about_dead { site.info_if_allowed() } else { None };
    report.notes.extend(info.and_then(|info| where_the_dead_are(queue, &info)));
    report
}

/// Where a queue moves its dead messages.
pub fn where_the_dead_are(queue: &QueueName, info: &QueueInfo) -> Option<String> {
    let target = target_in_words(info)?;
    let back = target_queue(info).map_or_else(String::new, |name| {
        let letters = format!("{} --letters --where {}", quoted(&shown(name)), quoted(&format!("from={queue}")));
        format!(": dqctl dead {letters} lists them, and dqctl redrive {letters} sends them back")
    });
    Some(format!("the dead messages of {queue} go to {target}{back}"))
}

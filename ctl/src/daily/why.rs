//! Why a command left a message as it was: the message, or its queue, does not exist, or it is in another state.

use super::{exists, queues, where_the_dead_are};
use crate::name::{MessageId, QueueName};
use crate::reply::Fields;
use dq_client::{cmd, Client, Resend};

/// What a message must be that is neither dead nor done yet.
pub const ALIVE: &str = "alive";

/// Reports that a message is in none of the states that a command needs, such as `in flight`. The message is named by its id
/// or by a receipt.
pub fn not_in(client: &Client, queue: &QueueName, message: &MessageId, needed: &str) {
    let (id, receipt) = (&message.id(), Some(message).filter(|message| message.id() != **message));
    let command = cmd("DQ.GET").arg(queue.as_bytes()).arg(id.as_bytes()).clone();
    // A user who may not look has already been answered by the command itself.
    let Ok(held) = client.call(&command, Resend::Harmless).map(|reply| Fields::read(reply).ok().flatten()) else {
        say!("dqctl: the queue {queue} has no such message that is {needed}: {message}");
        return;
    };
    match (held.map(|held| held.text("state")), receipt) {
        (None, _) => no_such_id(client, queue, id),
        (Some(state), Some(receipt)) if state == "inflight" => {
            say!(
                "dqctl: the message {id} of the queue {queue} was delivered again, so this receipt is stale: {receipt}"
            );
        }
        (Some(state), _) if needed == ALIVE => {
            say!("dqctl: the message {id} of the queue {queue} is {state} already")
        }
        (Some(state), _) => {
            let state = if state == "inflight" { "in flight" } else { &state };
            say!("dqctl: the message {id} of the queue {queue} is {state}, and not {needed}");
        }
    }
}

/// Reports that a queue does not know an id, or that there is no such queue.
pub fn no_such_id(client: &Client, queue: &QueueName, id: &MessageId) {
    if exists(client, queue).unwrap_or(true) {
        say!("dqctl: the queue {queue} has no such message: {id}");
        // It may be one of them.
        if let Ok(Some(info)) = queues::read(client, queue.as_bytes()) {
            where_the_dead_are(queue, &info);
        }
    }
}

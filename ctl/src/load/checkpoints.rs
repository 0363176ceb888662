//! Pushes messages on which work has begun, with the checkpoints and the last errors that the dump has of it.
//!
//! Only a consumer stores them. So one transaction makes the message the first one, delivers it, gives it back uncounted with
//! its checkpoint and its error, and moves it to its own place. Nobody sees it before. If the queue delivers nothing, or
//! another message, the message is loaded without them, and the other one is given back.

use super::dead::{PAUSE, TRIES};
use crate::transfer::{get_all, push_all, NewMessage, Pushed, Refused};
use dq_client::{cmd, Client, Cmd, Error, Resend, Value};

/// The earliest due time that a push takes, in Unix ms, and the highest priority.
const FIRST: i64 = 100_000_000_000;
const HIGHEST: i64 = 127;
/// How long the delivery in a transaction may take if the message is not given back in it.
const LEASE: u64 = 60_000;

/// Pushes messages in their order. `lost` counts those whose checkpoints or errors could not be stored.
pub fn push_live(client: &Client, queue: &[u8], all: &[NewMessage], lost: &mut u64) -> Result<Vec<Pushed>, Refused> {
    let mut outcomes = Vec::with_capacity(all.len());
    let is_plain = |message: &NewMessage| message.checkpoint.is_none() && message.error.is_none();
    for part in all.chunk_by(|one, next| is_plain(one) && is_plain(next)) {
        let pushed = match part {
            [message] if !is_plain(message) => push(client, queue, message, lost)
                .map(|pushed| vec![pushed])
                .map_err(|error| Refused { before: Vec::new(), error }),
            plain => push_all(client, queue, plain),
        };
        match pushed {
            Ok(pushed) => outcomes.extend(pushed),
            Err(Refused { before, error }) => {
                outcomes.extend(before);
                return Err(Refused { before: outcomes, error });
            }
        }
    }
    Ok(outcomes)
}

fn push(client: &Client, queue: &[u8], message: &NewMessage, lost: &mut u64) -> Result<Pushed, Error> {
    let first = NewMessage { due: Some(FIRST), priority: HIGHEST, ..message.clone() };
    let commands: Vec<Cmd> = [first.push(queue)].into_iter().chain(store(queue, message)).collect();
    let mut failure = None;
    for _ in 0..TRIES {
        // A message that is there must be left alone: somebody may work on it.
        let held = get_all(client, queue, &[&message.id]).map_err(|error| Error::Server(error.to_string()))?;
        if let Some(Some(held)) = held.first() {
            return Ok(if held.text("state") == "dead" { Pushed::Dead } else { Pushed::Held });
        }
        match client.transaction(&commands) {
            Ok(replies) => {
                *lost += missed(client, queue, &replies, &[message]);
                return match replies.into_iter().next() {
                    Some(Ok(Value::Nil)) => Ok(Pushed::Held),
                    Some(Err(error)) => Err(error),
                    Some(Ok(_)) | None => Ok(Pushed::New),
                };
            }
            Err(error) if error.is_transient() => failure = Some(error),
            Err(error) => return Err(error),
        }
        std::thread::sleep(PAUSE);
    }
    failure.map_or(Ok(Pushed::Held), Err)
}

/// The commands that make a message the first one, before [`store`].
pub fn make_first(queue: &[u8], message: &NewMessage) -> Cmd {
    let mut command = cmd("DQ.RESCHEDULE");
    command.arg(queue).arg(&message.id).arg("AT").arg(FIRST).arg("PRIORITY").arg(HIGHEST);
    command
}

/// The commands that give the first message its checkpoint and its error, and then its own place.
pub fn store(queue: &[u8], message: &NewMessage) -> [Cmd; 3] {
    let mut pop = cmd("DQ.POP");
    pop.arg(queue).arg("LEASE").arg(LEASE);
    let mut nack = cmd("DQ.NACK");
    nack.arg(queue).arg(&message.id).arg("NOCOUNT");
    for (name, bytes) in [("CHECKPOINT", &message.checkpoint), ("ERROR", &message.error)] {
        if let Some(bytes) = bytes {
            nack.arg(name).arg(bytes);
        }
    }
    let mut place = cmd("DQ.RESCHEDULE");
    place.arg(queue).arg(&message.id).arg("PRIORITY").arg(message.priority);
    match message.due {
        Some(due) => place.arg("AT").arg(due),
        None => place.arg("DELAY").arg(0),
    };
    [pop, nack, place]
}

/// How many of these messages a transaction did not deliver. Another one that it delivered is given back.
pub fn missed(client: &Client, queue: &[u8], replies: &[Result<Value, Error>], messages: &[&NewMessage]) -> u64 {
    let mut missed = messages.len() as u64;
    for reply in replies {
        let Ok(Value::Array(popped)) = reply else { continue };
        let Some(Value::Array(parts)) = popped.first() else { continue };
        let (Some(Value::BulkString(id)), Some(Value::BulkString(receipt))) = (parts.first(), parts.get(3)) else {
            continue;
        };
        if messages.iter().any(|message| message.id == *id) {
            missed = missed.saturating_sub(1);
        } else {
            // If this fails, it comes back when its lease expires.
            let _ = client.call(cmd("DQ.NACK").arg(queue).arg(receipt).arg("NOCOUNT"), Resend::Harmless);
        }
    }
    missed
}

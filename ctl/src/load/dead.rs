//! Pushes messages that are dead at once.
//!
//! No command pushes a dead message, and a consumer must not get it before it is buried. So it is first pushed with the
//! latest possible due time; then one transaction gives it its own due time and buries it. A message that a crash leaves
//! in between is recognised by that due time, and is buried by the next load.

use super::checkpoints::{make_first, missed, store};
use crate::failure::Failure;
use crate::transfer::{get_all, push_all, NewMessage, Pushed, Refused};
use dq_client::{cmd, Client, Cmd, Error};
use std::time::Duration;

/// The latest due time that a message can have, in Unix ms: in the year 2248.
const NEVER: i64 = 8_796_093_022_207;
/// How often a transaction is tried.
pub const TRIES: u32 = 20;
pub const PAUSE: Duration = Duration::from_millis(500);

pub struct Dead {
    pub message: NewMessage,
    pub error: Option<Vec<u8>>,
}

/// Pushes and buries messages. Returns for each what its push did.
/// `lost` counts those whose checkpoints could not be stored.
pub fn push_dead(client: &Client, queue: &[u8], all: &[Dead], lost: &mut u64) -> Result<Vec<Pushed>, Refused> {
    let never = |dead: &Dead| NewMessage { due: Some(NEVER), ..dead.message.clone() };
    let mut outcomes = Vec::new();
    while let Some(rest) = all.get(outcomes.len()..).filter(|rest| !rest.is_empty()) {
        let messages: Vec<NewMessage> = rest.iter().map(never).collect();
        let pushed = push_all(client, queue, &messages);
        let all_new = pushed.as_ref().is_ok_and(|pushed| pushed.iter().all(|did| *did == Pushed::New));
        if let Err(error) = bury(client, queue, rest, all_new, lost) {
            return Err(Refused { before: outcomes, error });
        }
        match pushed {
            Ok(pushed) => outcomes.extend(pushed),
            Err(refused) => {
                let progress = !refused.before.is_empty();
                outcomes.extend(refused.before);
                // The buried ones no longer count for the queue's MAXLEN, so there may be room again.
                if !progress || !matches!(refused.error, Error::QueueFull(_)) {
                    return Err(Refused { before: outcomes, error: refused.error });
                }
            }
        }
    }
    Ok(outcomes)
}

/// Buries the messages with the latest due time: they were pushed now, or left by an earlier load. If all are known to be
/// new, this is not looked up.
fn bury(client: &Client, queue: &[u8], candidates: &[Dead], all_new: bool, lost: &mut u64) -> Result<(), Error> {
    let mut last = None;
    for attempt in 0..TRIES {
        // After a transaction whose reply was lost, they may be dead, and even redriven.
        let waiting =
            if all_new && attempt == 0 { candidates.iter().collect() } else { waiting(client, queue, candidates)? };
        if waiting.is_empty() {
            return Ok(());
        }
        let commands: Vec<Cmd> = waiting.iter().flat_map(|dead| commands(queue, dead)).collect();
        match client.transaction(&commands) {
            Ok(replies) => {
                let worked_on: Vec<&NewMessage> =
                    waiting.iter().map(|dead| &dead.message).filter(|message| message.checkpoint.is_some()).collect();
                if !worked_on.is_empty() {
                    *lost += missed(client, queue, &replies, &worked_on);
                }
                return replies.into_iter().find_map(Result::err).map_or(Ok(()), Err);
            }
            Err(error) if error.is_transient() => last = Some(error),
            Err(error) => return Err(error),
        }
        std::thread::sleep(PAUSE);
    }
    last.map_or(Ok(()), Err)
}

fn waiting<'a>(client: &Client, queue: &[u8], candidates: &'a [Dead]) -> Result<Vec<&'a Dead>, Error> {
    let ids: Vec<&[u8]> = candidates.iter().map(|dead| dead.message.id.as_slice()).collect();
    let held = get_all(client, queue, &ids).map_err(|failure: Failure| Error::Server(failure.to_string()))?;
    let is_waiting = |fields: &Option<crate::reply::Fields>| {
        fields.as_ref().is_some_and(|fields| fields.int("due") == Some(NEVER) && fields.text("state") == "delayed")
    };
    Ok(candidates.iter().zip(&held).filter(|(_, held)| is_waiting(held)).map(|(dead, _)| dead).collect())
}

fn commands(queue: &[u8], dead: &Dead) -> Vec<Cmd> {
    let id = &dead.message.id;
    let mut reschedule = cmd("DQ.RESCHEDULE");
    reschedule.arg(queue).arg(id);
    match dead.message.due {
        Some(due) => reschedule.arg("AT").arg(due),
        None => reschedule.arg("DELAY").arg(0),
    };
    let mut bury = cmd("DQ.BURY");
    bury.arg(queue).arg(id);
    if let Some(error) = &dead.error {
        bury.arg("ERROR").arg(error);
    }
    match dead.message.checkpoint {
        None => vec![reschedule, bury],
        Some(_) => {
            let stored = store(queue, &dead.message);
            [make_first(queue, &dead.message)].into_iter().chain(stored).chain([bury]).collect()
        }
    }
}

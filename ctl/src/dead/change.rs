//! Redrives or cancels selected messages, a page at a time.

use super::{letters, pages, since, Filter, SentBack};
use crate::failure::Failure;
use crate::reply::{int, list, text, unexpected, Fields};
use crate::time::{millis, now_ms};
use crate::transfer::get_all;
use dq_client::{cmd, Client, Cmd, Resend};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

/// The number of selected messages. `None` if the queue does not exist.
pub fn count(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    progress: impl FnMut(u64),
) -> Result<Option<u64>, Failure> {
    change(client, queue, filter, progress, |ids| Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX)))
}

/// Redrives the selected dead messages, to be due after `delay`. Returns how many; `None` if the queue does not exist.
pub fn redrive(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    delay: Duration,
    progress: impl FnMut(u64),
) -> Result<Option<u64>, Failure> {
    change(client, queue, filter, progress, |ids| redrive_these(client, queue, ids, delay))
}

/// Redrives those of some messages that are dead. Returns how many.
pub fn redrive_these(client: &Client, queue: &[u8], ids: &[&[u8]], delay: Duration) -> Result<u64, Failure> {
    let mut command = cmd("DQ.REDRIVE");
    command.arg(queue).arg("IDS").arg(ids.len()).arg(ids).arg("DELAY").arg(millis(delay));
    let reply = client.call(&command, Resend::Never)?;
    int(&reply).and_then(|count| u64::try_from(count).ok()).ok_or_else(|| unexpected(&reply))
}

/// Buries those of some messages that wait, with an error if there is one. Returns how many.
///
/// One that a consumer takes between its reading and its burial, a few milliseconds, is buried too.
pub fn bury_these(client: &Client, queue: &[u8], ids: &[&[u8]], error: Option<&[u8]>) -> Result<u64, Failure> {
    let waits = |message: &Fields| matches!(message.text("state").as_str(), "ready" | "delayed");
    let mut buried = 0;
    for step in ids.chunks(AGAIN) {
        let messages = get_all(client, queue, step)?.into_iter();
        let waiting = step.iter().zip(messages).filter(|(_, message)| message.as_ref().is_some_and(waits));
        let waiting: Vec<&[u8]> = waiting.map(|(id, _)| *id).collect();
        buried += bury_each(client, queue, &waiting, error)?;
    }
    Ok(buried)
}

/// Buries messages in whatever state they are. Returns how many were not dead before.
fn bury_each(client: &Client, queue: &[u8], ids: &[&[u8]], error: Option<&[u8]>) -> Result<u64, Failure> {
    let burial = |id: &&[u8]| {
        let mut command = cmd("DQ.BURY");
        command.arg(queue).arg(*id);
        if let Some(error) = error {
            command.arg("ERROR").arg(error);
        }
        command
    };
    let burials: Vec<Cmd> = ids.iter().map(burial).collect();
    let mut buried = 0;
    for reply in client.batch(&burials) {
        buried += u64::from(text(&reply?).is_some());
    }
    Ok(buried)
}

/// Cancels the selected messages. Returns how many; `None` if the queue does not exist.
///
/// A message that comes into another state between its reading and its cancellation, a few milliseconds, is cancelled too.
pub fn cancel(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    progress: impl FnMut(u64),
) -> Result<Option<u64>, Failure> {
    change(client, queue, filter, progress, |ids| {
        let ids = still_selected(client, queue, filter, ids)?;
        if ids.is_empty() {
            return Ok(0);
        }
        let states = list(client.call(cmd("DQ.CANCEL").arg(queue).arg(&ids), Resend::Never)?)?;
        Ok(states.iter().filter_map(text).map(|_| 1).sum())
    })
}

/// Buries the selected messages, which are not dead, with an error. Returns how many; `None` if the queue does not exist.
pub fn bury(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    error: Option<&[u8]>,
    progress: impl FnMut(u64),
) -> Result<Option<u64>, Failure> {
    change(client, queue, filter, progress, |ids| {
        let ids = still_selected(client, queue, filter, ids)?;
        bury_each(client, queue, &ids, error)
    })
}

/// Sends the selected letters back to the queues in which they died, to be due after `delay`. `done` counts them, also if there
/// is an error in the end. Returns how many were sent; `None` if the queue does not exist.
pub fn send_selected_back(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    delay: Duration,
    done: &mut SentBack,
    progress: impl FnMut(u64),
) -> Result<Option<u64>, Failure> {
    change(client, queue, filter, progress, |ids| {
        let before = done.sent;
        letters::send_back(client, queue, ids, delay, done)?;
        Ok(done.sent - before)
    })
}

/// How many of the oldest messages are changed at a time, and how many are read again before a change.
const STEP: usize = 1_000;
const AGAIN: usize = 50;

/// Those of some messages that the filter still selects. If they were sorted first, they were read seconds ago, and an id may be
/// that of another message by now.
fn still_selected<'a>(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    ids: &[&'a [u8]],
) -> Result<Vec<&'a [u8]>, Failure> {
    if filter.oldest.is_none() {
        return Ok(ids.to_vec());
    }
    let mut selected = Vec::new();
    for step in ids.chunks(AGAIN) {
        let messages = get_all(client, queue, step)?;
        let is_selected =
            |message: Option<Fields>| message.is_some_and(|message| filter.meets(message, now_ms()).is_some());
        selected.extend(step.iter().zip(messages).filter_map(|(id, message)| is_selected(message).then_some(*id)));
    }
    Ok(selected)
}

/// Passes the ids of each page to `act`, which returns how many it has changed. Returns their sum.
fn change(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    mut progress: impl FnMut(u64),
    mut act: impl FnMut(&[&[u8]]) -> Result<u64, Failure>,
) -> Result<Option<u64>, Failure> {
    if let Some(most) = filter.oldest {
        return change_oldest(client, queue, filter, most, progress, act);
    }
    let mut total = 0;
    let exists = pages(client, queue, filter, |page| {
        let ids: Vec<&[u8]> = page.iter().map(|message: &Fields| message.bytes("id")).collect();
        if !ids.is_empty() {
            total += act(&ids)?;
        }
        progress(total);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(exists.then_some(total))
}

/// The same for the selected messages that have been in their state for longest, which are known only when all have been read.
fn change_oldest(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    most: u32,
    mut progress: impl FnMut(u64),
    mut act: impl FnMut(&[&[u8]]) -> Result<u64, Failure>,
) -> Result<Option<u64>, Failure> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    // By the instant, and among those of one instant in the order of the queue.
    let (mut oldest, mut number) = (BTreeSet::<(i64, u64, Vec<u8>)>::new(), 0);
    let exists = pages(client, queue, filter, |page| {
        for message in page {
            number += 1;
            oldest.insert((since(&message).unwrap_or(0), number, message.bytes("id").to_vec()));
            if oldest.len() > most {
                oldest.pop_last();
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let ids: Vec<&[u8]> = oldest.iter().map(|(_, _, id)| id.as_slice()).collect();
    let mut total = 0;
    for step in ids.chunks(STEP) {
        total += act(step)?;
        progress(total);
    }
    Ok(exists.then_some(total))
}

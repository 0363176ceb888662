//! Redrives or cancels selected dead messages, a page at a time.

use super::{pages, Filter};
use crate::failure::Failure;
use crate::reply::{int, list, text, unexpected, Fields};
use crate::time::millis;
use dq_client::{cmd, Client, Resend};
use std::ops::ControlFlow;
use std::time::Duration;

/// The number of selected dead messages. `None` if the queue does not exist.
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
    change(client, queue, filter, progress, |ids| {
        let mut command = cmd("DQ.REDRIVE");
        command.arg(queue).arg("IDS").arg(ids.len()).arg(ids).arg("DELAY").arg(millis(delay));
        let reply = client.call(&command, Resend::Never)?;
        int(&reply).and_then(|count| u64::try_from(count).ok()).ok_or_else(|| unexpected(&reply))
    })
}

/// Cancels the selected dead messages. Returns how many; `None` if the queue does not exist.
///
/// A message that somebody redrives between its reading and its cancellation, a few milliseconds, is cancelled too.
pub fn cancel(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    progress: impl FnMut(u64),
) -> Result<Option<u64>, Failure> {
    change(client, queue, filter, progress, |ids| {
        let states = list(client.call(cmd("DQ.CANCEL").arg(queue).arg(ids), Resend::Never)?)?;
        Ok(states.iter().filter_map(text).map(|_| 1).sum())
    })
}

/// Passes the ids of each page to `act`, which returns how many it has changed. Returns their sum.
fn change(
    client: &Client,
    queue: &[u8],
    filter: &Filter,
    mut progress: impl FnMut(u64),
    act: impl Fn(&[&[u8]]) -> Result<u64, Failure>,
) -> Result<Option<u64>, Failure> {
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

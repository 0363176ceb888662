//! Batches: how far they are, and which ones the messages of a queue belong to. No command lists them.

use crate::board::scan;
use crate::server::{info, Failure, Fields};
use crate::text::QueueName;
use dq_client::{blocking::Client, cmd, Error, Resend};
use std::collections::BTreeSet;

/// The reply of `DQ.BATCHINFO`; `None` if the batch has ended, or was never begun.
pub fn info(client: &Client, queue: &[u8], name: &[u8]) -> Result<Option<Fields>, Error> {
    let reply = client.call(cmd("DQ.BATCHINFO").arg(queue).arg(name), Resend::Harmless)?;
    Ok(Fields::read(reply).ok().flatten())
}

/// The name of a batch and its [`info`].
type Batch = (Vec<u8>, Fields);

/// The batches to which messages of a queue belong, with their [`info`]. A batch without messages cannot be found.
pub fn find(client: &Client, queue: &QueueName) -> Result<Vec<Batch>, Failure> {
    let (queue_info, queue) = (info::existing(client, queue)?, queue.as_bytes());
    let mut names = BTreeSet::new();
    if queue_info.batches > 0 {
        scan::each_page(client, queue, &queue_info, &[], |page| {
            names.extend(page.iter().map(|message| message.batch().to_vec()).filter(|name| !name.is_empty()));
        })?;
    }
    let mut batches = Vec::new();
    for name in names {
        // It may have ended meanwhile.
        if let Some(fields) = info(client, queue, &name)? {
            batches.push((name, fields));
        }
    }
    Ok(batches)
}

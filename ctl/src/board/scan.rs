//! Reads the messages of a queue page by page, in steps of about the same size however large the payloads are.

use crate::server::{fewer, reply, Failure, Message, QueueInfo};
use dq_client::{blocking::Client, cmd, Error, Value};
use std::ops::ControlFlow;

/// The most messages that one step looks at.
const PAGE: u64 = 1_000;
/// About how many bytes one step reads.
const PAGE_BYTES: u64 = 4 << 20;
/// About how many bytes the fields of a message take in addition to its payload.
const FIELDS: u64 = 300;

/// The cursor of a scan that begins, or has ended.
const BEGIN: &[u8] = b"0";

/// Calls `visit` with each page of `DQ.SCAN`. `options` are those of the scan. A
/// message that is in the queue all the time is visited exactly once, even if `visit` changes the queue.
pub fn each_page(
    client: &Client,
    queue: &[u8],
    info: &QueueInfo,
    options: &[&str],
    mut visit: impl FnMut(Vec<Message>),
) -> Result<(), Failure> {
    pages(client, queue, info, options, |page| {
        visit(page);
        Ok(ControlFlow::Continue(()))
    })
}

/// The same until `visit` breaks or fails.
pub fn pages(
    client: &Client,
    queue: &[u8],
    info: &QueueInfo,
    options: &[&str],
    mut visit: impl FnMut(Vec<Message>) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    let mut cursor = BEGIN.to_vec();
    let mut size = Size::estimate(info);
    loop {
        let (page, most) = fewer(size.page(), |count, resend| {
            client.call(cmd("DQ.SCAN").arg(queue).arg(&cursor).arg("COUNT").arg(count).arg(options), resend)
        })?;
        size.most = size.most.min(most);
        let mut page = reply::list(page)?.into_iter();
        let Some(Value::BulkString(next)) = page.next() else { return Ok(()) };
        let mut messages = Vec::new();
        for message in reply::list(page.next().unwrap_or(Value::Nil))? {
            let Some(message) = Message::read(message)? else { continue };
            size.see(message.payload().len());
            messages.push(message);
        }
        let is_done = visit(messages)?.is_break();
        cursor = next;
        if is_done || cursor == BEGIN {
            return Ok(());
        }
    }
}

/// The first messages of a state: at most `most`, and fewer if the messages of the queue are large, so that about
/// `bytes` bytes are read, or if the server closes the connection over a longer reply.
pub fn first(
    client: &Client,
    queue: &[u8],
    state: &str,
    info: &QueueInfo,
    (most, bytes): (u64, u64),
) -> Result<Vec<Message>, Error> {
    let count = (bytes / Size::estimate(info).average()).clamp(1, most);
    let peek = |count, resend| client.call(cmd("DQ.PEEK").arg(queue).arg(state).arg("COUNT").arg(count), resend);
    let (reply, _) = fewer(count, peek)?;
    let messages = reply::list(reply).and_then(|all| all.into_iter().map(Message::read).collect::<Result<Vec<_>, _>>());
    Ok(messages.map_err(|failure| Error::Protocol(failure.to_string()))?.into_iter().flatten().collect())
}

/// How large the messages are on average, so that a page does not exceed a batch by much.
struct Size {
    messages: u64,
    bytes: u64,
    /// The most messages whose reply the server lets through.
    most: u64,
}

impl Size {
    fn estimate(info: &QueueInfo) -> Size {
        let messages = info.delayed + info.ready + info.inflight + info.dead;
        Size { messages: messages.max(1), bytes: info.payload_bytes, most: PAGE }
    }

    /// Recent messages have more weight than earlier ones.
    fn see(&mut self, payload: usize) {
        if self.messages >= 2 * PAGE {
            self.bytes /= 2;
            self.messages /= 2;
        }
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(payload as u64);
    }

    fn average(&self) -> u64 {
        self.bytes / self.messages + FIELDS
    }

    fn page(&self) -> u64 {
        (PAGE_BYTES / self.average()).clamp(1, self.most)
    }
}

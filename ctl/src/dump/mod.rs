//! `dqctl dump`: all messages of a queue as JSON lines.
//!
//! DQ.SCAN returns messages in no defined order, a page at a time. They are sorted before they are written, so that a load
//! pushes them in the order in which they were pushed: first the dead ones, in the order of their deaths, then the others.
//! (The dead ones come first because a load briefly needs room for each of them under the queue's MAXLEN.)

pub mod line;
mod sort;

use crate::cli::DumpArgs;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::reply::{self, Fields};
use crate::transfer::{key, shown, BATCH_BYTES};
use dq_client::{cmd, Client, Resend, Value};
use sort::Sorter;
use std::io::{self, BufWriter, Write};

/// The most messages that one step of the scan looks at.
const PAGE: u64 = 1_000;
/// About how many bytes the fields of a message take in addition to its payload.
const FIELDS: u64 = 300;

pub fn dump(client: &Client, args: &DumpArgs) -> Result<Outcome, Failure> {
    let queue = key(&args.queue);
    let Some(info) = Fields::read(client.call(cmd("DQ.INFO").arg(queue), Resend::Harmless)?)? else {
        eprintln!("dqctl: there is no queue {}; dqctl ls lists the queues", shown(queue));
        return Ok(Outcome::Nothing);
    };
    let mut sorter = Sorter::new();
    let lost = collect(client, queue, &info, &mut sorter)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let written = out
        .write_all(line::of_queue(queue, &info).as_bytes())
        .and_then(|()| sorter.write(&mut out))
        .and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::from(error),
        _ => Failure::failed(format!("standard output, or a temporary file in TMPDIR: {error}; the dump is not complete: free space, and dump again")),
    })?;
    if lost > 0 {
        eprintln!("dqctl: not dumped: {lost} messages that wait for the end of a delivery (REPLACE LATER)");
    }
    Ok(Outcome::Done)
}

/// Returns the number of messages that cannot be read, because others occupy their ids until a delivery ends.
fn collect(client: &Client, queue: &[u8], info: &Fields, sorter: &mut Sorter) -> Result<u64, Failure> {
    let lease = info.int("lease");
    let mut size = Size::of(info);
    let (mut cursor, mut lost, mut count) = (b"0".to_vec(), 0, 0);
    let mut progress = Progress::new("read");
    loop {
        let mut command = cmd("DQ.SCAN");
        command.arg(queue).arg(&cursor).arg("COUNT").arg(size.page()).arg("SEQUENCE");
        let mut page = reply::list(client.call(&command, Resend::Harmless)?)?.into_iter();
        let Some(Value::BulkString(next)) = page.next() else { break };
        for message in reply::list(page.next().unwrap_or(Value::Nil))? {
            let Some(message) = Fields::read(message)? else { continue };
            size.see(message.bytes("payload").len());
            let number = |name| message.int(name).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
            let key = match message.text("state").as_str() {
                "done" => continue,
                "dead" => (number("died"), number("sequence")),
                _ => (u64::MAX, number("sequence")),
            };
            lost += number("next");
            sorter.add(key, line::of_message(queue, &message, lease))?;
            count += 1;
        }
        progress.at(count);
        cursor = next;
        if cursor == b"0" {
            break;
        }
    }
    Ok(lost)
}

/// How large the messages are on average, so that a page does not exceed a batch by much.
struct Size {
    messages: u64,
    bytes: u64,
}

impl Size {
    fn of(info: &Fields) -> Size {
        let number = |name| info.int(name).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        let messages = ["delayed", "ready", "inflight", "dead"].into_iter().map(number).sum::<u64>().max(1);
        Size { messages, bytes: number("payload-bytes") }
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

    fn page(&self) -> u64 {
        let average = self.bytes / self.messages + FIELDS;
        (BATCH_BYTES as u64 / average).clamp(1, PAGE)
    }
}

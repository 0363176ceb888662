//! `dqctl dump`: all messages of a queue as JSON lines.
//!
//! DQ.SCAN returns messages in the order in which they were pushed, a page at a time, and a load pushes them in that order.

use super::line;
use crate::board::{scan, Among};
use crate::cli::DumpArgs;
use crate::server::{reply, Failure, Fields, Outcome};
use crate::text::{messages, now_ms};
use dq_client::blocking::Client;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

pub fn dump(client: &Client, args: &DumpArgs) -> Result<Outcome, Failure> {
    let queue = args.queue.as_bytes();
    let info = reply::existing(client, &args.queue)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    out.write_all(line::of_queue(queue, &info).as_bytes())?;
    let lost = collect(client, args, &info, &mut out)?;
    out.flush()?;
    if lost > 0 {
        say!("dqctl: not dumped, because they wait for the end of a delivery (REPLACE LATER): {}", messages(lost));
    }
    Ok(Outcome::Done)
}

/// Returns the number of messages that cannot be read, because others occupy their ids until a delivery ends.
fn collect(client: &Client, args: &DumpArgs, info: &Fields, out: &mut impl Write) -> Result<u64, Failure> {
    let (queue, lease) = (args.queue.as_bytes(), info.int("lease"));
    let filter = args.select.filter(args.state.map_or_else(Among::default, Among::State), None);
    let is_meant = |message: &Fields| {
        args.state.is_none_or(|state| message.text("state") == state.as_str()) && filter.selects(message, now_ms())
    };
    let mut lost = 0;
    scan::pages(client, queue, info, &[], |page| {
        for message in page {
            if message.text("state") == "done" || !is_meant(&message) {
                continue;
            }
            lost += message.int("next").and_then(|next| u64::try_from(next).ok()).unwrap_or(0);
            out.write_all(line::of_message(queue, &message, lease).as_bytes())?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(lost)
}

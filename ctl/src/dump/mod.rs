//! `dqctl dump`: all messages of a queue as JSON lines.
//!
//! DQ.SCAN returns messages in no defined order, a page at a time. They are sorted before they are written, so that a load
//! pushes them in the order in which they were pushed: first the dead ones, in the order of their deaths, then the others.
//! (The dead ones come first because a load briefly needs room for each of them under the queue's MAXLEN.)

pub mod line;
mod sort;

use crate::advice::tell;
use crate::cli::DumpArgs;
use crate::dead::Among;
use crate::failure::{Failure, Outcome};
use crate::name::shown;
use crate::progress::Progress;
use crate::reply::Fields;
use crate::scan;
use crate::time::now_ms;
use crate::wording::messages;
use dq_client::{cmd, Client, Resend};
use sort::Sorter;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

pub fn dump(client: &Client, args: &DumpArgs) -> Result<Outcome, Failure> {
    let queue = args.queue.as_bytes();
    let Some(info) = Fields::read(client.call(cmd("DQ.INFO").arg(queue), Resend::Harmless)?)? else {
        tell(format!("there is no queue {}; dqctl ls lists the queues", shown(queue)));
        return Ok(Outcome::Nothing);
    };
    let mut sorter = Sorter::new();
    let lost = collect(client, args, &info, &mut sorter)?;
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
        say!("dqctl: not dumped, because they wait for the end of a delivery (REPLACE LATER): {}", messages(lost));
    }
    Ok(Outcome::Done)
}

/// Returns the number of messages that cannot be read, because others occupy their ids until a delivery ends.
fn collect(client: &Client, args: &DumpArgs, info: &Fields, sorter: &mut Sorter) -> Result<u64, Failure> {
    let (queue, lease) = (args.queue.as_bytes(), info.int("lease"));
    let filter = args.select.filter(args.state.map_or_else(Among::default, Among::State), None);
    let is_meant = |message: &Fields| {
        args.state.is_none_or(|state| message.text("state") == state.as_str()) && filter.selects(message, now_ms())
    };
    let (mut lost, mut count) = (0, 0);
    let mut progress = Progress::new("read");
    scan::pages(client, queue, info, &["SEQUENCE"], |page| {
        for message in page {
            let number = |name| message.int(name).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
            let key = match message.text("state").as_str() {
                "done" => continue,
                _ if !is_meant(&message) => continue,
                "dead" => (number("died"), number("sequence")),
                _ => (u64::MAX, number("sequence")),
            };
            lost += number("next");
            sorter.add(key, line::of_message(queue, &message, lease))?;
            count += 1;
        }
        progress.at(count);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(lost)
}

//! `dqctl dump`: all messages of a queue as JSON lines.
//!
//! DQ.SCAN returns messages in the order in which they were pushed, a page at a time, and a load pushes them in that
//! order.

use super::line;
use super::pause::Pause;
use crate::board::{scan, Among};
use crate::cli::DumpArgs;
use crate::output::{Output, Progress, Task, Unit};
use crate::server::{info, Failure, Message, Outcome};
use crate::text::{escaped, messages, now_ms};
use dq_client::{blocking::Client, State};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;

const DUMP: Task = Task {
    done: "read",
    unit: Unit::Messages,
    repeat: "what was written is not complete; a dump changes nothing, and can be repeated from the beginning",
};

pub fn dump(client: &Client, args: &DumpArgs, output: &Output) -> Result<Outcome, Failure> {
    let queue = args.queue.as_bytes();
    let info = info::existing(client, &args.queue)?;
    // A terminal must not obey what a message contains.
    let is_terminal = io::stdout().is_terminal();
    let shown = |line: String| if is_terminal { format!("{}\n", escaped(line.trim_end())) } else { line };
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let pauses = Pause::read_all(client, queue, &info)?;
    out.write_all(shown(line::queue_line(queue, &info.fields, pauses)).as_bytes())?;
    let filter = args.select.filter(args.state.map_or_else(Among::default, Among::State), None);
    let is_meant = |message: &Message| {
        let state = message.state();
        let is_in = state != Some(State::Done) && args.state.is_none_or(|wanted| state == Some(wanted));
        is_in && filter.selects(message, now_ms())
    };
    // Successors (`REPLACE LATER`) cannot be read: the message in flight has their id until its delivery ends.
    let mut lost = 0;
    let progress = Progress::begin_beside_output(DUMP, output);
    progress.expect(info.count_all(&State::ALL));
    scan::pages(client, queue, &info, &[], |page| {
        progress.done(page.len() as u64);
        for message in page.iter().filter(|message| is_meant(message)) {
            lost += u64::from(message.has_successor());
            out.write_all(shown(line::message_line(queue, message, info.fields.int("lease"))).as_bytes())?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    drop(progress);
    out.flush()?;
    if lost > 0 {
        print_error!(
            "dqctl: not dumped, because they wait for the end of a delivery (REPLACE LATER): {}",
            messages(lost)
        );
    }
    let batches = info.batches;
    if batches > 0 {
        print_error!(
            "dqctl: not dumped, so what follows their end is not pushed: {batches} batches that have not ended"
        );
    }
    Ok(Outcome::Done)
}

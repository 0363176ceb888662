//! Lines on standard error.
//!
//! A command that ends soon writes them itself. One that runs on must not wait for whoever reads them, because a full
//! pipe or a stopped terminal would hold up leases, requests and its own end. There a thread writes, and lines that it
//! cannot take are left out and counted.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// How many parts wait for the thread.
const WAITING: usize = 1_000;
/// How long the end of the program waits for what was written last.
const AT_THE_END: Duration = Duration::from_secs(1);

static WRITER: OnceLock<SyncSender<Part>> = OnceLock::new();
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

enum Part {
    Bytes(Vec<u8>),
    /// Is dropped when everything before it was written.
    End(#[allow(dead_code, reason = "its end is the message")] Sender<()>),
}

/// From here on a thread writes. `describe` is the line that says how many were left out.
pub fn in_background(describe: impl Fn(u64) -> String + Send + 'static) -> io::Result<()> {
    let (sender, parts) = sync_channel(WAITING);
    thread::Builder::new().name("dq-log".to_owned()).spawn(move || write(&parts, describe))?;
    let _ = WRITER.set(sender);
    Ok(())
}

/// Writes a line. If standard error is full or closed, the work goes on without it.
pub fn say(line: fmt::Arguments<'_>) {
    pass_on(format!("{line}\n").into_bytes());
}

/// Writes bytes in the same way.
pub fn pass_on(bytes: Vec<u8>) {
    match WRITER.get() {
        None => drop(io::stderr().write_all(&bytes)),
        Some(writer) => {
            if writer.try_send(Part::Bytes(bytes)).is_err() {
                LEFT_OUT.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Waits until everything is written, but not for long: the program ends.
pub fn finish() {
    let Some(writer) = WRITER.get() else { return };
    let (end, ended) = channel();
    if writer.try_send(Part::End(end)).is_ok() {
        let _ = ended.recv_timeout(AT_THE_END);
    }
}

fn write(parts: &Receiver<Part>, describe: impl Fn(u64) -> String) {
    for part in parts {
        let Part::Bytes(bytes) = part else { continue };
        let _ = io::stderr().write_all(&bytes);
        match LEFT_OUT.swap(0, Relaxed) {
            0 => {}
            number => drop(writeln!(io::stderr(), "{}", describe(number))),
        }
    }
}

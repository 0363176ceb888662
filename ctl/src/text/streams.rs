//! The outputs of a command while it runs.
//!
//! A command that ends soon writes itself. One that runs on must not wait for whoever reads it, because a full pipe or
//! a stopped terminal would hold up leases, requests and its own end. There a thread writes each output, and what it
//! cannot take is left out and counted.

use super::visible;
use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender, TrySendError};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// How many parts wait for a thread.
const WAITING: usize = 1_000;
/// How long a part of the output of a process waits for a slow reader, and how often it tries. After one part has
/// waited in vain, no other one waits.
const PATIENCE: Duration = Duration::from_millis(250);
const TRY: Duration = Duration::from_millis(10);
/// How long the end of the program waits for what was written last.
const AT_THE_END: Duration = Duration::from_secs(1);

static ERRORS: Output = Output::new();
static OUTPUT: Output = Output::new();
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// An output, and the thread that writes to it, if there is one.
struct Output {
    writer: OnceLock<SyncSender<Part>>,
    /// A part has waited in vain.
    has_stopped: AtomicBool,
}

enum Part {
    Bytes(Vec<u8>),
    /// Is dropped when everything before it was written.
    End(#[allow(dead_code, reason = "its end is the message")] Sender<()>),
}

/// From here on threads write. `describe` is the line that says how many parts were left out.
pub fn in_background(describe: impl Fn(u64) -> String + Send + 'static) -> io::Result<()> {
    ERRORS.start("dq-log", move |bytes| {
        let _ = io::stderr().write_all(bytes);
        match LEFT_OUT.swap(0, Relaxed) {
            0 => {}
            number => drop(writeln!(io::stderr(), "{}", describe(number))),
        }
    })?;
    OUTPUT.start("dq-output", print)
}

/// Writes a line to standard error, whatever characters a name or an error in it has. If that is full or closed, the
/// work goes on without it.
pub fn print_error_line(line: fmt::Arguments<'_>) {
    let line = format!("{}\n", visible(&line.to_string())).into_bytes();
    match ERRORS.writer.get() {
        None => drop(io::stderr().write_all(&line)),
        Some(writer) => ERRORS.offer(writer, line, Duration::ZERO),
    }
}

/// Writes what a process has written to its standard error.
pub fn pass_on_errors(bytes: &[u8]) {
    match ERRORS.writer.get() {
        None => drop(io::stderr().write_all(bytes)),
        Some(writer) => ERRORS.offer(writer, bytes.to_vec(), PATIENCE),
    }
}

/// Writes what a process has written to its standard output.
pub fn pass_on_output(bytes: &[u8]) {
    match OUTPUT.writer.get() {
        None => print(bytes),
        Some(writer) => OUTPUT.offer(writer, bytes.to_vec(), PATIENCE),
    }
}

/// Waits until everything is written, but not for long: the program ends.
pub fn finish() {
    for output in [&OUTPUT, &ERRORS] {
        let Some(writer) = output.writer.get() else { continue };
        let (end, ended) = channel();
        if writer.try_send(Part::End(end)).is_ok() {
            let _ = ended.recv_timeout(AT_THE_END);
        }
    }
}

fn print(bytes: &[u8]) {
    let mut output = io::stdout().lock();
    let _ = output.write_all(bytes).and_then(|()| output.flush());
}

impl Output {
    const fn new() -> Output {
        Output { writer: OnceLock::new(), has_stopped: AtomicBool::new(false) }
    }

    fn start(&self, name: &str, write: impl Fn(&[u8]) + Send + 'static) -> io::Result<()> {
        let (sender, parts): (_, Receiver<Part>) = sync_channel(WAITING);
        let write_all = move || {
            for part in parts {
                match part {
                    Part::Bytes(bytes) => write(&bytes),
                    Part::End(end) => drop(end),
                }
            }
        };
        thread::Builder::new().name(name.to_owned()).spawn(write_all)?;
        let _ = self.writer.set(sender);
        Ok(())
    }

    /// Gives bytes to the thread, which may take this long to have room for them.
    fn offer(&self, writer: &SyncSender<Part>, bytes: Vec<u8>, patience: Duration) {
        let patience = if self.has_stopped.load(Relaxed) { Duration::ZERO } else { patience };
        let (begun, mut part) = (Instant::now(), Part::Bytes(bytes));
        loop {
            match writer.try_send(part) {
                Ok(()) => return self.has_stopped.store(false, Relaxed),
                Err(TrySendError::Full(back)) if begun.elapsed() < patience => {
                    part = back;
                    thread::sleep(TRY);
                }
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                    self.has_stopped.fetch_or(!patience.is_zero(), Relaxed);
                    LEFT_OUT.fetch_add(1, Relaxed);
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Output, PATIENCE, WAITING};
    use std::sync::mpsc::{channel, Receiver, Sender};
    use std::time::{Duration, Instant};

    #[test]
    fn a_reader_who_has_stopped_is_waited_for_once() {
        static OUTPUT: Output = Output::new();
        let (go, gate): (Sender<()>, Receiver<()>) = channel();
        let (begin, begun) = channel();
        let stand = move |_: &[u8]| {
            let _ = begin.send(());
            let _ = gate.recv();
        };
        OUTPUT.start("test", stand).unwrap();
        let writer = OUTPUT.writer.get().unwrap();
        OUTPUT.offer(writer, vec![1], Duration::ZERO);
        // The thread has this one in its hands.
        begun.recv().unwrap();
        (0..WAITING).for_each(|_| OUTPUT.offer(writer, vec![1], Duration::ZERO));
        let since = Instant::now();
        OUTPUT.offer(writer, vec![1], PATIENCE);
        assert!(since.elapsed() >= PATIENCE);
        (0..100).for_each(|_| OUTPUT.offer(writer, vec![1], PATIENCE));
        assert!(since.elapsed() < 100 * PATIENCE);
        drop(go);
    }
}

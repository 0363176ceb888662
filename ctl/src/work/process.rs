//! One process of a handler, in a process group of its own.
//!
//! Waits for the end of the process without freeing its number, so that its group can be ended afterwards without
//! hitting another process.

use super::output::{Head, Tail};
use crate::text::{pass_on_errors, pass_on_output};
use rustix::io::Errno;
use rustix::process::{kill_process_group, waitid, Pid, Signal, WaitId, WaitIdOptions};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// PIPE_BUF: a pipe takes at least this many bytes at once, so a small payload needs no thread.
const PIPE: usize = 4096;
/// How long to wait for the rest of the outputs after the end of a process. Its children may keep them open for ever.
const REST: Duration = Duration::from_millis(500);

/// The process groups of the handlers that run. Each leaves before its number is free for another process.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A process that runs.
pub struct Process {
    child: Child,
    pid: Pid,
    /// Gets a message, or is closed, when the process has ended.
    ended: Receiver<()>,
    /// Is closed when nobody can write to its outputs any longer.
    closed: Receiver<()>,
    written: Arc<Mutex<(Tail, Head)>>,
}

/// How a process has ended.
pub struct End {
    pub status: ExitStatus,
    /// The last part of what it wrote to standard error.
    pub errors: String,
    /// What it wrote to standard output, if that can be a result.
    pub output: Option<Vec<u8>>,
}

impl Process {
    /// Starts a process with the payload as its standard input.
    pub fn start(command: &mut Command, payload: &[u8]) -> io::Result<Process> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        lock(&RUNNING).insert(pid.as_raw_pid());
        let ((end, ended), (open, closed)) = (channel(), channel());
        let mut process = Process { child, pid, ended, closed, written: Arc::default() };
        if let Err(error) = process.watch(payload, end, open) {
            // Without its threads it cannot be watched.
            process.kill_group();
            process.finish();
            return Err(error);
        }
        Ok(process)
    }

    /// `end` is closed when the process has ended, and `open` when nobody can write to its outputs any longer.
    fn watch(&mut self, payload: &[u8], end: Sender<()>, open: Sender<()>) -> io::Result<()> {
        if let Some(mut input) = self.child.stdin.take() {
            // A handler may ignore its input.
            if payload.len() <= PIPE {
                let _ = input.write_all(payload);
            } else {
                let payload = payload.to_vec();
                thread::Builder::new().name("dq-stdin".to_owned()).spawn(move || input.write_all(&payload))?;
            }
        }
        if let Some(errors) = self.child.stderr.take() {
            let (written, open) = (Arc::clone(&self.written), open.clone());
            thread::Builder::new().name("dq-stderr".to_owned()).spawn(move || {
                read(errors, |bytes| {
                    lock(&written).0.add(bytes);
                    pass_on_errors(bytes);
                });
                drop(open);
            })?;
        }
        if let Some(output) = self.child.stdout.take() {
            let written = Arc::clone(&self.written);
            thread::Builder::new().name("dq-stdout".to_owned()).spawn(move || {
                let is_complete = read(output, |bytes| {
                    lock(&written).1.add(bytes);
                    pass_on_output(bytes);
                });
                lock(&written).1.is_complete = is_complete;
                drop(open);
            })?;
        }
        let pid = self.pid;
        thread::Builder::new().name("dq-wait".to_owned()).spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
            drop(end);
        })?;
        Ok(())
    }

    /// Waits for the end of the process, at most this long.
    pub fn has_ended_within(&self, time: Duration) -> bool {
        self.ended.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }

    pub fn ask_group_to_end(&self) {
        let _ = kill_process_group(self.pid, Signal::TERM);
    }

    pub fn kill_group(&self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
    }

    /// How the process has ended. Frees its number.
    pub fn finish(&mut self) -> End {
        lock(&RUNNING).remove(&self.pid.as_raw_pid());
        let status = self.child.wait().unwrap_or_else(|_| ExitStatus::from_raw(-1));
        let _ = self.closed.recv_timeout(REST);
        let (tail, head) = &mut *lock(&self.written);
        End { status, errors: tail.text(), output: head.take() }
    }
}

/// Kills the handlers that still run.
pub fn kill_all() {
    for pid in lock(&RUNNING).iter().filter_map(|group| Pid::from_raw(*group)) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Reads an output to its end. Returns whether it could.
fn read(mut output: impl Read, take: impl Fn(&[u8])) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return true,
            Ok(read) => take(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Handles one message: starts a process, watches it, and turns its end into an ack or a nack.

use super::about::environment;
use super::head::{NoResult, RESULT_BYTES};
use super::log::Log;
use super::process::{End, Process};
use crate::failure;
use crate::name::shown;
use crate::time;
use dq_client::{Context, Failure, Raw};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The exit code by which a handler asks for another attempt: EX_TEMPFAIL of sysexits.h.
const RETRY: i32 = 75;
/// The exit code by which a handler says that no attempt can succeed: EX_DATAERR of sysexits.h.
const REJECT: i32 = 65;
/// How often a running handler is checked: whether its lease is lost, or its time is over.
const LOOK: Duration = Duration::from_millis(50);
/// How long a handler that was asked to end may take before it is killed.
const TO_END: Duration = Duration::from_secs(2);

/// Runs a command for each message.
pub struct Handler {
    program: OsString,
    args: Vec<OsString>,
    time_limit: Option<Duration>,
    grace: Duration,
    processes: Arc<Processes>,
    log: Arc<Log>,
    /// Whether the warning that an output is too long for a result was logged.
    said_too_long: AtomicBool,
    /// Whether the warning about an output whose end was not seen was logged.
    said_incomplete: AtomicBool,
}

/// The process groups of the running handlers.
#[derive(Default)]
pub struct Processes(Mutex<BTreeSet<i32>>);

impl Processes {
    fn groups(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the handlers that still run.
    pub fn end_all(&self) {
        self.groups().iter().for_each(|group| super::process::kill(*group));
    }
}

/// Why a handler is ended early.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    TimeLimit,
    LeaseLost,
    Stopped,
}

impl Handler {
    /// Refuses a program that cannot be run, before any message spends an attempt on it.
    pub fn new(
        command: &[OsString],
        time_limit: Option<Duration>,
        grace: Duration,
        processes: &Arc<Processes>,
        log: &Arc<Log>,
    ) -> Result<Handler, failure::Failure> {
        let Some((program, args)) = command.split_first() else {
            return Err(failure::Failure::usage("no command: dqctl work -q mail=8 -- ./handler"));
        };
        if !is_program(program) {
            let name = program.to_string_lossy();
            return Err(failure::Failure::usage(format!("{name} is not a program that can be run")));
        }
        Ok(Handler {
            program: program.clone(),
            args: args.to_vec(),
            time_limit,
            grace,
            processes: Arc::clone(processes),
            log: Arc::clone(log),
            said_too_long: AtomicBool::new(false),
            said_incomplete: AtomicBool::new(false),
        })
    }

    /// Runs the command on a message. `Ok` acknowledges it, with the output of the command as its result.
    pub fn handle(&self, payload: &[u8], context: &Context) -> Result<Raw, Failure> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env("DQ_QUEUE", context.queue()).env("DQ_ATTEMPT", context.attempt().to_string());
        for (name, value) in [("DQ_ID", context.id().as_ref()), ("DQ_RECEIPT", context.receipt().as_ref())] {
            // No environment can hold a zero byte, so that is written as dqctl prints and reads it.
            let escaped = value.contains(&0).then(|| shown(value));
            command.env(name, OsStr::from_bytes(escaped.as_deref().map_or(value, str::as_bytes)));
        }
        if let Some(meta) = context.meta() {
            command.envs(environment(meta));
        }
        let not_started =
            |error: io::Error| Failure::retry(format!("{} cannot be run: {error}", self.program.to_string_lossy()));
        let mut process = Process::start(&mut command, payload).map_err(not_started)?;
        self.processes.groups().insert(process.group());
        let cut = self.watch(&mut process, context);
        // Before its number is free for another process.
        self.processes.groups().remove(&process.group());
        let end = process.finish();
        match cut {
            None => verdict(&end).map(|()| self.result(end.output, context)),
            Some(Cut::TimeLimit) => {
                let limit = self.time_limit.map_or(0, time::millis);
                let text = format!("ended at the time limit of {}", time::exact(limit));
                Err(Failure::retry(with_tail(&text, &end)))
            }
            Some(Cut::Stopped) => Err(Failure::give_back()),
            // The message belongs to another worker by now, so this report is ignored.
            Some(Cut::LeaseLost) => Err(Failure::retry("the lease was lost")),
        }
    }

    /// Waits for the end of a process, and ends it if there is a reason to.
    fn watch(&self, process: &mut Process, context: &Context) -> Option<Cut> {
        let begun = Instant::now();
        let mut stopping: Option<Instant> = None;
        let mut cut: Option<(Cut, Instant)> = None;
        loop {
            if process.has_ended_within(LOOK) {
                if cut.is_some() {
                    process.kill_group();
                }
                return cut.map(|(cut, _)| cut);
            }
            if let Some((_, asked)) = cut {
                if asked.elapsed() >= TO_END {
                    process.kill_group();
                }
                continue;
            }
            if context.stopping() {
                stopping.get_or_insert_with(Instant::now);
            }
            let reason = if context.lease_lost() {
                Some(Cut::LeaseLost)
            } else if self.time_limit.is_some_and(|limit| begun.elapsed() >= limit) {
                Some(Cut::TimeLimit)
            } else if stopping.is_some_and(|since| since.elapsed() >= self.grace) {
                Some(Cut::Stopped)
            } else {
                None
            };
            if let Some(reason) = reason {
                process.ask_group_to_end();
                cut = Some((reason, Instant::now()));
            }
        }
    }

    /// A part of a result would be wrong, so a long or incomplete output is no result. The work is still done.
    fn result(&self, output: Result<Vec<u8>, NoResult>, context: &Context) -> Raw {
        let reason = match output {
            Ok(bytes) => return Raw(bytes),
            Err(reason) => reason,
        };
        let (said, text) = match reason {
            NoResult::TooLong(length) => {
                let text = format!("wrote {length} bytes, and a result has at most {RESULT_BYTES}: it has none");
                (&self.said_too_long, text)
            }
            NoResult::Incomplete => {
                let text = "has no result: its output was not closed when it ended, so a descendant may still write";
                (&self.said_incomplete, text.to_owned())
            }
        };
        if !said.swap(true, Ordering::Relaxed) {
            let line = format!("{}: {} {text}", context.queue(), context.id());
            let fields = json!({ "queue": context.queue(), "id": context.id().to_string() });
            self.log.warn("no-result", &line, fields);
        }
        Raw(Vec::new())
    }
}

fn verdict(end: &End) -> Result<(), Failure> {
    let text = if end.errors.is_empty() { end.status.to_string() } else { end.errors.clone() };
    match end.status.code() {
        Some(0) => Ok(()),
        Some(REJECT) => Err(Failure::reject(text)),
        Some(RETRY) => Err(Failure::retry(text)),
        // Any other code, or a signal.
        Some(_) | None => Err(Failure::retry(text)),
    }
}

fn with_tail(text: &str, end: &End) -> String {
    if end.errors.is_empty() {
        text.to_owned()
    } else {
        format!("{text}: {}", end.errors)
    }
}

fn is_program(name: &OsStr) -> bool {
    let is_executable = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if name.as_bytes().contains(&b'/') {
        return is_executable(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_executable(&directory.join(name)))
}

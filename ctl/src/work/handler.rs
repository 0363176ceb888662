//! Handles one message: starts a process, watches it, and turns its end into an ack or a nack.

use super::about::{environment, is_of_message};
use super::lack::{is_lack, is_of_program, NotDone};
use super::log::Log;
use super::output::RESULT_BYTES;
use super::process::{End, Process};
use crate::cli::HandlerArgs;
use crate::server;
use crate::text::{exact, millis, shown};
use dq_client::{Context, Failure, Raw};
use serde_json::json;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The exit code by which a handler says that no attempt can succeed: EX_DATAERR of sysexits.h.
const REJECT: i32 = 65;
/// How often a running handler is checked: whether its lease is lost, or its time is over.
const LOOK: Duration = Duration::from_millis(50);
/// How long a handler that was asked to end may take before it is killed.
const TO_END: Duration = Duration::from_secs(2);

/// Runs a command for each message.
pub struct Handler {
    how: HandlerArgs,
    log: Log,
    /// Whether the warning about an output that is no result was logged.
    has_warned: AtomicBool,
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
    pub fn new(how: &HandlerArgs, log: Log) -> Result<Handler, server::Failure> {
        let Some(program) = how.command.first() else {
            return Err(server::Failure::usage("no command: dqctl work -q mail=8 -- ./handler"));
        };
        if !is_program(program) {
            let name = program.to_string_lossy();
            return Err(server::Failure::usage(format!("{name} is not a program that can be run")));
        }
        Ok(Handler { how: how.clone(), log, has_warned: AtomicBool::new(false) })
    }

    /// Runs the command on a message. `Ok` acknowledges it, with the output of the command as its result.
    pub fn handle(&self, payload: &[u8], context: &Context) -> Result<Raw, NotDone> {
        let (program, args) = self.how.command.split_first().ok_or_else(|| Failure::retry("no command"))?;
        let mut command = Command::new(program);
        command
            .args(args)
            .env("DQ_QUEUE", context.queue().to_string())
            .env("DQ_ATTEMPT", context.attempt().to_string());
        for (name, value) in [("DQ_ID", context.id().as_ref()), ("DQ_RECEIPT", context.receipt().as_ref())] {
            // No environment can hold a zero byte, so that is written as dqctl prints and reads it.
            let escaped = value.contains(&0).then(|| shown(value));
            command.env(name, OsStr::from_bytes(escaped.as_deref().map_or(value, str::as_bytes)));
        }
        for (inherited, _) in std::env::vars_os().filter(|(name, _)| is_of_message(name)) {
            command.env_remove(inherited);
        }
        if let Some(meta) = context.meta() {
            command.envs(environment(meta));
        }
        let not_started = |error: io::Error| {
            let text = format!("{} cannot be run: {error}", program.to_string_lossy());
            if is_lack(&error) || is_of_program(&error) {
                NotDone::Lacking(text)
            } else {
                NotDone::Failed(Failure::retry(text))
            }
        };
        let mut process = Process::start(&mut command, payload).map_err(not_started)?;
        let cut = self.watch(&mut process, context);
        let end = process.finish();
        let failure = match cut {
            None => return Ok(verdict(&end).map(|()| self.result(end.output, context))?),
            Some(Cut::TimeLimit) => {
                let limit = self.how.time_limit.map_or(0, millis);
                let errors = if end.errors.is_empty() { String::new() } else { format!(": {}", end.errors) };
                Failure::retry(format!("ended at the time limit of {}{errors}", exact(limit)))
            }
            Some(Cut::Stopped) => Failure::give_back(),
            // The message belongs to another worker by now, so this report is ignored.
            Some(Cut::LeaseLost) => Failure::retry("the lease was lost"),
        };
        Err(failure.into())
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
            } else if self.how.time_limit.is_some_and(|limit| begun.elapsed() >= limit) {
                Some(Cut::TimeLimit)
            } else if stopping.is_some_and(|since| since.elapsed() >= self.how.grace) {
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

    /// The work is done, whether its output can be a result or not.
    fn result(&self, output: Option<Vec<u8>>, context: &Context) -> Raw {
        if output.is_none() && !self.has_warned.swap(true, Ordering::Relaxed) {
            let (queue, id) = (context.queue().to_string(), context.id().to_string());
            let text = format!(
                "{queue}: {id} has no result: its output has more than {RESULT_BYTES} bytes, or a descendant still has \
                 it open"
            );
            self.log.warn("no-result", &text, json!({ "queue": queue, "id": id }));
        }
        Raw(output.unwrap_or_default())
    }
}

/// Any other code, and a signal, is a failure like the one that asks for another attempt.
fn verdict(end: &End) -> Result<(), Failure> {
    let text = if end.errors.is_empty() { end.status.to_string() } else { end.errors.clone() };
    match end.status.code() {
        Some(0) => Ok(()),
        Some(REJECT) => Err(Failure::reject(text)),
        Some(_) | None => Err(Failure::retry(text)),
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

//! Asks whether the server would accept a blocked client's command if it arrived now.
//!
//! The server checks `min-replicas-to-write`, `MISCONF`, `READONLY` and the like when a command is called. A blocked
//! client of a native type is unblocked only by a write, and the server refuses writes in those states; ours is also
//! unblocked by time. So when there is a message to deliver, the module asks the server to make the checks that it
//! makes for the commands of a script (`S` of `RM_Call`).
//!
//! Since 7.2 `RM_Call` has a dry run: it checks the client's own command line, including the current permissions of its
//! user, and calls nothing. These servers also check the permissions of their own blocked clients again. Redis 7.0 does
//! neither. There the module calls a command of its own that does nothing, and permissions are not checked again.

use std::ffi::{c_char, c_int, CStr};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::origin::EFFECT_COMMAND;
use crate::module_api::api::api;
use crate::module_api::args::Args;
use crate::module_api::call::CallReply;
use crate::module_api::ctx::{Ctx, Name};

/// The first version with a dry run. Valkey continues the numbering from 7.2.
const DRY_RUN_SINCE: c_int = 0x0007_0200;

/// The `RM_Call` format: script mode, as the client's user, errors as replies, dry run, an array of strings.
const DRY_RUN: &CStr = c"SCEDv";
/// The `RM_Call` format: script mode, errors as replies, a string and a buffer.
const TRIAL: &CStr = c"SEsb";

/// Whether [`EFFECT_COMMAND`] is being called as a trial, without an effect.
static TRIES: AtomicBool = AtomicBool::new(false);

/// Returns whether the current call only tests whether the server accepts writes.
pub fn is_trial() -> bool {
    TRIES.load(Relaxed)
}

/// The server's answer.
pub enum Admission {
    /// The server would execute the command.
    Granted,
    /// The server would refuse the command at present, from any client.
    Refused,
    /// The server would refuse the command for lack of permissions, with this error.
    Denied(Denial),
}

/// The error reply for a client that lacks the permissions.
pub struct Denial(CallReply);

impl Denial {
    /// Sends the error to the client.
    pub fn reply(&self, ctx: Ctx) {
        self.0.forward_to(ctx);
    }
}

/// Asks whether the server would accept `words`, the command with which the client of this callback blocked. `name` is
/// one of its keys. Takes a few microseconds. No key may be open.
pub fn ask(ctx: Ctx, words: &Args<'_>, name: Name<'_>) -> Admission {
    answer(if has_dry_run() { dry_run(ctx, words) } else { trial(ctx, name) })
}

/// [`ask`] for a command that only reads. Redis 7.0 grants it always: it has no dry run, and a trial would be a write.
pub fn ask_reader(ctx: Ctx, words: &Args<'_>) -> Admission {
    answer(if has_dry_run() { dry_run(ctx, words) } else { None })
}

fn has_dry_run() -> bool {
    // SAFETY: takes no arguments.
    unsafe { api!(RedisModule_GetServerVersion)() >= DRY_RUN_SINCE }
}

fn answer(reply: Option<CallReply>) -> Admission {
    let Some(reply) = reply else { return Admission::Granted };
    match reply.error() {
        None => Admission::Granted,
        Some(text) if text.starts_with(b"NOPERM") => Admission::Denied(Denial(reply)),
        Some(_) => Admission::Refused,
    }
}

/// Asks whether the server accepts a write to the key `name` that the module makes by itself. Returns the server's
/// error if it does not. No key may be open.
pub fn refusal(ctx: Ctx, name: Name<'_>) -> Option<String> {
    let reply = trial(ctx, name)?;
    reply.error().map(|text| String::from_utf8_lossy(text).trim_end().to_owned())
}

/// Returns `None` if the command would be called.
fn dry_run(ctx: Ctx, words: &Args<'_>) -> Option<CallReply> {
    let (command, words) = words.all().split_first()?;
    // SAFETY: the context is valid. The command's word is a string of the server, whose bytes end in a NUL; the format
    // names an array of the server's strings with its length, which is what follows.
    unsafe {
        let command: *const c_char = api!(RedisModule_StringPtrLen)(command.as_ptr(), ptr::null_mut());
        let (format, words, count) = (DRY_RUN.as_ptr(), words.as_ptr(), words.len());
        CallReply::from_raw(api!(RedisModule_Call)(ctx.as_ptr(), command, format, words, count))
    }
}

fn trial(ctx: Ctx, name: Name<'_>) -> Option<CallReply> {
    TRIES.store(true, Relaxed);
    // SAFETY: the context is valid; the format names a string of the server and a buffer with its length, which are
    // what follows.
    let reply = unsafe {
        let (command, format, empty) = (EFFECT_COMMAND.as_ptr(), TRIAL.as_ptr(), c"".as_ptr());
        CallReply::from_raw(api!(RedisModule_Call)(ctx.as_ptr(), command, format, name.as_ptr(), empty, 0_usize))
    };
    TRIES.store(false, Relaxed);
    reply
}

//! How a client that waits is blocked, called when its key is signalled, and freed.

use std::ffi::{c_int, c_void};

use redis_module::raw;

use super::answered;
use crate::host::punctuality;
use crate::module_api::args::Args;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::guard::guard;
use dq_queue::time::DurationMs;

const SERVED: c_int = raw::REDISMODULE_OK as c_int;
const WAITS_ON: c_int = raw::REDISMODULE_ERR as c_int;

/// What the module keeps for a client that waits. Dropping it ends the wait.
pub trait Waiter {
    /// Replies to the client if it is served by the queue at `name`, which was signalled. `words` is the command with
    /// which it blocked. Returns whether it did; if not, nothing is replied or replicated.
    fn serve(&self, ctx: Ctx, name: Name<'_>, words: &Args<'_>) -> bool;

    /// Replies to a client that has waited in vain.
    fn give_up(&self, ctx: Ctx);
}

/// Blocks the client of this call until one of `names` serves it, for at most `timeout`; zero means for ever. No key
/// may be open.
///
/// If the server does not allow the client to block, the client gets the reply of a timeout at once.
pub fn block<W: Waiter>(ctx: Ctx, names: &[Name<'_>], waiter: W, timeout: DurationMs) {
    punctuality::require(ctx);
    let private = Box::into_raw(Box::new(waiter));
    let (timeout, end): (_, Option<unsafe extern "C" fn(_, _)>) = (timeout.as_ms(), Some(on_end::<W>));
    // SAFETY: `private` is a box of a `W`, which the callbacks only read and `on_end` frees.
    let blocked = unsafe { ctx.block_on_keys(on_ready::<W>, on_timeout::<W>, end, timeout, names, private.cast()) };
    if blocked.is_none() {
        // SAFETY: nothing was blocked, so the box is still ours.
        let waiter = unsafe { Box::from_raw(private) };
        // The server has not replied; see `block_on_keys`.
        waiter.give_up(ctx);
    }
}

extern "C" fn on_ready<W: Waiter>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a blocked client", WAITS_ON, || {
        // SAFETY: the server passes the words with which the client blocked; they live, unchanged, during this call. It
        // returns the pointer that `block` passed, and frees it only after this call.
        let (words, waiter) = unsafe { (Args::from_raw(argv, argc), ctx.blocked_private_data().cast::<W>().as_ref()) };
        let Some((waiter, name)) = waiter.zip(ctx.blocked_ready_key()) else { return WAITS_ON };
        if !waiter.serve(ctx, name, &words) {
            return WAITS_ON;
        }
        answered::note(ctx);
        SERVED
    })
}

extern "C" fn on_timeout<W: Waiter>(
    ctx: *mut raw::RedisModuleCtx,
    _: *mut *mut raw::RedisModuleString,
    _: c_int,
) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a client's timeout", SERVED, || {
        // SAFETY: the server returns the pointer that `block` passed, and frees it only after this call.
        if let Some(waiter) = unsafe { ctx.blocked_private_data().cast::<W>().as_ref() } {
            waiter.give_up(ctx);
        }
        SERVED
    })
}

extern "C" fn on_end<W: Waiter>(ctx: *mut raw::RedisModuleCtx, private: *mut c_void) {
    guard("a client's end", (), || {
        // SAFETY: the server passes the pointer from `block`, once, and a context that is valid during this call.
        let (waiter, ctx) = unsafe { (Box::from_raw(private.cast::<W>()), Ctx::from_raw(ctx)) };
        drop(waiter);
        answered::forget(ctx);
    });
}

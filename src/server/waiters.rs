//! Clients that wait for a message: `DQ.POP … BLOCK`, `DQ.MPOP … BLOCK`.
//!
//! The server keeps them, in the order in which they came, and calls each again whenever a key that it waits for is
//! signalled: by a command that made something deliverable, by the timer, or by the server itself when a value
//! comes to stand at that name. A client whose turn brings nothing waits on, and sees to it that the timer knows the
//! queue under this name.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use redis_module::raw;

use super::ctx::{Ctx, Name};
use super::datatype;
use super::event::Event;
use super::gauges::BLOCKED_CLIENTS;
use super::guard::guard;
use super::key::{OpenKey, Slot};
use super::state::with_schedule;
use super::write;
use crate::commands::{deliver, Request};
use crate::queue::time::{DurationMs, UnixMs};

const SERVED: c_int = raw::REDISMODULE_OK as c_int;
const WAITS_ON: c_int = raw::REDISMODULE_ERR as c_int;

/// Blocks the client until one of `names` can serve `request`, at most for `timeout`; zero is for ever.
///
/// A client that the server does not let wait is answered at once, as if the timeout had passed.
pub fn block(ctx: Ctx, names: &[Name<'_>], request: Request, timeout: DurationMs) {
    let private = Box::into_raw(Box::new(request)).cast::<c_void>();
    // SAFETY: `private` is a box of a request, which the callbacks only read and `on_end` frees.
    let blocked = unsafe { ctx.block_on_keys(on_ready, on_timeout, Some(on_end), timeout.as_ms(), names, private) };
    if blocked.is_none() {
        // SAFETY: nothing was blocked, so the box is still ours.
        drop(unsafe { Box::from_raw(private.cast::<Request>()) });
        // The server has not replied: see `block_on_keys`.
        ctx.null_array();
        return;
    }
    BLOCKED_CLIENTS.fetch_add(1, Relaxed);
}

extern "C" fn on_ready(ctx: *mut raw::RedisModuleCtx, _: *mut *mut raw::RedisModuleString, _: c_int) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a blocked client", WAITS_ON, || if try_serve(ctx) { SERVED } else { WAITS_ON })
}

/// Serves the client of this call, if there is something for it; else nothing must have been replied or replicated.
fn try_serve(ctx: Ctx) -> bool {
    let request = ctx.blocked_private_data().cast::<Request>();
    let Some(name) = ctx.blocked_ready_key() else { return false };
    // SAFETY: the server hands back what `block` gave it, and frees it only after this call.
    let Some(request) = (unsafe { request.as_ref() }) else { return false };
    if ctx.avoid_replication_traffic() {
        // A delivery must be replicated, which now it cannot be: the timer will signal again.
        let now = UnixMs::new(ctx.now_ms());
        with_schedule(|schedule| schedule.look_at(ctx, now, ctx.selected_db(), name.bytes()));
        return false;
    }
    let mut key = OpenKey::open_write(ctx, name, datatype::handle());
    // Another type, or nothing: the queue may still come.
    let Slot::Holds(held) = key.slot() else { return false };
    if held.queue.counts().ready == 0 {
        // Those before took it all, as a rule; what time brings, the timer will signal. With a thousand clients this is
        // the turn of all but one.
        held.arm(ctx, ctx.selected_db(), name);
        return false;
    }
    let now = UnixMs::new(ctx.now_ms());
    // Where there is nothing, this has seen to the hint under this name.
    let Some(announcement) = deliver(ctx, name, held, now, request) else { return false };
    drop(key);
    write::announce(ctx, name, announcement, &[Event::Pop]);
    true
}

extern "C" fn on_timeout(ctx: *mut raw::RedisModuleCtx, _: *mut *mut raw::RedisModuleString, _: c_int) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a client's timeout", SERVED, || {
        ctx.null_array();
        SERVED
    })
}

extern "C" fn on_end(_: *mut raw::RedisModuleCtx, private: *mut c_void) {
    guard("a client's end", (), || {
        BLOCKED_CLIENTS.fetch_sub(1, Relaxed);
        // SAFETY: the server gives back what `block` gave it, once.
        drop(unsafe { Box::from_raw(private.cast::<Request>()) });
    });
}

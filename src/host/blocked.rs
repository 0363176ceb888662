//! Blocked clients: `DQ.POP … BLOCK`, `DQ.MPOP … BLOCK`.
//!
//! The server keeps them, in the order in which they came, and calls each again whenever a key that it is blocked on is
//! signalled: by a command that made something deliverable, by the timer, or by the server itself when a value
//! comes to stand at that name. A client for which there is nothing stays blocked, and re-arms the timer for the queue
//! under this name.
//!
//! A delivery is a write. While the server would refuse the client's command ([`admission`]) the client stays blocked
//! and keeps its turn, and the timer signals the key again until writes are accepted. So nothing is polled unless a
//! client is blocked and a message is there for it.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering::Relaxed;

use redis_module::raw;

use super::admission::{self, Admission};
use super::blocked_keys::{with_blocked, Names};
use super::datatype;
use super::datatype::Held;
use super::event::Event;
use super::gauges::BLOCKED_CLIENTS;
use super::write::{self, Announcement};
use crate::module_api::args::Args;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::guard::{guard, plant};
use crate::module_api::key::{OpenKey, Slot};
use crate::queue::time::{DurationMs, UnixMs};
use crate::schedule::with_schedule;

const SERVED: c_int = raw::REDISMODULE_OK as c_int;
const WAITS_ON: c_int = raw::REDISMODULE_ERR as c_int;

/// What a blocked client asked for.
pub trait Request {
    /// Whether the queue has a message for it at `now`.
    fn finds(&self, held: &mut Held, now: UnixMs) -> bool;

    /// Delivers and replies what was asked for. Returns `None`, and has replied nothing, if there is nothing.
    fn deliver(&self, ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs) -> Option<Announcement>;
}

/// What the server keeps of a blocked client for the module.
struct Blocked {
    request: Box<dyn Request>,
    keys: Names,
}

/// Blocks the client until one of `names` can serve `request`, at most for `timeout`; zero is for ever.
///
/// A client that the server does not let wait is answered at once, as if the timeout had passed.
pub fn block(ctx: Ctx, names: &[Name<'_>], request: Box<dyn Request>, timeout: DurationMs) {
    let keys = Names::new(ctx.selected_db(), names.iter().map(|name| name.bytes()));
    with_blocked(|blocked| blocked.enter(&keys));
    BLOCKED_CLIENTS.fetch_add(1, Relaxed);
    let private = Box::into_raw(Box::new(Blocked { request, keys })).cast::<c_void>();
    // SAFETY: `private` is a box of a `Blocked`, which the callbacks only read and `on_end` frees.
    let blocked = unsafe { ctx.block_on_keys(on_ready, on_timeout, Some(on_end), timeout.as_ms(), names, private) };
    if blocked.is_none() {
        // SAFETY: nothing was blocked, so the box is still ours.
        unsafe { end(private) };
        // The server has not replied: see `block_on_keys`.
        ctx.null_array();
    }
}

/// How many clients are blocked on a key of the selected database.
pub fn clients_blocked_on(ctx: Ctx, name: Name<'_>) -> u64 {
    with_blocked(|blocked| blocked.clients(ctx.selected_db(), name.bytes())).unwrap_or(0)
}

extern "C" fn on_ready(ctx: *mut raw::RedisModuleCtx, argv: *mut *mut raw::RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a blocked client", WAITS_ON, || {
        // SAFETY: the server passes the words with which the client blocked; they live, unchanged, during this call.
        let words = unsafe { Args::from_raw(argv, argc) };
        if try_serve(ctx, &words) {
            SERVED
        } else {
            WAITS_ON
        }
    })
}

/// Serves the client of this call, if there is something for it. Otherwise nothing was replied or replicated.
fn try_serve(ctx: Ctx, words: &Args<'_>) -> bool {
    let blocked = ctx.blocked_private_data().cast::<Blocked>();
    let Some(name) = ctx.blocked_ready_key() else { return false };
    // SAFETY: the server hands back what `block` gave it, and frees it only after this call.
    let Some(Blocked { request, .. }) = (unsafe { blocked.as_ref() }) else { return false };
    let db = ctx.selected_db();
    let now = UnixMs::new(ctx.now_ms());
    let retry = || {
        if let Some(at) = with_blocked(|blocked| blocked.plan_retry(db, name.bytes(), now)).flatten() {
            with_schedule(|schedule| {
                schedule.agenda.look_at(at, db, name.bytes());
                schedule.rearm(&ctx, now);
            });
        }
        false
    };
    if ctx.avoid_replication_traffic() {
        // A delivery must be replicated, and while writes are paused that would end the server.
        return retry();
    }
    if !finds(ctx, name, now, &**request) {
        return false;
    }
    plant("blocked client");
    match admission::ask(ctx, words, name) {
        Admission::Granted => {}
        Admission::Refused => return retry(),
        Admission::Denied(denial) => {
            denial.reply(ctx);
            return true;
        }
    }
    let mut key = OpenKey::open_write(ctx, name, datatype::handle());
    let Slot::Holds(held) = key.slot() else { return false };
    let Some(announcement) = request.deliver(ctx, name, held, now) else { return false };
    drop(key);
    write::announce(ctx, name, announcement, &[Event::Pop]);
    true
}

/// Whether the queue at `name` has a message for the request. Re-arms the timer for this queue.
fn finds(ctx: Ctx, name: Name<'_>, now: UnixMs, request: &dyn Request) -> bool {
    let mut key = OpenKey::open_write(ctx, name, datatype::handle());
    // Nothing, or another type: a queue may still come to stand here.
    let Slot::Holds(held) = key.slot() else { return false };
    // The clients before this one took everything, as a rule, and what time makes ready the timer will signal. With a
    // thousand blocked clients this is the turn of all but one.
    if held.queue.counts().ready == 0 {
        held.arm(ctx, ctx.selected_db(), name);
        return false;
    }
    let finds = request.finds(held, now);
    // Nobody is woken: this is a blocked client's turn.
    let _ = write::settle(ctx, name, held, now, false);
    finds
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
    // SAFETY: the server gives back what `block` gave it, once.
    guard("a client's end", (), || unsafe { end(private) });
}

/// Frees what is kept of a blocked client.
///
/// # Safety
/// `private` was made by `block`, and is not used again.
unsafe fn end(private: *mut c_void) {
    // SAFETY: the caller vouches for it.
    let blocked = unsafe { Box::from_raw(private.cast::<Blocked>()) };
    BLOCKED_CLIENTS.fetch_sub(1, Relaxed);
    with_blocked(|keys| keys.leave(&blocked.keys));
}

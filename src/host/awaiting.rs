//! Blocked clients of `DQ.AWAIT`: each waits until one message is done, dead or gone.
//!
//! Awaiting is a read: it is served on replicas and while writes are refused, and it never replicates. A client is
//! answered in the step of the effect that ends its message. See [`awaited`](super::awaited) for how it is found.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use redis_module::raw;

use super::admission::{self, Admission};
use super::answered;
use super::awaited::{Awaited, Seen};
use super::punctuality;
use super::session::Session;
use super::waiting;
use crate::module_api::args::Args;
use crate::module_api::ctx::Ctx;
use crate::module_api::guard::guard;
use crate::module_api::key::{Content, Touch};
use dq_queue::id::{Id, Sequence};
use dq_queue::time::DurationMs;
use dq_queue::Shown;

const ANSWERED: c_int = raw::REDISMODULE_OK as c_int;
const WAITS_ON: c_int = raw::REDISMODULE_ERR as c_int;

/// Replies with a message that is done or dead.
pub type Reply = fn(Ctx, &Shown<'_>);

/// The private data of a blocked client.
struct Waiter {
    db: i32,
    key: Box<[u8]>,
    awaited: Rc<Awaited>,
    seen: Cell<Seen>,
    reply: Reply,
}

/// Blocks the client until the message with the id `id`, which has this sequence at present, is done, dead or gone, for
/// at most `timeout`; zero means for ever. No key may be open.
///
/// If the server does not allow the client to block, the client gets the reply of a timeout at once.
pub fn block(session: &Session<'_>, id: &[u8], sequence: Sequence, reply: Reply, timeout: DurationMs) {
    let Session { ctx, db, name, .. } = *session;
    let Some(awaited) = waiting::enter_awaiting(session, id, sequence) else { return ctx.null_array() };
    punctuality::require(ctx);
    let seen = Cell::new(awaited.seen_now());
    let private =
        Box::into_raw(Box::new(Waiter { db, key: name.bytes().into(), awaited, seen, reply })).cast::<c_void>();
    // SAFETY: `private` is a box of a `Waiter`, which the callbacks only read and `on_end` frees.
    let blocked = unsafe { ctx.block_on_keys(on_ready, on_timeout, Some(on_end), timeout.as_ms(), &[name], private) };
    if blocked.is_none() {
        // SAFETY: nothing was blocked, so the box is still ours.
        unsafe { end(private) };
        // The server has not replied; see `block_on_keys`.
        ctx.null_array();
    }
}

extern "C" fn on_ready(ctx: *mut raw::RedisModuleCtx, argv: *mut *mut raw::RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("an awaiting client", WAITS_ON, || {
        // SAFETY: the server returns the pointer that `block` passed, and frees it only after this call.
        let Some(waiter) = (unsafe { ctx.blocked_private_data().cast::<Waiter>().as_ref() }) else { return WAITS_ON };
        // Usually the key was signalled for another client: a thousand clients may wait on one key.
        if !waiter.awaited.has_news(waiter.seen.get()) {
            return WAITS_ON;
        }
        // SAFETY: the server passes the words with which the client blocked; they live, unchanged, during this call.
        let words = unsafe { Args::from_raw(argv, argc) };
        if try_answer(ctx, &words, waiter) {
            answered::note(ctx);
            ANSWERED
        } else {
            WAITS_ON
        }
    })
}

/// Answers the client of this call if its message is done, dead or gone. If not, nothing is replied.
fn try_answer(ctx: Ctx, words: &Args<'_>, waiter: &Waiter) -> bool {
    let Some(name) = ctx.blocked_ready_key() else { return false };
    let session = Session::at(ctx, name);
    if waits_on(&session, waiter) {
        return false;
    }
    match admission::ask_reader(ctx, words) {
        Admission::Granted => {}
        Admission::Refused => {
            waiting::postpone(&session);
            waiting::retry(&session);
            return false;
        }
        Admission::Denied(denial) => {
            denial.reply(ctx);
            return true;
        }
    }
    let mut key = session.open_read(Touch::Yes);
    let Content::Holds(held) = key.content() else { return false };
    match Id::parse(waiter.awaited.id()).and_then(|id| held.queue.find(session.now, &id)) {
        Some(shown) => (waiter.reply)(ctx, &shown),
        None => ctx.null_array(),
    }
    true
}

/// Whether the message is still to be completed, or the key holds no queue at present. Re-arms the timer for the queue.
fn waits_on(session: &Session<'_>, waiter: &Waiter) -> bool {
    let mut key = session.open_read(Touch::No);
    let Content::Holds(held) = key.content() else { return true };
    held.queue.notice(session.now);
    let Some(id) = Id::parse(waiter.awaited.id()) else { return false };
    let Some(shown) = held.queue.find(session.now, &id).filter(|shown| !shown.is_over()) else { return false };
    let sequence = shown.sequence();
    waiter.seen.set(waiter.awaited.seen_now());
    waiting::bind(session, &waiter.awaited, sequence);
    session.arm(held);
    true
}

extern "C" fn on_timeout(ctx: *mut raw::RedisModuleCtx, _: *mut *mut raw::RedisModuleString, _: c_int) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a client's timeout", ANSWERED, || {
        ctx.null_array();
        ANSWERED
    })
}

extern "C" fn on_end(ctx: *mut raw::RedisModuleCtx, private: *mut c_void) {
    guard("a client's end", (), || {
        // SAFETY: the server passes the pointer from `block`, once, and a context that is valid during this call.
        let ctx = unsafe {
            end(private);
            Ctx::from_raw(ctx)
        };
        answered::forget(ctx);
    });
}

/// Frees the private data of a blocked client.
///
/// # Safety
/// `private` was made by `block` and is not used again.
unsafe fn end(private: *mut c_void) {
    // SAFETY: the caller vouches for it.
    let waiter = unsafe { Box::from_raw(private.cast::<Waiter>()) };
    waiting::leave_awaiting(waiter.db, &waiter.key, &waiter.awaited);
}

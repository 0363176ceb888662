//! Blocked clients: `DQ.POP … BLOCK`, `DQ.MPOP … BLOCK` and `DQ.ACKPOP … BLOCK`.
//!
//! The server keeps them in the order in which they blocked. It retries each of them whenever one of its keys is
//! signalled: by a command that made a message deliverable, by the timer, or by the server itself when a value is
//! stored at the key. A client for which there is no message stays blocked, and re-arms the timer for the queue at this
//! key.
//!
//! A delivery is a write. While the server would refuse the client's command ([`admission`]), the client stays blocked
//! and keeps its place, and the timer signals the key again until writes are accepted. A client that gathers several
//! messages is not served while there are too few; those behind it are, and the timer signals the key when the first
//! message has waited for long enough. So nothing polls unless a client
//! is blocked and there is a message for it.

use std::ffi::{c_int, c_void};

use redis_module::raw;

use super::admission::{self, Admission};
use super::answered;
use super::event::Event;
use super::held::Held;
use super::punctuality;
use super::session::Session;
use super::waiting::{self, Names};
use super::write::Announcement;
use crate::module_api::args::Args;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::guard::{guard, plant};
use crate::module_api::key::{Content, Touch};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::Gathered;

const SERVED: c_int = raw::REDISMODULE_OK as c_int;
const WAITS_ON: c_int = raw::REDISMODULE_ERR as c_int;

/// The request of a blocked client.
pub trait Request {
    /// Returns whether the queue has messages for the request at `now`.
    fn finds(&self, held: &mut Held, now: UnixMs) -> Gathered;

    /// Whether the client waits for several messages at once.
    fn gathers(&self) -> bool;

    /// Delivers the messages and sends the reply. Returns `None`, and sends no reply, if there is no message.
    fn deliver(&self, session: &Session<'_>, held: &mut Held) -> Option<Announcement>;

    /// Sends the reply to a client that has received no message.
    fn reply_none(&self, ctx: Ctx);
}

/// The private data of a blocked client.
struct Blocked {
    request: Box<dyn Request>,
    keys: Names,
}

/// Blocks the client until one of `names` can serve `request`, for at most `timeout`; zero means for ever.
///
/// If the server does not allow the client to block, the client gets the reply of a timeout at once.
pub fn block(ctx: Ctx, names: &[Name<'_>], request: Box<dyn Request>, timeout: DurationMs) {
    let keys = Names::new(ctx.selected_db(), names.iter().map(|name| name.bytes()));
    waiting::enter(&keys);
    punctuality::require(ctx);
    if request.gathers() {
        // There may be messages, but not enough. Nothing else says when they have waited for long enough.
        for name in names {
            let session = Session::at(ctx, *name);
            if finds(&session, &*request) {
                // That has just come.
                waiting::linger(&session, session.now);
            }
        }
    }
    let private = Box::into_raw(Box::new(Blocked { request, keys })).cast::<c_void>();
    // SAFETY: `private` is a box of a `Blocked`, which the callbacks only read and `on_end` frees.
    let blocked = unsafe { ctx.block_on_keys(on_ready, on_timeout, Some(on_end), timeout.as_ms(), names, private) };
    if blocked.is_none() {
        // SAFETY: nothing was blocked, so the box is still ours.
        let Blocked { request, keys } = unsafe { end(private) };
        count_empty_pops(ctx, &keys);
        // The server has not replied; see `block_on_keys`.
        request.reply_none(ctx);
    }
}

/// Counts a pop on several queues that was answered with null at each queue that exists; a name that is given twice
/// counts once.
pub fn count_empty_pop(ctx: Ctx, names: &[Name<'_>]) {
    count_empty_pops(ctx, &Names::new(ctx.selected_db(), names.iter().map(|name| name.bytes())));
}

fn count_empty_pops(ctx: Ctx, keys: &Names) {
    for name in keys.iter() {
        ctx.with_name(name, |name| {
            let mut key = Session::at(ctx, name).open_read(Touch::No);
            if let Content::Holds(held) = key.content() {
                held.queue.count_empty_pop();
            }
        });
    }
}

extern "C" fn on_ready(ctx: *mut raw::RedisModuleCtx, argv: *mut *mut raw::RedisModuleString, argc: c_int) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a blocked client", WAITS_ON, || {
        // SAFETY: the server passes the words with which the client blocked; they live, unchanged, during this call.
        let words = unsafe { Args::from_raw(argv, argc) };
        if try_serve(ctx, &words) {
            answered::note(ctx);
            SERVED
        } else {
            WAITS_ON
        }
    })
}

/// Serves the client of this call, if there is a message for it. If not, nothing is replied or replicated.
fn try_serve(ctx: Ctx, words: &Args<'_>) -> bool {
    let blocked = ctx.blocked_private_data().cast::<Blocked>();
    let Some(name) = ctx.blocked_ready_key() else { return false };
    // SAFETY: the server returns the pointer that `block` passed, and frees it only after this call.
    let Some(Blocked { request, .. }) = (unsafe { blocked.as_ref() }) else { return false };
    let session = Session::at(ctx, name);
    let retry = || {
        waiting::retry(&session);
        false
    };
    if ctx.avoid_replication_traffic() {
        // A delivery must be replicated, and to replicate while writes are paused would abort the server.
        return retry();
    }
    if !finds(&session, &**request) {
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
    let mut key = session.open_write();
    let Content::Holds(held) = key.content() else { return false };
    let Some(announcement) = request.deliver(&session, held) else { return false };
    drop(key);
    session.announce(announcement, &[Event::Pop]);
    true
}

/// Returns whether the queue has a message for the request. Re-arms the timer for this queue.
fn finds(session: &Session<'_>, request: &dyn Request) -> bool {
    let mut key = session.open_write();
    // The key is missing or holds another type. A queue may still be created there.
    let Content::Holds(held) = key.content() else { return false };
    // Usually the clients before this one have taken all messages that a pop could deliver, and the timer will signal
    // the key when more become ready. With a thousand blocked clients, all but one end here.
    if held.queue.has_nothing_open() {
        session.arm(held);
        return false;
    }
    let found = request.finds(held, session.now);
    // Nobody is woken, because this call already serves a blocked client.
    session.rearm(held);
    match found {
        Gathered::Enough => true,
        Gathered::Nothing => false,
        Gathered::Until(end) => {
            waiting::linger(session, end);
            false
        }
    }
}

extern "C" fn on_timeout(ctx: *mut raw::RedisModuleCtx, _: *mut *mut raw::RedisModuleString, _: c_int) -> c_int {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a client's timeout", SERVED, || {
        // SAFETY: the server returns the pointer that `block` passed, and frees it only after this call.
        if let Some(Blocked { request, keys }) = unsafe { ctx.blocked_private_data().cast::<Blocked>().as_ref() } {
            request.reply_none(ctx);
            count_empty_pops(ctx, keys);
        }
        SERVED
    })
}

extern "C" fn on_end(ctx: *mut raw::RedisModuleCtx, private: *mut c_void) {
    guard("a client's end", (), || {
        // SAFETY: the server passes the pointer from `block`, once, and a context that is valid during this call.
        let (_, ctx) = unsafe { (end(private), Ctx::from_raw(ctx)) };
        answered::forget(ctx);
    });
}

/// Takes the private data of a client that is no longer blocked.
///
/// # Safety
/// `private` was made by `block` and is not used again.
unsafe fn end(private: *mut c_void) -> Blocked {
    // SAFETY: the caller vouches for it.
    let blocked = unsafe { Box::from_raw(private.cast::<Blocked>()) };
    waiting::leave(&blocked.keys);
    *blocked
}

//! Blocked clients that have been answered, but that the server does not yet regard as unblocked.
//!
//! The server unblocks a client of a module only at the end of the turn of its event loop in which the client was
//! answered. A `CLIENT UNBLOCK … ERROR` that it executes before would send a second reply, so that the client would
//! take every later reply for that of the command before. The module API cannot unblock a client at once. Therefore a
//! filter makes `CLIENT UNBLOCK` name a client that does not exist if its client has been answered. It then replies 0,
//! as it does for clients of the server's own types. The filter exists only during such a turn.
//!
//! The filter sees a command of a transaction when it is queued, so it misses one that was queued before its client was
//! answered and is executed in the same turn.

use std::cell::RefCell;

use redis_module::raw;

use crate::module_api::call::Word;
use crate::module_api::ctx::Ctx;
use crate::module_api::filter::{Filter, Filtered};
use crate::module_api::guard::guard;

/// The clients that were answered in this turn, and the filter, which is there if they are.
#[derive(Default)]
struct Answered {
    clients: Vec<u64>,
    filter: Option<Filter>,
}

thread_local! {
    /// Clients are answered and unblocked on the server's main thread.
    static ANSWERED: RefCell<Answered> = RefCell::default();
}

/// Takes note that the client of this callback has been answered.
pub fn note(ctx: Ctx) {
    ANSWERED.with_borrow_mut(|answered| {
        answered.clients.push(ctx.client_id());
        if answered.filter.is_none() {
            answered.filter = Filter::add(ctx, on_command);
        }
    });
}

/// Forgets all clients. Called when the server frees what belongs to a client, because it unblocks all that were
/// answered before it executes another command.
pub fn forget(ctx: Ctx) {
    ANSWERED.with_borrow_mut(|answered| {
        answered.clients.clear();
        if let Some(filter) = answered.filter.take() {
            filter.remove(ctx);
        }
    });
}

extern "C" fn on_command(filtered: *mut raw::RedisModuleCommandFilterCtx) {
    guard("a command filter", (), || {
        // SAFETY: the server passes a command that is valid during this call.
        let mut command = unsafe { Filtered::from_raw(filtered) };
        let is = |position, word: &[u8]| command.word(position).is_some_and(|own| own.eq_ignore_ascii_case(word));
        if !is(0, b"CLIENT") || !is(1, b"UNBLOCK") {
            return;
        }
        let id = command.word(2).and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
        if id.is_some_and(|id| ANSWERED.with_borrow(|answered| answered.clients.contains(&id))) {
            command.replace(2, Word::new(b"0"));
        }
    });
}

//! Whether somebody waits for what the timer does: a blocked client, the reader of a target to which a queue forwards,
//! or a subscriber to keyspace events. If nobody does, the timer may be a few milliseconds late, which saves most of
//! its runs: every command computes the effect of time by itself.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::waiting;
use crate::module_api::ctx::{publishes_events, Ctx};
use crate::schedule::with_schedule;
use dq_queue::time::UnixMs;

/// Whether a queue that forwards has been seen since the server started. It is never reset: a server on which one queue
/// forwards usually goes on to forward.
static FORWARDS: AtomicBool = AtomicBool::new(false);

/// Whether the timer has to be punctual.
pub fn is_required() -> bool {
    waiting::clients() > 0 || FORWARDS.load(Relaxed) || publishes_events()
}

/// Makes the timer punctual: somebody waits from now on.
pub fn require(ctx: Ctx) {
    with_schedule(|schedule| schedule.hurry(&ctx, UnixMs::new(ctx.now_ms())));
}

/// Makes the timer punctual for ever, because there is a queue that forwards.
pub fn require_to_forward(ctx: Ctx) {
    if !FORWARDS.load(Relaxed) {
        FORWARDS.store(true, Relaxed);
        require(ctx);
    }
}

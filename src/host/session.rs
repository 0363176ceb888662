//! One call at the queue of a key: where the queue is, and when the call takes place.

use crate::module_api::ctx::{Ctx, Name};
use dq_queue::time::UnixMs;

/// A command, the service of a blocked client, or a run of the timer, at the queue of one key.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// The server's context for this call.
    pub ctx: Ctx<'a>,
    /// The database of the key, which is the selected one.
    pub db: i32,
    /// The name of the key.
    pub name: Name<'a>,
    /// The time of the call. The clock is read once.
    pub now: UnixMs,
}

impl<'a> Session<'a> {
    /// A call at the key `name` of the selected database, at the present time.
    pub fn at(ctx: Ctx<'a>, name: Name<'a>) -> Session<'a> {
        Session { ctx, db: ctx.selected_db(), name, now: UnixMs::new(ctx.now_ms()) }
    }
}

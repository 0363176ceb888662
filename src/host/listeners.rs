//! Whether anything listens to what this server replicates: an AOF, a replica or a replication backlog.
//!
//! To replicate an effect costs more than half of a push even if nobody listens: the effect is encoded, and
//! `RM_Replicate` builds a command before the server discards it ([decision
//! 0006](../../docs/internals/decisions/0006-listeners.md)). So if there are no listeners, the module calls
//! `RM_ReplicateVerbatim` instead, which then only marks the dataset as changed. If there were a listener, that call
//! would send the command as the client sent it, and a `DQ.POP` decides again wherever it is executed. So no listener
//! may ever read what was replicated while the answer was "nobody".
//!
//! The answer is cached in one byte. The events in [`super::server_events`] invalidate the byte before the next command
//! runs:
//!
//! * **The AOF** is enabled at startup or by `CONFIG SET`, which is an event, even if its first file has to wait for
//!   another child process.
//! * **A replica** reads what follows the snapshot that it has loaded, and nothing before that. A snapshot is made by a
//!   child process or by a `SAVE`. Both are events, and both invalidate the answer before another command runs.
//! * **A backlog** can exist without any event, if a replica disconnects before the child process starts. It begins
//!   with a new replication id, and a replica resumes from an offset only if it has a snapshot with that id. So nobody
//!   can read what is written to it before the next snapshot.
//! * **A replica that is promoted** keeps its backlog, and the change of role is an event. While it is a replica, the
//!   answer is "somebody", and its replication stream comes from its master.
//! * **A start from an RDB file** with replication data creates a backlog before it loads. The answer is "somebody"
//!   during the load, and the end of the load is an event.
//! * **In a cluster** slots may be migrated at any time, so the answer is always "somebody".
//!
//! All of this happens on the server's main thread, as do the module's commands, so nothing runs between the cause and
//! the event. A listener that is added during a transaction is no exception: the server decides for each change at the
//! time of the call, and what was not sent by then is part of the data with which the listener starts.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::imports;
use crate::module_api::ctx::Ctx;

/// Something has happened since the server was last asked.
const UNKNOWN: u8 = 0;
/// There is no AOF, no replica and no backlog. This server decides for itself: it is a master that is not loading and
/// imports no slot.
const NOBODY: u8 = 1;
/// There is a listener. This server decides for itself: it is a master that is not loading and imports no slot.
const SOMEBODY: u8 = 2;
/// The answer is "somebody", and commands may come from a master, an AOF or another node.
const FOLLOWING: u8 = 3;

static HEARD: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Invalidates the cached answer: the next change asks the server again.
pub fn forget() {
    HEARD.store(UNKNOWN, Relaxed);
}

/// Returns whether a change must be replicated.
#[inline]
pub fn any(ctx: Ctx) -> bool {
    match HEARD.load(Relaxed) {
        NOBODY => false,
        UNKNOWN => look(ctx),
        _ => true,
    }
}

/// Returns whether a command may come from a master, an AOF or another node. `false` is certain.
#[inline]
pub fn may_follow() -> bool {
    !matches!(HEARD.load(Relaxed), NOBODY | SOMEBODY)
}

/// Asks the server and caches the answer. Takes some tens of microseconds, once after each event.
#[cold]
fn look(ctx: Ctx) -> bool {
    let flags = ctx.flags();
    let follows = !flags.master() || flags.loading() || (flags.cluster() && imports::may_run());
    let is_none = |field| ctx.server_info(c"replication", field).is_some_and(|value| value == "0");
    let nobody = !flags.aof() && !flags.cluster() && is_none(c"connected_slaves") && is_none(c"repl_backlog_active");
    let heard = match (follows, nobody) {
        (true, _) => FOLLOWING,
        (false, false) => SOMEBODY,
        (false, true) => NOBODY,
    };
    HEARD.store(heard, Relaxed);
    heard != NOBODY
}

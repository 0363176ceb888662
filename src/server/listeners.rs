//! Whether anybody listens to what is replicated.
//!
//! `RM_Replicate` costs half of a push even where there is no AOF and no replica: it builds the whole command before
//! the server finds that nobody wants it. The AOF and the role are in the context's flags. That somebody else listens
//! (a replica, the backlog for one that will come back) is not to be had for little, but it cannot come about in
//! silence: a full synchronisation, also of a slot, begins with a fork, and a partial one needs a backlog, which is
//! there since a full one, since this server was a replica itself, or since it loaded an RDB. Each of these is an
//! event. After one, the next change asks `INFO replication`; until the next one, the answer stands.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use redis_module::raw;

use super::api::api;
use super::ctx::{Ctx, Flags};

/// Something happened since the last look.
const UNKNOWN: u8 = 0;
/// There is neither a replica nor a backlog.
const NOBODY: u8 = 1;
/// There is.
const SOMEBODY: u8 = 2;

static REPLICATION: AtomicU8 = AtomicU8::new(UNKNOWN);

/// After these nothing is known any more.
const EVENTS: [u64; 5] = [
    raw::REDISMODULE_EVENT_FORK_CHILD,
    raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED,
    raw::REDISMODULE_EVENT_REPLICA_CHANGE,
    raw::REDISMODULE_EVENT_MASTER_LINK_CHANGE,
    raw::REDISMODULE_EVENT_LOADING,
];

/// Subscribes to what can bring a listener about; where the server knows one of the events not, nothing is assumed
/// ever.
pub fn watch(ctx: Ctx) -> Result<(), String> {
    if EVENTS.iter().all(|event| ctx.subscribe(*event, on_event)) {
        Ok(())
    } else {
        Err("the server does not tell of its forks and replicas".to_owned())
    }
}

extern "C" fn on_event(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    REPLICATION.store(UNKNOWN, Relaxed);
}

/// Whether a change must be replicated.
#[inline]
pub fn any(ctx: Ctx, flags: Flags) -> bool {
    // In a cluster slots may be leaving; a replica that takes writes is rare; neither is worth a thought.
    if flags.aof() || flags.cluster() || !flags.master() {
        return true;
    }
    match REPLICATION.load(Relaxed) {
        NOBODY => false,
        SOMEBODY => true,
        _ => look(ctx),
    }
}

/// Asks the server. Some 20 µs, once after an event.
#[cold]
fn look(ctx: Ctx) -> bool {
    let mut failed = 0;
    let field = |info, name: &std::ffi::CStr, failed: &mut i32| {
        let mut missing = 0;
        // SAFETY: the information is valid until it is freed below; the name is a C string.
        let value = unsafe { api!(RedisModule_ServerInfoGetFieldUnsigned)(info, name.as_ptr(), &raw mut missing) };
        *failed |= missing;
        value
    };
    // SAFETY: the context is valid; the information is freed below.
    let info = unsafe { api!(RedisModule_GetServerInfo)(ctx.as_ptr(), c"replication".as_ptr()) };
    let replicas = field(info, c"connected_slaves", &mut failed);
    let backlog = field(info, c"repl_backlog_active", &mut failed);
    // SAFETY: made above, freed once.
    unsafe { api!(RedisModule_FreeServerInfo)(ctx.as_ptr(), info) };
    let somebody = failed != 0 || replicas != 0 || backlog != 0;
    REPLICATION.store(if somebody { SOMEBODY } else { NOBODY }, Relaxed);
    somebody
}

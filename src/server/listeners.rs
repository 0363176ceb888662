//! Whether anybody listens to what is replicated.
//!
//! `RM_Replicate` costs half of a push even where there is no AOF and no replica: it builds the whole command before
//! the server finds that nobody wants it. Whether somebody does is not to be had for little, but it cannot come about
//! in silence: an AOF that is switched on, and a full synchronisation, begin with a fork, and a partial one needs a
//! backlog, which is there since a full one, since this server was a replica itself, or since it loaded an RDB. Each
//! of these is an event. After one, the next change asks the server; until the next one, the answer stands.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use redis_module::raw;

use super::api::api;
use super::ctx::Ctx;
use super::guard::guard;
use super::import;
use super::sweep;

/// Something happened since the last look.
const UNKNOWN: u8 = 0;
/// There is neither an AOF, nor a replica, nor a backlog for one.
const NOBODY: u8 = 1;
/// There is.
const SOMEBODY: u8 = 2;

static HEARD: AtomicU8 = AtomicU8::new(UNKNOWN);

/// After these nothing is known any more.
const EVENTS: [u64; 4] = [
    raw::REDISMODULE_EVENT_FORK_CHILD,
    raw::REDISMODULE_EVENT_REPLICA_CHANGE,
    raw::REDISMODULE_EVENT_MASTER_LINK_CHANGE,
    raw::REDISMODULE_EVENT_LOADING,
];

/// Subscribes to what can bring a listener about. An error where the server does not know one of the events.
pub fn watch(ctx: Ctx) -> Result<(), String> {
    // Not needed: what `CONFIG SET` switches on begins with a fork. But who knows what servers will do.
    ctx.subscribe(raw::REDISMODULE_EVENT_CONFIG, on_event);
    let role = ctx.subscribe(raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, on_role);
    if role && EVENTS.iter().all(|event| ctx.subscribe(*event, on_event)) {
        Ok(())
    } else {
        Err("the server does not tell of its forks and replicas".to_owned())
    }
}

extern "C" fn on_event(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    HEARD.store(UNKNOWN, Relaxed);
}

/// The role changed. A server has one subscription to an event, so this tells the others who must know, too.
extern "C" fn on_role(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    HEARD.store(UNKNOWN, Relaxed);
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a change of role", (), || {
        import::forget();
        sweep::start(ctx);
    });
}

/// Whether a change must be replicated.
#[inline]
pub fn any(ctx: Ctx) -> bool {
    match HEARD.load(Relaxed) {
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
    let flags = ctx.flags();
    // In a cluster slots may be leaving; a replica that takes writes is rare. Neither is worth a thought.
    let special = flags.aof() || flags.cluster() || !flags.master();
    let somebody = special || failed != 0 || replicas != 0 || backlog != 0;
    HEARD.store(if somebody { SOMEBODY } else { NOBODY }, Relaxed);
    somebody
}

//! Whether anything listens to what this server replicates: an AOF, a replica or a replication backlog.
//!
//! `RM_Replicate` costs half of a push even if there is no AOF and no replica: it builds the whole command before the
//! server discards it. So the module checks for listeners first. If there are none, it calls `RM_ReplicateVerbatim`
//! instead, which then only marks the dataset as changed. If there were a listener, that call would send the command as
//! the client sent it, and a `DQ.POP` decides again wherever it is executed. So the answer "nobody" must never be stale.
//!
//! Within `RM_ReplicateVerbatim` the server checks whether the AOF is enabled, a replica is connected or a backlog
//! exists (and, in a cluster, whether a slot is being migrated away). If not, it discards the command at once. To know
//! the same without asking the server, the module caches the answer in one byte, and everything that can add a listener
//! invalidates the byte before the next command runs:
//!
//! * **The AOF** is enabled at startup or by `CONFIG SET`, which is an event, even if its first file has to wait for
//!   another child process. If that file cannot be started, the AOF is disabled again.
//! * **A replica or a backlog of a master** is created only when the server executes `SYNC` or `PSYNC`. A replica that
//!   disconnects before the fork that was to serve it, and a fork that fails, leave a backlog behind without any event.
//!   Therefore a command filter sees both commands before they run.
//!   Between the filter and the execution the server may postpone a command (`CLIENT PAUSE`, or a module that yields),
//!   and then most servers do not call the filter again. Therefore the answer stays "somebody" until the client that
//!   sent the command has disconnected, whether the command was executed, refused or never ran. (Redis 7.0 does not
//!   tell a filter which client sent the command. It calls the filter again.)
//!   If `SYNC` or `PSYNC` was renamed, the filter cannot know its new name. Then the answer is always "somebody".
//! * **A replica that is promoted** keeps its backlog, and the change of role is an event. While it is a replica, the
//!   answer is "somebody", and its replication stream comes from its master.
//! * **A start from an RDB file** with replication data creates a backlog before it loads. The answer is "somebody"
//!   during the load, and the end of the load is an event.
//! * **In a cluster** slots may be migrated at any time, so the answer is always "somebody".
//!
//! All of this happens on the server's main thread, as do the module's commands, so nothing runs between the cause and
//! the event. A listener that is added during a transaction is no exception: the server decides for each change at the
//! time of the call, and what was not sent by then is part of the data with which the listener starts.
//!
//! The remaining events in `EVENTS` add no listener. They serve to notice that the last listener has gone.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis_module::{raw, Context, RedisValue};

use super::imports;
use crate::module_api::api::api;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::guard::guard;
use crate::module_api::log::{log, Level};
use crate::schedule::walk;

/// Something has happened since the server was last asked.
const UNKNOWN: u8 = 0;
/// There is no AOF, no replica and no backlog. This server decides for itself: it is a master that is not loading and
/// imports no slot.
const NOBODY: u8 = 1;
/// There is a listener. This server decides for itself: it is a master that is not loading and imports no slot.
const SOMEBODY: u8 = 2;
/// The answer is "somebody", and commands may come from a master, an AOF or another node.
const TOLD: u8 = 3;

static HEARD: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether a replica could connect without being noticed.
static UNSEEN: AtomicBool = AtomicBool::new(false);

/// The ids of the clients that have sent `SYNC` or `PSYNC` and are still connected.
static ASKING: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The events that invalidate the cached answer.
const EVENTS: [u64; 5] = [
    raw::REDISMODULE_EVENT_CONFIG,
    raw::REDISMODULE_EVENT_LOADING,
    raw::REDISMODULE_EVENT_FORK_CHILD,
    raw::REDISMODULE_EVENT_REPLICA_CHANGE,
    raw::REDISMODULE_EVENT_MASTER_LINK_CHANGE,
];

/// Subscribes to everything that can add a listener. Returns an error if the server does not know one of the events.
pub fn watch(ctx: Ctx) -> Result<(), String> {
    let role = ctx.subscribe(raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, on_role);
    let client = ctx.subscribe(raw::REDISMODULE_EVENT_CLIENT_CHANGE, on_client);
    if !(role && client && EVENTS.iter().all(|event| ctx.subscribe(*event, on_event))) {
        return Err("the server does not tell of its forks, clients and replicas".to_owned());
    }
    if !has_own_names(ctx) {
        UNSEEN.store(true, Relaxed);
        log(Level::Notice, "SYNC or PSYNC was renamed: changes are prepared for replication even without a replica");
        return Ok(());
    }
    // SAFETY: the context is the load's own; the filter has the type that the server calls and lives as the module.
    let filter = unsafe { api!(RedisModule_RegisterCommandFilter)(ctx.as_ptr(), Some(on_command), 0) };
    if filter.is_null() {
        return Err("the server does not take a command filter".to_owned());
    }
    Ok(())
}

/// Returns whether `SYNC` and `PSYNC` exist under their own names.
fn has_own_names(ctx: Ctx) -> bool {
    let names = ["sync", "psync"];
    let reply = Context::new(ctx.as_ptr()).call("COMMAND", &["INFO", names[0], names[1]]);
    let Ok(RedisValue::Array(commands)) = reply else { return false };
    commands.len() == names.len()
        && commands.into_iter().zip(names).all(|(command, name)| {
            let RedisValue::Array(facts) = command else { return false };
            facts.into_iter().next().is_some_and(|first| String::try_from(first).is_ok_and(|first| first == name))
        })
}

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
pub fn may_be_told() -> bool {
    !matches!(HEARD.load(Relaxed), NOBODY | SOMEBODY)
}

/// Asks the server and caches the answer. Takes about 20 µs, once after each event.
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
    let told = !flags.master() || flags.loading() || (flags.cluster() && imports::may_run());
    let hidden = UNSEEN.load(Relaxed) || !asking().is_empty();
    let listening = flags.aof() || flags.cluster() || replicas != 0 || backlog != 0;
    let heard = match (told, listening || hidden || failed != 0) {
        (true, _) => TOLD,
        (false, true) => SOMEBODY,
        (false, false) => NOBODY,
    };
    HEARD.store(heard, Relaxed);
    heard != NOBODY
}

fn asking() -> MutexGuard<'static, BTreeSet<u64>> {
    ASKING.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn on_event(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    forget();
}

/// The event that the role changed. The server keeps only one subscription to each event, so this also informs the
/// other files that depend on the role.
extern "C" fn on_role(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    forget();
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a change of role", (), || {
        imports::forget();
        walk::start(ctx);
    });
}

/// The command filter. Every command passes through it before it runs, so it compares lengths before it compares
/// letters.
extern "C" fn on_command(filter: *mut raw::RedisModuleCommandFilterCtx) {
    // SAFETY: the server passes a filter context that is valid during this call.
    let words = unsafe { api!(RedisModule_CommandFilterArgsCount)(filter) };
    // `SYNC` has one word. `PSYNC` has three, and ignores further ones.
    if words == 2 {
        return;
    }
    // SAFETY: as above; every command has a first word, which lives as long as the filter's context.
    let word = unsafe { Name::from_raw(api!(RedisModule_CommandFilterArgGet)(filter, 0)) };
    if is_sync(word.bytes(), words) {
        guard("a command filter", (), || expect_replica(filter));
    }
}

#[inline]
fn is_sync(word: &[u8], words: c_int) -> bool {
    match word.len() {
        4 => words == 1 && word.eq_ignore_ascii_case(b"SYNC"),
        5 => words >= 3 && word.eq_ignore_ascii_case(b"PSYNC"),
        _ => false,
    }
}

/// A client has sent `SYNC` or `PSYNC`, which is executed now or later.
#[cold]
fn expect_replica(filter: *mut raw::RedisModuleCommandFilterCtx) {
    // SAFETY: the static is read by value.
    if let Some(client_of) = unsafe { raw::RedisModule_CommandFilterGetClientId } {
        // SAFETY: the filter's context is valid, see `on_command`.
        asking().insert(unsafe { client_of(filter) });
    }
    forget();
}

/// The event that a client has connected or disconnected.
extern "C" fn on_client(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, what: u64, data: *mut c_void) {
    if what != raw::REDISMODULE_SUBEVENT_CLIENT_CHANGE_DISCONNECTED {
        return;
    }
    // SAFETY: with this event the server passes information about the client, or null.
    let Some(client) = (unsafe { data.cast::<raw::RedisModuleClientInfo>().as_ref() }) else { return };
    guard("a client's end", (), || {
        if asking().remove(&client.id) {
            forget();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::is_sync;

    #[test]
    fn only_what_begins_a_synchronisation_is_one() {
        let hits: [(&[u8], _); 4] = [(b"SYNC", 1), (b"psync", 3), (b"PSync", 4), (b"PSYNC", 9)];
        assert!(hits.iter().all(|(word, words)| is_sync(word, *words)));
        let misses: [(&[u8], _); 6] =
            [(b"SYNC", 3), (b"PSYNC", 1), (b"HSET", 4), (b"BITOP", 4), (b"", 1), (b"PSYNCS", 3)];
        assert!(!misses.iter().any(|(word, words)| is_sync(word, *words)));
    }
}

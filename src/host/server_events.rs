//! The events of the server, and whom each of them concerns. The server keeps only one subscription of a module to each
//! event, so all of them are here.

use std::ffi::c_void;

use redis_module::raw;

use super::waiting::awaited;
use super::{floor, gauges, imports, listeners};
use crate::module_api::ctx::Ctx;
use crate::module_api::guard::guard;
use crate::schedule::{timer, walk};

/// The events that may add a listener, or after which the last one may have gone. See [`listeners`].
const LISTENERS: [u64; 5] = [
    raw::REDISMODULE_EVENT_CONFIG,
    raw::REDISMODULE_EVENT_FORK_CHILD,
    raw::REDISMODULE_EVENT_PERSISTENCE,
    raw::REDISMODULE_EVENT_REPLICA_CHANGE,
    raw::REDISMODULE_EVENT_MASTER_LINK_CHANGE,
];

/// Subscribes to all events. Returns an error if the server does not know one without which an answer could be wrong.
pub fn watch(ctx: Ctx) -> Result<(), String> {
    let role = ctx.subscribe(raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, on_role);
    let load = ctx.subscribe(raw::REDISMODULE_EVENT_LOADING, on_load);
    if !(role && load && LISTENERS.iter().all(|event| ctx.subscribe(*event, on_listener))) {
        return Err("the server does not report its forks, saves and replicas".to_owned());
    }
    ctx.subscribe(raw::REDISMODULE_EVENT_SWAPDB, on_swap);
    ctx.subscribe(raw::REDISMODULE_EVENT_FLUSHDB, on_flush);
    ctx.subscribe(raw::REDISMODULE_EVENT_REPL_ASYNC_LOAD, on_load_beside);
    ctx.subscribe(raw::REDISMODULE_EVENT_CRON_LOOP, timer::on_cron);
    imports::watch(ctx, on_migration);
    Ok(())
}

extern "C" fn on_listener(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    listeners::forget();
}

/// The role of this server changed: a new master has to make the decisions that its former master can no longer make.
extern "C" fn on_role(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, _: *mut c_void) {
    listeners::forget();
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a change of role", (), || {
        imports::forget();
        floor::pass_over_lost();
        walk::start(ctx);
    });
}

/// The data of this server was loaded, perhaps without the last writes.
extern "C" fn on_load(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, stage: u64, _: *mut c_void) {
    listeners::forget();
    if stage == raw::REDISMODULE_SUBEVENT_LOADING_ENDED {
        guard("a load", (), floor::pass_over_lost);
    }
}

/// A slot migration has reached another stage. From the first import on, commands may come from another node.
extern "C" fn on_migration(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, stage: u64, data: *mut c_void) {
    listeners::forget();
    guard("a slot migration", (), || {
        // SAFETY: the server passes the data of this event, and a context that is valid during this call.
        let (completed, ctx) = unsafe { (imports::note_stage(stage, data), Ctx::from_raw(ctx)) };
        if completed {
            walk::start(ctx);
        }
    });
}

/// Two databases were swapped, so all queues in them have other names.
extern "C" fn on_swap(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, info: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("SWAPDB", (), || {
        // SAFETY: the server passes this structure with this event, and it is valid during the call.
        if let Some(info) = unsafe { info.cast::<raw::RedisModuleSwapDbInfo>().as_ref() } {
            gauges::swap(info.dbnum_first, info.dbnum_second);
            awaited::values_replaced();
        }
        walk::start(ctx);
    });
}

/// A database, or all of them, is about to be emptied.
extern "C" fn on_flush(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, stage: u64, info: *mut c_void) {
    guard("a flush", (), || {
        // SAFETY: the server passes this structure with this event, and it is valid during the call.
        let info = unsafe { info.cast::<raw::RedisModuleFlushInfo>().as_ref() };
        if let Some(info) = info.filter(|_| stage == raw::REDISMODULE_SUBEVENT_FLUSHDB_START) {
            gauges::forget(info.dbnum);
            awaited::values_replaced();
        }
    });
}

/// A replica loads its master's data while it keeps its own.
extern "C" fn on_load_beside(_: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, stage: u64, _: *mut c_void) {
    guard("a load", (), || match stage {
        raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED => gauges::begin_load_beside(),
        raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED => gauges::complete_load_beside(),
        _ => gauges::abort_load_beside(),
    });
}

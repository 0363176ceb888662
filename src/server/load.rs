//! What happens once, as the server loads the module.

use std::ffi::c_int;

use redis_module::raw;

use super::api::missing_api;
use super::config;
use super::ctx::Ctx;
use super::datatype::QUEUE_TYPE;
use super::disposal;
use super::gauges;
use super::guard::{guard, install_panic_hook};
use super::import;
use super::info;
use super::listeners;
use super::log::{self, Level};
use super::sweep;
use super::timer;
use crate::commands;
use crate::module::{NAME, VERSION};

/// Errors while reading an RDB are ours to handle; nothing is signalled as modified but what we say; replicas may
/// serve old data while they load.
const OPTIONS: u32 = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
    | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
    | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
    | HANDLE_ATOMIC_SLOT_MIGRATION;
/// Valkey 9: values may leave in an atomic slot migration, as the commands that `aof_rewrite` emits. Servers that do
/// not know the bit ignore it.
const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// What the server calls as it loads the module. Written by hand: the crate's macro registers what this module does not
/// use, and warns in the log that the server lacks some of it.
///
/// # Safety
/// The server calls it once, with a context and `argc` strings that are valid during the call.
#[no_mangle]
#[allow(non_snake_case)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    // Fills in the API. Nothing may be allocated before: it would come from another allocator, see `alloc`.
    // SAFETY: the context is the load's own, the name a C string that the server copies.
    let known =
        unsafe { raw::Export_RedisModule_Init(ctx, NAME.as_ptr(), VERSION, raw::REDISMODULE_APIVER_1 as c_int) };
    if known != raw::Status::Ok as c_int {
        return raw::Status::Err as c_int;
    }
    match load(ctx, argc) {
        Ok(()) => raw::Status::Ok as c_int,
        Err(why) => {
            log::log(Level::Warning, &format!("dq cannot be loaded: {why}"));
            raw::Status::Err as c_int
        }
    }
}

/// Prepares everything; an error says why the module cannot be loaded.
fn load(ctx: *mut raw::RedisModuleCtx, args: c_int) -> Result<(), String> {
    if let Some(name) = missing_api() {
        return Err(format!("this server lacks {name}; Redis 7.0 or Valkey 8.0 is the oldest that will do"));
    }
    install_panic_hook();
    guard("the load", Err("a bug in the module".to_owned()), || {
        QUEUE_TYPE.create_data_type(ctx).map_err(str::to_owned)?;
        // SAFETY: the context is the load's own, the API is complete, and `ctx` is used during this call only.
        let ctx = unsafe { Ctx::from_raw(ctx) };
        log::attach(ctx);
        disposal::attach();
        if args != 0 {
            return Err("it takes no arguments; its settings are the dq.* lines of redis.conf".to_owned());
        }
        ctx.set_options(OPTIONS as c_int);
        config::register(ctx)?;
        listeners::watch(ctx)?;
        info::register(ctx)?;
        ctx.subscribe(raw::REDISMODULE_EVENT_SWAPDB, sweep::on_swap);
        ctx.subscribe(raw::REDISMODULE_EVENT_FLUSHDB, gauges::on_flush);
        ctx.subscribe(raw::REDISMODULE_EVENT_REPL_ASYNC_LOAD, gauges::on_load_beside);
        ctx.subscribe(raw::REDISMODULE_EVENT_CRON_LOOP, timer::on_cron);
        import::watch(ctx);
        commands::register_all(ctx)?;
        warn_of_eviction(ctx);
        Ok(())
    })
}

/// Says in the log that the server may evict queues, if it may.
fn warn_of_eviction(ctx: Ctx) {
    let policy = ctx.server_info(c"memory", c"maxmemory_policy");
    let taken = match policy.as_deref() {
        None | Some("noeviction") => return,
        Some(policy) if policy.starts_with("volatile-") => "a whole queue that has an EXPIRE",
        Some(_) => "a whole queue",
    };
    let policy = policy.unwrap_or_default();
    let text = format!("maxmemory-policy is {policy}: at maxmemory the server may evict {taken}; set it to noeviction");
    log::log(Level::Warning, &text);
}

//! What happens once, as the server loads the module.

use std::ffi::c_int;

use redis_module::{raw, Context, RedisString};

use super::api::missing_api;
use super::config;
use super::ctx::Ctx;
use super::disposal;
use super::gauges;
use super::guard::{guard, install_panic_hook};
use super::import;
use super::info;
use super::listeners;
use super::log;
use super::sweep;
use super::timer;

/// Errors while reading an RDB are ours to handle; nothing is signalled as modified but what we say; replicas may
/// serve old data while they load.
const OPTIONS: u32 = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
    | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
    | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
    | HANDLE_ATOMIC_SLOT_MIGRATION;
/// Valkey 9: values may leave in an atomic slot migration, as the commands that `aof_rewrite` emits. Servers that do
/// not know the bit ignore it.
const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// Prepares everything; an error says why the module cannot be loaded.
pub fn load(
    ctx: &Context,
    args: &[RedisString],
    register_commands: fn(Ctx) -> Result<(), String>,
) -> Result<(), String> {
    if let Some(name) = missing_api() {
        return Err(format!("this server lacks {name}; Redis 7.0 or Valkey 8.0 is the oldest that will do"));
    }
    install_panic_hook();
    // SAFETY: the context is the load's own, the API is complete, and `ctx` is used during this call only.
    let ctx = unsafe { Ctx::from_raw(ctx.ctx) };
    guard("the load", Err("a bug in the module".to_owned()), || {
        log::attach(ctx);
        disposal::attach();
        if !args.is_empty() {
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
        ctx.subscribe(import::EVENT, import::on_stage);
        register_commands(ctx)
    })
}

//! Initialization: everything that happens once, while the server loads the module.

use std::ffi::c_int;
use std::time::Duration;

use redis_module::raw;

use super::datatype::QUEUE_TYPE;
use super::{advance, config, datatype, disposal, floor, gauges, info, punctuality, server_events, warnings};
use crate::module_api::api::missing_api;
use crate::module_api::ctx::Ctx;
use crate::module_api::guard::{guard, install_panic_hook};
use crate::module_api::log;
use crate::schedule::{self, wakeup};

/// The module's options: it handles errors while it reads an RDB, signals modified keys itself, and allows replicas to
/// serve old data during an asynchronous load.
const OPTIONS: u32 = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
    | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
    | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
    | HANDLE_ATOMIC_SLOT_MIGRATION;
/// Valkey 9: an atomic slot migration may send values as the commands that `aof_rewrite` emits. Servers that do not
/// know the bit ignore it.
const HANDLE_ATOMIC_SLOT_MIGRATION: u32 = 1 << 5;

/// Initializes the module. An error says why the module cannot be loaded.
pub fn load(
    ctx: *mut raw::RedisModuleCtx,
    args: c_int,
    register_commands: fn(Ctx) -> Result<(), String>,
) -> Result<(), String> {
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
        floor::draw();
        if args != 0 {
            return Err("it takes no arguments; its settings are the dq.* lines of redis.conf".to_owned());
        }
        ctx.set_options(OPTIONS as c_int);
        config::register(ctx)?;
        server_events::watch(ctx)?;
        info::register(ctx)?;
        schedule::register(schedule::Callbacks {
            is_awaited: punctuality::is_required,
            look_at: advance::look_at,
            budget: || Duration::from_micros(config::timer_budget_us()),
            is_any_lost: gauges::is_any_unlinked,
            is_concerned: datatype::is_queue,
        });
        register_commands(ctx)?;
        warnings::log_all(ctx);
        // The last step: it cannot be undone.
        wakeup::start();
        Ok(())
    })
}

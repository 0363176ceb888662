//! `INFO dq`: one section, generated from sums that are maintained anyway.

use std::ffi::{c_int, CString};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis_module::raw;

use super::{advance, authority, gauges, waiting};
use crate::module_api::api::api;
use crate::module_api::ctx::Ctx;
use crate::module_api::guard::guard;
use crate::schedule::{timer, wakeup};
use dq_queue::cron;

/// Registers the section. It replaces the section of the `redis-module` crate, which takes a backtrace when the server
/// crashes and thereby loses the section.
pub fn register(ctx: Ctx) -> Result<(), String> {
    match raw::register_info_function(ctx.as_ptr(), Some(on_info)) {
        raw::Status::Ok => Ok(()),
        raw::Status::Err => Err("the server did not take the INFO section".to_owned()),
    }
}

extern "C" fn on_info(ctx: *mut raw::RedisModuleInfoCtx, _for_crash_report: c_int) {
    guard("INFO", (), || {
        // SAFETY: the context is valid during this call; an empty name stands for the module's own.
        if unsafe { api!(RedisModule_InfoAddSection)(ctx, c"".as_ptr()) } != raw::REDISMODULE_OK as c_int {
            return;
        }
        let add = |name: &str, value: u64| {
            let name = CString::new(name).unwrap_or_default();
            // SAFETY: the context is valid during this call, the name a C string that the server copies.
            unsafe { api!(RedisModule_InfoAddFieldULongLong)(ctx, name.as_ptr(), value) };
        };
        let (queues, held) = gauges::held();
        add("decides_by_time", authority::decides().into());
        add("queues", queues);
        add("unsound_queues", gauges::unsound_queues());
        held.into_iter().for_each(|(name, sum)| add(name, sum));
        for (name, total) in gauges::totals() {
            add(&format!("total_{}", name.replace('-', "_")), total);
        }
        let version = CString::new(cron::tzdb_version()).unwrap_or_default();
        // SAFETY: the context is valid during this call, name and value are C strings that the server copies.
        unsafe { api!(RedisModule_InfoAddFieldCString)(ctx, c"tzdata".as_ptr(), version.as_ptr()) };
        add("blocked_clients", waiting::clients());
        let shown = |sum: &AtomicU64| sum.load(Relaxed);
        with_lateness(ctx, || {
            for (bound, count) in gauges::lateness() {
                let bound = bound.map_or("inf".to_owned(), |bound| bound.to_string());
                add(&format!("le_{bound}"), count);
            }
        });
        add("timer_runs", shown(&timer::RUNS));
        add("timer_punctual", shown(&wakeup::PUNCTUAL));
        add("timer_moved", shown(&advance::MOVED));
        add("timer_last_us", shown(&timer::LAST_US));
        add("timer_longest_us", shown(&timer::LONGEST_US));
        add("timer_over_budget", shown(&timer::OVER_BUDGET));
    });
}

/// Starts the field of the lateness; `add_parts` adds its parts.
fn with_lateness(ctx: *mut raw::RedisModuleInfoCtx, add_parts: impl FnOnce()) {
    // SAFETY: the context is valid during the call of `on_info`, the name a C string that the server copies.
    unsafe { api!(RedisModule_InfoBeginDictField)(ctx, c"lateness_ms".as_ptr()) };
    add_parts();
    // SAFETY: the same, and a field was begun.
    unsafe { api!(RedisModule_InfoEndDictField)(ctx) };
}

//! `dq`: the delay queue as a native data type of Redis and Valkey.
//!
//! This file is the entry point that the server calls when it loads the module. ARCHITECTURE.md has the map.

// Crate-visible for the test module in tests/next, which has this file as a module.
pub(crate) mod commands;
pub(crate) mod host;
pub(crate) mod module_api;
pub(crate) mod schedule;

#[cfg(feature = "fuzzing")]
pub use commands::fuzzing;

use host::init;
use module_api::alloc::ServerAlloc;
use module_api::log::{log, Level};
use redis_module::raw;
use std::ffi::{c_int, CStr};

const NAME: &CStr = c"dq";
/// The version of the package as a number of two digits each for major, minor and patch: 0.2.0 is 200.
const VERSION: c_int = two_digits(env!("CARGO_PKG_VERSION_MAJOR")) * 10_000
    + two_digits(env!("CARGO_PKG_VERSION_MINOR")) * 100
    + two_digits(env!("CARGO_PKG_VERSION_PATCH"));

/// A configuration easily ends up with two lines that load the module, because CONFIG REWRITE does not look into
/// included files.
const LOADED_ALREADY: &str = "dq is loaded already: remove one of the two loadmodule lines. CONFIG REWRITE, which \
    Sentinel and failovers use too, writes one into the main file, so do not have another in an included file";

/// Reads a part of the version. A part that does not fit into two digits does not compile.
const fn two_digits(part: &str) -> c_int {
    match c_int::from_str_radix(part, 10) {
        Ok(number) => {
            assert!(0 <= number && number < 100);
            number
        }
        Err(_) => unreachable!(),
    }
}

#[global_allocator]
static ALLOCATOR: ServerAlloc = ServerAlloc;

/// The entry point that the server calls when it loads the module. It is written by hand, because the crate's macro
/// registers what this module does not use, and warns in the log that the server lacks some of it.
///
/// # Safety
/// The server calls it once, with a context and `argc` strings that are valid during the call.
#[no_mangle]
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
        // This is the only reason for which the server refuses the name.
        log(Level::Warning, LOADED_ALREADY);
        return raw::Status::Err as c_int;
    }
    match init::load(ctx, argc, commands::register_all) {
        Ok(()) => raw::Status::Ok as c_int,
        Err(why) => {
            log(Level::Warning, &format!("dq cannot be loaded: {why}"));
            raw::Status::Err as c_int
        }
    }
}

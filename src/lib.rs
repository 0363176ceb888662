//! `dq`: the delay queue as a native data type of Redis and Valkey.
//!
//! [`queue`] is the heart: a pure state machine that knows no clock and no server. `commands` is what clients say,
//! one file a command. `server` is what touches the server's API, and holds all `unsafe` code. This file is the face:
//! it names the module and registers what the rooms offer.

pub mod queue;

#[cfg(feature = "module")]
mod commands;
#[cfg(feature = "module")]
mod server;

#[cfg(feature = "fuzzing")]
pub use commands::fuzzing;

/// What the server is told of the module as it loads it: see `server::load`.
#[cfg(feature = "module")]
mod module {
    use crate::server::alloc::ServerAlloc;
    use std::ffi::{c_int, CStr};

    pub const NAME: &CStr = c"dq";
    /// Two digits each for major, minor and patch: 0.1.0.
    pub const VERSION: c_int = 100;

    #[global_allocator]
    static ALLOCATOR: ServerAlloc = ServerAlloc;
}

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

#[cfg(feature = "module")]
mod module {
    use crate::commands;
    use crate::server::alloc::ServerAlloc;
    use crate::server::datatype::QUEUE_TYPE;
    use crate::server::{load, log};
    use redis_module::{redis_module, Context, RedisString, Status};

    fn init(ctx: &Context, args: &[RedisString]) -> Status {
        match load::load(ctx, args, commands::register_all) {
            Ok(()) => Status::Ok,
            Err(why) => {
                log::log(log::Level::Warning, &format!("dq cannot be loaded: {why}"));
                Status::Err
            }
        }
    }

    redis_module! {
        name: "dq",
        // Two digits each for major, minor and patch: 0.1.0.
        version: 100,
        allocator: (ServerAlloc, ServerAlloc),
        data_types: [QUEUE_TYPE],
        init: init,
        commands: [],
    }
}

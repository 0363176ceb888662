//! Slots that come from another node of a cluster, bit by bit, while that node still decides (Valkey 9).
//!
//! What arrives is carried out as a replica would: nothing is deleted here by this server's own will. When an import is
//! complete its queues are this server's own, and one look at each drops what the other node had not dropped yet.

use std::ffi::c_void;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use redis_module::raw;

use super::ctx::Ctx;
use super::guard::guard;
use super::sweep;

/// Valkey's number for the event, which the crate does not know. Other servers have none or another event of that
/// number, but with fewer stages.
pub const EVENT: u64 = 19;
/// The stage at which the slots are this server's.
const COMPLETED: u64 = 4;

/// Imports that were completed since the start, and one: a number that is never zero takes no room where it is absent.
static IMPORTS: AtomicU64 = AtomicU64::new(1);

/// An import that is under way, as a queue remembers that it came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import(NonZeroU64);

impl Import {
    /// That which is under way now.
    pub fn current() -> Import {
        Import(NonZeroU64::new(IMPORTS.load(Relaxed)).unwrap_or(NonZeroU64::MIN))
    }

    /// Whether it is not complete yet.
    pub fn goes_on(self) -> bool {
        self == Import::current()
    }
}

/// A slot migration has come a stage further.
pub extern "C" fn on_stage(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, stage: u64, _: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("a slot migration", (), || {
        if stage == COMPLETED {
            IMPORTS.fetch_add(1, Relaxed);
            sweep::start(ctx);
        }
    });
}

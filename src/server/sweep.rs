//! A slow walk through the keyspace, for queues that have lost their hint.
//!
//! The server tells nobody that a value now stands under another name (`RENAME`, `MOVE`, `SWAPDB`, the end of a
//! replica's asynchronous load). The next command on the queue finds out, and so does every client that waits for
//! it; but a queue that nobody touches would fall asleep. So when the hint of a queue that still exists leads
//! nowhere, or databases were swapped, the whole keyspace is walked once, a small step at a time, and each queue that
//! is met gets a look; also when this server becomes a master, which has to drop what its master can no longer.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use redis_module::raw;

use super::api::api;
use super::ctx::{Ctx, Name};
use super::datatype;
use super::gauges;
use super::guard::guard;
use super::key::holds;
use super::state::with_schedule;
use crate::queue::time::{DurationMs, UnixMs};

/// Between two steps, and before the first: by then a script of renames is over. With [`STEP`] this is 2 % of a core.
pub const PAUSE: DurationMs = DurationMs::new(10);
/// How long a step takes.
const STEP: Duration = Duration::from_micros(200);

/// How far the walk has come.
#[derive(Default)]
pub struct Sweep {
    /// When the next step is to be made; none where no walk is wanted.
    pub next: Option<UnixMs>,
    /// Whether something went missing since the walk began: then there is another.
    again: bool,
    walk: Option<Walk>,
}

/// A walk that has begun.
struct Walk {
    db: i32,
    cursor: Cursor,
}

impl Sweep {
    /// Asks for a walk.
    pub fn request(&mut self, now: UnixMs) {
        if self.next.is_none() {
            self.next = Some(now.after(PAUSE));
        } else {
            self.again = true;
        }
    }
}

/// The server's cursor in one database.
struct Cursor(*mut raw::RedisModuleScanCursor);

impl Cursor {
    fn new() -> Cursor {
        // SAFETY: takes no arguments.
        Cursor(unsafe { api!(RedisModule_ScanCursorCreate)() })
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: made by `new`, destroyed once.
        unsafe { api!(RedisModule_ScanCursorDestroy)(self.0) }
    }
}

/// Makes the next step, if one is due.
pub fn step(ctx: Ctx, now: UnixMs) {
    let walk = with_schedule(|schedule| {
        let sweep = &mut schedule.sweep;
        let due = sweep.next.is_some_and(|next| next <= now);
        due.then(|| sweep.walk.take().unwrap_or_else(|| Walk { db: 0, cursor: Cursor::new() }))
    });
    let Some(walk) = walk.flatten() else { return };
    let rest = scan(ctx, walk);
    with_schedule(|schedule| {
        let sweep = &mut schedule.sweep;
        let goes_on = rest.is_some() || std::mem::take(&mut sweep.again);
        sweep.walk = rest;
        sweep.next = goes_on.then(|| now.after(PAUSE));
    });
}

/// Walks on until the step's time is over; what is left of the walk, if anything.
fn scan(ctx: Ctx, mut walk: Walk) -> Option<Walk> {
    let started = Instant::now();
    while ctx.select_db(walk.db) {
        loop {
            let mut db = walk.db;
            let private = (&raw mut db).cast::<c_void>();
            // SAFETY: the context is valid, the cursor is that of this database, and `db` outlives the call.
            let more = unsafe { api!(RedisModule_Scan)(ctx.as_ptr(), walk.cursor.0, Some(on_key), private) };
            if more == 0 {
                break;
            }
            if started.elapsed() > STEP {
                return Some(walk);
            }
        }
        walk = Walk { db: walk.db + 1, cursor: Cursor::new() };
    }
    None
}

extern "C" fn on_key(
    _: *mut raw::RedisModuleCtx,
    name: *mut raw::RedisModuleString,
    key: *mut raw::RedisModuleKey,
    db: *mut c_void,
) {
    guard("a sweep", (), || {
        // SAFETY: `scan` passed a pointer to an integer that outlives this call; the server passes a valid name and
        // a key that is open for reading, or null.
        let (db, name, is_queue) =
            unsafe { (*db.cast::<i32>(), Name::from_raw(name), key.is_null() || holds(key, datatype::handle())) };
        if is_queue {
            with_schedule(|schedule| schedule.agenda.look_at(UnixMs::EPOCH, db, name.bytes()));
        }
    });
}

/// Databases were swapped, and all queues in them have other names now.
pub extern "C" fn on_swap(ctx: *mut raw::RedisModuleCtx, _: raw::RedisModuleEvent, _: u64, info: *mut c_void) {
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    guard("SWAPDB", (), || {
        // SAFETY: the server passes this structure with this event, and it is valid during the call.
        if let Some(info) = unsafe { info.cast::<raw::RedisModuleSwapDbInfo>().as_ref() } {
            gauges::swap(info.dbnum_first, info.dbnum_second);
        }
        start(ctx);
    });
}

/// Wants a walk, and a timer for it.
pub fn start(ctx: Ctx) {
    let now = UnixMs::new(ctx.now_ms());
    with_schedule(|schedule| {
        schedule.sweep.request(now);
        schedule.rearm(ctx, now);
    });
}

//! A slow walk through the keyspace, for values that have lost their hint.
//!
//! The server tells nobody that a value now stands under another name (`RENAME`, `MOVE`, `SWAPDB`, the end of a
//! replica's asynchronous load). The next command on the key finds out, and so does every client that is blocked on
//! it; but a value that nobody touches would be forgotten. So if the hint of a value that still exists leads nowhere,
//! or databases were swapped, the whole keyspace is walked once, a small step at a time, and each key that is concerned
//! gets a look; also if this server becomes a master, which has to drop what its master can no longer drop.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use redis_module::raw;

use super::{with_schedule, CALLBACKS};
use crate::module_api::api::api;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::guard::guard;
use crate::queue::time::{DurationMs, UnixMs};

/// Between two steps, and before the first: by then a script of renames is over. With [`STEP`] this is 2 % of a core.
pub const PAUSE: DurationMs = DurationMs::new(10);
/// How long a step takes.
const STEP: Duration = Duration::from_micros(200);

/// How far the walk has come.
#[derive(Default)]
pub struct Walk {
    /// When the next step is to be made; `None` if no walk is wanted.
    next: Option<UnixMs>,
    /// Whether something went missing since the walk began: then there is another.
    again: bool,
    position: Option<Position>,
}

impl Walk {
    /// Asks for a walk.
    pub fn request(&mut self, now: UnixMs) {
        if self.next.is_none() {
            self.next = Some(now.after(PAUSE));
        } else {
            self.again = true;
        }
    }

    /// When the next step is to be made; `None` if no walk is wanted.
    pub fn next_step(&self) -> Option<UnixMs> {
        self.next
    }

    /// Where to walk on, if a step is due.
    fn begin_step(&mut self, now: UnixMs) -> Option<Position> {
        let due = self.next.is_some_and(|next| next <= now);
        due.then(|| self.position.take().unwrap_or_else(|| Position { db: 0, cursor: Cursor::new() }))
    }

    /// Notes where a step ended; `None` at the end of the keyspace.
    pub(super) fn end_step(&mut self, now: UnixMs, position: Option<Position>) {
        let goes_on = position.is_some() || std::mem::take(&mut self.again);
        self.position = position;
        self.next = goes_on.then(|| now.after(PAUSE));
    }
}

/// A place in the keyspace.
pub(super) struct Position {
    db: i32,
    cursor: Cursor,
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
pub(super) fn step(ctx: Ctx, now: UnixMs) {
    if let Some(position) = with_schedule(|schedule| schedule.walk.begin_step(now)).flatten() {
        let position = scan(ctx, position);
        with_schedule(|schedule| schedule.walk.end_step(now, position));
    }
}

/// Walks on until the step's time is over. Returns where it stopped; `None` at the end of the keyspace.
fn scan(ctx: Ctx, mut position: Position) -> Option<Position> {
    let started = Instant::now();
    while ctx.select_db(position.db) {
        loop {
            let mut db = position.db;
            let private = (&raw mut db).cast::<c_void>();
            // SAFETY: the context is valid, the cursor is that of this database, and `db` outlives the call.
            let more = unsafe { api!(RedisModule_Scan)(ctx.as_ptr(), position.cursor.0, Some(on_key), private) };
            if more == 0 {
                break;
            }
            if started.elapsed() > STEP {
                return Some(position);
            }
        }
        position = Position { db: position.db + 1, cursor: Cursor::new() };
    }
    None
}

extern "C" fn on_key(
    _: *mut raw::RedisModuleCtx,
    name: *mut raw::RedisModuleString,
    key: *mut raw::RedisModuleKey,
    db: *mut c_void,
) {
    guard("a walk", (), || {
        let Some(callbacks) = CALLBACKS.get() else { return };
        // SAFETY: `scan` passed a pointer to an integer that outlives this call; the server passes a valid name and
        // a key that is open for reading, or null.
        let (db, name, is_concerned) =
            unsafe { (*db.cast::<i32>(), Name::from_raw(name), key.is_null() || (callbacks.is_concerned)(key)) };
        if is_concerned {
            with_schedule(|schedule| schedule.agenda.look_at_met(db, name.bytes()));
        }
    });
}

/// Asks for a walk, and arms the timer for it.
pub fn start(ctx: Ctx) {
    let now = UnixMs::new(ctx.now_ms());
    with_schedule(|schedule| schedule.start_walk(&ctx, now));
}

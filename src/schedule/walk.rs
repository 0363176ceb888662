//! A slow walk through the keyspace, for values that have lost their hint.
//!
//! The server tells nobody that a value now has another name (after `RENAME`, `MOVE`, `SWAPDB` or the end of a
//! replica's asynchronous load). The next command on the key notices it, and so does every client that is blocked on
//! it, but a value that nobody accesses would be forgotten. So the whole keyspace is walked once, in small steps, and
//! every relevant key gets a hint. A walk starts if a value was unlinked from its key and not freed, if the hint of a
//! value that still exists leads nowhere, if databases were swapped, and if this server begins to decide about queues
//! about which another server decided: its role changes, a slot import completes, or `dq.allow-effects` is switched
//! off.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use redis_module::raw;

use super::{with_schedule, Callbacks, CALLBACKS};
use crate::module_api::api::api;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::guard::guard;
use dq_queue::time::{DurationMs, UnixMs};

/// The time between two steps, and before the first one; by then a script that renames keys has finished. Together with
/// [`STEP`] it limits a walk to 2 % of a core.
pub const PAUSE: DurationMs = DurationMs::new(10);
/// The duration of one step.
const STEP: Duration = Duration::from_micros(200);

/// Why a walk is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A value was unlinked from its key. It is not lost if it was then freed or found again.
    #[default]
    Unlinked,
    /// A value has lost its hint, or all values are to be looked at.
    Lost,
}

/// The progress of the walk.
#[derive(Default)]
pub struct Walk {
    /// When the next step is due, or `None` if no walk is requested.
    next: Option<UnixMs>,
    cause: Cause,
    /// Why another walk was requested since this one began. If so, it follows.
    again: Option<Cause>,
    position: Option<Position>,
}

impl Walk {
    /// Requests a walk.
    pub fn request(&mut self, now: UnixMs, cause: Cause) {
        if self.next.is_none() {
            (self.next, self.cause) = (Some(now.after(PAUSE)), cause);
        } else if self.position.is_none() {
            self.cause = self.cause.max(cause);
        } else {
            self.again = self.again.max(Some(cause));
        }
    }

    /// When the next step is to be made; `None` if no walk is wanted. A time beyond the next pause was planned under a
    /// clock that has stepped back since, and is planned again.
    pub fn next_step(&mut self, now: UnixMs) -> Option<UnixMs> {
        self.next = self.next.map(|next| next.min(now.after(PAUSE)));
        self.next
    }

    /// Returns the position at which to continue, or `None` if no step is due.
    fn begin_step(&mut self, now: UnixMs, is_any_lost: fn() -> bool) -> Option<Position> {
        let due = self.next_step(now).is_some_and(|next| next <= now);
        if due && self.position.is_none() && self.cause == Cause::Unlinked && !is_any_lost() {
            self.end_step(now, None);
            return None;
        }
        due.then(|| self.position.take().unwrap_or_else(|| Position { db: 0, cursor: KeyspaceCursor::new() }))
    }

    /// Records where a step ended; `None` is the end of the keyspace.
    pub(super) fn end_step(&mut self, now: UnixMs, position: Option<Position>) {
        if position.is_none() {
            self.cause = self.again.unwrap_or_default();
        }
        let goes_on = position.is_some() || self.again.take().is_some();
        self.position = position;
        self.next = goes_on.then(|| now.after(PAUSE));
    }
}

/// A position in the keyspace.
pub(super) struct Position {
    db: i32,
    cursor: KeyspaceCursor,
}

/// The server's scan cursor within one database.
struct KeyspaceCursor(*mut raw::RedisModuleScanCursor);

impl KeyspaceCursor {
    fn new() -> KeyspaceCursor {
        // SAFETY: takes no arguments.
        KeyspaceCursor(unsafe { api!(RedisModule_ScanCursorCreate)() })
    }
}

impl Drop for KeyspaceCursor {
    fn drop(&mut self) {
        // SAFETY: made by `new`, destroyed once.
        unsafe { api!(RedisModule_ScanCursorDestroy)(self.0) }
    }
}

/// Makes the next step, if one is due.
pub(super) fn step(ctx: Ctx, now: UnixMs) {
    let Some(Callbacks { is_any_lost, .. }) = CALLBACKS.get() else { return };
    if let Some(position) = with_schedule(|schedule| schedule.walk.begin_step(now, *is_any_lost)).flatten() {
        let position = scan(ctx, position);
        with_schedule(|schedule| schedule.walk.end_step(now, position));
    }
}

/// Continues the walk until the time of the step is over. Returns the position at which it stopped, or `None` at the
/// end of the keyspace.
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
        position = Position { db: position.db + 1, cursor: KeyspaceCursor::new() };
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

/// Requests a walk and arms the timer for it.
pub fn start(ctx: Ctx) {
    let now = UnixMs::new(ctx.now_ms());
    with_schedule(|schedule| schedule.start_walk(&ctx, now, Cause::Lost));
}

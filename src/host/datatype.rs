//! The data type: the callbacks that the server calls for the values that it keeps.
//!
//! Saving and rewriting run in a child process and only read. Freeing may run on a background thread and accesses only
//! the queue and a few atomic sums; see [`disposal`]. Loading trusts no input: data that is not a
//! valid queue is refused with a line in the log, and the server decides what follows (an error for `RESTORE`, a
//! refused start for a file).

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use lazy_static::lazy_static;
use redis_module::native_types::RedisType;
use redis_module::raw;

use super::authority;
use super::awaited;
use super::disposal;
use super::floor::raise_floor;
use super::gauges::{self, Home, Share};
use super::punctuality;
use super::write::EFFECT_COMMAND;
use crate::module_api::alarms::BUG;
use crate::module_api::ctx::{now_ms, Ctx, Name};
use crate::module_api::guard::{guard, plant};
use crate::module_api::key::{holds, TypeHandle, Value};
use crate::module_api::log::{detached, log, Level};
use crate::schedule::agenda::{Armed, Taken};
use crate::schedule::walk::Cause;
use crate::schedule::with_schedule;
use dq_queue::settings::Settings;
use dq_queue::time::UnixMs;
use dq_queue::wire::Loader;
use dq_queue::{Queue, Refused};

/// The encoding version of a saved value, which stays the same: the bytes begin with the version of their format, see
/// [`dq_queue::wire`].
const ENCODING: c_int = 1;

/// The data type, with the name that `TYPE` returns.
pub static QUEUE_TYPE: RedisType = RedisType::new("DQ--queue", ENCODING, METHODS);

/// The value of a key: a queue, and what the host keeps beside it.
pub struct Held {
    /// The queue.
    pub queue: Queue,
    armed: Option<Armed>,
    /// The tally in which the queue is counted; `None` once it is being freed.
    home: Option<Home>,
}

// Each queue takes a place of this size from the server's allocator; the next larger one has 384 bytes. (In tests the
// hint of a queue has a field more.)
#[cfg(not(test))]
const _: () = assert!(size_of::<Held>() <= 320);

lazy_static! {
    /// The settings of the queue that was created or loaded last. Most queues have the same settings and share them.
    static ref COMMON_SETTINGS: Mutex<Arc<Settings>> = Mutex::default();
}

impl Held {
    /// Wraps a queue that was created on this server.
    pub fn new(queue: Queue) -> Box<Held> {
        let home = Home::nowhere(&queue);
        Held::at(home, queue)
    }

    /// Wraps a queue that was loaded into a database or copied to one.
    fn loaded(queue: Queue, db: i32) -> Box<Held> {
        let home = Home::loaded(&queue, db);
        Held::at(home, queue)
    }

    fn at(home: Home, mut queue: Queue) -> Box<Held> {
        queue.share_settings(&mut COMMON_SETTINGS.lock().unwrap_or_else(PoisonError::into_inner));
        raise_floor(queue.last_given());
        Box::new(Held { queue, armed: None, home: Some(home) })
    }

    /// Wraps a queue that was created by an operation, and adds what it has done so far to the totals.
    pub fn made(queue: Queue) -> Box<Held> {
        gauges::count(&queue);
        Held::new(queue)
    }

    /// Removes the queue from the sums and drops its hint, because it is about to be freed.
    pub fn withdraw(&mut self) {
        if let Some(home) = self.home.take() {
            home.leave(&self.queue);
        }
        self.armed = None;
    }

    /// Returns whether the hint that was taken out belonged to this queue.
    pub fn had(&self, taken: &Taken) -> bool {
        self.armed.as_ref().is_some_and(|armed| taken.was(armed))
    }

    /// Ensures that the timer looks at this queue, which is at `name`, when it has something to do.
    #[inline]
    pub fn arm(&mut self, ctx: Ctx, db: i32, name: Name<'_>) {
        if self.queue.forward().is_some() {
            punctuality::require_to_forward(ctx);
        }
        let Some(at) = self.next_look(name) else { return };
        if self.armed.as_ref().is_some_and(|armed| armed.suffices(at, db, name.bytes())) {
            return;
        }
        with_schedule(|schedule| {
            if schedule.agenda.arm(&mut self.armed, at, db, name.bytes()) {
                schedule.rearm(&ctx, UnixMs::new(ctx.now_ms()));
            }
        });
    }
}

impl Held {
    /// The next time at which the timer has something to do for this queue: a message changes its state, or a dead
    /// or done message is to be dropped, a run that failed is to be ended or a message is to be forwarded, which only the
    /// server that decides about the queue does.
    #[inline]
    fn next_look(&self, name: Name<'_>) -> Option<UnixMs> {
        let queue = &self.queue;
        let wake = queue.next_wake();
        let drop = earlier(queue.next_drop(), queue.next_done_end());
        let forward = queue.next_forward();
        let (forward, retry) = if queue.failing().is_some() { (None, forward) } else { (forward, None) };
        let decided = earlier(earlier(drop, queue.first_failed_run()), forward);
        let is_ours = (decided.is_some() || retry.is_some()) && authority::decides_about(name);
        if !is_ours {
            return wake.map(|wake| self.by_clock(wake, name));
        }
        earlier(earlier(wake, decided).map(|at| self.by_clock(at, name)), retry)
    }

    /// The time by the clock of the server for a time of the queue: what the queue's own time has reached is due at once,
    /// even if the clock was set back since.
    #[inline]
    fn by_clock(&self, at: UnixMs, name: Name<'_>) -> UnixMs {
        if at > self.queue.own_time(UnixMs::EPOCH) {
            return at;
        }
        let now = UnixMs::new(now_ms());
        // A server that does not decide leaves the queue's own time as it is.
        if now < at && authority::decides_about(name) {
            now
        } else {
            at
        }
    }
}

/// The earlier of two times, if there is any.
#[inline]
fn earlier(one: Option<UnixMs>, other: Option<UnixMs>) -> Option<UnixMs> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Debug builds check the invariants of a queue after each command if it has at most this many messages. Larger queues
/// would take too long.
const CHECKED_MAX: u64 = 64;

impl Value for Held {
    type Opened = Share;

    // Every command takes a share twice. Out of line, it would be copied each time.
    #[inline(always)]
    fn opened(&self) -> Share {
        Share::of(&self.queue)
    }

    #[inline]
    fn closed(&mut self, opened: &Share, db: i32) {
        if cfg!(debug_assertions) && self.queue.counts().total() <= CHECKED_MAX {
            if let Err(why) = self.queue.check() {
                log(Level::Warning, &format!("{why}, {BUG}"));
            }
        }
        if let Some(home) = &mut self.home {
            home.publish(&self.queue, opened);
            home.move_to(&self.queue, db);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// The id of the data type, for opening keys.
#[inline]
pub fn handle() -> TypeHandle<Held> {
    let id = *QUEUE_TYPE.raw_type.borrow();
    // SAFETY: the crate keeps what `RedisModule_CreateDataType` returned, or null; `rdb_load`, `copy` and
    // `OpenKey::create` are the only sources of values, and all are boxes of `Held`.
    unsafe { TypeHandle::new(id) }
}

/// Returns whether an open key holds a queue.
///
/// # Safety
/// `key` is an open key.
pub unsafe fn is_queue(key: *mut raw::RedisModuleKey) -> bool {
    // SAFETY: the caller vouches for it.
    unsafe { holds(key, handle()) }
}

const METHODS: raw::RedisModuleTypeMethods = raw::RedisModuleTypeMethods {
    version: raw::REDISMODULE_TYPE_METHOD_VERSION as u64,
    rdb_load: Some(rdb_load),
    rdb_save: Some(rdb_save),
    aof_rewrite: Some(aof_rewrite),
    mem_usage: None,
    digest: Some(digest),
    free: Some(free),
    aux_load: None,
    aux_save: None,
    aux_save_triggers: 0,
    free_effort: None,
    unlink: None,
    copy: None,
    defrag: None,
    mem_usage2: Some(mem_usage),
    free_effort2: Some(free_effort),
    unlink2: Some(unlink),
    copy2: Some(copy),
    aux_save2: None,
};

/// # Safety
/// `value` is a value of this type, and it does not change while the reference lives.
unsafe fn held<'a>(value: *const c_void) -> &'a Held {
    // SAFETY: values of this type are boxes of `Held`, see `handle`.
    unsafe { &*value.cast::<Held>() }
}

/// The piece that terminates a saved value.
const END: &[u8] = b"";

extern "C" fn rdb_save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    guard("a save", (), || {
        // SAFETY: the server passes a value of this type, in a child process or while it does nothing else.
        let queue = unsafe { &held(value).queue };
        let write = |piece: &[u8]| {
            raw::save_slice(io, piece);
            Ok(())
        };
        match queue.save(write) {
            Ok(()) => raw::save_slice(io, END),
            Err(refused) => {
                let refused: Refused = refused;
                log(Level::Warning, &refused.to_string());
            }
        }
    });
}

extern "C" fn rdb_load(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    guard("a load", ptr::null_mut(), || match load(io, encoding) {
        Ok(queue) => {
            look_at_later(io);
            Box::into_raw(Held::loaded(queue, database_of(io))).cast()
        }
        Err(why) => {
            log(Level::Warning, &format!("a queue was refused: {why}"));
            ptr::null_mut()
        }
    })
}

fn load(io: *mut raw::RedisModuleIO, encoding: c_int) -> Result<Queue, String> {
    if encoding != ENCODING {
        return Err(format!("it has encoding {encoding}, and this version of the module reads encoding {ENCODING}"));
    }
    let mut loader = Loader::default();
    loop {
        let piece = raw::load_string_buffer(io).map_err(|_| "it is cut off or damaged".to_owned())?;
        if piece.as_ref().is_empty() {
            break;
        }
        loader.take(piece.as_ref()).map_err(|refused| refused.to_string())?;
    }
    loader.finish(UnixMs::new(now_ms())).map_err(|refused| refused.to_string())
}

/// The database into which a value is being loaded.
fn database_of(io: *mut raw::RedisModuleIO) -> i32 {
    // SAFETY: the static is read by value; the function exists since 7.0 and is called during the load.
    unsafe { raw::RedisModule_GetDbIdFromIO.map_or(0, |db_of| db_of(io)) }
}

/// Makes the timer look at a key that is being loaded. The key may end up missing or with another value, which the
/// timer will notice.
fn look_at_later(io: *mut raw::RedisModuleIO) {
    let (Some(name_of), Some(db_of)) =
        // SAFETY: the statics are read by value; both functions exist since 7.0.
        (unsafe { raw::RedisModule_GetKeyNameFromIO }, unsafe { raw::RedisModule_GetDbIdFromIO })
    else {
        return;
    };
    // SAFETY: the context of the load is valid during it; the name, if it is not null, is the server's.
    let (name, db) = unsafe { (name_of(io), db_of(io)) };
    if !name.is_null() {
        // SAFETY: the string is valid during the load.
        let name = unsafe { Name::from_raw(name.cast_mut()) };
        request_look(db, name);
    }
}

fn request_look(db: i32, name: Name<'_>) {
    awaited::values_replaced();
    with_schedule(|schedule| {
        schedule.agenda.look_at(UnixMs::EPOCH, db, name.bytes());
        // Timers that are created while the server is loading fire after the load.
        if let Some(ctx) = detached() {
            schedule.rearm(&ctx, UnixMs::new(now_ms()));
        }
    });
}

extern "C" fn aof_rewrite(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString, value: *mut c_void) {
    guard("an AOF rewrite", (), || {
        // SAFETY: the server passes a value of this type, in a child process.
        let queue = unsafe { &held(value).queue };
        let emitted = queue.save(|piece| {
            emit(io, key, piece);
            Ok(())
        });
        if let Err(refused) = emitted {
            let refused: Refused = refused;
            log(Level::Warning, &refused.to_string());
        }
    });
}

fn emit(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString, blob: &[u8]) {
    // SAFETY: the static is read by value.
    if let Some(emit) = unsafe { raw::RedisModule_EmitAOF } {
        // SAFETY: the format names a string of the server and a buffer with its length, which are what follows.
        unsafe {
            emit(io, EFFECT_COMMAND.as_ptr(), c"sb".as_ptr(), key, blob.as_ptr().cast::<c_char>(), blob.len());
        }
    }
}

extern "C" fn digest(md: *mut raw::RedisModuleDigest, value: *mut c_void) {
    guard("a digest", (), || {
        // SAFETY: the server passes a value of this type and does nothing else meanwhile.
        let queue = unsafe { &held(value).queue };
        let (Some(add), Some(end)) =
            // SAFETY: the statics are read by value.
            (unsafe { raw::RedisModule_DigestAddStringBuffer }, unsafe { raw::RedisModule_DigestEndSequence })
        else {
            return;
        };
        let done = queue.digest(|piece| {
            // SAFETY: the server reads `len` bytes of a valid slice.
            unsafe { add(md, piece.as_ptr().cast(), piece.len()) }
        });
        if let Err(refused) = done {
            log(Level::Warning, &refused.to_string());
        }
        // SAFETY: the digest is the server's.
        unsafe { end(md) }
    });
}

extern "C" fn free(value: *mut c_void) {
    guard("freeing a queue", (), || {
        plant("free");
        // SAFETY: the server gives up a value of this type, which is a box of `Held`.
        disposal::dispose(unsafe { Box::from_raw(value.cast::<Held>()) });
    });
}

/// Called before a value is freed because its key was deleted, expired, evicted or overwritten, but also before the
/// value gets another key by `RENAME` or `MOVE`.
extern "C" fn unlink(_: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) {
    guard("an unlink", (), || {
        // SAFETY: the server passes a value of this type, on the main thread, while no key of it is open.
        let held = unsafe { &mut *value.cast_mut().cast::<Held>() };
        awaited::values_replaced();
        if let Some(home) = &mut held.home {
            home.unlink(&held.queue);
        }
        if let Some(ctx) = detached() {
            with_schedule(|schedule| schedule.start_walk(&ctx, UnixMs::new(now_ms()), Cause::Unlinked));
        }
    });
}

extern "C" fn mem_usage(_: *mut raw::RedisModuleKeyOptCtx, value: *const c_void, _samples: usize) -> usize {
    // SAFETY: the server passes a value of this type and does nothing else meanwhile.
    guard("MEMORY USAGE", 0, || unsafe { size_of::<Held>() + held(value).queue.heap_bytes() })
}

/// Always reports a small effort, so that the server frees a queue while it unlinks it, and `INFO dq` is correct when
/// `UNLINK` replies.
extern "C" fn free_effort(_: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> usize {
    disposal::effort(value.cast())
}

extern "C" fn copy(options: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> *mut c_void {
    guard("COPY", ptr::null_mut(), || {
        // SAFETY: the server passes a value of this type and does nothing else meanwhile.
        let copied = unsafe { held(value).queue.duplicate() };
        match copied {
            Ok(queue) => {
                let held = match look_at_copy(options) {
                    Some(db) => Held::loaded(queue, db),
                    None => Held::new(queue),
                };
                Box::into_raw(held).cast()
            }
            Err(refused) => {
                log(Level::Warning, &refused.to_string());
                ptr::null_mut()
            }
        }
    })
}

/// Makes the timer look at a copy. Returns the database to which the queue is copied.
fn look_at_copy(options: *mut raw::RedisModuleKeyOptCtx) -> Option<i32> {
    let (Some(name_of), Some(db_of)) =
        // SAFETY: the statics are read by value; both functions exist since 7.0.
        (unsafe { raw::RedisModule_GetToKeyNameFromOptCtx }, unsafe { raw::RedisModule_GetToDbIdFromOptCtx })
    else {
        return None;
    };
    // SAFETY: the options are valid during the copy.
    let (name, db) = unsafe { (name_of(options), db_of(options)) };
    if !name.is_null() {
        // SAFETY: the string is valid during the copy.
        request_look(db, unsafe { Name::from_raw(name.cast_mut()) });
    }
    Some(db)
}

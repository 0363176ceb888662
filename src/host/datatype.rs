//! The data type: the callbacks that the server calls for the values that it keeps.
//!
//! Saving and rewriting run in a child process and only read. Freeing may run on a background thread and accesses only
//! the queue and a few atomic sums; see [`disposal`]. Loading trusts no input: data that is not a
//! valid queue is refused with a line in the log, and the server decides what follows (an error for `RESTORE`, a
//! refused start for a file).

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use redis_module::native_types::RedisType;
use redis_module::raw;

use super::disposal;
use super::origin::EFFECT_COMMAND;
use super::queue_value::QueueValue;
use super::waiting::awaited;
use crate::module_api::alarms::BUG;
use crate::module_api::api::api;
use crate::module_api::ctx::{now_ms, Name};
use crate::module_api::guard::{guard, plant};
use crate::module_api::key::{holds, TypeHandle, Value};
use crate::module_api::log::{detached, log, Level};
use crate::schedule::walk::Cause;
use crate::schedule::with_schedule;
use dq_queue::time::UnixMs;
use dq_queue::wire::Loader;
use dq_queue::{Queue, Refused};

/// The encoding version of a saved value, which stays the same: the bytes begin with the version of their format, see
/// [`dq_queue::wire`].
const ENCODING: c_int = 1;

/// The data type, with the name that `TYPE` returns.
pub static QUEUE_TYPE: RedisType = RedisType::new("DQ--queue", ENCODING, METHODS);

/// The id of the data type, for opening keys.
pub fn handle() -> TypeHandle<QueueValue> {
    let id = *QUEUE_TYPE.raw_type.borrow();
    // SAFETY: the crate keeps what `RedisModule_CreateDataType` returned, or null; `rdb_load`, `copy` and
    // `OpenKey::create` are the only sources of values, and all are boxes of `QueueValue`.
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
unsafe fn held<'a>(value: *const c_void) -> &'a QueueValue {
    // SAFETY: values of this type are boxes of `QueueValue`, see `handle`.
    unsafe { &*value.cast::<QueueValue>() }
}

/// The piece that terminates a saved value.
const END: &[u8] = b"";

/// The first piece of a queue that a bug had left half changed when it was saved. What follows is what could be rebuilt
/// of it, or nothing. No format version begins with these bytes.
const UNSOUND: &[u8] = b"unsound";

extern "C" fn rdb_save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    guard("a save", (), || {
        // SAFETY: the server passes a value of this type, in a child process or while it does nothing else.
        let held = unsafe { held(value) };
        if held.is_sound() {
            return save(io, &held.queue);
        }
        raw::save_slice(io, UNSOUND);
        match held.rebuilt() {
            Some(queue) => save(io, &queue),
            None => raw::save_slice(io, END),
        }
    });
}

fn save(io: *mut raw::RedisModuleIO, queue: &Queue) {
    if write_pieces(queue, |piece| raw::save_slice(io, piece)) {
        raw::save_slice(io, END);
    }
}

/// Passes the pieces of a saved queue to `write`. Returns whether these are all; if not, the log says why.
fn write_pieces(queue: &Queue, mut write: impl FnMut(&[u8])) -> bool {
    let written: Result<(), Refused> = queue.save(|piece| {
        write(piece);
        Ok(())
    });
    written.inspect_err(|refused| log(Level::Warning, &refused.to_string())).is_ok()
}

extern "C" fn rdb_load(io: *mut raw::RedisModuleIO, encoding: c_int) -> *mut c_void {
    guard("a load", ptr::null_mut(), || match load(io, encoding) {
        Ok(queue) => {
            look_at_later(io);
            let held = match queue {
                Some(queue) => QueueValue::loaded(queue, database_of(io)),
                None => QueueValue::unsound(database_of(io)),
            };
            Box::into_raw(held).cast()
        }
        Err(why) => {
            log(Level::Warning, &format!("a queue was refused: {why}"));
            ptr::null_mut()
        }
    })
}

/// Returns `None` for a queue that could not be rebuilt after a bug.
fn load(io: *mut raw::RedisModuleIO, encoding: c_int) -> Result<Option<Queue>, String> {
    if encoding != ENCODING {
        return Err(format!("it has encoding {encoding}, and this version of the module reads encoding {ENCODING}"));
    }
    let next = || raw::load_string_buffer(io).map_err(|_| "it is cut off or damaged".to_owned());
    let mut loader = Loader::default();
    let mut piece = next()?;
    if piece.as_ref() == UNSOUND {
        piece = next()?;
        let what = if piece.as_ref() == END { "is still not served" } else { "was rebuilt from its messages" };
        log(Level::Warning, &format!("a queue that had been left half changed by {BUG} {what}"));
        if piece.as_ref() == END {
            return Ok(None);
        }
    }
    while piece.as_ref() != END {
        loader.take(piece.as_ref()).map_err(|refused| refused.to_string())?;
        piece = next()?;
    }
    loader.finish(UnixMs::new(now_ms())).map(Some).map_err(|refused| refused.to_string())
}

/// The database into which a value is being loaded.
fn database_of(io: *mut raw::RedisModuleIO) -> i32 {
    // SAFETY: the context of the load is valid during it.
    unsafe { api!(RedisModule_GetDbIdFromIO)(io) }
}

/// Makes the timer look at a key that is being loaded. The key may end up missing or with another value, which the
/// timer will notice.
fn look_at_later(io: *mut raw::RedisModuleIO) {
    // SAFETY: the context of the load is valid during it.
    let name = unsafe { api!(RedisModule_GetKeyNameFromIO)(io) };
    if !name.is_null() {
        // SAFETY: the string is the server's, and valid during the load.
        request_look(database_of(io), unsafe { Name::from_raw(name.cast_mut()) });
    }
}

fn request_look(db: i32, name: Name<'_>) {
    awaited::values_replaced();
    with_schedule(|schedule| {
        schedule.agenda.look_at(UnixMs::EPOCH, db, name.bytes());
        // Timers that are created while the server is loading fire after the load.
        // SAFETY: the server loads and copies values on its main thread.
        if let Some(ctx) = unsafe { detached() } {
            schedule.rearm(&ctx, UnixMs::new(now_ms()));
        }
    });
}

extern "C" fn aof_rewrite(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString, value: *mut c_void) {
    guard("an AOF rewrite", (), || {
        // SAFETY: the server passes a value of this type, in a child process.
        let held = unsafe { held(value) };
        let rebuilt = if held.is_sound() { None } else { Some(held.rebuilt()) };
        let queue = match &rebuilt {
            None => &held.queue,
            Some(Some(queue)) => queue,
            Some(None) => return log(Level::Warning, "a queue that was left half changed is not in the new AOF"),
        };
        let _ = write_pieces(queue, |piece| emit(io, key, piece));
    });
}

fn emit(io: *mut raw::RedisModuleIO, key: *mut raw::RedisModuleString, blob: &[u8]) {
    let (command, format, bytes) = (EFFECT_COMMAND.as_ptr(), c"sb".as_ptr(), blob.as_ptr().cast::<c_char>());
    // SAFETY: the format names a string of the server and a buffer with its length, which are what follows.
    unsafe { api!(RedisModule_EmitAOF)(io, command, format, key, bytes, blob.len()) };
}

extern "C" fn digest(md: *mut raw::RedisModuleDigest, value: *mut c_void) {
    guard("a digest", (), || {
        // SAFETY: the server passes a value of this type and does nothing else meanwhile.
        let queue = unsafe { &held(value).queue };
        let done = queue.digest(|piece| {
            // SAFETY: the server reads `len` bytes of a valid slice.
            unsafe { api!(RedisModule_DigestAddStringBuffer)(md, piece.as_ptr().cast(), piece.len()) }
        });
        if let Err(refused) = done {
            log(Level::Warning, &refused.to_string());
        }
        // SAFETY: the digest is the server's.
        unsafe { api!(RedisModule_DigestEndSequence)(md) }
    });
}

extern "C" fn free(value: *mut c_void) {
    guard("freeing a queue", (), || {
        plant("free");
        // SAFETY: the server gives up a value of this type, which is a box of `QueueValue`.
        disposal::dispose(unsafe { Box::from_raw(value.cast::<QueueValue>()) });
    });
}

/// Called before a value is freed because its key was deleted, expired, evicted or overwritten, but also before the
/// value gets another key by `RENAME` or `MOVE`.
extern "C" fn unlink(_: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) {
    guard("an unlink", (), || {
        // SAFETY: the server passes a value of this type, on the main thread, while no key of it is open.
        let held = unsafe { &mut *value.cast_mut().cast::<QueueValue>() };
        awaited::values_replaced();
        held.unlink();
        // SAFETY: the server unlinks values on its main thread.
        if let Some(ctx) = unsafe { detached() } {
            with_schedule(|schedule| schedule.start_walk(&ctx, UnixMs::new(now_ms()), Cause::Unlinked));
        }
    });
}

/// The bytes of what the server allocates for each value of a module and does not count itself: its own object, and the
/// pair of the type and the value.
const SERVER_BYTES: usize = 32;

extern "C" fn mem_usage(_: *mut raw::RedisModuleKeyOptCtx, value: *const c_void, _samples: usize) -> usize {
    // SAFETY: the server passes a value of this type and does nothing else meanwhile.
    guard("MEMORY USAGE", 0, || unsafe { SERVER_BYTES + size_of::<QueueValue>() + held(value).queue.heap_bytes() })
}

/// Always reports a small effort, so that the server frees a queue while it unlinks it, and `INFO dq` is correct when
/// `UNLINK` replies.
extern "C" fn free_effort(_: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> usize {
    disposal::effort(value.cast())
}

extern "C" fn copy(options: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> *mut c_void {
    guard("COPY", ptr::null_mut(), || {
        // SAFETY: the server passes a value of this type and does nothing else meanwhile.
        let held = unsafe { held(value) };
        if !held.is_sound() {
            return ptr::null_mut();
        }
        match held.queue.duplicate() {
            Ok(queue) => Box::into_raw(QueueValue::loaded(queue, look_at_copy(options))).cast(),
            Err(refused) => {
                log(Level::Warning, &refused.to_string());
                ptr::null_mut()
            }
        }
    })
}

/// Makes the timer look at a copy. Returns the database to which the queue is copied.
fn look_at_copy(options: *mut raw::RedisModuleKeyOptCtx) -> i32 {
    // SAFETY: the options are valid during the copy.
    let (name, db) =
        unsafe { (api!(RedisModule_GetToKeyNameFromOptCtx)(options), api!(RedisModule_GetToDbIdFromOptCtx)(options)) };
    if !name.is_null() {
        // SAFETY: the string is valid during the copy.
        request_look(db, unsafe { Name::from_raw(name.cast_mut()) });
    }
    db
}

//! An open key, and the value of the module's data type in it.
//!
//! The `redis-module` crate returns a value with a lifetime of the caller's choice, so two opens of one key yield two
//! `&mut` to one value. Here a value lives no longer than its open key, the key closes itself, and only one value can
//! be open at a time. A second open while one is held (for example by another module that calls back from a keyspace
//! notification) logs a warning and reports that the key holds the wrong type, instead of returning a second `&mut`.
//!
//! Closing a key does not notify watchers, provided that the module has set `NO_IMPLICIT_SIGNAL_MODIFIED`. A caller
//! that changes the value must call [`Ctx::signal_modified`] itself.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use redis_module::raw;

use super::alarms::BUG;
use super::api::api;
use super::ctx::{is_ok, Ctx, Name};
use super::log::{log, Level};

/// A value of a data type that the module registers.
pub trait Value {
    /// The state that is kept for the value while its key is open.
    type Opened;

    /// Called when the key is opened.
    fn opened(&self) -> Self::Opened;

    /// Whether the value may be used. If not, the key is refused.
    fn is_sound(&self) -> bool;

    /// Called after [`closed`](Self::closed) if a panic ended the call that had the key open.
    fn abandoned(&mut self, name: Name<'_>);

    /// Called when the key, which is in database `db`, is closed. Every open is followed by this call, even if the code
    /// in between panicked.
    fn closed(&mut self, opened: &Self::Opened, db: i32);
}

/// The server's id of a data type whose values are boxes of `T`.
pub struct TypeHandle<T> {
    id: *mut raw::RedisModuleType,
    values: PhantomData<fn() -> T>,
}

impl<T> Clone for TypeHandle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TypeHandle<T> {}

impl<T> TypeHandle<T> {
    /// Associates a registered data type with the Rust type of its values.
    ///
    /// # Safety
    /// `id` was returned by `RedisModule_CreateDataType`, or it is null; if it is null, no key holds a `T` and none can
    /// be created. All values of that data type were made by `Box::<T>::into_raw`.
    pub const unsafe fn new(id: *mut raw::RedisModuleType) -> Self {
        TypeHandle { id, values: PhantomData }
    }
}

/// Whether reading a key counts as an access to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// The access updates LRU and LFU and counts as a hit or a miss.
    Yes,
    /// The access leaves no trace. (Redis 7.0 still counts the hit or the miss.)
    No,
}

impl Touch {
    /// The flags for `RedisModule_OpenKey`. An older server ignores the bits that it does not know.
    const fn bits(self) -> c_int {
        match self {
            Touch::Yes => 0,
            Touch::No => (raw::REDISMODULE_OPEN_KEY_NOTOUCH | raw::REDISMODULE_OPEN_KEY_NOSTATS) as c_int,
        }
    }
}

/// The content of a key.
pub enum Content<'k, 'a, T: Value> {
    /// The key does not exist.
    Missing(Vacant<'k, 'a, T>),
    /// The key holds a value of the module's data type.
    Holds(&'k mut T),
    /// The value of the key cannot be used.
    Refused(Refusal),
}

/// Why a value cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is of another type.
    WrongType,
    /// It is not sound, see [`Value::is_sound`].
    Unsound,
}

/// What the key held when it was opened, or what was stored in it since.
enum KeyState<T> {
    Missing,
    Value(*mut T),
    Refused(Refusal),
}

/// Whether a value is open. Keys are opened on the main thread only, so this is a flag and not a lock.
static VALUE_OPEN: AtomicBool = AtomicBool::new(false);

/// An open key, which closes itself when it is dropped. While it is open, no function may be called that can run other
/// commands: neither [`Ctx::notify`] nor another open.
pub struct OpenKey<'a, T: Value> {
    key: *mut raw::RedisModuleKey,
    of: TypeHandle<T>,
    found: KeyState<T>,
    /// The state from [`Value::opened`]; `Some` if the key holds a value.
    opened: Option<T::Opened>,
    db: i32,
    name: Name<'a>,
}

impl<'a, T: Value> OpenKey<'a, T> {
    /// Opens the key for reading, in the selected database `db`. A key that has expired is reported as missing.
    pub fn open_read(ctx: Ctx, db: i32, name: Name<'a>, of: TypeHandle<T>, touch: Touch) -> Self {
        Self::open(ctx, db, name, of, raw::REDISMODULE_READ as c_int | touch.bits())
    }

    /// Opens the key for writing. On a master this deletes a key that has expired.
    pub fn open_write(ctx: Ctx, db: i32, name: Name<'a>, of: TypeHandle<T>) -> Self {
        Self::open(ctx, db, name, of, (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int)
    }

    /// Opens the key for writing without counting as an access, for changes that are made by time and not by a client.
    pub fn open_write_untouched(ctx: Ctx, db: i32, name: Name<'a>, of: TypeHandle<T>) -> Self {
        let mode = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;
        Self::open(ctx, db, name, of, mode | Touch::No.bits())
    }

    // Inlined into each command, so that the state of the open key is written in place and not copied.
    #[inline(always)]
    fn open(ctx: Ctx, db: i32, name: Name<'a>, of: TypeHandle<T>, mode: c_int) -> Self {
        // SAFETY: the context and the name are valid; the server takes a reference of its own to the name.
        let key = unsafe { api!(RedisModule_OpenKey)(ctx.as_ptr(), name.as_ptr(), mode) };
        let mut open = OpenKey { key, of, found: KeyState::Missing, opened: None, db, name };
        open.look();
        open
    }

    #[inline(always)]
    fn look(&mut self) {
        // SAFETY: all three calls take null for a key that is missing.
        let id = unsafe { api!(RedisModule_ModuleTypeGetType)(self.key) };
        if id.is_null() {
            // SAFETY: as above.
            if unsafe { api!(RedisModule_KeyType)(self.key) } != raw::REDISMODULE_KEYTYPE_EMPTY as c_int {
                self.found = KeyState::Refused(Refusal::WrongType);
            }
        } else if id != self.of.id {
            self.found = KeyState::Refused(Refusal::WrongType);
        } else if VALUE_OPEN.load(Ordering::Relaxed) {
            self.found = KeyState::Refused(refuse_second());
        } else {
            // SAFETY: as above; values of this type are boxes of `T`, see `TypeHandle::new`, and no other is open.
            let (value, is_sound) = unsafe {
                let value = api!(RedisModule_ModuleTypeGetValue)(self.key).cast::<T>();
                (value, (*value).is_sound())
            };
            if is_sound {
                self.hold(value);
            } else {
                self.found = KeyState::Refused(Refusal::Unsound);
            }
        }
    }

    /// Records that `value`, a box that is stored in the key, is open.
    #[inline(always)]
    fn hold(&mut self, value: *mut T) {
        VALUE_OPEN.store(true, Ordering::Relaxed);
        self.found = KeyState::Value(value);
        // SAFETY: the value lives in the key, and nobody else holds it: it is the only open one.
        self.opened = Some(unsafe { (*value).opened() });
    }

    /// Returns the current content of the key.
    #[inline(always)]
    pub fn content(&mut self) -> Content<'_, 'a, T> {
        match self.found {
            KeyState::Missing => Content::Missing(Vacant(self)),
            KeyState::Refused(why) => Content::Refused(why),
            // SAFETY: the value lives in the key while nothing else runs, and this is the only open value, so the
            // borrow, which ends with that of `self`, is the only one.
            KeyState::Value(value) => Content::Holds(unsafe { &mut *value }),
        }
    }
}

/// A key that was opened and holds nothing.
pub struct Vacant<'k, 'a, T: Value>(&'k mut OpenKey<'a, T>);

impl<'k, T: Value> Vacant<'k, '_, T> {
    /// Stores a new value in the key, which must be open for writing. If that is refused, the value is dropped.
    ///
    /// The server retries the clients that are blocked on the key after this command. Nothing is replicated.
    pub fn create(self, value: Box<T>) -> Result<&'k mut T, Refusal> {
        let Vacant(open) = self;
        if VALUE_OPEN.load(Ordering::Relaxed) {
            return Err(refuse_second());
        }
        // A key that did not exist when it was opened for reading has a null handle.
        if open.of.id.is_null() || open.key.is_null() {
            return Err(Refusal::WrongType);
        }
        let value = Box::into_raw(value);
        // SAFETY: the key is open, and the server refuses one that is open for reading only; the value is a box of
        // the type's own `T`, and the server owns it if it accepts it.
        if !is_ok(unsafe { api!(RedisModule_ModuleTypeSetValue)(open.key, open.of.id, value.cast()) }) {
            // SAFETY: the server refused it, so no one else holds it.
            drop(unsafe { Box::from_raw(value) });
            return Err(Refusal::WrongType);
        }
        open.hold(value);
        // SAFETY: as in `content`.
        Ok(unsafe { &mut *value })
    }
}

impl<T: Value> Drop for OpenKey<'_, T> {
    fn drop(&mut self) {
        if let (KeyState::Value(value), Some(opened)) = (&self.found, &self.opened) {
            VALUE_OPEN.store(false, Ordering::Relaxed);
            // SAFETY: as in `content`; what `content` lent has ended.
            let value = unsafe { &mut **value };
            value.closed(opened, self.db);
            if std::thread::panicking() {
                value.abandoned(self.name);
            }
        }
        // SAFETY: the key was opened by `open` and is closed once; null is allowed.
        unsafe { api!(RedisModule_CloseKey)(self.key) }
    }
}

/// Returns whether an open key holds a value of the data type `of`.
///
/// # Safety
/// `key` is an open key.
pub unsafe fn holds<T>(key: *mut raw::RedisModuleKey, of: TypeHandle<T>) -> bool {
    // SAFETY: the caller warrants an open key.
    let id = unsafe { api!(RedisModule_ModuleTypeGetType)(key) };
    !id.is_null() && id == of.id
}

#[cold]
fn refuse_second() -> Refusal {
    log(Level::Warning, &format!("a queue was asked for while another is in use, {BUG}; the call was refused"));
    Refusal::WrongType
}

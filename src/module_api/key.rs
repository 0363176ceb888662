//! A key, opened for the time of a look or a change, and the value of the module's own type in it.
//!
//! The crate hands out a value with a life of the caller's choosing, so two opens of one key are two `&mut` of one
//! value. Here a value lives no longer than its open key, the key closes itself, and only one value is open at a time:
//! a second open while one is held (another module that calls back from a notification, say) is told that the key
//! holds the wrong type, and logged, instead of being given a second `&mut`.
//!
//! Closing tells watchers nothing, provided the module set `NO_IMPLICIT_SIGNAL_MODIFIED`; who changed the value calls
//! [`Ctx::signal_modified`] himself.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use redis_module::raw;

use super::alarms::BUG;
use super::api::api;
use super::ctx::{is_ok, Ctx, Name};
use super::log::{log, Level};

/// A value that keys of a type of the module's hold.
pub trait Value {
    /// What is kept of it while its key is open.
    type Opened;

    /// Its key was opened.
    fn opened(&self) -> Self::Opened;

    /// Its key, which is in that database, closes. Comes after every open, also when what was done in between panicked.
    fn closed(&mut self, opened: &Self::Opened, db: i32);
}

/// The server's number for a data type whose values are boxes of `T`.
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
    /// Binds the type that the server registered to its values.
    ///
    /// # Safety
    /// `id` was returned by `RedisModule_CreateDataType` (or is null: then no key holds a `T`, and none can be
    /// created), and all values of that type are made by `Box::<T>::into_raw`.
    #[inline]
    pub const unsafe fn new(id: *mut raw::RedisModuleType) -> Self {
        TypeHandle { id, values: PhantomData }
    }
}

/// Whether a look counts as a use of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// It does: LRU and LFU are told, hits and misses are counted.
    Yes,
    /// It does not. (Redis 7.0 still counts the hit or miss.)
    No,
}

impl Touch {
    /// Bits that an older server does not know are ignored by it.
    const fn bits(self) -> c_int {
        match self {
            Touch::Yes => 0,
            Touch::No => (raw::REDISMODULE_OPEN_KEY_NOTOUCH | raw::REDISMODULE_OPEN_KEY_NOSTATS) as c_int,
        }
    }
}

/// What a key holds.
pub enum Slot<'k, T> {
    /// Nothing: there is no such key.
    Missing,
    /// A value of the module's type.
    Holds(&'k mut T),
    /// A value of another type.
    WrongType,
}

/// What was found at the open, or put there since.
enum Found<T> {
    Missing,
    Value(*mut T),
    WrongType,
}

/// Whether a value is open. Keys are opened on the main thread only, so this is a flag and not a lock.
static VALUE_OPEN: AtomicBool = AtomicBool::new(false);

/// A key that is open, and closes as it is dropped. While it is, nothing may be called that can run other commands:
/// not [`Ctx::notify`], and no other open.
pub struct OpenKey<'a, T: Value> {
    key: *mut raw::RedisModuleKey,
    of: TypeHandle<T>,
    found: Found<T>,
    /// There where a value is.
    opened: Option<T::Opened>,
    db: i32,
    name: PhantomData<Name<'a>>,
}

impl<'a, T: Value> OpenKey<'a, T> {
    /// Opens the key for a look. A key whose time has run out is missing.
    #[inline]
    pub fn open_read(ctx: Ctx, name: Name<'a>, of: TypeHandle<T>, touch: Touch) -> Self {
        Self::open(ctx, name, of, raw::REDISMODULE_READ as c_int | touch.bits())
    }

    /// Opens the key for a change. On a master a key whose time has run out is deleted by this.
    #[inline]
    pub fn open_write(ctx: Ctx, name: Name<'a>, of: TypeHandle<T>) -> Self {
        Self::open(ctx, name, of, (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int)
    }

    /// Opens the key for a change that is no use of it: what time does, not a client.
    #[inline]
    pub fn open_write_untouched(ctx: Ctx, name: Name<'a>, of: TypeHandle<T>) -> Self {
        let mode = (raw::REDISMODULE_READ | raw::REDISMODULE_WRITE) as c_int;
        Self::open(ctx, name, of, mode | Touch::No.bits())
    }

    #[inline]
    fn open(ctx: Ctx, name: Name<'a>, of: TypeHandle<T>, mode: c_int) -> Self {
        // SAFETY: the context and the name are valid; the server takes a reference of its own to the name.
        let key = unsafe { api!(RedisModule_OpenKey)(ctx.as_ptr(), name.as_ptr(), mode) };
        let mut open =
            OpenKey { key, of, found: Found::Missing, opened: None, db: ctx.selected_db(), name: PhantomData };
        open.look();
        open
    }

    #[inline]
    fn look(&mut self) {
        // SAFETY: all three calls take null for a key that is missing.
        let id = unsafe { api!(RedisModule_ModuleTypeGetType)(self.key) };
        if id.is_null() {
            // SAFETY: as above.
            if unsafe { api!(RedisModule_KeyType)(self.key) } != raw::REDISMODULE_KEYTYPE_EMPTY as c_int {
                self.found = Found::WrongType;
            }
        } else if id != self.of.id {
            self.found = Found::WrongType;
        } else if VALUE_OPEN.load(Ordering::Relaxed) {
            self.found = refuse_second();
        } else {
            // SAFETY: as above; values of this type are boxes of `T`, see `TypeHandle::new`.
            self.hold(unsafe { api!(RedisModule_ModuleTypeGetValue)(self.key) }.cast());
        }
    }

    /// Notes that `value`, a box that is in the key, is open.
    #[inline]
    fn hold(&mut self, value: *mut T) {
        VALUE_OPEN.store(true, Ordering::Relaxed);
        self.found = Found::Value(value);
        // SAFETY: the value lives in the key, and nobody else holds it: it is the only open one.
        self.opened = Some(unsafe { (*value).opened() });
    }

    /// What the key holds now.
    #[inline]
    pub fn slot(&mut self) -> Slot<'_, T> {
        match self.found {
            Found::Missing => Slot::Missing,
            Found::WrongType => Slot::WrongType,
            // SAFETY: the value lives in the key while nothing else runs, and this is the only open value, so the
            // borrow, which ends with that of `self`, is the only one.
            Found::Value(value) => Slot::Holds(unsafe { &mut *value }),
        }
    }

    /// Puts a new value into the key, which must be open for a change and hold nothing. Gives the value back where that
    /// is not so.
    ///
    /// Wakes the clients that wait for the key, after this command. Replicates nothing.
    pub fn create(&mut self, value: Box<T>) -> Result<&mut T, Box<T>> {
        match self.found {
            Found::WrongType | Found::Value(..) => return Err(value),
            Found::Missing if VALUE_OPEN.load(Ordering::Relaxed) => {
                self.found = refuse_second();
                return Err(value);
            }
            Found::Missing => {}
        }
        // A key that was missing when it was opened for a look has no handle.
        if self.of.id.is_null() || self.key.is_null() {
            return Err(value);
        }
        let value = Box::into_raw(value);
        // SAFETY: the key is open, and the server refuses one that is open for a look; the value is a box of the
        // type's own `T`, and the server owns it if it agrees.
        if !is_ok(unsafe { api!(RedisModule_ModuleTypeSetValue)(self.key, self.of.id, value.cast()) }) {
            // SAFETY: the server refused it, so it is still ours alone.
            return Err(unsafe { Box::from_raw(value) });
        }
        self.hold(value);
        // SAFETY: as in `slot`.
        Ok(unsafe { &mut *value })
    }
}

impl<T: Value> Drop for OpenKey<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let (Found::Value(value), Some(opened)) = (&self.found, &self.opened) {
            VALUE_OPEN.store(false, Ordering::Relaxed);
            // SAFETY: as in `slot`; what `slot` lent has ended.
            unsafe { (**value).closed(opened, self.db) };
        }
        // SAFETY: the key was opened by `open` and is closed once; null is allowed.
        unsafe { api!(RedisModule_CloseKey)(self.key) }
    }
}

/// Whether an open key holds a value of type `of`.
///
/// # Safety
/// `key` is an open key.
pub unsafe fn holds<T>(key: *mut raw::RedisModuleKey, of: TypeHandle<T>) -> bool {
    // SAFETY: the caller warrants an open key.
    let id = unsafe { api!(RedisModule_ModuleTypeGetType)(key) };
    !id.is_null() && id == of.id
}

#[cold]
fn refuse_second<T>() -> Found<T> {
    log(Level::Warning, &format!("a queue was asked for while another is in use, {BUG}; the call was refused"));
    Found::WrongType
}

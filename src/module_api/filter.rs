//! A filter: a callback to which the server shows each command of a client before it looks at it.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use redis_module::raw;

use super::api::api;
use super::call::Word;
use super::ctx::{Ctx, Name};

/// The callback of a filter. It may only read and replace the words of the command.
pub type FilterCallback = unsafe extern "C" fn(*mut raw::RedisModuleCommandFilterCtx);

/// A filter that the server calls until [`remove`](Self::remove).
pub struct Filter(NonNull<raw::RedisModuleCommandFilter>);

impl Filter {
    /// Adds a filter. It does not see the commands that the module itself calls. Must not be called in a filter.
    pub fn add(ctx: Ctx, callback: FilterCallback) -> Option<Filter> {
        let flags = raw::REDISMODULE_CMDFILTER_NOSELF as c_int;
        // SAFETY: the context is valid, and the callback has the type that the server calls.
        NonNull::new(unsafe { api!(RedisModule_RegisterCommandFilter)(ctx.as_ptr(), Some(callback), flags) })
            .map(Filter)
    }

    /// Removes the filter. Must not be called in a filter.
    pub fn remove(self, ctx: Ctx) {
        // SAFETY: the context is valid; the server made the filter for this module and frees it here, once.
        unsafe { api!(RedisModule_UnregisterCommandFilter)(ctx.as_ptr(), self.0.as_ptr()) };
    }
}

/// The command that a filter is shown.
pub struct Filtered<'a>(*mut raw::RedisModuleCommandFilterCtx, PhantomData<&'a ()>);

impl Filtered<'_> {
    /// Wraps what the server passed to a filter.
    ///
    /// # Safety
    /// The callback of the filter does not return before the end of the lifetime.
    pub unsafe fn from_raw(filtered: *mut raw::RedisModuleCommandFilterCtx) -> Self {
        Filtered(filtered, PhantomData)
    }

    /// The bytes of a word, counted from the command's name as 0; `None` if there are fewer.
    pub fn word(&self, position: c_int) -> Option<&[u8]> {
        // SAFETY: the command is valid, see `from_raw`; the server returns null for a position behind the last word.
        let word = unsafe { api!(RedisModule_CommandFilterArgGet)(self.0, position) };
        // SAFETY: the word belongs to the command, and only `replace`, which needs `self` alone, ends it.
        (!word.is_null()).then(|| unsafe { Name::from_raw(word) }.bytes())
    }

    /// Replaces a word that exists.
    pub fn replace(&mut self, position: c_int, word: Word) {
        let word = ManuallyDrop::new(word);
        // SAFETY: the command is valid, see `from_raw`; the server takes over the only reference to the new word.
        unsafe { api!(RedisModule_CommandFilterArgReplace)(self.0, position, word.as_ptr()) };
    }
}

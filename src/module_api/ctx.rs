//! One call's window on the server: the clock, replication, signals, blocking and timers. Replies are in `reply`.
//!
//! [`Ctx`] is what the server passes to every callback, and [`Name`] the name of a key that it lends. Each method is
//! one call of the API with its traps closed; answers that could be null are options. They cost what the server's
//! function costs; none allocates here.

use std::ffi::{c_int, c_void, CStr};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use redis_module::raw;

use super::api::api;

/// A callback that gets a command's words: of a command, of a blocked client's key, of its timeout.
pub type Callback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int;
/// A timer's callback. Its data is always null.
pub type TimerCallback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut c_void);
/// The callback that takes back what a blocked client carried.
pub type FreeCallback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut c_void);
/// A server event's callback: context, event, subevent, the event's own data.
pub type EventCallback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, raw::RedisModuleEvent, u64, *mut c_void);

/// Twice the longest `BLOCK` that a command takes, ms: Redis 7.0 adds the time of day without looking for an overflow.
const TIMEOUT_MAX_MS: i64 = 1 << 43;

/// As [`Ctx::now_ms`], for callbacks that get no context.
#[inline]
pub fn now_ms() -> u64 {
    // SAFETY: takes no arguments.
    let now = unsafe { api!(RedisModule_Milliseconds)() };
    u64::try_from(now).unwrap_or(0)
}

/// The server's context for one call. Not to be kept beyond the callback that it was passed to, nor sent to a thread.
#[derive(Clone, Copy)]
pub struct Ctx(*mut raw::RedisModuleCtx);

impl Ctx {
    /// Wraps the context that the server passed to a callback.
    ///
    /// # Safety
    /// `ctx` is valid, [`missing_api`](super::api::missing_api) answered `None`, and neither the value nor a copy
    /// is used after the callback returns or on another thread.
    #[inline]
    pub unsafe fn from_raw(ctx: *mut raw::RedisModuleCtx) -> Self {
        Ctx(ctx)
    }

    /// The pointer, for calls of the API that have no wrapper here.
    #[inline]
    pub fn as_ptr(self) -> *mut raw::RedisModuleCtx {
        self.0
    }

    /// Sets the module's options; one call stands for all bits. Bits that a server does not know are ignored.
    pub fn set_options(&self, bits: c_int) {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_SetModuleOptions)(self.0, bits) }
    }

    /// Whether the call wants to know no more than which of its words are keys: then [`key_at`](Self::key_at) answers
    /// it, and nothing else is done.
    #[inline]
    pub fn asks_for_keys(&self) -> bool {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_IsKeysPositionRequest)(self.0) != 0 }
    }

    /// Tells that the word at a position, counted from the command's name, is a key.
    pub fn key_at(&self, position: usize) {
        if let Ok(position) = c_int::try_from(position) {
            // SAFETY: the context is valid, see `from_raw`.
            unsafe { api!(RedisModule_KeyAtPos)(self.0, position) };
        }
    }

    /// Unix time, ms, read anew at each call. It can step back with the system's clock.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        now_ms()
    }

    /// One field of a section of `INFO`, if there is such a field. Makes the whole section.
    pub fn server_info(&self, section: &CStr, field: &CStr) -> Option<String> {
        // SAFETY: the context is valid, section and field are C strings. The information is freed once, after the field's
        // text, which belongs to it, was copied.
        unsafe {
            let info = api!(RedisModule_GetServerInfo)(self.0, section.as_ptr());
            let text = api!(RedisModule_ServerInfoGetFieldC)(info, field.as_ptr());
            let text = (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
            api!(RedisModule_FreeServerInfo)(self.0, info);
            text
        }
    }

    /// What the server and this client are doing. Worth keeping for the call: it looks at a dozen states.
    #[inline]
    pub fn flags(&self) -> Flags {
        // SAFETY: the context is valid, see `from_raw`.
        Flags(unsafe { api!(RedisModule_GetContextFlags)(self.0) })
    }

    /// The database that keys are opened in.
    #[inline]
    pub fn selected_db(&self) -> i32 {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_GetSelectedDb)(self.0) }
    }

    /// Chooses the database that keys are opened in; `false` where there is none of that number.
    #[inline]
    pub fn select_db(&self, db: i32) -> bool {
        // SAFETY: the context is valid, see `from_raw`.
        is_ok(unsafe { api!(RedisModule_SelectDb)(self.0, db) })
    }

    /// Calls `f` with a name made from bytes, for callers that have no argument of the server's, such as a timer.
    /// Copies the bytes.
    pub fn with_name<R>(&self, bytes: &[u8], f: impl FnOnce(Name<'_>) -> R) -> R {
        /// Gives the string back, also when `f` panics.
        struct Owned(*mut raw::RedisModuleString);
        impl Drop for Owned {
            fn drop(&mut self) {
                // SAFETY: made below, without a context, and freed once. Who holds it still has a reference.
                unsafe { api!(RedisModule_FreeString)(ptr::null_mut(), self.0) }
            }
        }
        // SAFETY: the server copies `len` bytes from a valid slice; the context may be null.
        let string = unsafe { api!(RedisModule_CreateString)(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len()) };
        let owned = Owned(string);
        f(Name { string: owned.0, life: PhantomData })
    }
}

/// What a change tells others: replicas and the AOF, watchers, waiting clients, subscribers.
impl Ctx {
    /// Sends `command key blob` to the replicas and the AOF, in the selected database, and counts one change.
    /// Copies the blob. `false` where the server knows no such command.
    ///
    /// While [`avoid_replication_traffic`](Self::avoid_replication_traffic) answers `true` this must not be
    /// called outside a client's command: the server would abort.
    #[inline]
    pub fn replicate_effect(&self, command: &CStr, key: Name<'_>, blob: &[u8]) -> bool {
        // SAFETY: the format names a string of the server and a buffer with its length, which are what follows.
        is_ok(unsafe {
            api!(RedisModule_Replicate)(self.0, command.as_ptr(), c"sb".as_ptr(), key.string, blob.as_ptr(), blob.len())
        })
    }

    /// Sends the command to the replicas and the AOF as it came. Not together with
    /// [`replicate_effect`](Self::replicate_effect) in one call.
    #[inline]
    pub fn replicate_verbatim(&self) {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_ReplicateVerbatim)(self.0) };
    }

    /// Whether nothing may be replicated now but by a client's own command: writes are paused, for a failover or by
    /// `CLIENT PAUSE`.
    #[inline]
    pub fn avoid_replication_traffic(&self) -> bool {
        // SAFETY: takes no arguments.
        unsafe { api!(RedisModule_AvoidReplicaTraffic)() != 0 }
    }

    /// Tells `WATCH` and client-side caches that the key changed.
    #[inline]
    pub fn signal_modified(&self, key: Name<'_>) {
        // SAFETY: the context and the name are valid.
        unsafe { api!(RedisModule_SignalModifiedKey)(self.0, key.string) };
    }

    /// Has the clients that wait for the key try again, after this command. Without effect where there is no such
    /// key. Costs in proportion to the clients that wait.
    #[inline]
    pub fn signal_ready(&self, key: Name<'_>) {
        // SAFETY: the context and the name are valid.
        unsafe { api!(RedisModule_SignalKeyAsReady)(self.0, key.string) };
    }

    /// Publishes a keyspace event of class `d`, where such are switched on.
    ///
    /// Other modules may run within: no [`OpenKey`](super::key::OpenKey) and no borrow of a global may be alive.
    #[inline]
    pub fn notify(&self, event: &CStr, key: Name<'_>) {
        let class = raw::REDISMODULE_NOTIFY_MODULE;
        // SAFETY: the context and the name are valid, the event a C string.
        unsafe { api!(RedisModule_NotifyKeyspaceEvent)(self.0, class, event.as_ptr(), key.string) };
    }
}

/// Waiting: clients that wait for keys, timers, server events.
impl Ctx {
    /// Blocks the client until one of `keys` can serve it, and answers the server's handle.
    ///
    /// At each signal for a key `on_ready` is called, in the order in which clients came; it replies and answers
    /// `REDISMODULE_OK`, or does nothing and answers `REDISMODULE_ERR`, and the client waits on. `on_timeout` replies
    /// when the time is over and on `CLIENT UNBLOCK`. `timeout_ms` 0 waits for ever; more than 2^43 is as 2^43.
    /// `free` is called once, however the waiting ends, but only if `private` is not null.
    ///
    /// Returns `None` if the server does not let the client wait: Valkey 8.1 and later refuse a RESP3 client that has
    /// subscribed to a channel. Then nothing was blocked, `private` is still the caller's, and no reply was sent.
    ///
    /// Must not be called where [`Flags::deny_blocking`] holds. There Valkey 8.1 returns `None` and sends no reply,
    /// but all other servers send an error and return a handle that never ends.
    ///
    /// # Safety
    /// `private` is null, or what the three callbacks take it for, until `free` was called.
    pub unsafe fn block_on_keys(
        &self,
        on_ready: Callback,
        on_timeout: Callback,
        free: Option<FreeCallback>,
        timeout_ms: u64,
        keys: &[Name<'_>],
        private: *mut c_void,
    ) -> Option<NonNull<raw::RedisModuleBlockedClient>> {
        let count = c_int::try_from(keys.len()).ok().filter(|n| *n > 0)?;
        let timeout = to_period(timeout_ms);
        // `Name` is one pointer, transparently; the server reads the array and takes references of its own.
        let names: *mut *mut raw::RedisModuleString = keys.as_ptr().cast_mut().cast();
        // SAFETY: the context is valid, `names` points to `count` valid strings, and the callbacks are of the
        // types that the server calls. The caller vouches for `private`, which the server only hands on.
        NonNull::new(unsafe {
            api!(RedisModule_BlockClientOnKeys)(
                self.0,
                Some(on_ready),
                Some(on_timeout),
                free,
                timeout,
                names,
                count,
                private,
            )
        })
    }

    /// What the client blocked with; null outside the callbacks of a blocked client.
    #[inline]
    pub fn blocked_private_data(&self) -> *mut c_void {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_GetBlockedClientPrivateData)(self.0) }
    }

    /// The key that was signalled; `None` outside `on_ready`.
    #[inline]
    pub fn blocked_ready_key(&self) -> Option<Name<'_>> {
        // SAFETY: the context is valid, see `from_raw`.
        let string = unsafe { api!(RedisModule_GetBlockedClientReadyKey)(self.0) };
        (!string.is_null()).then_some(Name { string, life: PhantomData })
    }

    /// Calls `callback` once, `ms` from now or a little later; 0 is the next round of the server's loop. Its context
    /// has the database selected that this one has now.
    pub fn create_timer(&self, ms: u64, callback: TimerCallback) -> TimerId {
        let period = to_period(ms);
        // SAFETY: the context is valid; the data is null, so nothing outlives its owner.
        TimerId(unsafe { api!(RedisModule_CreateTimer)(self.0, period, Some(callback), ptr::null_mut()) })
    }

    /// Takes back a timer that has not fired; `false` where there is none of that id.
    ///
    /// Not from within the timer's own callback: the server would free it twice. A callback forgets its id first.
    pub fn stop_timer(&self, timer: TimerId) -> bool {
        // SAFETY: the context is valid; the data is not asked for.
        is_ok(unsafe { api!(RedisModule_StopTimer)(self.0, timer.0, ptr::null_mut()) })
    }

    /// Subscribes to a server event (`REDISMODULE_EVENT_…`); `false` where the server does not know it. A second
    /// subscription to one event takes the place of the first.
    pub fn subscribe(&self, event_id: u64, callback: EventCallback) -> bool {
        let event = raw::RedisModuleEvent { id: event_id, dataver: 1 };
        // SAFETY: the context is valid; the server checks the event's number.
        is_ok(unsafe { api!(RedisModule_SubscribeToServerEvent)(self.0, event, Some(callback)) })
    }
}

/// A timer that was created and can be stopped until it fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerId(raw::RedisModuleTimerID);

#[cfg(test)]
impl TimerId {
    /// The id of a timer that no server made.
    pub const fn simulated(id: u64) -> TimerId {
        TimerId(id)
    }
}

/// The name of a key, lent by the server for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Name<'a> {
    string: *mut raw::RedisModuleString,
    life: PhantomData<&'a raw::RedisModuleString>,
}

impl<'a> Name<'a> {
    /// Wraps a string of the server.
    ///
    /// # Safety
    /// `string` is valid and its bytes do not change for `'a`.
    #[inline]
    pub unsafe fn from_raw(string: *mut raw::RedisModuleString) -> Self {
        Name { string, life: PhantomData }
    }

    /// The pointer, for calls of the API that have no wrapper here.
    #[inline]
    pub fn as_ptr(self) -> *mut raw::RedisModuleString {
        self.string
    }

    /// The bytes, as they lie in the server.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        let mut len = 0;
        // SAFETY: the string is valid; the server writes its length and returns its bytes, which live as it does.
        unsafe {
            let bytes = api!(RedisModule_StringPtrLen)(self.string, &raw mut len);
            if bytes.is_null() {
                return &[];
            }
            std::slice::from_raw_parts(bytes.cast(), len)
        }
    }
}

/// What the server and the calling client are doing, as of the look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(c_int);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:ident;)*) => {
        impl Flags {
            $($(#[$doc])* #[inline] pub const fn $name(self) -> bool { self.0 & raw::$bit as c_int != 0 })*
        }
    };
}

flags! {
    /// This server is a master.
    master = REDISMODULE_CTX_FLAGS_MASTER;
    /// An RDB or AOF is being loaded; a command then comes from the AOF.
    loading = REDISMODULE_CTX_FLAGS_LOADING;
    /// The command comes from the master's stream, or from a slot import.
    replicated = REDISMODULE_CTX_FLAGS_REPLICATED;
    /// The AOF is on.
    aof = REDISMODULE_CTX_FLAGS_AOF;
    /// The server is part of a cluster.
    cluster = REDISMODULE_CTX_FLAGS_CLUSTER;
    /// The server uses more memory than `maxmemory`.
    out_of_memory = REDISMODULE_CTX_FLAGS_OOM;
    /// Blocking is not allowed: inside `MULTI`, a script or another module's call.
    deny_blocking = REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
}

/// Whether the server answered `REDISMODULE_OK`.
#[inline]
pub const fn is_ok(status: c_int) -> bool {
    status == raw::REDISMODULE_OK as c_int
}

/// A time from now as the server counts it, ms, within what it can add to the time of day.
#[inline]
fn to_period(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(TIMEOUT_MAX_MS).min(TIMEOUT_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_read_their_own_bit() {
        let flags = Flags((raw::REDISMODULE_CTX_FLAGS_MASTER | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING) as c_int);
        assert!(flags.master() && flags.deny_blocking());
        assert!(!flags.loading() && !flags.replicated());
    }
}

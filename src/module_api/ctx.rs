//! The server as one call sees it: the clock, replication, signals, blocked clients and timers. Replies are in `reply`.
//!
//! [`Ctx`] is the context that the server passes to every callback, and [`Name`] is the name of a key that the server
//! lends. Each method makes one API call and removes its pitfalls; a result that could be null is an `Option`. A method
//! costs what the server's function costs, and allocates nothing itself unless its comment says so.

use std::ffi::{c_int, c_void, CStr};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use redis_module::raw;

use super::api::api;

/// A callback that receives a command's arguments: the command itself, a key of a blocked client that became ready, or
/// the timeout of a blocked client.
pub type Callback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut *mut raw::RedisModuleString, c_int) -> c_int;
/// The callback of a timer. Its data is always null.
pub type TimerCallback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut c_void);
/// The callback that frees the private data of a blocked client.
pub type FreeCallback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut c_void);
/// The callback of a server event. Its parameters are the context, the event, the subevent and the event's own data.
pub type EventCallback = unsafe extern "C" fn(*mut raw::RedisModuleCtx, raw::RedisModuleEvent, u64, *mut c_void);

/// Twice the longest `BLOCK` that a command accepts, in milliseconds. Redis 7.0 adds a timeout to the time of day
/// without a check for overflow, so larger values are reduced to this one.
const TIMEOUT_MAX_MS: i64 = 1 << 43;

/// Same as [`Ctx::now_ms`], for callbacks that receive no context.
pub fn now_ms() -> u64 {
    // SAFETY: takes no arguments.
    let now = unsafe { api!(RedisModule_Milliseconds)() };
    u64::try_from(now).unwrap_or(0)
}

/// The server's context for one call, which lasts for `'a`.
#[derive(Clone, Copy)]
pub struct Ctx<'a>(*mut raw::RedisModuleCtx, PhantomData<&'a raw::RedisModuleCtx>);

impl<'a> Ctx<'a> {
    /// Wraps the context that the server passed to a callback.
    ///
    /// # Safety
    /// `ctx` is valid, [`missing_api`](super::api::missing_api) returned `None`, and the callback does
    /// not return before the end of `'a`.
    pub unsafe fn from_raw(ctx: *mut raw::RedisModuleCtx) -> Self {
        Ctx(ctx, PhantomData)
    }

    /// The pointer, for API calls that have no wrapper here.
    pub fn as_ptr(self) -> *mut raw::RedisModuleCtx {
        self.0
    }

    /// Sets the module's options. One call must set all bits, since it replaces the previous ones. The server ignores
    /// bits that it does not know.
    pub fn set_options(&self, bits: c_int) {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_SetModuleOptions)(self.0, bits) }
    }

    /// Returns whether this call only asks for the positions of the command's keys. If so, the handler must answer with
    /// [`key_at`](Self::key_at) and do nothing else.
    pub fn asks_for_keys(&self) -> bool {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_IsKeysPositionRequest)(self.0) != 0 }
    }

    /// Reports that the argument at `position`, counted from the command's name as 0, is a key, and how the command
    /// accesses it (`REDISMODULE_CMD_KEY_…`).
    pub fn key_at(&self, position: usize, access: u32) {
        if let Ok(position) = c_int::try_from(position) {
            // SAFETY: the context is valid, see `from_raw`.
            unsafe { api!(RedisModule_KeyAtPosWithFlags)(self.0, position, access as c_int) };
        }
    }

    /// Returns whether this call only asks for the positions of the command's channels. If so, the handler must answer
    /// with [`channel_at`](Self::channel_at) and do nothing else.
    pub fn asks_for_channels(&self) -> bool {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_IsChannelsPositionRequest)(self.0) != 0 }
    }

    /// Reports that the argument at `position`, counted from the command's name as 0, is a channel to which the command
    /// publishes.
    pub fn channel_at(&self, position: usize) {
        if let Ok(position) = c_int::try_from(position) {
            let access = raw::REDISMODULE_CMD_CHANNEL_PUBLISH as c_int;
            // SAFETY: the context is valid, see `from_raw`.
            unsafe { api!(RedisModule_ChannelAtPosWithFlags)(self.0, position, access) };
        }
    }

    /// The Unix time in milliseconds, read again at each call. It can step back together with the system's clock.
    pub fn now_ms(&self) -> u64 {
        now_ms()
    }

    /// The Unix time in milliseconds at which the server began this callback, and which the commands that are called in
    /// it take for the time: `XADD` makes ids of it. Redis 7.0 knows no such time, and reads the clock for each
    /// command.
    pub fn began_ms(&self) -> u64 {
        // SAFETY: the static is read by value.
        let Some(began) = (unsafe { raw::RedisModule_CachedMicroseconds }) else { return now_ms() };
        // SAFETY: takes no arguments.
        u64::try_from(unsafe { began() } / 1000).unwrap_or(0)
    }

    /// Returns one field of a section of `INFO`, or `None` if there is no such field. The server generates the whole
    /// section.
    pub fn server_info(&self, section: &CStr, field: &CStr) -> Option<String> {
        // SAFETY: the context is valid, section and field are C strings. The information is freed once, after the text
        // of the field, which belongs to it, was copied.
        unsafe {
            let info = api!(RedisModule_GetServerInfo)(self.0, section.as_ptr());
            let text = api!(RedisModule_ServerInfoGetFieldC)(info, field.as_ptr());
            let text = (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
            api!(RedisModule_FreeServerInfo)(self.0, info);
            text
        }
    }

    /// Returns the state of the server and of the calling client. Keep the result for the rest of the call: the server
    /// collects a dozen states for it.
    pub fn flags(&self) -> Flags {
        // SAFETY: the context is valid, see `from_raw`.
        Flags(unsafe { api!(RedisModule_GetContextFlags)(self.0) })
    }

    /// The database in which keys are opened.
    pub fn selected_db(&self) -> i32 {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_GetSelectedDb)(self.0) }
    }

    /// Selects the database in which keys are opened. Returns `false` if there is no database with this number.
    pub fn select_db(&self, db: i32) -> bool {
        // SAFETY: the context is valid, see `from_raw`.
        is_ok(unsafe { api!(RedisModule_SelectDb)(self.0, db) })
    }

    /// Calls `f` with a name made from `bytes`, for callers that have no argument of the server, such as a timer. It
    /// copies the bytes.
    pub fn with_name<R>(&self, bytes: &[u8], f: impl FnOnce(Name<'_>) -> R) -> R {
        /// Frees the string, even if `f` panics.
        struct Owned(*mut raw::RedisModuleString);
        impl Drop for Owned {
            fn drop(&mut self) {
                // SAFETY: the string was made below, without a context, and is freed once. Other holders have a
                // reference of their own.
                unsafe { api!(RedisModule_FreeString)(ptr::null_mut(), self.0) }
            }
        }
        // SAFETY: the server copies `len` bytes from a valid slice; the context may be null.
        let string = unsafe { api!(RedisModule_CreateString)(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len()) };
        let owned = Owned(string);
        f(Name { string: owned.0, life: PhantomData })
    }
}

/// Reporting a change: to the replicas and the AOF, to watchers, to blocked clients and to subscribers.
impl Ctx<'_> {
    /// Sends `command key blob` to the replicas and the AOF, in the selected database, and counts one change. It copies
    /// the blob. Returns `false` if the server does not know the command.
    ///
    /// While [`avoid_replication_traffic`](Self::avoid_replication_traffic) returns `true`, this must not be called
    /// outside a client's command: the server would abort.
    pub fn replicate_effect(&self, command: &CStr, key: Name<'_>, blob: &[u8]) -> bool {
        // SAFETY: the format names a string of the server and a buffer with its length, which are what follows.
        is_ok(unsafe {
            api!(RedisModule_Replicate)(self.0, command.as_ptr(), c"sb".as_ptr(), key.string, blob.as_ptr(), blob.len())
        })
    }

    /// Sends the command to the replicas and the AOF as it was received. Must not be combined with
    /// [`replicate_effect`](Self::replicate_effect) in one call.
    pub fn replicate_verbatim(&self) {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_ReplicateVerbatim)(self.0) };
    }

    /// Returns whether only a client's own command may replicate at present, because writes are paused for a failover
    /// or by `CLIENT PAUSE`.
    pub fn avoid_replication_traffic(&self) -> bool {
        // SAFETY: takes no arguments.
        unsafe { api!(RedisModule_AvoidReplicaTraffic)() != 0 }
    }

    /// Reports to `WATCH` and to client-side caches that the key has changed.
    pub fn signal_modified(&self, key: Name<'_>) {
        // SAFETY: the context and the name are valid.
        unsafe { api!(RedisModule_SignalModifiedKey)(self.0, key.string) };
    }

    /// Makes the server retry the clients that are blocked on the key, after this command. Has no effect if the key
    /// does not exist. Costs O(n) for n blocked clients.
    pub fn signal_ready(&self, key: Name<'_>) {
        // SAFETY: the context and the name are valid.
        unsafe { api!(RedisModule_SignalKeyAsReady)(self.0, key.string) };
    }

    /// Publishes a keyspace event of class `d`, if the server is configured to publish these.
    ///
    /// Other modules may run inside this call: no [`OpenKey`](super::key::OpenKey) and no borrow of a global may be
    /// alive.
    pub fn notify(&self, event: &CStr, key: Name<'_>) {
        let class = raw::REDISMODULE_NOTIFY_MODULE;
        // SAFETY: the context and the name are valid, the event a C string.
        unsafe { api!(RedisModule_NotifyKeyspaceEvent)(self.0, class, event.as_ptr(), key.string) };
    }
}

/// Returns the state of the server, without that of a client. It costs what [`Ctx::flags`] costs.
pub fn server_flags() -> Flags {
    // SAFETY: the server takes null for a call that concerns no client.
    Flags(unsafe { api!(RedisModule_GetContextFlags)(ptr::null_mut()) })
}

/// Returns whether the server publishes keyspace events of modules.
pub fn publishes_events() -> bool {
    // SAFETY: takes no arguments.
    let published = unsafe { api!(RedisModule_GetNotifyKeyspaceEvents)() };
    published & raw::REDISMODULE_NOTIFY_MODULE as c_int != 0
}

/// Callbacks at a later time: blocked clients, timers and server events.
impl Ctx<'_> {
    /// Blocks the client until one of `keys` can serve it. Returns the server's handle.
    ///
    /// The server calls `on_ready` at each signal for a key, for one client after the other in the order in which they
    /// blocked. The callback either replies and returns `REDISMODULE_OK`, or does nothing and returns
    /// `REDISMODULE_ERR`, and the client stays blocked. The server calls `on_timeout`, which replies, when the timeout
    /// expires and on `CLIENT UNBLOCK`. A `timeout_ms` of 0 blocks for ever; a value above 2^43 has the same effect as
    /// 2^43. The server calls `free` exactly once, in whatever way the client is unblocked, but only if `private` is
    /// not null.
    ///
    /// Returns `None` if the server does not allow the client to block: Valkey 8.1 and later refuse a RESP3 client that
    /// has subscribed to a channel. In that case nothing was blocked, the caller still owns `private`, and no reply was
    /// sent.
    ///
    /// This must not be called if [`Flags::deny_blocking`] is set. In that case Valkey 8.1 returns `None` and sends no
    /// reply, but all other servers send an error and return a handle that is never released.
    ///
    /// # Safety
    /// `private` is null, or is valid for all three callbacks until `free` has been called.
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
        // `Name` is a transparent wrapper of one pointer. The server reads the array and takes its own references.
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

    /// The private data with which the client blocked. It is null outside the callbacks of a blocked client.
    pub fn blocked_private_data(&self) -> *mut c_void {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_GetBlockedClientPrivateData)(self.0) }
    }

    /// The id of the client of this callback, as `CLIENT ID` gives it.
    pub fn client_id(&self) -> u64 {
        // SAFETY: the context is valid, see `from_raw`.
        unsafe { api!(RedisModule_GetClientId)(self.0) }
    }

    /// The key that was signalled, or `None` outside `on_ready`.
    pub fn blocked_ready_key(&self) -> Option<Name<'_>> {
        // SAFETY: the context is valid, see `from_raw`.
        let string = unsafe { api!(RedisModule_GetBlockedClientReadyKey)(self.0) };
        (!string.is_null()).then_some(Name { string, life: PhantomData })
    }

    /// Calls `callback` once, `ms` milliseconds from now or a little later; 0 means the next iteration of the server's
    /// event loop. The context of the callback has the same database selected as this one has now.
    pub fn create_timer(&self, ms: u64, callback: TimerCallback) -> TimerId {
        let period = to_period(ms);
        // SAFETY: the context is valid; the data is null, so nothing outlives its owner.
        TimerId(unsafe { api!(RedisModule_CreateTimer)(self.0, period, Some(callback), ptr::null_mut()) })
    }

    /// Stops a timer that has not fired. Returns `false` if there is no timer with this id.
    ///
    /// This must not be called inside the timer's own callback, because the server would free the timer twice. A
    /// callback therefore forgets its id first.
    pub fn stop_timer(&self, timer: TimerId) -> bool {
        // SAFETY: the context is valid; the data is not asked for.
        is_ok(unsafe { api!(RedisModule_StopTimer)(self.0, timer.0, ptr::null_mut()) })
    }

    /// Subscribes to a server event (`REDISMODULE_EVENT_…`). Returns `false` if the server does not know it. A second
    /// subscription to the same event replaces the first.
    pub fn subscribe(&self, event_id: u64, callback: EventCallback) -> bool {
        let event = raw::RedisModuleEvent { id: event_id, dataver: 1 };
        // SAFETY: the context is valid; the server checks the event's number.
        is_ok(unsafe { api!(RedisModule_SubscribeToServerEvent)(self.0, event, Some(callback)) })
    }
}

/// A timer that can be stopped until it fires.
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
    pub unsafe fn from_raw(string: *mut raw::RedisModuleString) -> Self {
        Name { string, life: PhantomData }
    }

    /// The pointer, for API calls that have no wrapper here.
    pub fn as_ptr(self) -> *mut raw::RedisModuleString {
        self.string
    }

    /// The bytes of the name, without a copy.
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

/// The state of the server and of the calling client at the time of [`Ctx::flags`].
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
    /// An RDB or AOF file is being loaded. A command that runs now comes from the AOF.
    loading = REDISMODULE_CTX_FLAGS_LOADING;
    /// The command comes from the master's replication stream, or from a slot import.
    replicated = REDISMODULE_CTX_FLAGS_REPLICATED;
    /// The AOF is enabled.
    aof = REDISMODULE_CTX_FLAGS_AOF;
    /// The server is part of a cluster.
    cluster = REDISMODULE_CTX_FLAGS_CLUSTER;
    /// The server uses more memory than `maxmemory`.
    out_of_memory = REDISMODULE_CTX_FLAGS_OOM;
    /// The client must not be blocked: it is inside `MULTI`, a script or another module's call.
    deny_blocking = REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
}

/// Returns whether `status` is `REDISMODULE_OK`.
pub const fn is_ok(status: c_int) -> bool {
    status == raw::REDISMODULE_OK as c_int
}

/// Converts a delay to the server's type, in milliseconds, and reduces it to what the server can add to the time of
/// day.
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

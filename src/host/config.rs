//! The module's settings: `CONFIG GET/SET/REWRITE dq.*` and the lines of redis.conf.
//!
//! Each setting is one row: its name, range and default, and the atomic that holds its value. The server checks the
//! range, calls `set` for each row that a `CONFIG SET` names, and calls `apply` after all of them. A constraint between
//! two rows (the base of the backoff must not exceed its maximum) is checked in `apply`, so their order does not
//! matter. If `apply` refuses, the server restores the old values. For the settings of redis.conf the server does not
//! call `apply`, so the check is repeated after the load.
//!
//! Reading a setting costs one relaxed load. Only the main thread writes.

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_void, CStr};
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use redis_module::raw;

use crate::module_api::api::api;
use crate::module_api::ctx::{is_ok, Ctx};
use crate::queue::settings::{Backoff, Percent, Retries, Settings, MAX_LENGTH, MAX_PAYLOAD};
use crate::queue::time::DurationMs;

/// The longest duration that the module supports, in milliseconds (2^42 - 1, 139 years).
const DURATION_MAX: i64 = DurationMs::MAX.as_ms() as i64;
/// The largest count, which every client's number type holds exactly (2^53 - 1).
const COUNT_MAX: i64 = MAX_LENGTH as i64;
/// The largest number of redeliveries.
const RETRIES_MAX: i64 = i32::MAX as i64;

/// One setting: an integer or a boolean.
struct Setting {
    /// The name after `dq.`.
    name: &'static CStr,
    min: i64,
    max: i64,
    default: i64,
    /// Whether the setting is a boolean: `yes` (1) or `no` (0).
    is_bool: bool,
    /// The check of a constraint with other settings, after a change; `None` if there is no such constraint.
    check: Option<fn() -> Result<(), String>>,
    value: AtomicI64,
}

impl Setting {
    const fn number(name: &'static CStr, min: i64, max: i64, default: i64) -> Self {
        Setting { name, min, max, default, is_bool: false, check: None, value: AtomicI64::new(default) }
    }

    const fn yes_or_no(name: &'static CStr, default: bool) -> Self {
        let mut row = Self::number(name, 0, 1, default as i64);
        row.is_bool = true;
        row
    }

    const fn checked(mut self, check: fn() -> Result<(), String>) -> Self {
        self.check = Some(check);
        self
    }

    #[inline]
    fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// The value of a setting whose range has no negative numbers.
    #[inline]
    fn get_unsigned(&self) -> u64 {
        u64::try_from(self.get()).unwrap_or(0)
    }
}

static LEASE: Setting = Setting::number(c"default-lease", 1, DURATION_MAX, 30_000);
static RETRIES: Setting = Setting::number(c"default-retries", -1, RETRIES_MAX, 16);
static BACKOFF_BASE: Setting = Setting::number(c"default-backoff-base", 0, DURATION_MAX, 1_000).checked(check_backoff);
static BACKOFF_MAX: Setting =
    Setting::number(c"default-backoff-max", 0, DURATION_MAX, 3_600_000).checked(check_backoff);
static BACKOFF_JITTER: Setting = Setting::number(c"default-backoff-jitter", 0, Percent::MAX as i64, 0);
static TTL: Setting = Setting::number(c"default-ttl", 0, DURATION_MAX, 0);
static MAXLEN: Setting = Setting::number(c"default-maxlen", 0, COUNT_MAX, 0);
static MAXINFLIGHT: Setting = Setting::number(c"default-maxinflight", 0, COUNT_MAX, 0);
static DEADLEN: Setting = Setting::number(c"default-deadlen", -1, COUNT_MAX, -1);
static DEADTTL: Setting = Setting::number(c"default-deadttl", 0, DURATION_MAX, 0);
static MAXPAYLOAD: Setting = Setting::number(c"default-maxpayload", 0, MAX_PAYLOAD as i64, 0);
static TIMER_BUDGET: Setting = Setting::number(c"timer-budget", 100, 1_000_000, 1_000);
static ALLOW_EFFECTS: Setting = Setting::yes_or_no(c"allow-effects", false);

static ROWS: [&Setting; 13] = [
    &LEASE,
    &RETRIES,
    &BACKOFF_BASE,
    &BACKOFF_MAX,
    &BACKOFF_JITTER,
    &TTL,
    &MAXLEN,
    &MAXINFLIGHT,
    &DEADLEN,
    &DEADTTL,
    &MAXPAYLOAD,
    &TIMER_BUDGET,
    &ALLOW_EFFECTS,
];

/// The settings of a queue that is created without settings of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// The length of a lease, in milliseconds, at least 1.
    pub lease: u64,
    /// How many times a message is redelivered before it becomes dead; -1 is no limit.
    pub retries: i64,
    /// The backoff after the first nack without a delay, in milliseconds. Never above `backoff_max`.
    pub backoff_base: u64,
    /// The longest backoff after a nack without a delay, in milliseconds.
    pub backoff_max: u64,
    /// The largest share by which a backoff is randomly shortened, in percent.
    pub backoff_jitter: u64,
    /// How long after its due time a message that was not completed becomes dead, in milliseconds; 0 is never.
    pub ttl: u64,
    /// The maximum number of messages, excluding dead ones; 0 is no limit.
    pub maxlen: u64,
    /// The maximum number of messages in flight; 0 is no limit.
    pub maxinflight: u64,
    /// The maximum number of dead messages that are kept; -1 is no limit.
    pub deadlen: i64,
    /// How long a dead message is kept, in milliseconds; 0 is for ever.
    pub deadttl: u64,
    /// The maximum size of a payload, in bytes; 0 is no limit.
    pub maxpayload: u64,
}

impl Defaults {
    /// Converts the defaults to the settings of a new queue.
    pub fn settings(&self) -> Settings {
        Settings {
            lease: DurationMs::new(self.lease),
            retries: i32::try_from(self.retries).ok().and_then(Retries::new).unwrap_or(Retries::UNLIMITED),
            backoff: Backoff {
                base: DurationMs::new(self.backoff_base),
                max: DurationMs::new(self.backoff_max),
                jitter: u8::try_from(self.backoff_jitter).ok().and_then(Percent::new).unwrap_or_default(),
            },
            ttl: DurationMs::new(self.ttl),
            maxlen: self.maxlen,
            maxinflight: self.maxinflight,
            deadlen: u64::try_from(self.deadlen).ok(),
            deadttl: DurationMs::new(self.deadttl),
            maxpayload: self.maxpayload,
        }
    }
}

/// The current defaults for new queues.
pub fn defaults() -> Defaults {
    Defaults {
        lease: LEASE.get_unsigned(),
        retries: RETRIES.get(),
        backoff_base: BACKOFF_BASE.get_unsigned(),
        backoff_max: BACKOFF_MAX.get_unsigned(),
        backoff_jitter: BACKOFF_JITTER.get_unsigned(),
        ttl: TTL.get_unsigned(),
        maxlen: MAXLEN.get_unsigned(),
        maxinflight: MAXINFLIGHT.get_unsigned(),
        deadlen: DEADLEN.get(),
        deadttl: DEADTTL.get_unsigned(),
        maxpayload: MAXPAYLOAD.get_unsigned(),
    }
}

/// How long one run of the timer may take, in microseconds, from 100 to 1,000,000.
#[inline]
pub fn timer_budget_us() -> u64 {
    TIMER_BUDGET.get_unsigned()
}

/// Whether ordinary clients may send effect commands.
#[inline]
pub fn allow_effects() -> bool {
    ALLOW_EFFECTS.get() != 0
}

/// Registers all settings and applies the values of redis.conf. Called once, while the module loads. If it fails, the
/// module cannot load; the error says why.
pub fn register(ctx: Ctx) -> Result<(), String> {
    for row in ROWS {
        if !is_ok(row.register(ctx)) {
            return Err(format!("the server did not take the setting dq.{}", row.name.to_string_lossy()));
        }
    }
    // SAFETY: the context is the load's own.
    if !is_ok(unsafe { api!(RedisModule_LoadConfigs)(ctx.as_ptr()) }) {
        return Err("a dq.* setting is not valid, see above".to_owned());
    }
    check_backoff()
}

impl Setting {
    fn register(&'static self, ctx: Ctx) -> c_int {
        let row = ptr::from_ref(self).cast_mut().cast::<c_void>();
        let flags: c_uint = raw::REDISMODULE_CONFIG_DEFAULT;
        let apply: raw::RedisModuleConfigApplyFunc = if self.check.is_some() { Some(apply) } else { None };
        // SAFETY: the context is the load's own and the name a C string that the server copies; the callbacks are of
        // the types that it calls, and read the row, which lives for ever, through a shared reference only.
        unsafe {
            if self.is_bool {
                let default = c_int::from(self.default != 0);
                let get: raw::RedisModuleConfigGetBoolFunc = Some(get_bool);
                api!(RedisModule_RegisterBoolConfig)(
                    ctx.as_ptr(),
                    self.name.as_ptr(),
                    default,
                    flags,
                    get,
                    Some(set_bool),
                    apply,
                    row,
                )
            } else {
                api!(RedisModule_RegisterNumericConfig)(
                    ctx.as_ptr(),
                    self.name.as_ptr(),
                    self.default,
                    flags,
                    self.min,
                    self.max,
                    Some(get_number),
                    Some(set_number),
                    apply,
                    row,
                )
            }
        }
    }

    /// Returns the row that the server passed to a callback.
    ///
    /// # Safety
    /// `row` is the pointer that `register` passed to the server.
    unsafe fn of(row: *mut c_void) -> &'static Setting {
        // SAFETY: so it points to a static.
        unsafe { &*row.cast::<Setting>().cast_const() }
    }
}

/// The backoff's base must not be above its maximum.
fn check_backoff() -> Result<(), String> {
    backoff_fits(BACKOFF_BASE.get(), BACKOFF_MAX.get())
}

fn backoff_fits(base: i64, max: i64) -> Result<(), String> {
    if base <= max {
        return Ok(());
    }
    Err(format!("dq.default-backoff-base ({base}) must not be above dq.default-backoff-max ({max}); set both at once"))
}

extern "C" fn get_number(_name: *const c_char, row: *mut c_void) -> c_longlong {
    // SAFETY: the server passes the row that it was given.
    unsafe { Setting::of(row) }.get()
}

extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    row: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: the server passes the row that it was given.
    unsafe { Setting::of(row) }.value.store(value, Ordering::Relaxed);
    raw::REDISMODULE_OK as c_int
}

extern "C" fn get_bool(_name: *const c_char, row: *mut c_void) -> c_int {
    // SAFETY: the server passes the row that it was given.
    c_int::from(unsafe { Setting::of(row) }.get() != 0)
}

extern "C" fn set_bool(
    name: *const c_char,
    value: c_int,
    row: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    set_number(name, c_longlong::from(value != 0), row, error)
}

extern "C" fn apply(
    _ctx: *mut raw::RedisModuleCtx,
    row: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: the server passes the row that it was given.
    let check = unsafe { Setting::of(row) }.check;
    let Some(Err(text)) = check.map(|check| check()) else {
        return raw::REDISMODULE_OK as c_int;
    };
    // SAFETY: the server copies the text, which has no NUL, and frees the string that it finds in `error`; without
    // a context no one else frees it.
    unsafe {
        if !error.is_null() {
            *error = api!(RedisModule_CreateString)(ptr::null_mut(), text.as_ptr().cast(), text.len());
        }
    }
    raw::REDISMODULE_ERR as c_int
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_lies_in_its_range_and_every_name_stands_once() {
        for row in ROWS {
            assert!(row.min <= row.default && row.default <= row.max, "{:?}", row.name);
            assert_eq!(row.get(), row.default);
            assert_eq!(ROWS.iter().filter(|other| other.name == row.name).count(), 1);
        }
        assert_eq!(check_backoff(), Ok(()));
    }

    #[test]
    fn the_base_of_the_backoff_may_reach_its_maximum() {
        assert_eq!(backoff_fits(0, 0), Ok(()));
        assert_eq!(backoff_fits(5, 5), Ok(()));
        let text = backoff_fits(6, 5).unwrap_err();
        assert!(text.contains("(6)") && text.contains("(5)"), "{text}");
    }

    #[test]
    fn the_contract_of_the_defaults() {
        let d = defaults();
        assert_eq!((d.lease, d.retries, d.backoff_base, d.backoff_max), (30_000, 16, 1_000, 3_600_000));
        assert_eq!((d.ttl, d.maxlen, d.maxinflight, d.deadlen), (0, 0, 0, -1));
        assert_eq!((timer_budget_us(), allow_effects()), (1_000, false));
    }
}

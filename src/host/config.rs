//! The module's parameters: `CONFIG GET/SET/REWRITE dq.*` and the lines of redis.conf.
//!
//! The parameters `dq.default-*` are the rows of [`FIELDS`]; the two others are defined below. The server checks the
//! range, calls `set_number` for each parameter that a `CONFIG SET` names, and calls `apply_defaults` after all of
//! them. A constraint between two of them (the base of the backoff must not exceed its maximum) is checked there, so
//! their order does not matter. If it is refused, the server restores the old values. For the settings of redis.conf
//! the server does not call it, so the check is repeated after the load.
//!
//! Reading a parameter costs one relaxed load. Only the main thread writes.

use std::ffi::{c_char, c_int, c_longlong, c_void, CStr, CString};
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use redis_module::raw;

use crate::module_api::api::api;
use crate::module_api::ctx::{is_ok, Ctx};
use crate::module_api::guard::guard;
use crate::module_api::log::{log, Level};
use crate::schedule::walk;
use dq_queue::rate::Rate;
use dq_queue::settings::{Conflict, Settings, Word, FIELDS};

/// The defaults of the settings of new queues, one for each of [`FIELDS`]. [`register`] sets them.
static DEFAULTS: [AtomicI64; FIELDS.len()] = [const { AtomicI64::new(0) }; FIELDS.len()];

static TIMER_BUDGET: AtomicI64 = AtomicI64::new(TIMER_BUDGET_DEFAULT);
/// The default of the timer's budget, in microseconds.
const TIMER_BUDGET_DEFAULT: i64 = 1_000;
/// The budgets that the timer can have, in microseconds.
const TIMER_BUDGETS: RangeInclusive<i64> = 100..=1_000_000;

/// The value of `dq.allow-effects`: 1 for `yes`, 0 for `no`.
static ALLOW_EFFECTS: AtomicI64 = AtomicI64::new(0);

/// The settings of a queue that is created without settings of its own.
pub fn defaults() -> Settings {
    let mut settings = Settings::DEFAULT;
    for (field, value) in FIELDS.iter().zip(&DEFAULTS) {
        (field.set)(&mut settings, value.load(Ordering::Relaxed));
    }
    settings
}

/// How long one run of the timer may take, in microseconds, from 100 to 1,000,000.
pub fn timer_budget_us() -> u64 {
    u64::try_from(TIMER_BUDGET.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Whether ordinary clients may send effect commands. This server decides nothing by time then; see
/// [`super::authority`].
pub fn allow_effects() -> bool {
    ALLOW_EFFECTS.load(Ordering::Relaxed) != 0
}

/// Registers all parameters and applies the values of redis.conf. Called once, while the module loads. If it fails, the
/// module cannot load; the error says why.
pub fn register(ctx: Ctx) -> Result<(), String> {
    for (field, value) in FIELDS.iter().zip(&DEFAULTS) {
        let name = CString::new(format!("default-{}", field.name)).map_err(|error| error.to_string())?;
        let default = (field.get)(&Settings::DEFAULT);
        value.store(default, Ordering::Relaxed);
        if field.words().is_empty() {
            number(ctx, &name, field.range.clone(), default, value, Some(apply_defaults))?;
        } else {
            choice(ctx, &name, field.words(), default, value)?;
        }
    }
    number(ctx, c"timer-budget", TIMER_BUDGETS, TIMER_BUDGET_DEFAULT, &TIMER_BUDGET, None)?;
    yes_or_no(ctx, c"allow-effects", &ALLOW_EFFECTS, Some(apply_allow_effects))?;
    // SAFETY: the context is the load's own.
    if !is_ok(unsafe { api!(RedisModule_LoadConfigs)(ctx.as_ptr()) }) {
        return Err("a dq.* setting is not valid, see above".to_owned());
    }
    if allow_effects() {
        log(Level::Warning, DECIDES_NOTHING);
    }
    check(&defaults())
}

/// What the log says while clients may send effects.
const DECIDES_NOTHING: &str = "dq.allow-effects is yes: until it is no again, this server decides nothing by time. It \
                               forwards nothing, no schedule goes on, and no batch ends by a dead message. When the \
                               AOF has been replayed, CONFIG SET dq.allow-effects no, then CONFIG REWRITE";

/// Registers a number.
fn number(
    ctx: Ctx,
    name: &CStr,
    range: RangeInclusive<i64>,
    default: i64,
    value: &'static AtomicI64,
    apply: raw::RedisModuleConfigApplyFunc,
) -> Result<(), String> {
    // SAFETY: the context is the load's own and the name a C string that the server copies; the callbacks are of the
    // types that it calls, and use the value, which lives for ever, through a shared reference only.
    let status = unsafe {
        api!(RedisModule_RegisterNumericConfig)(
            ctx.as_ptr(),
            name.as_ptr(),
            default,
            raw::REDISMODULE_CONFIG_DEFAULT,
            *range.start(),
            *range.end(),
            Some(get_number),
            Some(set_number),
            apply,
            ptr::from_ref(value).cast_mut().cast(),
        )
    };
    registered(name, status)
}

/// Registers a choice between words; the value is the place of the word.
fn choice(ctx: Ctx, name: &CStr, words: &[Word], default: i64, value: &'static AtomicI64) -> Result<(), String> {
    let mut texts: Vec<*const c_char> = words.iter().map(|Word(shown, _)| shown.as_ptr()).collect();
    let places: Vec<c_int> = (0..).take(words.len()).collect();
    // SAFETY: as in `number`; the server copies the two arrays, which have the same length.
    let status = unsafe {
        api!(RedisModule_RegisterEnumConfig)(
            ctx.as_ptr(),
            name.as_ptr(),
            default as c_int,
            raw::REDISMODULE_CONFIG_DEFAULT,
            texts.as_mut_ptr(),
            places.as_ptr(),
            places.len() as c_int,
            Some(get_place),
            Some(set_place),
            None,
            ptr::from_ref(value).cast_mut().cast(),
        )
    };
    registered(name, status)
}

/// Registers a boolean whose default is `no`.
fn yes_or_no(
    ctx: Ctx,
    name: &CStr,
    value: &'static AtomicI64,
    apply: raw::RedisModuleConfigApplyFunc,
) -> Result<(), String> {
    // SAFETY: as in `number`.
    let status = unsafe {
        api!(RedisModule_RegisterBoolConfig)(
            ctx.as_ptr(),
            name.as_ptr(),
            0,
            raw::REDISMODULE_CONFIG_DEFAULT,
            Some(get_place),
            Some(set_place),
            apply,
            ptr::from_ref(value).cast_mut().cast(),
        )
    };
    registered(name, status)
}

fn registered(name: &CStr, status: c_int) -> Result<(), String> {
    if is_ok(status) {
        return Ok(());
    }
    Err(format!("the server did not take the setting dq.{}", name.to_string_lossy()))
}

/// Returns the value that the server passed to a callback.
///
/// # Safety
/// `value` is the pointer that `number` or `yes_or_no` passed to the server.
unsafe fn value_of(value: *mut c_void) -> &'static AtomicI64 {
    // SAFETY: so it points to a static.
    unsafe { &*value.cast::<AtomicI64>().cast_const() }
}

/// The defaults must not contradict each other.
fn check(defaults: &Settings) -> Result<(), String> {
    match defaults.conflict() {
        None => Ok(()),
        Some(Conflict::Backoff) => {
            let (base, max) = (defaults.backoff.base.as_ms(), defaults.backoff.max.as_ms());
            Err(format!(
                "dq.default-backoff-base ({base}) must not be above dq.default-backoff-max ({max}); set both at once"
            ))
        }
        Some(Conflict::Rate) => Err(half_a_rate("rate", defaults.rate)),
        Some(Conflict::GroupRate) => Err(half_a_rate("grouprate", defaults.grouprate)),
    }
}

fn half_a_rate(name: &str, rate: Rate) -> String {
    format!(
        "dq.default-{name} ({}) and dq.default-{name}-period ({}) must both be 0, for no limit, or both be above 0; \
         set both at once",
        rate.most,
        rate.period.as_ms()
    )
}

extern "C" fn get_number(_name: *const c_char, value: *mut c_void) -> c_longlong {
    // SAFETY: the server passes the value that it was given.
    unsafe { value_of(value) }.load(Ordering::Relaxed)
}

extern "C" fn set_number(
    _name: *const c_char,
    number: c_longlong,
    value: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: the server passes the value that it was given.
    unsafe { value_of(value) }.store(number, Ordering::Relaxed);
    raw::REDISMODULE_OK as c_int
}

extern "C" fn get_place(_name: *const c_char, value: *mut c_void) -> c_int {
    // SAFETY: the server passes the value that it was given.
    c_int::try_from(unsafe { value_of(value) }.load(Ordering::Relaxed)).unwrap_or(0)
}

extern "C" fn set_place(
    name: *const c_char,
    chosen: c_int,
    value: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    set_number(name, c_longlong::from(chosen), value, error)
}

extern "C" fn apply_defaults(
    _ctx: *mut raw::RedisModuleCtx,
    _value: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    let Err(text) = check(&defaults()) else { return raw::REDISMODULE_OK as c_int };
    // SAFETY: the server copies the text, which has no NUL, and frees the string that it finds in `error`; without
    // a context no one else frees it.
    unsafe {
        if !error.is_null() {
            *error = api!(RedisModule_CreateString)(ptr::null_mut(), text.as_ptr().cast(), text.len());
        }
    }
    raw::REDISMODULE_ERR as c_int
}

/// Called after a change of `dq.allow-effects`. If it is now `no`, this server decides again, so it looks at every
/// queue.
extern "C" fn apply_allow_effects(
    ctx: *mut raw::RedisModuleCtx,
    _value: *mut c_void,
    _error: *mut *mut raw::RedisModuleString,
) -> c_int {
    guard("CONFIG SET", (), || {
        if allow_effects() {
            log(Level::Warning, DECIDES_NOTHING);
        } else {
            // SAFETY: the server passes a context that is valid during this call.
            walk::start(unsafe { Ctx::from_raw(ctx) });
        }
    });
    raw::REDISMODULE_OK as c_int
}

#[cfg(test)]
mod tests {
    use super::*;
    use dq_queue::backoff::{Backoff, Percent};
    use dq_queue::time::DurationMs;

    #[test]
    fn the_base_of_the_backoff_may_reach_its_maximum() {
        let with = |base, max| {
            let backoff = Backoff { base: DurationMs::new(base), max: DurationMs::new(max), jitter: Percent::ZERO };
            check(&Settings { backoff, ..Settings::DEFAULT })
        };
        assert_eq!(with(0, 0), Ok(()));
        assert_eq!(with(5, 5), Ok(()));
        let text = with(6, 5).unwrap_err();
        assert!(text.contains("(6)") && text.contains("(5)"), "{text}");
    }
}

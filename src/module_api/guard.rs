//! The boundary that no panic crosses.
//!
//! A panic that leaves an `extern "C"` function aborts the process, and everything written since the last fsync is
//! lost. So every callback that the server can call runs inside [`guard`], which turns a panic into a log line and a
//! fallback result. The panic hook logs the location. It takes no backtrace and opens no file: on Valkey 8.1 and later
//! the `free` that the module calls does not match the allocations of libc itself, so a backtrace, or anything else
//! that resolves a path, would crash.

use std::fmt::Write;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe, PanicHookInfo};

use super::alarms::{BUG, PANIC};
use super::log::{log, Level};

/// Runs `f`. If it panics, logs that `what` has failed and returns `fallback`.
///
/// `what` names the entry point for an operator, such as `"DQ.PUSH"` or `"the timer"`. State that `f` was changing
/// remains as it was at the panic, so the fallback must not depend on it. Costs nothing if there is no panic.
pub fn guard<R>(what: &str, fallback: R, f: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(answer) => answer,
        Err(payload) => {
            // Dropping the payload could run code that panics again, this time outside the boundary.
            std::mem::forget(payload);
            caught(what);
            fallback
        }
    }
}

#[cold]
fn caught(what: &str) {
    let text = format!("{BUG} stopped {what}; the server goes on. Please report the panic above");
    log(Level::Warning, &text);
}

/// Installs a panic hook that writes the message and the location to the server's log, without a backtrace. Called
/// once, while the module loads.
pub fn install_panic_hook() {
    set_hook(Box::new(report));
}

fn report(info: &PanicHookInfo<'_>) {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = match info.location() {
        Some(place) => write!(text, "{PANIC}{place}: {message}"),
        None => write!(text, "{PANIC}an unknown place: {message}"),
    };
    log(Level::Warning, &text);
}

/// Panics if the environment asks for a panic at this place, as in `DQ_PLANTED_PANIC=timer`. The tests use it to prove
/// that a panic is contained and reported. It compiles to nothing in a release build.
pub fn plant(place: &str) {
    #[cfg(debug_assertions)]
    {
        static PLANTED: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
        let planted = PLANTED.get_or_init(|| std::env::var("DQ_PLANTED_PANIC").ok());
        assert!(planted.as_deref() != Some(place), "planted in {place}");
    }
    #[cfg(not(debug_assertions))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use super::guard;

    #[test]
    fn a_panic_becomes_the_fallback() {
        assert_eq!(guard("a test", 7, || 5), 5);
        assert_eq!(guard("a test", 7, || panic!("on purpose")), 7);
    }
}

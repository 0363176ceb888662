//! The boundary that no panic crosses.
//!
//! A panic that leaves an `extern "C"` function aborts the process, and with it goes all that was written since
//! the last fsync. So every callback that the server can call runs in [`guard`]: a bug becomes a line in the log
//! and an answer chosen beforehand. The hook says where it happened. It takes no backtrace and touches no file:
//! on Valkey 8.1 and later the module's `free` is not the one of libc's own allocations, and a backtrace, or
//! anything that resolves a path, would die of it.

use std::fmt::Write;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe, PanicHookInfo};

use super::alarms::{BUG, PANIC};
use super::log::{log, Level};

/// Runs `f`; if it panics, logs that `what` failed and answers `fallback`.
///
/// `what` names the entry for an operator, such as `"DQ.PUSH"` or `"the timer"`. State that `f` was changing is
/// left as it was at the panic: callers choose a fallback that touches none of it. Costs nothing without a panic.
#[inline]
pub fn guard<R>(what: &str, fallback: R, f: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(answer) => answer,
        Err(payload) => {
            // Dropping it could run code that panics again, now outside the boundary.
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

/// Lets panics be logged by the server: message and place, no backtrace. Once, while loading.
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
    // Writing to a string does not fail.
    let _ = match info.location() {
        Some(place) => write!(text, "{PANIC}{place}: {message}"),
        None => write!(text, "{PANIC}an unknown place: {message}"),
    };
    log(Level::Warning, &text);
}

/// Panics if the environment asks for a panic at this place: `DQ_PLANTED_PANIC=timer`. The tests prove with it that a
/// panic is contained and is noticed. Compiled to nothing in a release build.
#[inline]
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

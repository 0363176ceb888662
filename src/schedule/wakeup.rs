//! Wakes the server's event loop at the instant at which something is due, or at which the timer has rested.
//!
//! The timer alone is up to two milliseconds late (see [`timerfd`](crate::module_api::timerfd)). So a descriptor of the
//! kernel is set to the same time. When it wakes the event loop, the armed timer is replaced by one that fires at once.
//! All work stays in the callback of the timer.
//!
//! Nothing depends on the descriptor. The timer stays armed as well, and fires by itself if there is no descriptor or
//! if the kernel's clock and that of the server differ. A wake-up that comes too early or for nothing changes nothing.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;
use std::time::Duration;

use super::with_schedule;
use crate::module_api::guard::guard;
use crate::module_api::log::{self, log, Level};
use crate::module_api::timerfd::TimerFd;
use dq_queue::time::UnixMs;

/// The descriptor, if the server watches it.
static DESCRIPTOR: OnceLock<TimerFd> = OnceLock::new();

/// The number of times that the descriptor made the timer fire.
pub static PUNCTUAL: AtomicU64 = AtomicU64::new(0);

/// Creates the descriptor. Called once, after everything that can fail while the module loads: the server keeps the
/// callback, and would call it after it has removed a module whose load has failed.
pub fn start() {
    if let Err(error) = create() {
        let text = format!("no precise timer ({error}): messages may be delivered two milliseconds after they are due");
        log(Level::Notice, &text);
    }
}

fn create() -> io::Result<()> {
    let timer = TimerFd::create()?;
    timer.watch(on_wake)?;
    // It was not set before: the module is loaded once.
    let _ = DESCRIPTOR.set(timer);
    Ok(())
}

/// Sets the descriptor to `at`, if there is one. If that fails, the timer fires by itself.
pub(super) fn wake_at(at: UnixMs) {
    if let Some(descriptor) = DESCRIPTOR.get() {
        let _ = descriptor.set(at.as_ms());
    }
}

/// Sets the descriptor to the instant after `wait`, if there is one. If that fails, the timer fires by itself.
pub(super) fn wake_after(wait: Duration) {
    if let Some(descriptor) = DESCRIPTOR.get() {
        let _ = descriptor.set_after(wait);
    }
}

/// The callback of the descriptor: its time has come, or the time of day was set. The server also calls it while a
/// script runs for long or a file is loaded. Then the timer fires afterwards.
extern "C" fn on_wake(_: c_int, _: *mut c_void, _: c_int) {
    guard("the precise timer", (), || {
        if let Some(descriptor) = DESCRIPTOR.get() {
            descriptor.acknowledge();
        }
        // SAFETY: the server calls this in its event loop, which runs on the main thread.
        let Some(ctx) = (unsafe { log::detached() }) else { return };
        let now = UnixMs::new(ctx.now_ms());
        if with_schedule(|schedule| schedule.wake(&ctx, now)).unwrap_or(false) {
            PUNCTUAL.fetch_add(1, Relaxed);
        }
    });
}

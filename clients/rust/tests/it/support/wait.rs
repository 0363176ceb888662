//! Waits for conditions, never for times.

use std::time::{Duration, Instant};

/// How long a condition may take on a slow machine.
pub fn patience() -> Duration {
    Duration::from_secs(60)
}

/// Waits until the condition holds. A look at it uses up one second of the patience at most, in case the machine itself stood
/// still, as a virtual machine does that is suspended.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let mut left = patience();
    let mut turn = Instant::now();
    while !holds() {
        assert!(!left.is_zero(), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
        left = left.saturating_sub(turn.elapsed().min(Duration::from_secs(1)));
        turn = Instant::now();
    }
}

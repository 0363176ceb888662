//! Waits for conditions, never for times.

use std::time::{Duration, Instant};

/// How long a condition may take on a slow machine: three times as long as sentinels do nothing after they have been
/// held up for two seconds (TILT).
pub fn patience() -> Duration {
    Duration::from_secs(90)
}

#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + patience();
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! Waiting for conditions. The one place of the suite that sleeps.

use std::time::{Duration, Instant};

/// How long a test waits for what must come. Generous: a slow machine is not a failure.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How late, in ms, what is due may come on a busy machine. It may never come early, not by one.
pub const LATE_MS: i64 = 5_000;

/// Waits until `condition` holds; fails, naming `what`, when patience ends.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

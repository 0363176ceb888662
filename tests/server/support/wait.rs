//! Waits for conditions. Only this file of the suite sleeps.

use super::server::Server;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a test waits for a condition. It is generous, because a slow machine is not a failure: three times as long
/// as sentinels do nothing after they have been held up for two seconds (TILT, 30 s), which is the longest pause that a
/// server makes by itself. `DQ_PATIENCE` multiplies it, for servers that run under an instrument.
pub fn patience() -> Duration {
    Duration::from_secs(90) * factor()
}

/// How late, in ms, a delivery may be on a busy machine, on which a few slow writes to a disk may follow each other. It
/// may never be early, not even by 1 ms.
pub fn late_ms() -> i64 {
    30_000 * i64::from(factor())
}

/// How many times as patient the tests are as on their own.
pub(super) fn factor() -> u32 {
    static FACTOR: OnceLock<u32> = OnceLock::new();
    *FACTOR.get_or_init(|| std::env::var("DQ_PATIENCE").ok().and_then(|times| times.parse().ok()).unwrap_or(1))
}

/// How often it is looked for tests that hang.
pub(super) const WATCHER_PAUSE: Duration = Duration::from_secs(1);

/// Waits until `condition` is true. Panics with `what` if it does not become true in time.
#[track_caller]
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    assert!(within(patience(), condition), "waited in vain: {what}");
}

/// Waits until `condition` is true. Returns whether it became true in time.
pub(super) fn within(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + time;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Repeats `turn` until clients have counted up to `goal` together. Panics if the count stands still, for instance
/// because a client has failed: the others would wait for it for ever.
#[track_caller]
pub fn until_counted(count: &AtomicUsize, goal: usize, mut turn: impl FnMut()) {
    let mut before = count.load(Ordering::Relaxed);
    while before < goal {
        eventually(&format!("more than {before} of {goal} are done"), || {
            turn();
            count.load(Ordering::Relaxed) > before
        });
        before = count.load(Ordering::Relaxed);
    }
}

/// Raises a flag at the end of its scope, so that threads which look at it end after a panic too.
pub struct Raised<'a>(pub &'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits for this line in the log, and ignores the server's other lines about errors in its streams.
#[track_caller]
pub fn expect_line(server: &Server, line: &str) {
    eventually("the log tells", || server.log().contains(line));
    server.forget_log();
}

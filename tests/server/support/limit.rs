//! A limit for every test, so that one that hangs is named, and does not hold up the run for ever.

use super::wait::{factor, WATCHER_PAUSE};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// How long a test may use a server, which is much longer than any takes on a slow disk. A soak also has the time that
/// it was asked to take.
const LIMIT: Duration = Duration::from_secs(900);

/// A test's use of a server, which ends when this is dropped.
pub struct Limit(usize);

/// A server that is in use.
struct Used {
    since: Instant,
    /// The name of the thread that started it, which is that of the test unless that has threads of its own.
    test: String,
    process: u32,
}

/// The servers that are in use, in the order in which they were started first.
static USED: Mutex<BTreeMap<usize, Used>> = Mutex::new(BTreeMap::new());

impl Limit {
    /// Limits the use of a server, which is this process.
    pub fn new(process: u32) -> Limit {
        static WATCHER: Once = Once::new();
        WATCHER.call_once(|| drop(std::thread::spawn(watch)));
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let mut used = used();
        let number = used.last_key_value().map_or(0, |(last, _)| last + 1);
        used.insert(number, Used { since: Instant::now(), test, process });
        Limit(number)
    }

    /// The server was started again, as this process.
    pub fn goes_on(&self, process: u32) {
        if let Some(server) = used().get_mut(&self.0) {
            server.process = process;
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        used().remove(&self.0);
    }
}

fn used() -> MutexGuard<'static, BTreeMap<usize, Used>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    let more = std::env::var("DQ_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
    let limit = LIMIT * factor() + Duration::from_secs(more);
    loop {
        std::thread::sleep(WATCHER_PAUSE);
        let used = used();
        if let Some(hanging) = used.values().find(|server| server.since.elapsed() > limit) {
            give_up(&hanging.test, limit, used.values().map(|server| server.process));
        }
    }
}

/// Ends the run. What a thread of a test prints would be kept for later, so this goes around the test harness.
fn give_up(test: &str, limit: Duration, servers: impl Iterator<Item = u32>) -> ! {
    let _ = writeln!(std::io::stderr(), "\n{test} hangs: it has used a server for more than {} s", limit.as_secs());
    let _ = Command::new("kill").arg("-9").args(servers.map(|process| process.to_string())).status();
    std::process::exit(101);
}

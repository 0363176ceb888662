//! A time of day that a test can set, for servers that are started with it.

use super::preload::{library, PRELOAD};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A clock for one or more servers.
pub struct Clock {
    file: PathBuf,
}

impl Clock {
    /// A clock that shows the true time.
    pub fn new() -> Clock {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("clock-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let clock = Clock { file: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name) };
        clock.set(0);
        clock
    }

    /// Sets the clock this many milliseconds ahead of the true time, or behind it if the number is negative.
    pub fn set(&self, ms: i64) {
        self.write([ms, 0]);
    }

    /// Sets the clock to the true time, and lets a millisecond pass each time that a server reads it.
    pub fn pass_at_each_reading(&self) {
        self.write([0, 1]);
    }

    fn write(&self, numbers: [i64; 2]) {
        use std::io::Write;
        // The file is overwritten in place, because servers have mapped it.
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(&self.file).unwrap();
        file.write_all(numbers.map(i64::to_ne_bytes).as_flattened()).expect("the clock is set");
    }

    /// The environment variables with which a server uses this clock.
    pub fn environment(&self) -> Vec<(String, String)> {
        vec![
            (PRELOAD.to_owned(), library("clock").to_string_lossy().into_owned()),
            ("DQ_CLOCK".to_owned(), self.file.to_string_lossy().into_owned()),
        ]
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

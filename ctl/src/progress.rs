//! The progress of long work: a line on standard error that is rewritten, if that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(200);

pub struct Progress {
    verb: &'static str,
    is_shown: bool,
    written: Option<Instant>,
}

impl Progress {
    /// `verb` says what was done to the things that are counted, such as `loaded`.
    pub fn new(verb: &'static str) -> Progress {
        Progress { verb, is_shown: io::stderr().is_terminal(), written: None }
    }

    pub fn at(&mut self, count: u64) {
        if self.is_shown && self.written.is_none_or(|written| written.elapsed() >= EVERY) {
            self.written = Some(Instant::now());
            let _ = write!(io::stderr(), "\r{} {count}\x1b[K", self.verb);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.written.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

//! The progress of long work: a line on standard error that is rewritten, if that is a terminal. Short work shows none.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(200);

pub struct Progress {
    verb: &'static str,
    is_shown: bool,
    /// When it was written, or the work began.
    last: Instant,
    is_written: bool,
}

impl Progress {
    /// `verb` says what was done to the things that are counted, such as `loaded`.
    pub fn new(verb: &'static str) -> Progress {
        Progress { verb, is_shown: io::stderr().is_terminal(), last: Instant::now(), is_written: false }
    }

    pub fn at(&mut self, count: u64) {
        if self.is_shown && self.last.elapsed() >= EVERY {
            (self.last, self.is_written) = (Instant::now(), true);
            let _ = write!(io::stderr(), "\r{} {count}\x1b[K", self.verb);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_written {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

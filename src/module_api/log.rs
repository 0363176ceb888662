//! The server's log, which is safe to call with any text, from any thread, at any time.
//!
//! The server takes a C format string, so a `%n` in the name of a queue would write to memory, and a NUL would truncate
//! the line (or abort, in the crate's wrapper). Here the format is always `%s`, and the text is one sanitized line:
//! control characters are replaced by spaces, so that no name can forge a log line. Nothing is allocated.

use std::ffi::CStr;
use std::fmt::{self, Write};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;

use super::api::api;
use super::ctx::Ctx;

/// The longest line, in bytes. With the server's prefix it stays within the server's own limit (`LOG_MAX_LEN`). A
/// longer line is truncated.
const LINE_MAX: usize = 1000;

/// The severity of a line, as in the server's `loglevel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Information that is useful to an operator.
    Notice,
    /// A condition that needs an operator's attention.
    Warning,
}

impl Level {
    const fn name(self) -> &'static CStr {
        match self {
            Level::Notice => c"notice",
            Level::Warning => c"warning",
        }
    }
}

/// The context that gives each line the module's name. Null until [`attach`] is called; until then the server writes
/// `<module>`.
static ORIGIN: AtomicPtr<raw::RedisModuleCtx> = AtomicPtr::new(ptr::null_mut());

/// From now on, lines that are logged without a context carry the module's name. Called once, while the module loads.
pub fn attach(ctx: Ctx) {
    // SAFETY: the context is the load's own. The detached context that is returned lives until the process ends.
    let detached = unsafe { api!(RedisModule_GetDetachedThreadSafeContext)(ctx.as_ptr()) };
    ORIGIN.store(detached, Ordering::Release);
}

/// The context under which lines are logged, for callers that have no context of their own.
///
/// # Safety
/// The caller is on the server's main thread, and the context is used only there.
pub unsafe fn detached<'a>() -> Option<Ctx<'a>> {
    let origin = ORIGIN.load(Ordering::Acquire);
    // SAFETY: it lives until the process ends; the caller vouches for the thread.
    (!origin.is_null()).then(|| unsafe { Ctx::from_raw(origin) })
}

/// Logs one line. Control characters are replaced by spaces, and the line is truncated to 1,000 bytes. Without a server
/// (in unit tests) the line goes to standard error.
pub fn log(level: Level, text: &str) {
    let mut line = Line::new(Charset::Utf8);
    // A `Line` keeps what fits and never returns an error.
    let _ = line.write_str(text);
    // SAFETY: the static is read by value.
    let Some(log) = (unsafe { raw::RedisModule_Log }) else {
        eprintln!("{text}");
        return;
    };
    let origin = ORIGIN.load(Ordering::Acquire);
    // SAFETY: the server reads no more of the context than its module, so any thread may pass it, and it may be
    // null; level, format and text are C strings, and the format takes exactly the one that follows.
    unsafe {
        log(origin, level.name().as_ptr(), c"%s".as_ptr(), line.as_c_str().as_ptr());
    }
}

/// The characters that a [`Line`] keeps unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    /// Everything except control characters.
    Utf8,
    /// Printable ASCII only, which every client can read in an error reply.
    Ascii,
}

/// One line of text as a C string of bounded length, on the stack. It contains no NUL, CR or LF.
pub(super) struct Line {
    bytes: [u8; LINE_MAX + 1],
    len: usize,
    charset: Charset,
}

impl Line {
    /// Creates an empty line.
    pub(super) const fn new(charset: Charset) -> Self {
        Line { bytes: [0; LINE_MAX + 1], len: 0, charset }
    }

    /// The line as a C string. All bytes after the text are NUL, and there is at least one.
    pub(super) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    fn push(&mut self, c: char) {
        let taken = match self.charset {
            _ if c.is_control() => ' ',
            Charset::Ascii if !c.is_ascii() => '?',
            _ => c,
        };
        let end = self.len + taken.len_utf8();
        // The last byte remains NUL. A character that does not fit ends the line, even if a narrower one would fit.
        match self.bytes.get_mut(self.len..end) {
            Some(room) if end <= LINE_MAX => {
                taken.encode_utf8(room);
                self.len = end;
            }
            _ => self.len = LINE_MAX,
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if self.len >= LINE_MAX {
                break;
            }
            self.push(c);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(charset: Charset, text: &str) -> String {
        let mut line = Line::new(charset);
        line.write_str(text).unwrap();
        line.as_c_str().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_line_holds_no_control_character_and_keeps_percent_signs() {
        assert_eq!(line(Charset::Utf8, "a\0b\r\nc%n\x1b[1m"), "a b  c%n [1m");
        assert_eq!(line(Charset::Utf8, "ключ"), "ключ");
        assert_eq!(line(Charset::Ascii, "ERR no key ключ\0\r\n."), "ERR no key ????   .");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(line(Charset::Utf8, &"x".repeat(5000)).len(), LINE_MAX);
        let wide = line(Charset::Utf8, &format!("x{}", "ж".repeat(5000)));
        assert_eq!(wide.len(), LINE_MAX - 1);
        // Nothing follows a character that was cut.
        let then = line(Charset::Utf8, &format!("{}жy", "x".repeat(LINE_MAX - 1)));
        assert_eq!(then.len(), LINE_MAX - 1);
    }

    #[test]
    fn logging_without_a_server_is_harmless() {
        log(Level::Notice, "%s%n\0");
    }
}

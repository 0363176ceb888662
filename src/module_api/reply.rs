//! Replies. One call makes one reply, or one element of the array or map that was begun.
//!
//! The server writes texts into the protocol as they are, so a line break in an error would be a second reply. Here
//! errors are cleaned, simple strings are constants, and all else is counted bytes.

use std::ffi::{c_long, CStr};
use std::fmt::Write;

use super::api::api;
use super::ctx::Ctx;
use super::log::{Charset, Line};

impl Ctx {
    /// A whole number.
    #[inline]
    pub fn integer(&self, value: i64) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithLongLong)(self.as_ptr(), value) };
    }

    /// A bulk string of any bytes.
    #[inline]
    pub fn bulk(&self, bytes: &[u8]) {
        // SAFETY: the context is valid; the server copies `len` bytes from a valid slice.
        unsafe { api!(RedisModule_ReplyWithStringBuffer)(self.as_ptr(), bytes.as_ptr().cast(), bytes.len()) };
    }

    /// A simple string: a fixed text without CR or LF.
    #[inline]
    pub fn simple(&self, text: &'static CStr) {
        // SAFETY: the context is valid, the text a C string.
        unsafe { api!(RedisModule_ReplyWithSimpleString)(self.as_ptr(), text.as_ptr()) };
    }

    /// `OK`.
    #[inline]
    pub fn ok(&self) {
        self.simple(c"OK");
    }

    /// An error. The text begins with its code, as in `ERR no such key`. Control characters become blanks, what is
    /// not ASCII becomes `?`, and what exceeds 1,000 bytes is cut.
    pub fn error(&self, text: &str) {
        let mut line = Line::new(Charset::Ascii);
        // A line takes what fits and never fails.
        let _ = line.write_str(text);
        // SAFETY: the context is valid, the line a C string without CR and LF.
        unsafe { api!(RedisModule_ReplyWithError)(self.as_ptr(), line.as_c_str().as_ptr()) };
    }

    /// Null in the place of a value: `$-1` in RESP2, `_` in RESP3.
    #[inline]
    pub fn null(&self) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithNull)(self.as_ptr()) };
    }

    /// Null in the place of an array: `*-1` in RESP2, `_` in RESP3.
    #[inline]
    pub fn null_array(&self) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithNullArray)(self.as_ptr()) };
    }

    /// Begins an array of `len` elements, which must follow.
    #[inline]
    pub fn array(&self, len: usize) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithArray)(self.as_ptr(), to_long(len)) };
    }

    /// Begins a map of `len` pairs, which must follow: key, value, key, … In RESP2 a flat array of twice as many.
    #[inline]
    pub fn map(&self, len: usize) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithMap)(self.as_ptr(), to_long(len)) };
    }
}

/// A length as the server counts it. No reply is longer than that.
#[inline]
fn to_long(len: usize) -> c_long {
    c_long::try_from(len).unwrap_or(c_long::MAX)
}

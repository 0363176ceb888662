//! Replies. Each call sends one reply, or one element of the array or map that was started before.
//!
//! The server writes texts into the protocol unchanged, so a line break in an error would start a second reply. Here
//! errors are sanitized, simple strings are constants, and everything else is length-prefixed.

use std::ffi::{c_long, CStr};
use std::fmt::Write;

use super::api::api;
use super::ctx::Ctx;
use super::log::{Charset, Line};

impl Ctx<'_> {
    /// Replies with an integer.
    pub fn integer(&self, value: i64) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithLongLong)(self.as_ptr(), value) };
    }

    /// Replies with a bulk string of any bytes.
    pub fn bulk(&self, bytes: &[u8]) {
        // SAFETY: the context is valid; the server copies `len` bytes from a valid slice.
        unsafe { api!(RedisModule_ReplyWithStringBuffer)(self.as_ptr(), bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Replies with an integer, or with null if there is none.
    pub fn integer_or_null(&self, value: Option<i64>) {
        value.map_or_else(|| self.null(), |value| self.integer(value));
    }

    /// Replies with a bulk string, or with null if there is none.
    pub fn bulk_or_null(&self, bytes: Option<&[u8]>) {
        bytes.map_or_else(|| self.null(), |bytes| self.bulk(bytes));
    }

    /// Replies with a simple string: a constant text without CR and LF.
    pub fn simple(&self, text: &'static CStr) {
        // SAFETY: the context is valid, the text a C string.
        unsafe { api!(RedisModule_ReplyWithSimpleString)(self.as_ptr(), text.as_ptr()) };
    }

    /// Replies with `OK`.
    pub fn ok(&self) {
        self.simple(c"OK");
    }

    /// Replies with an error. The text begins with its code, as in `ERR no such key`. Control characters are replaced
    /// by spaces, other characters outside ASCII by `?`, and the text is truncated to 1,000 bytes.
    pub fn error(&self, text: &str) {
        let mut line = Line::new(Charset::Ascii);
        // A `Line` keeps what fits and never returns an error.
        let _ = line.write_str(text);
        // SAFETY: the context is valid, the line a C string without CR and LF.
        unsafe { api!(RedisModule_ReplyWithError)(self.as_ptr(), line.as_c_str().as_ptr()) };
    }

    /// Replies with null in place of a value: `$-1` in RESP2, `_` in RESP3.
    pub fn null(&self) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithNull)(self.as_ptr()) };
    }

    /// Replies with null in place of an array: `*-1` in RESP2, `_` in RESP3.
    pub fn null_array(&self) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithNullArray)(self.as_ptr()) };
    }

    /// Starts an array. The `len` elements must follow.
    pub fn array(&self, len: usize) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithArray)(self.as_ptr(), to_long(len)) };
    }

    /// Starts a map. The `len` pairs must follow as key, value, key, value, … In RESP2 it is a flat array of `2 * len`
    /// elements.
    pub fn map(&self, len: usize) {
        // SAFETY: the context is valid, see `Ctx::from_raw`.
        unsafe { api!(RedisModule_ReplyWithMap)(self.as_ptr(), to_long(len)) };
    }
}

/// Converts a length to the server's type. No reply is longer than `c_long::MAX`.
fn to_long(len: usize) -> c_long {
    c_long::try_from(len).unwrap_or(c_long::MAX)
}

//! The arguments of a command, borrowed from the server for the duration of the call. Nothing is copied.
//!
//! [`Args::next`] reads them one by one, starting after the command's own name.

use std::ffi::c_int;

use redis_module::raw;

use super::ctx::Name;

/// The arguments of one command and a read position.
#[derive(Clone)]
pub struct Args<'a> {
    words: &'a [Name<'a>],
    at: usize,
}

impl<'a> Args<'a> {
    /// Wraps the arguments that the server passed to a callback. The read position is after the command's name.
    ///
    /// # Safety
    /// `argv` points to `argc` strings of the server that all live, unchanged, for `'a`.
    pub unsafe fn from_raw(argv: *mut *mut raw::RedisModuleString, argc: c_int) -> Self {
        let len = usize::try_from(argc).unwrap_or(0);
        let words = if argv.is_null() || len == 0 {
            &[][..]
        } else {
            // SAFETY: the caller warrants `argc` valid strings; `Name` is a transparent wrapper of one pointer.
            unsafe { std::slice::from_raw_parts(argv.cast::<Name<'a>>().cast_const(), len) }
        };
        Args { words, at: 1 }
    }

    /// Reads the next argument. Returns `None` at the end.
    pub fn next(&mut self) -> Option<&'a [u8]> {
        self.next_name().map(Name::bytes)
    }

    /// Reads the next argument as the name of a key. Returns `None` at the end.
    pub fn next_name(&mut self) -> Option<Name<'a>> {
        let word = *self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    /// Returns the next argument without reading it, or `None` at the end.
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.words.get(self.at).map(|word| word.bytes())
    }

    /// Reads the next `count` arguments as names of keys. Returns `None`, and reads nothing, if there are fewer.
    pub fn take_names(&mut self, count: usize) -> Option<&'a [Name<'a>]> {
        let names = self.words.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(names)
    }

    /// Reads the next `count` arguments. Returns `None`, and reads nothing, if there are fewer.
    pub fn take(&mut self, count: usize) -> Option<impl ExactSizeIterator<Item = &'a [u8]>> {
        self.take_names(count).map(|words| words.iter().map(|word| word.bytes()))
    }

    /// Reads all arguments that have not been read.
    pub fn rest(&mut self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let words = self.words.get(self.at..).unwrap_or_default();
        self.at = self.words.len();
        words.iter().map(|word| word.bytes())
    }

    /// All arguments from the command's name on, whether or not they have been read.
    pub fn all(&self) -> &'a [Name<'a>] {
        self.words
    }

    /// The number of arguments that have not been read.
    pub fn remaining(&self) -> usize {
        self.words.len().saturating_sub(self.at)
    }
}

/// Calls `parse` with arguments that no server sent and with a context that can only be asked for its flags. For the
/// fuzzer.
#[cfg(any(test, feature = "fuzzing"))]
pub fn with_words<R>(words: &[&[u8]], parse: impl FnOnce(super::ctx::Ctx, Args<'_>) -> R) -> R {
    unsafe extern "C" fn bytes_of(word: *const raw::RedisModuleString, len: *mut usize) -> *const std::ffi::c_char {
        // SAFETY: the pointer is one of those below, to a slice that outlives the call of `parse`.
        let word = unsafe { *word.cast::<&[u8]>() };
        // SAFETY: the caller passes a place for the length.
        unsafe { *len = word.len() };
        word.as_ptr().cast()
    }
    unsafe extern "C" fn no_flags(_: *mut raw::RedisModuleCtx) -> c_int {
        0
    }
    // SAFETY: no server is there that could have filled them, or read them meanwhile.
    unsafe {
        raw::RedisModule_StringPtrLen = Some(bytes_of);
        raw::RedisModule_GetContextFlags = Some(no_flags);
    }
    // The first argument is the command's name, which is never read.
    let mut strings: Vec<*mut raw::RedisModuleString> = vec![std::ptr::null_mut()];
    strings.extend(words.iter().map(|word| std::ptr::from_ref(word).cast_mut().cast()));
    let argc = c_int::try_from(strings.len()).unwrap_or(0);
    // SAFETY: the strings live and stay as they are until the end of this function, and are read by `bytes_of` alone.
    let args = unsafe { Args::from_raw(strings.as_mut_ptr(), argc) };
    // SAFETY: the context is null, and handed to `no_flags` alone.
    parse(unsafe { super::ctx::Ctx::from_raw(std::ptr::null_mut()) }, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_words_reads_as_empty() {
        // SAFETY: no words are claimed.
        let mut args = unsafe { Args::from_raw(std::ptr::null_mut(), 0) };
        assert_eq!(args.remaining(), 0);
        assert!(args.next().is_none());
    }

    #[test]
    fn the_cursor_starts_after_the_commands_name() {
        let mut words = [std::ptr::dangling_mut::<raw::RedisModuleString>(); 3];
        // SAFETY: three pointers, none of which is followed here.
        let mut args = unsafe { Args::from_raw(words.as_mut_ptr(), 3) };
        assert_eq!(args.remaining(), 2);
        assert!(args.next_name().is_some() && args.next_name().is_some() && args.next_name().is_none());
        assert_eq!(args.remaining(), 0);
    }
}

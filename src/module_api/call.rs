//! Calling other commands of the server, and the strings that such a call takes.

use std::ffi::{c_int, CStr};
use std::ptr;

use redis_module::raw;
use smallvec::SmallVec;

use super::api::api;
use super::ctx::Ctx;

/// A string that the module has made, as an argument of a call.
pub struct Word(*mut raw::RedisModuleString);

impl Word {
    /// Copies the bytes.
    pub fn new(bytes: &[u8]) -> Word {
        // SAFETY: the server copies `len` bytes from a valid slice; the context may be null.
        Word(unsafe { api!(RedisModule_CreateString)(ptr::null_mut(), bytes.as_ptr().cast(), bytes.len()) })
    }

    /// The pointer, for API calls that have no wrapper here.
    pub fn as_ptr(&self) -> *mut raw::RedisModuleString {
        self.0
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        // SAFETY: the string was made without a context and is freed once. Other holders have references of their own.
        unsafe { api!(RedisModule_FreeString)(ptr::null_mut(), self.0) }
    }
}

impl Ctx<'_> {
    /// Publishes a message on a channel. In a cluster the subscribers of all nodes get it, otherwise those of this
    /// server.
    pub fn publish(&self, channel: &Word, message: &Word) {
        // SAFETY: the context is valid, and both strings are until the end of the call. The server copies them.
        unsafe { api!(RedisModule_PublishMessage)(self.as_ptr(), channel.0, message.0) };
    }
}

/// The reply to a call.
pub struct CallReply(*mut raw::RedisModuleCallReply);

impl CallReply {
    /// Takes what `RedisModule_Call` returned.
    ///
    /// # Safety
    /// `reply` is null, or was returned by `RedisModule_Call` in a context without automatic memory and is not used
    /// otherwise.
    pub unsafe fn from_raw(reply: *mut raw::RedisModuleCallReply) -> Option<CallReply> {
        // Not `then_some`, which would make a reply of the null pointer, and free it.
        (!reply.is_null()).then(|| CallReply(reply))
    }

    /// Returns the error's text if the reply is an error.
    pub fn error(&self) -> Option<&[u8]> {
        // SAFETY: the reply is valid until it is dropped; the server writes the length of the text, which lives as
        // long as the reply.
        unsafe {
            if api!(RedisModule_CallReplyType)(self.0) != raw::REDISMODULE_REPLY_ERROR as c_int {
                return None;
            }
            let mut len = 0;
            let text = api!(RedisModule_CallReplyStringPtr)(self.0, &raw mut len);
            Some(if text.is_null() { &[] } else { std::slice::from_raw_parts(text.cast(), len) })
        }
    }

    /// Returns the text at this position if the reply is an array that has one there.
    fn text_at(&self, position: usize) -> Option<String> {
        // SAFETY: the reply is valid until it is dropped, and so are its elements, which belong to it; the server
        // checks the type and the position, writes the length of the text, and keeps the text as long as the reply.
        unsafe {
            let element = api!(RedisModule_CallReplyArrayElement)(self.0, position);
            if element.is_null() {
                return None;
            }
            let mut len = 0;
            let text = api!(RedisModule_CallReplyStringPtr)(element, &raw mut len);
            let bytes: &[u8] = if text.is_null() { return None } else { std::slice::from_raw_parts(text.cast(), len) };
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    /// Sends the reply to the client of `ctx`.
    pub fn forward_to(&self, ctx: Ctx) {
        // SAFETY: the context is valid, and so is the reply until it is dropped.
        unsafe { api!(RedisModule_ReplyWithCallReply)(ctx.as_ptr(), self.0) };
    }
}

impl Drop for CallReply {
    fn drop(&mut self) {
        // SAFETY: see `from_raw`; freed once.
        unsafe { api!(RedisModule_FreeCallReply)(self.0) }
    }
}

/// The `RM_Call` format of a write that the module makes by itself: replicated, errors as replies, refused where a
/// script would be refused and where memory is low, an array of strings.
const WRITE: &CStr = c"!ESMv";

/// The format of a read: errors as replies, an array of strings.
const READ: &CStr = c"Ev";

impl Ctx<'_> {
    /// Returns the error with which the server refuses a look at a key, as it does in a cluster if the key is not here
    /// and its slot is moving to another node. No key may be open.
    pub fn call_exists(&self, key: &Word) -> Result<(), String> {
        self.call(c"EXISTS", READ, [key])
    }

    /// Calls a command that writes, in the selected database, and replicates it. It is refused if the server refuses
    /// writes at present. Returns the error's text if it is not executed. No key may be open.
    ///
    /// While [`avoid_replication_traffic`](Self::avoid_replication_traffic) returns `true`, this must not be called
    /// outside a client's command: the server would abort.
    pub fn call_write<'w>(&self, command: &CStr, words: impl IntoIterator<Item = &'w Word>) -> Result<(), String> {
        self.call(command, WRITE, words)
    }

    /// Returns the value of a parameter of the server; `None` if there is no such parameter.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let words = [Word::new(b"GET"), Word::new(name.as_bytes())];
        // The reply is the name and the value.
        self.reply_to(c"CONFIG", READ, &words)?.text_at(1)
    }

    fn reply_to<'w>(
        &self,
        command: &CStr,
        format: &CStr,
        words: impl IntoIterator<Item = &'w Word>,
    ) -> Option<CallReply> {
        let words: SmallVec<[*mut raw::RedisModuleString; 16]> = words.into_iter().map(|word| word.0).collect();
        // SAFETY: the context is valid; the format names an array of the server's strings with its length, which is
        // what follows. The server takes references of its own.
        unsafe {
            let (ctx, command, format) = (self.as_ptr(), command.as_ptr(), format.as_ptr());
            CallReply::from_raw(api!(RedisModule_Call)(ctx, command, format, words.as_ptr(), words.len()))
        }
    }

    fn call<'w>(&self, command: &CStr, format: &CStr, words: impl IntoIterator<Item = &'w Word>) -> Result<(), String> {
        let Some(reply) = self.reply_to(command, format, words) else {
            return Err(format!("ERR the server did not call {}", command.to_string_lossy()));
        };
        match reply.error() {
            None => Ok(()),
            Some(text) => Err(String::from_utf8_lossy(text).trim_end().to_owned()),
        }
    }
}

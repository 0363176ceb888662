//! The row of a command: constants that read like its syntax, and their representation in the server's API.
//!
//! A row stands once, next to the handler:
//! ```text
//! const ROW: Row = Row {
//!     name: c"DQ.LEN",
//!     flags: c"readonly fast",
//!     arity: -2,
//!     keys: Keys::First(Access::READ),
//!     args: &[Arg::key(c"key"), Arg::oneof(c"state", &[Arg::token(c"ready", c"READY"), …]).optional()],
//!     …
//! };
//! ```

#[cfg(test)]
mod tests;

use std::ffi::{c_int, CStr};
use std::fmt;
use std::ptr;

use redis_module::raw;

use super::key_flags::{Access, Keys};

/// What the server knows about a command. The server copies every text.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name of the command, `DQ.…`.
    pub name: &'static CStr,
    /// The server's flags, separated by spaces: `write deny-oom fast`.
    pub flags: &'static CStr,
    /// The number of words, including the name; `-n` means n or more. The server checks it before the handler runs.
    pub arity: i32,
    /// Which arguments are keys.
    pub keys: Keys,
    /// The ACL categories besides the module's own and those that follow from the flags, separated by spaces and
    /// without `@`: `dangerous`.
    pub acl: &'static CStr,
    /// The summary, one or two sentences without a final full stop.
    pub summary: &'static CStr,
    /// The time complexity, as in `O(log N) where N is the number of messages in the queue`.
    pub complexity: &'static CStr,
    /// The first version of the module that has the command.
    pub since: &'static CStr,
    /// Hints for clients and proxies, such as `nondeterministic_output`. Empty if there are none.
    pub tips: &'static CStr,
    /// The positional arguments, in order.
    pub args: &'static [Arg],
    /// The options that follow the arguments in any order, as the option sets of `commands::options` list them.
    pub options: &'static [&'static [Arg]],
}

impl fmt::Display for Row {
    /// Writes the syntax of the command, as in `DQ.LEN key [READY | DEAD]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name.to_string_lossy())?;
        let arguments = self.args.iter().chain(self.options.iter().copied().flatten());
        arguments.into_iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

impl Row {
    /// What most commands have in common.
    pub const BASE: Row = Row {
        name: c"",
        flags: c"",
        arity: 2,
        keys: Keys::First(Access::READ),
        acl: c"",
        summary: c"",
        complexity: c"",
        since: c"0.2.0",
        tips: c"",
        args: &[],
        options: &[],
    };

    /// The ACL categories that follow from the flags: a command that is not fast is slow.
    pub fn categories(&self) -> impl Iterator<Item = &'static str> {
        let flags = || self.flags.to_str().unwrap_or_default().split(' ');
        let has = |flag: &str| flags().any(|own| own == flag);
        let access = if has("write") { "write" } else { "read" };
        let speed = if has("fast") { "fast" } else { "slow" };
        [access, speed].into_iter().chain(has("blocking").then_some("blocking"))
    }

    /// Whether `word` is a token anywhere in the syntax of the command, ignoring case.
    pub fn has_token(&self, word: &[u8]) -> bool {
        self.args.iter().chain(self.options.iter().copied().flatten()).any(|argument| argument.has_token(word))
    }
}

/// One argument of a command, as shown by `COMMAND DOCS`.
#[derive(Debug, Clone, Copy)]
pub struct Arg {
    /// The name by which the documentation refers to the argument.
    pub name: &'static CStr,
    /// The word that precedes the value, or that is the whole argument.
    pub token: Option<&'static CStr>,
    /// The parts of a compound argument.
    pub parts: &'static [Arg],
    kind: raw::RedisModuleCommandArgType,
    flags: u32,
    /// The index of the key spec that finds a key.
    key_spec: c_int,
}

impl Arg {
    const fn new(name: &'static CStr, kind: raw::RedisModuleCommandArgType) -> Self {
        Arg { name, token: None, parts: &[], kind, flags: raw::REDISMODULE_CMD_ARG_NONE, key_spec: 0 }
    }

    /// The name of a key.
    pub const fn key(name: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY)
    }

    /// The name of a key that is found by another key spec than the first.
    pub const fn other_key(name: &'static CStr, key_spec: c_int) -> Self {
        let mut arg = Self::key(name);
        arg.key_spec = key_spec;
        arg
    }

    /// Any bytes.
    pub const fn string(name: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING)
    }

    /// An integer.
    pub const fn int(name: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER)
    }

    /// A token and a Unix time: `AT unix-ms`.
    pub const fn token_time(token: &'static CStr, name: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_UNIX_TIME).after(token)
    }

    /// A token and an integer: `DELAY ms`.
    pub const fn token_int(token: &'static CStr, name: &'static CStr) -> Self {
        Self::int(name).after(token)
    }

    /// A token and any bytes: `ERROR text`.
    pub const fn token_string(token: &'static CStr, name: &'static CStr) -> Self {
        Self::string(name).after(token)
    }

    /// A token without a value: `REPLACE`.
    pub const fn token(name: &'static CStr, token: &'static CStr) -> Self {
        Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN).after(token)
    }

    /// One of several alternatives.
    pub const fn oneof(name: &'static CStr, parts: &'static [Arg]) -> Self {
        let mut arg = Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF);
        arg.parts = parts;
        arg
    }

    /// Several arguments that follow each other.
    pub const fn block(name: &'static CStr, parts: &'static [Arg]) -> Self {
        let mut arg = Self::new(name, raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK);
        arg.parts = parts;
        arg
    }

    const fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// This argument, preceded by a token.
    #[must_use]
    pub const fn after(mut self, token: &'static CStr) -> Self {
        self.token = Some(token);
        self
    }

    /// This argument as an optional one.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.flags |= raw::REDISMODULE_CMD_ARG_OPTIONAL;
        self
    }

    /// This argument as a repeatable one. Its token, if it has one, appears only once.
    #[must_use]
    pub const fn multiple(mut self) -> Self {
        self.flags |= raw::REDISMODULE_CMD_ARG_MULTIPLE;
        self
    }

    /// Returns which of the tokens that may begin this argument `word` is, ignoring case: 0 for its own token, the
    /// index of the part for one of several alternatives, or `None` if it is none of them.
    #[inline(always)] // with a constant argument a few comparisons are left of it
    pub fn token_of(&self, word: &[u8]) -> Option<usize> {
        let is = |token: &CStr| token.to_bytes().eq_ignore_ascii_case(word);
        match self.token {
            Some(token) => is(token).then_some(0),
            None => self.parts.iter().position(|part| part.token.is_some_and(is)),
        }
    }

    /// Whether `word` is the token of this argument or of one of its parts, ignoring case.
    fn has_token(&self, word: &[u8]) -> bool {
        self.token.is_some_and(|token| token.to_bytes().eq_ignore_ascii_case(word))
            || self.parts.iter().any(|part| part.has_token(word))
    }

    /// Converts the arguments to the server's representation, terminated by a zeroed entry; null if there are none.
    /// This array and those of the parts are added to `tables`, and the pointers are valid as long as these exist.
    pub(super) fn table(
        args: &[Arg],
        tables: &mut Vec<Box<[raw::RedisModuleCommandArg]>>,
    ) -> *mut raw::RedisModuleCommandArg {
        if args.is_empty() {
            return ptr::null_mut();
        }
        let is_key = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY;
        // SAFETY: plain C data, for which zero is valid: null pointers and the first kind. It is what ends the array.
        let zero: raw::RedisModuleCommandArg = unsafe { std::mem::zeroed() };
        let mut table: Vec<_> = args
            .iter()
            .map(|arg| raw::RedisModuleCommandArg {
                name: arg.name.as_ptr(),
                type_: arg.kind,
                key_spec_index: if arg.kind == is_key { arg.key_spec } else { -1 },
                token: arg.token.map_or(ptr::null(), CStr::as_ptr),
                flags: arg.flags as c_int,
                subargs: Arg::table(arg.parts, tables),
                ..zero
            })
            .collect();
        table.push(zero);
        let mut table = table.into_boxed_slice();
        let start = table.as_mut_ptr();
        tables.push(table);
        start
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_optional = self.has(raw::REDISMODULE_CMD_ARG_OPTIONAL);
        let is_multiple = self.has(raw::REDISMODULE_CMD_ARG_MULTIPLE);
        // The brackets of an optional argument show where its alternatives begin and end, if nothing else is in them.
        let is_bracketed = is_optional && !is_multiple && self.token.is_none();
        let value = match self.kind {
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN => None,
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF if is_bracketed => {
                Some(joined(self.parts, " | "))
            }
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_ONEOF => {
                Some(format!("<{}>", joined(self.parts, " | ")))
            }
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK => Some(joined(self.parts, " ")),
            _ => Some(self.name.to_string_lossy().into_owned()),
        };
        let more = value.as_ref().filter(|_| is_multiple).map(|value| format!("[{value} ...]"));
        let words: Vec<String> =
            self.token.map(|token| token.to_string_lossy().into_owned()).into_iter().chain(value).chain(more).collect();
        let words = words.join(" ");
        if is_optional {
            write!(f, "[{words}]")
        } else {
            f.write_str(&words)
        }
    }
}

/// The texts of several arguments with `between` between them.
fn joined(args: &[Arg], between: &str) -> String {
    args.iter().map(Arg::to_string).collect::<Vec<_>>().join(between)
}

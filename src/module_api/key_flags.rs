//! The keys of a command: where they are among its words, and the flags by which the server and cluster clients know
//! what the command does with each.

use super::ctx::Name;
use redis_module::raw;
use std::ffi::{c_int, CStr};

/// What a command does with its keys, for ACL key permissions and for cluster clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(u32);

impl Access {
    /// The server's flags.
    pub(super) const fn bits(self) -> u32 {
        self.0
    }

    /// Reads only the settings or counts of a value, and no user data.
    pub const PEEK: Access = Access(raw::REDISMODULE_CMD_KEY_RO);
    /// Reads and returns user data.
    pub const READ: Access = Access(raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS);
    /// Adds data, independently of the data that exists.
    pub const INSERT: Access = Access(raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_INSERT);
    /// Changes existing data.
    pub const UPDATE: Access = Access(raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_UPDATE);
    /// Removes data without returning it.
    pub const DELETE: Access = Access(raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_DELETE);

    /// This access, or this one together with [`READ`](Self::READ), as the options of a call decide.
    const fn varied(self) -> Access {
        Access(self.and(Access::READ).0 | raw::REDISMODULE_CMD_KEY_VARIABLE_FLAGS)
    }

    /// Combines two accesses. The result is read-only only if both are.
    #[must_use]
    pub const fn and(self, other: Access) -> Access {
        let bits = self.0 | other.0;
        if bits & raw::REDISMODULE_CMD_KEY_RW != 0 {
            Access(bits & !raw::REDISMODULE_CMD_KEY_RO)
        } else {
            Access(bits)
        }
    }
}

/// A key or a channel among the words of a command, with its position; the command's name is at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrChannel {
    /// A key.
    Key(usize, Access),
    /// A channel to which the command may make the server publish.
    Channel(usize),
}

impl KeyOrChannel {
    /// The position.
    pub const fn position(&self) -> usize {
        match self {
            KeyOrChannel::Key(position, _) | KeyOrChannel::Channel(position) => *position,
        }
    }
}

/// Which arguments of a command are keys.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// The first argument.
    First(Access),
    /// As many arguments as the first one says; they follow it.
    Counted(Access),
    /// The first argument, and those that options name, to which the data of the first key goes.
    FirstAnd {
        /// The access to the first key. If there are other keys or channels, its data is read as well.
        first: Access,
        /// The words that precede the other keys, and the accesses to these.
        after: &'static [(&'static CStr, Access)],
        /// Finds exactly the other keys, and the channels, among all words of a call.
        find: fn(&[Name<'_>]) -> Vec<KeyOrChannel>,
    },
}

impl Keys {
    /// The first key, the last key and the step, as commands were described before key specs existed.
    pub(super) const fn legacy(self) -> (c_int, c_int, c_int) {
        match self {
            Keys::First(_) | Keys::FirstAnd { .. } => (1, 1, 1),
            Keys::Counted(_) => (0, 0, 0),
        }
    }

    /// The key specs, terminated by a zeroed entry.
    pub(super) fn specs(self) -> Vec<raw::RedisModuleCommandKeySpec> {
        // SAFETY: plain C data, for which zero is valid: no notes, no search, no keys. It is what ends the array.
        let zero: raw::RedisModuleCommandKeySpec = unsafe { std::mem::zeroed() };
        let mut spec = zero;
        spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
        // One key: the one at which the search ends.
        let range = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_1 { lastkey: 0, keystep: 1, limit: 0 };
        match self {
            Keys::First(access) | Keys::FirstAnd { first: access, .. } => {
                // If the access depends on the options, the server has to ask for it.
                let flags = if matches!(self, Keys::First(_)) { access.0 } else { access.varied().0 };
                spec.flags = u64::from(flags);
                spec.bs.index.pos = 1;
                spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
                spec.fk.range = range;
            }
            Keys::Counted(access) => {
                spec.flags = u64::from(access.0);
                spec.bs.index.pos = 1;
                spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_KEYNUM;
                spec.fk.keynum = raw::RedisModuleCommandKeySpec__bindgen_ty_2__bindgen_ty_2 {
                    keynumidx: 0,
                    firstkey: 1,
                    keystep: 1,
                };
            }
        }
        let mut specs = vec![spec];
        if let Keys::FirstAnd { after, .. } = self {
            specs.extend(after.iter().map(|(word, access)| {
                let mut spec = zero;
                // The word may be missing, and it may be the name of a key itself, so the server has to ask.
                spec.flags = u64::from(access.0 | raw::REDISMODULE_CMD_KEY_INCOMPLETE);
                spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_KEYWORD;
                spec.bs.keyword =
                    raw::RedisModuleCommandKeySpec__bindgen_ty_1__bindgen_ty_2 { keyword: word.as_ptr(), startfrom: 2 };
                spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
                spec.fk.range = range;
                spec
            }));
        }
        specs.push(zero);
        specs
    }
}

//! A command as one row: its name, flags, arity, keys and documentation stand next to its handler, and everything the
//! server learns about the command is derived from the row.
//!
//! Registration has three steps, and only the first two must succeed: create the command; describe it (`COMMAND DOCS`,
//! arity and key specs, since 7.0); and put it into ACL categories (since 7.2; since 7.4 also into the module's own
//! category `dq`). The server copies every string and array, so rows are plain constants.

use std::ffi::{c_int, CStr, CString};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use redis_module::raw;

use super::api::api;
use super::args::Args;
use super::ctx::{is_ok, Ctx};
use super::guard::guard;
pub use super::key_flags::{Access, KeyOrChannel, Keys};
use super::log::{log, Level};
pub use super::row::{Arg, Row};

/// The module's own ACL category, if the server can add one.
const CATEGORY: &CStr = c"dq";

/// Whether [`CATEGORY`] was added, so that commands may join it.
static HAS_CATEGORY: AtomicBool = AtomicBool::new(false);

/// A command: its row and its handler.
pub trait Command {
    /// What the server knows about the command.
    const ROW: Row;

    /// Serves one call and sends exactly one reply. A panic is caught and answered with an error.
    fn run(call: Call<'_>);
}

/// Decides from where a command that changes data may come.
pub trait Wall {
    /// Refuses a write that must not come from its origin. Returns whether it was refused; if so, an error reply was
    /// sent.
    fn refuses_write(ctx: Ctx, command: &str) -> bool;
}

/// One call of a command.
pub struct Call<'a> {
    /// The server's context for this call.
    pub ctx: Ctx<'a>,
    /// The command's arguments, positioned after its name. Their number matches the row's arity.
    pub args: Args<'a>,
}

/// Adds the module's ACL category. Called once, before the commands are registered. If the server cannot add it, the
/// log says so, and users must be granted the commands by name.
pub fn add_acl_category(ctx: Ctx) {
    // SAFETY: the static is read by value.
    let Some(add) = (unsafe { raw::RedisModule_AddACLCategory }) else {
        log(Level::Notice, "this server cannot add ACL categories; there is no @dq, grant the commands by name");
        return;
    };
    // SAFETY: the context is the load's own, the name a C string that the server copies.
    if is_ok(unsafe { add(ctx.as_ptr(), CATEGORY.as_ptr()) }) {
        HAS_CATEGORY.store(true, Ordering::Relaxed);
    } else {
        log(Level::Warning, "the server did not add the ACL category @dq; grant the commands by name");
    }
}

/// Registers one command. An error names the command and the step that failed; the module then cannot load.
pub fn register<C: Command, W: Wall>(ctx: Ctx) -> Result<(), String> {
    let row = C::ROW;
    let name = name_of(&row);
    let (first, last, step) = row.keys.legacy();
    let flags = match row.keys {
        Keys::First(_) => row.flags.to_owned(),
        // Cluster routing does not read key specs, so the server has to call the command to find its keys.
        Keys::Counted(_) => with_flags(&row, b" getkeys-api"),
        Keys::FirstAnd { .. } => with_flags(&row, b" getkeys-api getchannels-api"),
    };
    // SAFETY: the context is the load's own, name and flags are C strings that the server copies, and `entry` has
    // the type that it calls.
    let created = unsafe {
        api!(RedisModule_CreateCommand)(
            ctx.as_ptr(),
            row.name.as_ptr(),
            Some(entry::<C, W>),
            flags.as_ptr(),
            first,
            last,
            step,
        )
    };
    if !is_ok(created) {
        return Err(format!("the server did not create {name}: it exists already, or a flag is unknown"));
    }
    // SAFETY: as above.
    let command = unsafe { api!(RedisModule_GetCommand)(ctx.as_ptr(), row.name.as_ptr()) };
    if command.is_null() {
        return Err(format!("the server does not find {name}, which it created"));
    }
    describe(command, &row).map_err(|()| format!("the server did not take the description of {name}"))?;
    categorise(command, &row);
    Ok(())
}

/// The flags of a command, and further ones.
fn with_flags(row: &Row, more: &[u8]) -> CString {
    CString::new([row.flags.to_bytes(), more].concat()).unwrap_or_default()
}

/// Passes the row's documentation, arity and keys to the server.
fn describe(command: *mut raw::RedisModuleCommand, row: &Row) -> Result<(), ()> {
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    let mut key_specs = row.keys.specs();
    let mut tables = Vec::new();
    let all = [&[row.args], row.options].concat().concat();
    let args = Arg::table(&all, &mut tables);
    let info = raw::RedisModuleCommandInfo {
        version: &raw const version,
        summary: row.summary.as_ptr(),
        complexity: row.complexity.as_ptr(),
        since: row.since.as_ptr(),
        history: ptr::null_mut(),
        tips: if row.tips.is_empty() { ptr::null() } else { row.tips.as_ptr() },
        arity: row.arity,
        key_specs: key_specs.as_mut_ptr(),
        args,
    };
    // SAFETY: the command is the server's; every pointer in `info` is null or leads to a constant, to `version`,
    // `key_specs` or `tables`, which live to the end of this function; both arrays end in a zeroed entry; and the
    // server copies what it keeps.
    let taken = unsafe { api!(RedisModule_SetCommandInfo)(command, &raw const info) };
    is_ok(taken).then_some(()).ok_or(())
}

/// Puts the command into its ACL categories, if the server supports these for modules. A failure is logged.
fn categorise(command: *mut raw::RedisModuleCommand, row: &Row) {
    // SAFETY: the static is read by value.
    let Some(set) = (unsafe { raw::RedisModule_SetCommandACLCategories }) else {
        return;
    };
    let own = HAS_CATEGORY.load(Ordering::Relaxed).then_some(CATEGORY);
    let further = [row.acl].into_iter().chain(own).filter_map(|words| words.to_str().ok());
    // The server refuses two spaces in a row.
    let words = row.categories().chain(further).filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ");
    // The parts are C strings, so the result contains no NUL.
    let words = CString::new(words).unwrap_or_default();
    // SAFETY: the command is the server's, the words a C string that it reads during the call.
    if !is_ok(unsafe { set(command, words.as_ptr()) }) {
        log(Level::Warning, &format!("the server did not put {} into the ACL categories {words:?}", name_of(row)));
    }
}

const fn name_of(row: &Row) -> &'static str {
    match row.name.to_str() {
        Ok(name) => name,
        Err(_) => "a command",
    }
}

/// Returns whether the command decides on a change, so that only a client may send it.
const fn decides(row: &Row) -> bool {
    let only_looks = matches!(row.flags.to_bytes(), [b'r', b'e', b'a', b'd', ..]);
    let is_effect = matches!(row.name.to_bytes(), b"DQ.E");
    !only_looks && !is_effect
}

/// Returns whether the server calls the command itself to learn where its keys are. It does not if they are always at
/// the same place.
const fn may_be_asked(row: &Row) -> bool {
    !matches!(row.keys, Keys::First(_))
}

/// Reads the number of keys that the command declares. Returns 0 if the argument is missing, or is not a number as the
/// server writes it.
fn count_of_keys(word: Option<&[u8]>) -> usize {
    let word = word.and_then(|word| std::str::from_utf8(word).ok()).unwrap_or_default();
    word.parse::<u32>().ok().filter(|count| count.to_string() == word).map_or(0, |count| count as usize)
}

/// Reports to the server where the keys and channels of a command are, if that is all that it asks for. Returns whether
/// it is.
fn report_keys(ctx: Ctx, keys: &Keys, args: &Args<'_>) -> bool {
    match keys {
        Keys::First(_) => false,
        Keys::Counted(access) => {
            let asks = ctx.asks_for_keys();
            if asks {
                let count = count_of_keys(args.peek()).min(args.remaining().saturating_sub(1));
                // The keys follow the command's name and the number of keys.
                (2..2 + count).for_each(|position| ctx.key_at(position, access.bits()));
            }
            asks
        }
        Keys::FirstAnd { first, find, .. } => {
            let (asks_for_keys, asks_for_channels) = (ctx.asks_for_keys(), ctx.asks_for_channels());
            if asks_for_keys || asks_for_channels {
                let others = find(args.all());
                if asks_for_keys {
                    let access = if others.is_empty() { *first } else { first.and(Access::READ) };
                    ctx.key_at(1, access.bits());
                }
                for found in others {
                    match found {
                        KeyOrChannel::Key(position, access) if asks_for_keys => ctx.key_at(position, access.bits()),
                        KeyOrChannel::Channel(position) if asks_for_channels => ctx.channel_at(position),
                        KeyOrChannel::Key(..) | KeyOrChannel::Channel(_) => {}
                    }
                }
            }
            asks_for_keys || asks_for_channels
        }
    }
}

/// The function that the server calls for the command.
extern "C" fn entry<C: Command, W: Wall>(
    ctx: *mut raw::RedisModuleCtx,
    argv: *mut *mut raw::RedisModuleString,
    argc: c_int,
) -> c_int {
    let name = const { name_of(&C::ROW) };
    // SAFETY: the server passes a context that is valid during this call.
    let ctx = unsafe { Ctx::from_raw(ctx) };
    let served = guard(name, false, || {
        // SAFETY: the server passes `argc` strings that live, unchanged, during this call.
        let args = unsafe { Args::from_raw(argv, argc) };
        if const { may_be_asked(&C::ROW) } && report_keys(ctx, const { &C::ROW.keys }, &args) {
            return true;
        }
        if !(const { decides(&C::ROW) } && W::refuses_write(ctx, name)) {
            C::run(Call { ctx, args });
        }
        true
    });
    if !served {
        ctx.error("INTERNAL a bug in the module ended the command; the server's log has more");
    }
    raw::REDISMODULE_OK as c_int
}

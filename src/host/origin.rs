//! The origin of a command, and which commands are allowed from each origin.
//!
//! Commands from a master, from an AOF or from the node that sends a slot were decided elsewhere. Such a command must
//! be an effect. A command such as `DQ.POP` would decide again, with a different result on each copy, and a command
//! that can block would stop the stream for ever. This module never writes such a command there (see [`listeners`]). If
//! one arrives anyway, from another program or an older version, it is refused: the copy then lacks a change, which the
//! log reports, instead of having a change that no other copy has.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::listeners;
use crate::module_api::ctx::{Ctx, Flags};
use crate::module_api::log::{log, Level};
use crate::module_api::register::Wall;

/// The name of the command that carries an effect. It is short because it is written with each effect.
pub const EFFECT_COMMAND: &CStr = c"DQ.E";
/// The number of commands that were refused so far.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Who decided on a command before it arrived here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No one: an ordinary client sent the command.
    Client,
    /// The AOF that is being loaded.
    Aof,
    /// This server's master.
    Master,
    /// The node from which a slot is being imported.
    Node,
}

impl Origin {
    /// Returns the origin of the current command.
    pub fn from_flags(flags: Flags) -> Origin {
        match (flags.loading(), flags.replicated(), flags.master()) {
            (true, _, _) => Origin::Aof,
            (false, true, false) => Origin::Master,
            (false, true, true) => Origin::Node,
            (false, false, _) => Origin::Client,
        }
    }

    const fn described(self) -> (&'static str, &'static str) {
        match self {
            Origin::Client => ("a client", ""),
            Origin::Aof => (
                "the AOF",
                "Another program wrote it. Compare the queues with what their users know, \
                 and let BGREWRITEAOF write a file without it",
            ),
            Origin::Master => (
                "this server's master",
                "The copy here may differ from the master's. Run the same version of the module on both, \
                 and make this replica synchronise in full: REPLICAOF NO ONE, then REPLICAOF <master>",
            ),
            Origin::Node => (
                "the node that a slot comes from",
                "The server gives this migration up, and nothing is lost. \
                 Run the same version of the module on both nodes, and migrate again",
            ),
        }
    }
}

/// The check before every write: only a client may send a write that is not an effect.
pub struct OnlyClients;

impl Wall for OnlyClients {
    /// On a master that is not loading and imports no slot, this costs one load of a byte, because commands come only
    /// from clients there.
    fn refuses_write(ctx: Ctx, command: &str) -> bool {
        listeners::may_follow() && refuses(ctx, command)
    }
}

#[cold]
fn refuses(ctx: Ctx, command: &str) -> bool {
    let origin = Origin::from_flags(ctx.flags());
    if origin == Origin::Client {
        return false;
    }
    let (from, remedy) = origin.described();
    let refused = REFUSED.fetch_add(1, Relaxed) + 1;
    // A stream that is wrong throughout must not fill the disk with log lines.
    if refused.is_power_of_two() {
        let so_far = format!("{refused} such commands so far");
        let text = format!("{command} from {from} was refused ({so_far}): only DQ.E may come from there. {remedy}");
        log(Level::Warning, &text);
    }
    ctx.error("ERR only DQ.E may come from a master, an AOF or another node; the log tells what to do");
    true
}

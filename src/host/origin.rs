//! Where a command comes from, and what may come from there.
//!
//! What a master sends, what an AOF holds and what another node of a cluster streams with a slot was decided
//! elsewhere. It is an effect and nothing else. A command such as `DQ.POP` would decide anew, differently on each copy,
//! and one that may block would stop the stream for good. This module never writes such a command there (see
//! [`listeners`]); if one comes all the same, from another program or an older version, it is refused: the copy then
//! lacks a change, which the log tells, instead of having one that nobody else has.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::listeners;
use crate::module_api::ctx::{Ctx, Flags};
use crate::module_api::log::{log, Level};
use crate::module_api::register::Wall;

/// Commands refused so far.
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Who decided on a command before it came here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody: an ordinary client sent it.
    Client,
    /// The AOF that is being loaded.
    Aof,
    /// This server's master.
    Master,
    /// The node that a slot comes from.
    Node,
}

impl Origin {
    /// Where the command that is being carried out comes from.
    pub fn of(flags: Flags) -> Origin {
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

/// The wall before every write: only a client may send one that is not an effect.
pub struct OnlyClients;

impl Wall for OnlyClients {
    /// Costs one look at a byte on a master that is not loading and imports no slot: commands come from clients there.
    #[inline]
    fn refuses_write(ctx: Ctx, command: &str) -> bool {
        listeners::may_be_told() && refuses(ctx, command)
    }
}

#[cold]
fn refuses(ctx: Ctx, command: &str) -> bool {
    let origin = Origin::of(ctx.flags());
    if origin == Origin::Client {
        return false;
    }
    let (from, remedy) = origin.described();
    let refused = REFUSED.fetch_add(1, Relaxed) + 1;
    // A stream that is wrong all along must not fill the disk with lines.
    if refused.is_power_of_two() {
        let so_far = format!("{refused} such commands so far");
        let text =
            format!("{command} from {from} was refused ({so_far}): only DQ.EFFECT may come from there. {remedy}");
        log(Level::Warning, &text);
    }
    ctx.error("ERR only DQ.EFFECT may come from a master, an AOF or another node; the log tells what to do");
    true
}

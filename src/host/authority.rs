//! Whether this server makes the decisions that time causes in a queue: which runs end, what is dropped and forwarded.
//!
//! A replica leaves these decisions to its master, and a node that imports a slot to the node that still owns it. A
//! server with `dq.allow-effects` leaves them to the sender of the effects, such as an AOF that is piped into it: these
//! effects include the decisions, and none must be made twice.

use super::{config, imports};
use crate::module_api::ctx::{server_flags, Name};

/// Whether this server decides by itself, unless a queue belongs to another node.
pub fn decides() -> bool {
    server_flags().master() && !config::allow_effects()
}

/// Whether this server decides about the queue at `name`.
pub fn decides_about(name: Name<'_>) -> bool {
    decides() && !imports::covers(name)
}

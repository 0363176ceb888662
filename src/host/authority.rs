//! Whether this server decides what time does to a queue: which runs end, what is dropped, what is forwarded.
//!
//! A replica leaves these decisions to its master, and a node that imports a slot to the node that still owns it. A server
//! with `dq.allow-effects` leaves them to whoever sends the effects, such as an AOF that is piped into it: the decisions
//! of time are among those effects, and the same decision must not be made twice.

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

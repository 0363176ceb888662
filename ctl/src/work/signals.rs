//! The signals on which a worker acts.

use crate::output::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Those that stop it, and SIGHUP, which also lets it read its file again. `nohup` ignores SIGHUP for a program, which
/// has to go on when its terminal is closed.
pub fn worker_signals(with_reload: bool) -> Vec<i32> {
    let mut signals = vec![SIGTERM, SIGINT];
    if with_reload || !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

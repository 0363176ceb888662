//! The signals on which a worker acts.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Those that stop it, and SIGHUP, which also lets it read its file again. `nohup` ignores SIGHUP for a program, which
/// has to go on when its terminal is closed.
pub fn worker_signals(with_reload: bool) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut signals = vec![SIGTERM, SIGINT];
    if with_reload || !ignores(&status, SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

/// Whether the status of a process says that it ignores a signal. Only Linux says it.
fn ignores(status: &str, signal: i32) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::{ignores, SIGHUP, SIGINT};

    #[test]
    fn the_signals_that_nohup_ignores_are_known() {
        let status = "Name:\tdqctl\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(ignores(status, SIGHUP) && !ignores(status, SIGINT));
        assert!(!ignores("", SIGHUP));
    }
}

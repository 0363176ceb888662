//! Signals that the program ignores because whoever started it does: `nohup` ignores SIGHUP, and a shell ignores SIGINT
//! for what it runs in the background.

/// Whether a signal was ignored when the program was started, and still is.
pub fn is_ignored(signal: i32) -> bool {
    ignores(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), signal)
}

/// Whether the status of a process lists a signal as ignored. Only Linux has this file.
fn ignores(status: &str, signal: i32) -> bool {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::ignores;
    use signal_hook::consts::{SIGHUP, SIGINT};

    #[test]
    fn the_signals_that_nohup_ignores_are_known() {
        let status = "Name:\tdqctl\nSigBlk:\t0000000000000003\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(ignores(status, SIGHUP) && !ignores(status, SIGINT));
        assert!(!ignores("", SIGHUP));
    }
}

//! `dqctl work` as process 1 of a container: processes whose parents have ended become its children, and it has to wait
//! for them.

use super::signals;
use rustix::io::Errno;
use rustix::process::{kill_process, wait, Pid, Signal, WaitOptions};
use signal_hook::iterator::Signals;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

/// Runs this program once more, as a child, which gets the signals. Returns its exit code.
pub fn run(with_reload: bool) -> io::Result<i32> {
    let mut signals = Signals::new(signals::worker_signals(with_reload))?;
    let mut command = Command::new(std::env::current_exe()?);
    // A terminal signals a whole group, and the child would get each signal twice.
    let child = command.args(std::env::args_os().skip(1)).process_group(0).spawn()?;
    let child = Pid::from_child(&child);
    thread::Builder::new().name("dq-signals".to_owned()).spawn(move || {
        for signal in signals.forever().filter_map(Signal::from_named_raw) {
            let _ = kill_process(child, signal);
        }
    })?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                let ended_by = || 128 + status.terminating_signal().unwrap_or_default();
                return Ok(status.exit_status().unwrap_or_else(ended_by));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

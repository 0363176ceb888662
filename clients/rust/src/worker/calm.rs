//! Keeps SIGCHLD from threads that wait on sockets.
//!
//! A program may start processes in its handlers. If a process ends while the thread that started it is still doing so,
//! Linux delivers SIGCHLD to another thread, although it is ignored. A read with a timeout then fails with EINTR, and
//! `redis-rs` does not resume it: the connection would count as lost, and its messages would be delivered again.

use nix::sys::signal::{SigSet, Signal};

/// Blocks SIGCHLD in the calling thread. Must not be called by threads that start processes, which inherit it.
pub(super) fn block_child_signals() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    // If this fails, a connection may be lost now and then, which only causes a delay.
    let _ = signals.thread_block();
}

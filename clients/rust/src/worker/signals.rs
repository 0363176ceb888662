//! The signals that ask a process to stop.

use crate::mode;
use std::future::Future;
use tokio::runtime::Handle;
use tokio::signal::unix::{signal, Signal, SignalKind};

/// The signals that ask a process to stop.
pub(super) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// They do not end the process from now on.
    pub fn listen(io: &Handle) -> std::io::Result<Signals> {
        let _runtime = io.enter();
        Ok(Signals { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// Waits for SIGTERM, which platforms send to a service that is to stop, or SIGINT (Ctrl-C). From the call on, they do
/// not end the process. `Worker::run` needs nothing of this; it is for a program that has more to stop than its
/// workers.
///
/// # Errors
/// If the operating system refuses a signal handler.
pub fn shutdown_signal() -> impl Future<Output = std::io::Result<()>> + Send + 'static {
    let signals = mode::io().and_then(|io| Signals::listen(&io));
    async move {
        signals?.next().await;
        Ok(())
    }
}

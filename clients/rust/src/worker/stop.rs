//! The request to stop a worker.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The request to stop, and what has to end then.
pub(super) struct Stop {
    asked: CancellationToken,
    /// Without waiting for running handlers.
    pub forced: CancellationToken,
    /// How long handlers may go on after it.
    pub grace: Mutex<Duration>,
    /// The tasks that pop.
    pub fetchers: TaskTracker,
    /// The messages that were delivered, and whose handlers have not ended.
    pub handlers: TaskTracker,
}

impl Stop {
    pub fn new(grace: Duration) -> Stop {
        let (asked, forced) = (CancellationToken::new(), CancellationToken::new());
        let (fetchers, handlers) = (TaskTracker::new(), TaskTracker::new());
        Stop { asked, forced, grace: Mutex::new(grace), fetchers, handlers }
    }

    /// Asks to stop; the second time, without waiting for handlers.
    pub fn ask(&self) {
        if self.is_set() {
            self.forced.cancel();
        }
        self.asked.cancel();
    }

    /// Asks to stop, if nobody has.
    pub fn ask_once(&self) {
        self.asked.cancel();
    }

    pub fn is_set(&self) -> bool {
        self.asked.is_cancelled()
    }

    pub async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// Waits for this time, or until the worker is asked to stop.
    pub async fn pause(&self, time: Duration) {
        let _ = timeout(time, self.asked.cancelled()).await;
    }

    /// Waits for this until a time, or until the worker is asked to stop a second time.
    pub async fn wait(&self, until: Instant, what: impl Future<Output = ()>) {
        tokio::select! {
            () = what => {}
            () = sleep_until(until.into()) => {}
            () = self.forced.cancelled() => {}
        }
    }
}

/// Asks a worker to stop, from any thread.
#[derive(Clone)]
pub struct Stopper(pub(super) Arc<Stop>);

impl Stopper {
    /// Asks the worker to stop. The second time, it does not wait for running handlers any longer.
    pub fn stop(&self) {
        self.0.ask();
    }
}

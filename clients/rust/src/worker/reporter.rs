//! Passes events on to `tracing` and to the observer of the program.
//!
//! Both are code of others, which may block or panic. So a thread of its own calls them, and one that blocks loses
//! events.

use super::event::Event;
use super::guard::guarded;
use std::io::{self, Write};
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread;
use tokio::sync::oneshot;

/// How many events wait for an observer that is slow.
const WAITING: usize = 10_000;

pub(super) type Observer = dyn Fn(&Event<'_>) + Send + Sync;
/// Makes an event, and calls what it is given with it.
type Emission = Box<dyn FnOnce(&dyn Fn(&Event<'_>)) + Send>;

/// The thread. It ends when this is dropped, as soon as it has passed on what waits.
pub(super) struct Reporter(SyncSender<Emission>);

impl Reporter {
    pub fn start(observer: Option<Arc<Observer>>) -> io::Result<Reporter> {
        let (sender, receiver) = sync_channel::<Emission>(WAITING);
        let emit = move |event: &Event<'_>| {
            guarded(|| event.trace());
            if let Some(observer) = &observer {
                guarded(|| observer(event));
            } else if !tracing::dispatcher::has_been_set() {
                // A program that has chosen no log is not to be silent about failures.
                let _ = writeln!(io::stderr(), "dq: {event}");
            }
        };
        let pass_on = move || receiver.into_iter().for_each(|emission| emission(&emit));
        thread::Builder::new().name("dq-events".to_owned()).spawn(pass_on)?;
        Ok(Reporter(sender))
    }

    /// Passes an event on, in the thread.
    pub fn report(&self, emission: impl FnOnce(&dyn Fn(&Event<'_>)) + Send + 'static) {
        let _ = self.0.try_send(Box::new(emission));
    }

    /// Waits until everything has been passed on that was reported before.
    pub async fn flush(&self) {
        let (passed, has_passed) = oneshot::channel::<()>();
        self.report(move |_| drop(passed));
        let _ = has_passed.await;
    }
}

//! Runs work, such as handlers: as tasks of the program's runtime, or in threads.

use crate::sync::lock;
use futures_util::future::BoxFuture;
use futures_util::FutureExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::{io, thread};
use tokio::runtime::Handle;

/// One piece of work. That of a plain function is ready when it is polled first.
pub(super) type Work = BoxFuture<'static, ()>;

pub(super) enum Executor {
    Tasks(Handle),
    Threads(Threads),
}

/// Threads, of which there is one for each piece of work that waits for them.
pub(super) struct Threads {
    /// `None` once no further work comes.
    sender: Mutex<Option<Sender<Work>>>,
    receiver: Arc<Mutex<Receiver<Work>>>,
    count: AtomicUsize,
}

impl Executor {
    pub fn threads() -> Executor {
        let (sender, receiver) = channel();
        let (sender, receiver) = (Mutex::new(Some(sender)), Arc::new(Mutex::new(receiver)));
        Executor::Threads(Threads { sender, receiver, count: AtomicUsize::new(0) })
    }

    /// Begins work. What no runtime or thread takes any more is dropped.
    pub fn begin(&self, all: Vec<Work>) {
        match self {
            Executor::Tasks(runtime) => {
                // One task crosses the threads, and the others are made where they run.
                runtime.spawn(async move {
                    for work in all {
                        tokio::spawn(work);
                    }
                });
            }
            Executor::Threads(threads) => {
                let Some(sender) = lock(&threads.sender).clone() else { return };
                for work in all {
                    let _ = sender.send(work);
                }
            }
        }
    }

    /// Starts threads until there are as many as this, if it has threads.
    pub fn grow(&self, count: usize) -> io::Result<()> {
        let Executor::Threads(threads) = self else { return Ok(()) };
        while threads.count.load(Ordering::Relaxed) < count {
            let receiver = Arc::clone(&threads.receiver);
            let next = move || lock(&receiver).recv();
            let run = move || {
                while let Ok(work) = next() {
                    work.now_or_never();
                }
            };
            thread::Builder::new().name("dq-handler".to_owned()).spawn(run)?;
            threads.count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How many pieces of work run at a time, at most `wanted`.
    pub fn limit(&self, wanted: usize) -> usize {
        match self {
            Executor::Tasks(_) => wanted,
            Executor::Threads(threads) => wanted.min(threads.count.load(Ordering::Relaxed)),
        }
    }

    /// Lets threads end once no work waits for them.
    pub fn close(&self) {
        if let Executor::Threads(threads) = self {
            lock(&threads.sender).take();
        }
    }
}

//! Freeing queues without holding the server up.
//!
//! Left to itself, the server would free a large value on a background thread of its own, at its leisure. But it tells
//! a module nothing that sets a value which waits there apart from one that lives on under another name (`RENAME`,
//! `MOVE`). So it is told that a queue is cheap to free, and has it freed at once. A large queue, of which it asked that, is
//! then taken apart on a thread of the module. Where it does not ask, as for `DEL` with `lazyfree-lazy-user-del no`, it
//! wants the memory back when the command ends, and gets it.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use super::datatype::Held;
use crate::module_api::guard::guard;

/// What has fewer allocations is freed on the spot: half a millisecond of work.
const LARGE: usize = 4096;

/// The queue of which the server last asked what it costs to free: it would free it in the background if that were much.
static ASKED: AtomicPtr<Held> = AtomicPtr::new(ptr::null_mut());

/// The main thread, which must not be held up.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// The way to the thread; none if there could be none.
static THREAD: OnceLock<Option<Mutex<Sender<Box<Held>>>>> = OnceLock::new();

/// Notes which thread is the main one. Once, while loading.
pub fn attach() {
    // The second load of a process finds what the first has noted.
    let _ = MAIN.set(thread::current().id());
}

/// Notes that the server is about to free a queue in the background, or at once if that is cheap; and says that it is.
pub fn effort(held: *const Held) -> usize {
    ASKED.store(held.cast_mut(), Relaxed);
    1
}

/// Frees a queue. What it adds to the sums of `INFO dq` is taken back before this returns.
pub fn dispose(mut held: Box<Held>) {
    held.withdraw();
    // Elsewhere it is a database that is freed, on the server's own thread.
    let on_main = MAIN.get() == Some(&thread::current().id());
    let may_wait = on_main && ptr::eq(ASKED.swap(ptr::null_mut(), Relaxed), &raw const *held);
    if !may_wait || held.queue.allocations() < LARGE {
        return drop(held);
    }
    match THREAD.get_or_init(start) {
        // If the thread has ended, the queue comes back with the error, and is freed here.
        Some(sender) => drop(sender.lock().unwrap_or_else(PoisonError::into_inner).send(held)),
        None => drop(held),
    }
}

/// Starts the thread.
fn start() -> Option<Mutex<Sender<Box<Held>>>> {
    let (sender, queues) = channel::<Box<Held>>();
    let work = move || queues.into_iter().for_each(|held| guard("freeing a queue", (), || drop(held)));
    let started = thread::Builder::new().name("dq-free".to_owned()).spawn(work);
    started.is_ok().then(|| Mutex::new(sender))
}

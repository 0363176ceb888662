//! Frees queues without blocking the server.
//!
//! By default the server would free a large value on its own background thread at some later time. But it does not tell
//! a module whether an unlinked value is waiting to be freed or lives on under another name (`RENAME`, `MOVE`). So the
//! module reports that a queue is cheap to free, and the server frees it at once. If the server asked for the effort,
//! it would have freed the value in the background, so a large queue is then taken apart on a thread of the module. If
//! the server did not ask, as for `DEL` with `lazyfree-lazy-user-del no`, it expects the memory back when the command
//! ends, and the queue is freed at once.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use super::queue_value::QueueValue;
use crate::module_api::guard::guard;

/// A queue with fewer messages and other parts than this, and with fewer bytes, is freed immediately. To free
/// a million messages of 135 bytes takes 13 ms, and with an error each 60 ms, so this takes less than one.
const LARGE_PARTS: u64 = 16 * 1024;
const LARGE_BYTES: usize = 8 * 1024 * 1024;

/// The queue for which the server last asked for the effort to free it. The server would free it in the background if
/// the effort were large.
static ASKED: AtomicPtr<QueueValue> = AtomicPtr::new(ptr::null_mut());

/// The main thread, which must not be blocked.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// The channel to the thread; `None` if the thread could not be started.
static THREAD: OnceLock<Option<Mutex<Sender<Box<QueueValue>>>>> = OnceLock::new();

/// Records which thread is the main thread. Called once, while the module loads.
pub fn attach() {
    // If the module is loaded a second time in one process, the thread is already recorded.
    let _ = MAIN.set(thread::current().id());
}

/// Records that the server is about to free a queue, in the background if the effort is large. Reports a small effort.
pub fn effort(held: *const QueueValue) -> usize {
    ASKED.store(held.cast_mut(), Relaxed);
    1
}

/// Frees a queue. Its share of the sums in `INFO dq` is removed before this returns.
pub fn dispose(mut held: Box<QueueValue>) {
    held.withdraw();
    // On any other thread the server is freeing a whole database.
    let on_main = MAIN.get() == Some(&thread::current().id());
    let may_wait = on_main && ptr::eq(ASKED.swap(ptr::null_mut(), Relaxed), &raw const *held);
    // The bytes are counted only if there are few parts, so this takes microseconds.
    let is_large = held.queue.parts() >= LARGE_PARTS || held.queue.heap_bytes() >= LARGE_BYTES;
    if !may_wait || !is_large {
        return drop(held);
    }
    match THREAD.get_or_init(start) {
        // If the thread has ended, the error returns the queue, and it is freed here.
        Some(sender) => drop(sender.lock().unwrap_or_else(PoisonError::into_inner).send(held)),
        None => drop(held),
    }
}

/// Starts the thread.
fn start() -> Option<Mutex<Sender<Box<QueueValue>>>> {
    let (sender, queues) = channel::<Box<QueueValue>>();
    let work = move || queues.into_iter().for_each(|held| guard("freeing a queue", (), || drop(held)));
    let started = thread::Builder::new().name("dq-free".to_owned()).spawn(work);
    started.is_ok().then(|| Mutex::new(sender))
}

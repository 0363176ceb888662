//! Passes the standard output of the handlers on to that of this process, without blocking the threads that read it.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The most bytes that wait to be written.
const MOST: usize = 1 << 20;
/// An output that accepts nothing for this long is stalled. It is shorter than the wait for the rest of an output.
const STALLED: Duration = Duration::from_millis(250);

/// Output that is written by a thread of its own.
struct Relay {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    is_writing: bool,
    has_thread: bool,
    is_stalled: bool,
}

static OUTPUT: Relay = Relay {
    waiting: Mutex::new(Waiting { bytes: Vec::new(), is_writing: false, has_thread: false, is_stalled: false }),
    changed: Condvar::new(),
};

/// Passes bytes on to standard output. If that is stalled and too much waits for it already, they are dropped.
pub fn pass_on(bytes: &[u8]) {
    let mut waiting = OUTPUT.lock();
    if !waiting.has_thread {
        // Without a thread, nothing is passed on; the next bytes try again.
        let thread = thread::Builder::new().name("dq-stdout".to_owned()).spawn(|| OUTPUT.write_all());
        waiting.has_thread = thread.is_ok();
    }
    while !waiting.has_room(bytes) {
        if waiting.is_stalled || !waiting.has_thread {
            return;
        }
        let (guard, timeout) = OUTPUT.changed.wait_timeout(waiting, STALLED).unwrap_or_else(PoisonError::into_inner);
        waiting = guard;
        waiting.is_stalled |= timeout.timed_out() && !waiting.has_room(bytes);
    }
    waiting.bytes.extend_from_slice(bytes);
    OUTPUT.changed.notify_all();
}

/// Waits until all is written, or until standard output is stalled.
pub fn flush() {
    let mut waiting = OUTPUT.lock();
    while waiting.has_thread && (waiting.is_writing || !waiting.bytes.is_empty()) {
        let (guard, timeout) =
            OUTPUT.changed.wait_timeout(waiting, 2 * STALLED).unwrap_or_else(PoisonError::into_inner);
        waiting = guard;
        if timeout.timed_out() {
            return;
        }
    }
}

impl Waiting {
    fn has_room(&self, bytes: &[u8]) -> bool {
        self.bytes.len() + bytes.len() <= MOST
    }
}

impl Relay {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self) {
        let mut waiting = self.lock();
        loop {
            if waiting.bytes.is_empty() {
                waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let bytes = std::mem::take(&mut waiting.bytes);
            waiting.is_writing = true;
            drop(waiting);
            // In pieces, so that a slow reader can be told from one that does not read.
            for piece in bytes.chunks(4096) {
                let mut own = io::stdout().lock();
                let _ = own.write_all(piece).and_then(|()| own.flush());
                drop(own);
                self.lock().is_stalled = false;
                self.changed.notify_all();
            }
            waiting = self.lock();
            waiting.is_writing = false;
            self.changed.notify_all();
        }
    }
}

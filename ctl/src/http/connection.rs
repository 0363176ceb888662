//! Connections with deadlines, and a limit to their number.
//!
//! A client that sends or reads slowly costs a thread until its deadline. If there are too many connections, the oldest of
//! those that wait for their client are closed, so that slow clients do not keep others out.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most connections at the same time.
const CONNECTIONS: usize = 64;

/// A stream whose reads and writes fail after its deadline.
pub struct Patient {
    stream: TcpStream,
    deadline: Instant,
}

impl Patient {
    pub fn new(stream: TcpStream, patience: Duration) -> Patient {
        Patient { stream, deadline: Instant::now() + patience }
    }

    /// Asks for the body of a request with `Expect: 100-continue`.
    pub fn tell_to_continue(&mut self) -> io::Result<()> {
        self.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Some(left))
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Patient {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The open connections.
#[derive(Default)]
pub struct Open {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    count: usize,
    next: u64,
    /// Connections that wait for their client, oldest first.
    waiting: BTreeMap<u64, TcpStream>,
}

impl Open {
    /// Takes a slot for one more connection; `None` if all are taken by requests that are being answered.
    pub fn admit(open: &Arc<Open>) -> Option<Slot> {
        let mut state = open.lock();
        if state.count >= CONNECTIONS {
            // Its thread ends soon, because its reads and writes fail now.
            let (_, slow) = state.waiting.pop_first()?;
            let _ = slow.shutdown(Shutdown::Both);
        }
        state.count += 1;
        Some(Slot { open: Arc::clone(open) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection, which is free again when this is dropped.
pub struct Slot {
    open: Arc<Open>,
}

impl Slot {
    /// Marks the connection as one that waits for its client.
    pub fn wait_for(&self, stream: &TcpStream) -> io::Result<Waiting> {
        let stream = stream.try_clone()?;
        let mut state = self.open.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number, stream);
        Ok(Waiting { open: Arc::clone(&self.open), number })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.open.lock().count -= 1;
    }
}

/// A connection that waits for its client, until this is dropped.
pub struct Waiting {
    open: Arc<Open>,
    number: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.open.lock().waiting.remove(&self.number);
    }
}

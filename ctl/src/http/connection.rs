//! Connections with deadlines, and a limit to their number.
//!
//! A client that sends or reads slowly costs a thread until its deadline. If there are too many connections, the oldest is
//! closed, so that slow clients do not keep others out.

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

/// The open connections by their numbers, oldest first, and the next number.
#[derive(Default)]
pub struct Open(Mutex<(BTreeMap<u64, TcpStream>, u64)>);

impl Open {
    /// Takes a place for one more connection, which is free again when the result is dropped.
    pub fn admit(self: &Arc<Open>, stream: &TcpStream) -> io::Result<Place> {
        let stream = stream.try_clone()?;
        let mut state = self.lock();
        let (open, next) = &mut *state;
        let number = *next;
        *next += 1;
        open.insert(number, stream);
        if open.len() > CONNECTIONS {
            // Its thread ends soon, because its reads and writes fail now.
            if let Some((_, oldest)) = open.pop_first() {
                let _ = oldest.shutdown(Shutdown::Both);
            }
        }
        Ok(Place { open: Arc::clone(self), number })
    }

    fn lock(&self) -> MutexGuard<'_, (BTreeMap<u64, TcpStream>, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection.
pub struct Place {
    open: Arc<Open>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.lock().0.remove(&self.number);
    }
}

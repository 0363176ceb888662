//! Connections: a thread for each, with a deadline, and a limit to their number.
//!
//! A client that sends or reads slowly costs a thread until its deadline. If there are too many connections, the oldest of
//! those that wait for their client are closed, so that slow clients do not keep others out.

use super::request::Request;
use super::response::Response;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most connections at the same time.
const CONNECTIONS: usize = 64;
/// How long a client may take to send its request, and then to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is read and thrown away of a body that was refused, so that closing the connection does not reset it.
const LEFTOVER: u64 = 4 * 1024 * 1024;
/// How long that may take.
const LINGER: Duration = Duration::from_secs(2);

/// Begins to listen, and says so on standard error.
pub fn bind(address: &str) -> Result<TcpListener, Failure> {
    let refused =
        |error| Failure::failed(format!("cannot listen on {address}: {error}; name another one with --listen"));
    let listener = TcpListener::bind(address).map_err(refused)?;
    eprintln!("dqctl: listening on http://{}", listener.local_addr()?);
    Ok(listener)
}

/// Answers requests in the background for as long as the process runs.
pub fn run(
    listener: TcpListener,
    answer: impl Fn(&mut Request) -> Response + Send + Sync + 'static,
) -> Result<(), Failure> {
    let (answer, open) = (Arc::new(answer), Arc::new(Open::default()));
    thread::Builder::new().name("dq-http".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // No file descriptors are left, for example.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            let Some(counted) = Open::admit(&open) else { continue };
            // Here and not in its thread, which may begin later: a connection that has not sent its request yet waits for
            // its client, so the next one that comes can take its place.
            let Ok(waiting) = counted.wait_for(&stream) else { continue };
            let answer = Arc::clone(&answer);
            // If there is no thread, the connection is closed.
            let _ = thread::Builder::new().name("dq-request".to_owned()).spawn(move || {
                let _ = reply(stream, &counted, waiting, answer.as_ref());
            });
        }
    })?;
    Ok(())
}

fn reply(
    stream: TcpStream,
    counted: &Counted,
    waiting: Waiting,
    answer: impl Fn(&mut Request) -> Response,
) -> io::Result<()> {
    let local = stream.local_addr()?;
    let patient = Patient { stream: stream.try_clone()?, deadline: Instant::now() + PATIENCE };
    let (response, rest, is_head) = match Request::read(patient, local, waiting) {
        Ok(mut request) => {
            let response = answer(&mut request);
            let is_head = request.method == "HEAD";
            (response, Some(request.into_stream()), is_head)
        }
        Err(response) => (response, None, false),
    };
    let _waiting = counted.wait_for(&stream)?;
    let mut out = Patient { stream, deadline: Instant::now() + PATIENCE };
    response.write(&mut out, is_head)?;
    out.stream.shutdown(Shutdown::Write)?;
    let mut rest = rest.unwrap_or(out);
    rest.deadline = Instant::now() + LINGER;
    io::copy(&mut rest.take(LEFTOVER), &mut io::sink()).map(drop)
}

/// A connection on which all that is read or written comes before the deadline.
pub(super) struct Patient {
    stream: TcpStream,
    deadline: Instant,
}

impl Patient {
    /// Asks for the body of a request with `Expect: 100-continue`.
    pub(super) fn tell_to_continue(&mut self) -> io::Result<()> {
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

/// The connections that are open.
#[derive(Default)]
struct Open {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    count: usize,
    next: u64,
    /// Those that wait for their client, in the order in which they began to.
    waiting: BTreeMap<u64, TcpStream>,
}

impl Open {
    /// Counts one more connection; `None` if there are too many that are being answered.
    fn admit(open: &Arc<Open>) -> Option<Counted> {
        let mut state = open.lock();
        if state.count >= CONNECTIONS {
            // Its thread ends soon, because its reads and writes fail now.
            let (_, slow) = state.waiting.pop_first()?;
            let _ = slow.shutdown(Shutdown::Both);
        }
        state.count += 1;
        Some(Counted { open: Arc::clone(open) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is counted, until this is dropped.
struct Counted {
    open: Arc<Open>,
}

impl Counted {
    fn wait_for(&self, stream: &TcpStream) -> io::Result<Waiting> {
        let stream = stream.try_clone()?;
        let mut state = self.open.lock();
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number, stream);
        Ok(Waiting { open: Arc::clone(&self.open), number })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.lock().count -= 1;
    }
}

/// A connection that waits for its client, until this is dropped.
pub(super) struct Waiting {
    open: Arc<Open>,
    number: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.open.lock().waiting.remove(&self.number);
    }
}

//! A small web server: one request per connection, a thread for each, and limits for everything that a client sends.
//!
//! A client that sends or reads slowly costs a thread. If there are too many connections, the oldest is closed, so that
//! slow clients do not keep others out. `serve` is for metrics.

pub mod prometheus;
mod request;
mod response;

pub use request::Request;
pub use response::Response;

use crate::server::Failure;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// The most connections at the same time.
const CONNECTIONS: usize = 64;
/// How long is waited for the next bytes of a request, and until some of an answer are taken.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many bytes of a refused body are read and discarded, so that closing the connection does not reset it, and how
/// long is waited for the next ones.
const LEFTOVER: u64 = 4 * 1024 * 1024;
const LINGER: Duration = Duration::from_secs(2);

/// The address to listen on, as given on the command line. The host is resolved when it is used.
pub fn parse_listen(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        Some(_) | None => Err("give a host and a port, HOST:PORT, such as 127.0.0.1:8480".to_owned()),
    }
}

/// Begins to listen, and reports that on standard error.
pub fn bind(address: &str) -> Result<TcpListener, Failure> {
    let listener = listen(address)?;
    print_error!("dqctl: listening on http://{}", listener.local_addr()?);
    Ok(listener)
}

/// Begins to listen.
pub fn listen(address: &str) -> Result<TcpListener, Failure> {
    let refused =
        |error| Failure::failed(format!("cannot listen on {address}: {error}; name another one with --listen"));
    TcpListener::bind(address).map_err(refused)
}

/// Answers requests in the background for as long as the process runs.
pub fn run(
    listener: TcpListener,
    answer: impl Fn(&mut Request) -> Response + Send + Sync + 'static,
) -> Result<(), Failure> {
    let (answer, mut open) = (Arc::new(answer), VecDeque::<Weak<TcpStream>>::new());
    thread::Builder::new().name("dq-http".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream.map(Arc::new) else {
                // No file descriptors are left, for example.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            open.retain(|stream| stream.strong_count() > 0);
            open.push_back(Arc::downgrade(&stream));
            if open.len() > CONNECTIONS {
                // Its thread ends soon, because its reads and writes fail now.
                open.pop_front().and_then(|oldest| oldest.upgrade()?.shutdown(Shutdown::Both).ok());
            }
            let answer = Arc::clone(&answer);
            // If there is no thread, the connection is closed.
            let reply = move || drop(reply(&stream, answer.as_ref()));
            let _ = thread::Builder::new().name("dq-request".to_owned()).spawn(reply);
        }
    })?;
    Ok(())
}

fn reply(stream: &TcpStream, answer: impl Fn(&mut Request) -> Response) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let ends = (stream.local_addr()?, stream.peer_addr()?);
    let (response, is_head) = match Request::read(stream, ends) {
        Ok(mut request) => (answer(&mut request), request.method == "HEAD"),
        Err(response) => (response, false),
    };
    response.write(stream, is_head)?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(LINGER))?;
    io::copy(&mut stream.take(LEFTOVER), &mut io::sink()).map(drop)
}

/// Serves `/metrics` and `/healthz` in the background for as long as the process runs. Health is 200, or 503 with the
/// reason.
pub fn serve(
    listener: TcpListener,
    metrics: impl Fn() -> String + Send + Sync + 'static,
    health: impl Fn() -> Result<(), Failure> + Send + Sync + 'static,
) -> Result<(), Failure> {
    run(listener, move |request| {
        let (status, text) = match (request.method.as_str(), request.path.as_str()) {
            ("GET" | "HEAD", "/metrics") => (200, metrics()),
            ("GET" | "HEAD", "/healthz") => {
                health().map_or_else(|why| (503, format!("{why}\n")), |()| (200, "ok\n".into()))
            }
            ("GET" | "HEAD", _) => (404, "see /metrics and /healthz\n".into()),
            _ => (405, "only GET\n".into()),
        };
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        Response::new(status, kind, text).with("X-Content-Type-Options", "nosniff")
    })
}

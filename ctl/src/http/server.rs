//! Accepts connections, and answers the request of each in a thread.

use super::connection::{Open, Patient};
use super::request::Request;
use super::response::Response;
use crate::server::failure::Failure;
use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a client may take to send its request, and then to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many bytes of a refused body are read and discarded, so that closing the connection does not reset it.
const LEFTOVER: u64 = 4 * 1024 * 1024;
/// How long that may take.
const LINGER: Duration = Duration::from_secs(2);

/// Where to listen, as it is given on the command line. Whether there is such a host shows when it is used.
pub fn parse_listen(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        Some(_) | None => Err("give a host and a port, HOST:PORT, such as 127.0.0.1:8480".to_owned()),
    }
}

/// Begins to listen, and says so on standard error.
pub fn bind(address: &str) -> Result<TcpListener, Failure> {
    let listener = listen(address)?;
    say!("dqctl: listening on http://{}", listener.local_addr()?);
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
    let (answer, open) = (Arc::new(answer), Arc::new(Open::default()));
    thread::Builder::new().name("dq-http".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // No file descriptors are left, for example.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            // Here and not in its thread, which may begin later.
            let Ok(place) = open.admit(&stream) else { continue };
            let answer = Arc::clone(&answer);
            // If there is no thread, the connection is closed.
            let _ = thread::Builder::new().name("dq-request".to_owned()).spawn(move || {
                let _ = reply(stream, answer.as_ref());
                drop(place);
            });
        }
    })?;
    Ok(())
}

fn reply(stream: TcpStream, answer: impl Fn(&mut Request) -> Response) -> io::Result<()> {
    let ends = (stream.local_addr()?, stream.peer_addr()?);
    let patient = Patient::new(stream.try_clone()?, PATIENCE);
    let (response, is_head) = match Request::read(patient, ends) {
        Ok(mut request) => (answer(&mut request), request.method == "HEAD"),
        Err(response) => (response, false),
    };
    let mut out = Patient::new(stream.try_clone()?, PATIENCE);
    response.write(&mut out, is_head)?;
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut Patient::new(stream, LINGER).take(LEFTOVER), &mut io::sink()).map(drop)
}

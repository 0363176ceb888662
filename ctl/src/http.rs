//! A web server for metrics: it answers `GET`, one request per connection, from a function that knows the pages.

use crate::failure::Failure;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The most connections at the same time. Metrics are read by few, and a connection is a thread.
const CONNECTIONS: usize = 16;
/// The longest head of a request.
const HEAD: u64 = 16 * 1024;
/// How long a client may take to send its request or to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer: its status and its text.
pub struct Answer {
    status: &'static str,
    text: String,
}

impl Answer {
    pub fn ok(text: String) -> Answer {
        Answer { status: "200 OK", text }
    }

    pub fn unavailable(text: String) -> Answer {
        Answer { status: "503 Service Unavailable", text }
    }
}

/// Answers requests in the background for as long as the process runs. `None`: there is no such page.
pub fn serve(address: &str, answer: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) -> Result<(), Failure> {
    let refused =
        |error| Failure::failed(format!("cannot listen on {address}: {error}; name another one with --listen"));
    let listener = TcpListener::bind(address).map_err(refused)?;
    let local = listener.local_addr()?;
    eprintln!("dqctl: listening on http://{local}");
    let (answer, open) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    thread::Builder::new().name("dq-http".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // No file descriptors are left, for example.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS {
                open.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let (answer, counted) = (Arc::clone(&answer), Arc::clone(&open));
            let spawned = thread::Builder::new().name("dq-request".to_owned()).spawn(move || {
                let _ = reply(stream, answer.as_ref());
                counted.fetch_sub(1, Ordering::AcqRel);
            });
            if spawned.is_err() {
                open.fetch_sub(1, Ordering::AcqRel);
            }
        }
    })?;
    Ok(())
}

fn reply(mut stream: TcpStream, answer: impl Fn(&str) -> Option<Answer>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?).take(HEAD);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    // The head is read to its end, so that closing the connection does not reset it.
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 && !line.trim_end().is_empty() {
        line.clear();
    }
    let mut words = first.split_ascii_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let found = match method {
        "GET" | "HEAD" => answer(path)
            .unwrap_or_else(|| Answer { status: "404 Not Found", text: "see /metrics and /healthz\n".to_owned() }),
        _ => Answer { status: "405 Method Not Allowed", text: "only GET\n".to_owned() },
    };
    let Answer { status, text } = found;
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )?;
    if method != "HEAD" {
        stream.write_all(text.as_bytes())?;
    }
    stream.flush()
}

//! A web server for tests, and a client for metrics.

use crate::support::patience;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub path: String,
    pub headers: Vec<String>,
    pub body: String,
    pub bytes: Vec<u8>,
}

/// Answers each request with the status and the headers that its body names, line by line, and with 200 if it names
/// none. `drop` closes the connection, and `hang` never answers; `long` gets an answer of 70,000 bytes.
pub struct Web {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Web {
    pub fn start() -> Web {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let seen = Arc::clone(&seen);
                thread::spawn(move || serve(stream.unwrap(), &seen));
            }
        });
        Web { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut request = Request::default();
        let (mut length, mut is_connect) = (0, false);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end().to_owned();
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
            if request.path.is_empty() {
                is_connect = line.starts_with("CONNECT ");
                line.split(' ').nth(1).unwrap().clone_into(&mut request.path);
            } else {
                request.headers.push(line);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        request.body = String::from_utf8_lossy(&body).into_owned();
        request.bytes = body;
        seen.lock().unwrap().push(request.clone());
        if is_connect {
            // As a proxy, it then plays the part of the server too.
            let _ = write!(stream, "HTTP/1.1 200 Connected\r\n\r\n");
            continue;
        }
        match request.body.as_str() {
            "drop" => return,
            "hang" => loop {
                thread::park();
            },
            head => {
                let names_status = head.starts_with(|c: char| c.is_ascii_digit());
                let text = if head == "long" { "x".repeat(70_000) } else { "because of this".to_owned() };
                let head = if names_status { head.replace('\n', "\r\n") } else { "200 OK".to_owned() };
                let length = text.len();
                let _ = write!(stream, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{text}");
            }
        }
    }
}

/// The status and the text of a page; `None` if nothing answers there in time.
///
/// HTTP/1.0: the answer is not in chunks, and ends with the connection.
pub fn get(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(patience())).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, text) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, text.to_owned()))
}

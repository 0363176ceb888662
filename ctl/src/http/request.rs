//! Requests: the head is read and checked before anything is answered, the body only if the answer needs it.

use super::response::Response;
use super::server::{Patient, Waiting};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;

/// The longest head of a request.
const HEAD: u64 = 16 * 1024;
/// The most headers.
const HEADERS: usize = 100;

/// A request of which the head was read.
pub struct Request {
    pub method: String,
    /// As it was sent, without the query.
    pub path: String,
    /// What follows the question mark, as it was sent.
    pub query: String,
    /// The address of this server that the client reached.
    pub local: SocketAddr,
    headers: Vec<(String, String)>,
    reader: BufReader<Patient>,
    /// While the client has to send something, its connection may be closed in favour of others.
    waiting: Option<Waiting>,
}

impl Request {
    /// Reads a head. The error is what to answer.
    pub(super) fn read(stream: Patient, local: SocketAddr, waiting: Waiting) -> Result<Request, Response> {
        let mut reader = BufReader::new(stream);
        let mut left = HEAD;
        let first = line(&mut reader, &mut left)?;
        let mut words = first.split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let (Some(method), Some(target), None) = (method, target, words.next()) else { return Err(malformed()) };
        // A line without a version is one of HTTP/0.9, which has no headers. Nobody sends it.
        if !version.is_some_and(|version| version.starts_with("HTTP/1.")) || !target.starts_with('/') {
            return Err(malformed());
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = Vec::new();
        loop {
            let line = line(&mut reader, &mut left)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(malformed)?;
            if name.is_empty() || name.contains(|c: char| c.is_whitespace()) || headers.len() >= HEADERS {
                return Err(malformed());
            }
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        let mut request = Request { method, path, query, local, headers, reader, waiting: Some(waiting) };
        if request.length()? == 0 {
            request.waiting = None;
        }
        Ok(request)
    }

    /// The value of a header; `None` if it is missing or not unique. The name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(header, _)| header == name).map(|(_, value)| value.as_str());
        let first = values.next();
        first.filter(|_| values.next().is_none())
    }

    /// Whether a header is there, once or more often.
    pub fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(header, _)| header == name)
    }

    /// The body, if it is not longer than `limit`. The error is what to answer.
    pub fn body(&mut self, limit: usize) -> Result<Vec<u8>, Response> {
        let length = self.length()?;
        if length > limit {
            return Err(Response::refusal(413, &format!("the body of a request has at most {limit} bytes")));
        }
        if self.header("expect").is_some_and(|expected| expected.eq_ignore_ascii_case("100-continue")) {
            self.reader.get_mut().tell_to_continue().map_err(|_| too_slow())?;
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).map_err(|_| too_slow())?;
        self.waiting = None;
        Ok(body)
    }

    fn length(&self) -> Result<usize, Response> {
        if self.has("transfer-encoding") {
            return Err(Response::refusal(411, "send the body with a Content-Length"));
        }
        if !self.has("content-length") {
            return Ok(0);
        }
        let digits = self.header("content-length").filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).ok_or_else(malformed)
    }

    /// The connection, after the request was handled.
    pub(super) fn into_stream(self) -> Patient {
        self.reader.into_inner()
    }
}

/// A line of the head without its end.
fn line(reader: &mut BufReader<Patient>, left: &mut u64) -> Result<String, Response> {
    let mut bytes = Vec::new();
    let read = reader.by_ref().take(*left).read_until(b'\n', &mut bytes).map_err(|_| too_slow())?;
    *left -= read as u64;
    if bytes.last() != Some(&b'\n') {
        let is_too_long = *left == 0;
        return Err(if is_too_long { Response::refusal(431, "the head is too long") } else { malformed() });
    }
    let text = String::from_utf8(bytes).map_err(|_| malformed())?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn malformed() -> Response {
    Response::refusal(400, "this is not a request of HTTP/1.1 that dqctl understands")
}

fn too_slow() -> Response {
    Response::refusal(408, "the request did not come in time")
}

//! Requests: the head is read and checked before anything is answered, the body only if the answer needs it.

use super::response::Response;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};

/// The longest head of a request.
const HEAD: u64 = 16 * 1024;
/// The most headers.
const HEADERS: usize = 100;

/// A request whose head has been read.
pub struct Request<'a> {
    pub method: String,
    /// As it was sent, without the query.
    pub path: String,
    /// What follows the question mark, as it was sent.
    pub query: String,
    /// The address of this server that the client reached.
    pub local: SocketAddr,
    /// The address of the client, or of the proxy before this server.
    pub peer: SocketAddr,
    headers: Vec<(String, String)>,
    reader: BufReader<&'a TcpStream>,
}

impl Request<'_> {
    /// Reads a head. The error is what to answer.
    pub(super) fn read(stream: &TcpStream, (local, peer): (SocketAddr, SocketAddr)) -> Result<Request<'_>, Response> {
        let mut reader = BufReader::new(stream);
        let head = head(&mut reader)?;
        let mut fields = [httparse::EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Request::new(&mut fields);
        let status = parsed.parse(&head).map_err(|_| malformed())?;
        let (true, Some(method), Some(target)) = (status.is_complete(), parsed.method, parsed.path) else {
            return Err(malformed());
        };
        if !target.starts_with('/') {
            return Err(malformed());
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |field: &httparse::Header| {
            let value = std::str::from_utf8(field.value).map_err(|_| malformed())?;
            Ok((field.name.to_ascii_lowercase(), value.to_owned()))
        };
        let headers = parsed.headers.iter().map(header).collect::<Result<_, _>>()?;
        let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
        let request = Request { method, path, query, local, peer, headers, reader };
        request.length()?;
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
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).map_err(|_| too_slow())?;
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
}

/// Reads up to the empty line that ends the head.
fn head(reader: &mut BufReader<&TcpStream>) -> Result<Vec<u8>, Response> {
    let mut head = Vec::new();
    let mut reader = reader.take(HEAD);
    loop {
        let start = head.len();
        reader.read_until(b'\n', &mut head).map_err(|_| too_slow())?;
        match head.get(start..) {
            Some(b"\r\n" | b"\n") => return Ok(head),
            Some([.., b'\n']) => {}
            _ if reader.limit() == 0 => return Err(Response::refusal(431, "the head is too long")),
            _ => return Err(malformed()),
        }
    }
}

fn malformed() -> Response {
    Response::refusal(400, "this is not a request of HTTP/1.1 that dqctl understands")
}

fn too_slow() -> Response {
    Response::refusal(408, "the request did not come in time")
}

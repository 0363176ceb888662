//! Answers.

use crate::server::Failure;
use serde_json::{json, Value as Json};
use std::io::{self, Write};
use ureq::http::StatusCode;

/// An answer: its status, its headers and its body.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Response {
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status, headers: vec![("Content-Type", content_type.to_owned())], body: body.into() }
    }

    pub fn json(status: u16, answer: &Json) -> Response {
        Response::new(status, "application/json", format!("{answer}\n"))
    }

    /// What is wrong with a request, as `{"error": "…"}`.
    pub fn refusal(status: u16, text: &str) -> Response {
        Response::json(status, &json!({ "error": text }))
    }

    /// The same with one more header.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.headers.push((name, value.into()));
        self
    }

    pub fn failure(failure: &Failure) -> Response {
        Response::refusal(failure.status(), &failure.to_string())
    }

    /// Writes it; for `HEAD` without the body.
    pub fn write(&self, mut out: impl Write, is_head: bool) -> io::Result<()> {
        let reason = StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason.unwrap_or_default());
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\nConnection: close\r\n\r\n", self.body.len()));
        out.write_all(head.as_bytes())?;
        if !is_head {
            out.write_all(&self.body)?;
        }
        out.flush()
    }
}

//! A small web server: one request per connection, a thread for each, and limits for everything that a client sends.
//!
//! `serve` is for metrics: it answers `GET` from a function that knows the pages. `dqctl web` uses the parts below it.

mod connection;
mod request;
mod response;
mod server;

pub use request::Request;
pub use response::Response;
pub use server::{bind, listen, parse_listen, run};

use crate::server::failure::Failure;
use std::net::TcpListener;

/// Answers requests in the background for as long as the process runs. `None`: there is no such page.
pub fn serve(
    listener: TcpListener,
    answer: impl Fn(&str) -> Option<Response> + Send + Sync + 'static,
) -> Result<(), Failure> {
    run(listener, move |request| {
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            return metrics(405, "only GET\n");
        }
        answer(&request.path).unwrap_or_else(|| metrics(404, "see /metrics and /healthz\n"))
    })
}

/// A page of metrics.
pub fn metrics(status: u16, text: impl Into<String>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Response::new(status, kind, text.into()).with("X-Content-Type-Options", "nosniff")
}

/// Whether the server can be used: 200, or 503 with the reason.
pub fn health(checked: Result<(), Failure>) -> Response {
    match checked {
        Ok(()) => metrics(200, "ok\n"),
        Err(failure) => metrics(503, format!("{failure}\n")),
    }
}

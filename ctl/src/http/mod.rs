//! A small web server: one request per connection, a thread for each, and limits for everything that a client sends.
//!
//! `serve` is for metrics: it answers `GET` from a function that knows the pages. `dqctl web` uses the parts below it.

mod connection;
mod request;
mod response;
mod server;

pub use request::Request;
pub use response::Response;
pub use server::{bind, run};

use crate::failure::Failure;

/// A page of metrics: its status and its text.
pub struct Answer {
    status: u16,
    text: String,
}

impl Answer {
    pub fn ok(text: String) -> Answer {
        Answer { status: 200, text }
    }

    pub fn unavailable(text: String) -> Answer {
        Answer { status: 503, text }
    }
}

/// Answers requests in the background for as long as the process runs. `None`: there is no such page.
pub fn serve(address: &str, answer: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) -> Result<(), Failure> {
    run(bind(address)?, move |request| {
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            return metrics(405, "only GET\n".to_owned());
        }
        match answer(&request.path) {
            Some(Answer { status, text }) => metrics(status, text),
            None => metrics(404, "see /metrics and /healthz\n".to_owned()),
        }
    })
}

fn metrics(status: u16, text: String) -> Response {
    Response::new(status, "text/plain; version=0.0.4; charset=utf-8", text).with("X-Content-Type-Options", "nosniff")
}

//! Why a request is not answered.

use crate::http::Response;
use crate::server::failure::Failure;
use dq_client::Error;
use serde_json::{json, Value as Json};

/// Why a request failed: a status, and a text that says what to do.
#[derive(Debug)]
pub struct Problem {
    pub status: u16,
    pub text: String,
}

impl Problem {
    pub fn new(status: u16, text: impl Into<String>) -> Problem {
        Problem { status, text: text.into() }
    }

    pub fn no_queue() -> Problem {
        Problem::new(404, "there is no queue of this name")
    }

    pub fn response(&self) -> Response {
        refusal(self.status, &self.text)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        match &error {
            Error::NoModule(_) => Problem::new(501, Failure::from(error).to_string()),
            _ => Failure::from(error).into(),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem::new(failure.status(), failure.to_string())
    }
}

/// An answer that refuses a request: `{"error": "…"}`.
pub fn refusal(status: u16, text: &str) -> Response {
    response(status, &json!({ "error": text }))
}

pub fn response(status: u16, answer: &Json) -> Response {
    Response::new(status, "application/json", format!("{answer}\n"))
}

//! A line on standard error for each request that changes something: when, from where, what, of which queue, and the outcome.

use super::{Answer, Params};
use crate::http::Request;
use crate::name::shown;
use crate::output::text::visible;
use crate::time::{instant, now_ms};
use serde_json::{Map, Value as Json};
use std::io::{self, Write};

/// Fields of a request that are not logged: the queue is named already, and what a message holds is nothing for a log.
const LEFT_OUT: [&str; 4] = ["queue", "payload", "headers", "cursor"];

/// Longer lists of ids are logged as their number.
const NAMED: usize = 100;

/// Logs a change. A proxy says in `X-Forwarded-For` for whom it asks.
pub fn log(request: &Request, action: &str, params: &Params, answer: &Answer) {
    let client = request.header("x-forwarded-for").map_or_else(String::new, |client| format!(" for {client}"));
    let queue = params.bytes("queue").ok().flatten().map_or_else(String::new, |queue| format!(" {}", shown(&queue)));
    let asked = match params {
        Params::Body(fields) => words(fields, "="),
        Params::Query(_) => String::new(),
    };
    let outcome = match answer {
        Ok(Json::Object(answer)) => words(answer, " "),
        Ok(answer) => answer.to_string(),
        Err(problem) => format!(" failed: {}", problem.text),
    };
    let line = format!("{} {}{client}: {action}{queue}{asked}:{outcome}", instant(now_ms()), request.peer.ip());
    // The change was made, also if nobody reads the log.
    let _ = writeln!(io::stderr(), "dqctl: {}", visible(&line));
}

/// The fields of a request or an answer; of a long list, how long it is.
fn words(fields: &Map<String, Json>, between: &str) -> String {
    let is_told = |name: &str| !LEFT_OUT.contains(&name.strip_suffix("-base64").unwrap_or(name));
    let word = |(name, value): (&String, &Json)| match value {
        Json::Array(list) if list.is_empty() => String::new(),
        Json::Array(list) if list.len() > NAMED => format!(" {name}{between}{} of them", list.len()),
        value => format!(" {name}{between}{value}"),
    };
    fields.iter().filter(|(name, value)| is_told(name) && !value.is_null()).map(word).collect()
}

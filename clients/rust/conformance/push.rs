//! The producer that the conformance suite drives: a push for each line of standard input.
#![allow(clippy::indexing_slicing, reason = "a field of JSON that is missing is null")]

#[allow(dead_code)] // The worker needs the other half.
mod bytes;

use bytes::{bytes, text, unescaped};
use dq_client::blocking::{Client, Queue};
use dq_client::{Error, Headers, Raw};
use serde_json::{json, Value};
use std::io::{BufRead, Write};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [option, url] = words.as_slice() else { return Err("push --url URL".into()) };
    if option != "--url" {
        return Err(format!("there is no option {option}").into());
    }
    let client = Client::open(url)?;
    for line in std::io::stdin().lock().lines() {
        let answer = match push(&client, &line?)? {
            Ok(id) => json!({"id": id}),
            Err(error) => json!({"error": name(&error)}),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", bytes::escaped(&answer.to_string()))?;
        out.flush()?;
    }
    Ok(())
}

/// Pushes what a line says. Returns the id, or none for a duplicate.
fn push(client: &Client, line: &str) -> Result<Result<Option<String>, Error>, Box<dyn std::error::Error>> {
    let wanted: Value = serde_json::from_str(&unescaped(line))?;
    let field = |name: &str| wanted[name].as_str().map(bytes);
    let queue: Queue<Raw> = client.queue(field("queue").ok_or("queue is missing")?);
    let payload = Raw(field("payload").ok_or("payload is missing")?);
    let mut push = queue.push(&payload);
    if let Some(id) = field("id") {
        push = push.id(id);
    }
    if let Some(ms) = wanted["delay"].as_u64() {
        push = push.delay(Duration::from_millis(ms));
    }
    if let Some(priority) = wanted["priority"].as_i64() {
        push = push.priority(i8::try_from(priority)?);
    }
    if let Some(group) = field("group") {
        push = push.group(group);
    }
    let pairs = wanted["headers"].as_object().into_iter().flatten();
    let headers: Headers =
        pairs.map(|(name, value)| (bytes(name), bytes(value.as_str().unwrap_or_default()))).collect();
    Ok(push.headers(headers).send().map(|pushed| pushed.id().map(|id| text(id.as_ref()))))
}

/// The name of the class of an error, as all clients have it.
fn name(error: &Error) -> &'static str {
    match error {
        Error::QueueFull(_) => "QueueFull",
        Error::QueueClosed(_) => "QueueClosed",
        Error::DeadId(_) => "DeadId",
        Error::TooLarge(_) => "TooLarge",
        Error::OutOfMemory(_) => "OutOfMemory",
        Error::Lost(_) | Error::Connect(_) | Error::Unavailable(_) => "ConnectionLost",
        _ => "DqError",
    }
}

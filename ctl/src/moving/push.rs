//! Pushes many messages under ids of their own, so that `load` and `import` can be repeated.

use crate::server::failure::Failure;
use crate::server::reply;
use crate::server::transfer::persistently;
use dq_client::blocking::Client;
use dq_client::{cmd, Cmd, Error, Value};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The most messages of one batch: the server answers other clients in between.
pub const BATCH: usize = 500;

/// The names and values of headers.
pub type Headers = Vec<(Vec<u8>, Vec<u8>)>;

/// A message to push.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewMessage {
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    /// In Unix ms; `None`: due at once.
    pub due: Option<i64>,
    pub priority: i64,
    /// `None`: the setting of the queue applies. The same holds for `lease`, `ttl` and `retain`.
    pub retries: Option<i64>,
    pub lease: Option<i64>,
    pub ttl: Option<i64>,
    pub retain: Option<i64>,
    pub group: Option<Vec<u8>>,
    pub headers: Headers,
    /// How often it was delivered before, what a consumer has stored of its work, and the error of the last attempt.
    pub attempt: Option<i64>,
    pub checkpoint: Option<Vec<u8>>,
    pub error: Option<Vec<u8>>,
    /// Why it is dead, if it is.
    pub dead: Option<Vec<u8>>,
}

/// What a push did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    New,
    /// The queue holds a message of this id, or has accepted the id within its `DEDUPE`.
    Held,
    /// The queue holds a dead message of this id.
    Dead,
}

/// A push that was refused, and the outcomes of those before it. Some after it may have been made too.
pub struct Refused {
    pub before: Vec<Pushed>,
    pub error: Error,
}

impl NewMessage {
    pub fn push(&self, queue: &[u8]) -> Cmd {
        let mut command = cmd("DQ.PUSH");
        command.arg(queue).arg(&self.payload).arg("ID").arg(&self.id);
        for (name, value) in [("RETAIN", self.retain), ("ATTEMPT", self.attempt)] {
            if let Some(value) = value {
                command.arg(name).arg(value);
            }
        }
        if self.dead.is_some() {
            command.arg("DEAD");
        }
        for (name, bytes) in [("REASON", &self.dead), ("ERROR", &self.error), ("CHECKPOINT", &self.checkpoint)] {
            if let Some(bytes) = bytes {
                command.arg(name).arg(bytes);
            }
        }
        self.write_options(&mut command);
        command
    }

    /// Adds what both a push and a schedule take.
    pub fn write_options(&self, command: &mut Cmd) {
        let priority = Some(self.priority).filter(|priority| *priority != 0);
        let numbers = [
            ("AT", self.due),
            ("RETRIES", self.retries),
            ("LEASE", self.lease),
            ("TTL", self.ttl),
            ("PRIORITY", priority),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                command.arg(name).arg(value);
            }
        }
        if let Some(group) = &self.group {
            command.arg("GROUP").arg(group);
        }
        if !self.headers.is_empty() {
            command.arg("HEADERS").arg(self.headers.len());
            for (name, value) in &self.headers {
                command.arg(name).arg(value);
            }
        }
    }

    pub fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let attached: usize = [&self.checkpoint, &self.error].into_iter().flatten().map(Vec::len).sum();
        self.payload.len() + self.id.len() + headers + attached
    }
}

/// Pushes messages in their order. A batch that does not get through is sent again; its ids make that harmless.
pub fn push_all(client: &Client, queue: &[u8], messages: &[NewMessage]) -> Result<Vec<Pushed>, Refused> {
    let commands: Vec<Cmd> = messages.iter().map(|message| message.push(queue)).collect();
    let mut outcomes = Vec::with_capacity(messages.len());
    for reply in persistently(client, &commands) {
        outcomes.push(match reply {
            Ok(Value::Nil) => Pushed::Held,
            Ok(_) => Pushed::New,
            Err(Error::DeadId(_)) => Pushed::Dead,
            Err(error) => return Err(Refused { before: outcomes, error }),
        });
    }
    Ok(outcomes)
}

/// What `TYPE` says of a key; `none` if there is none.
pub fn type_of(client: &Client, key: &[u8]) -> Result<String, Failure> {
    let reply = client.call(cmd("TYPE").arg(key), dq_client::Resend::Harmless)?;
    Ok(reply::text(&reply).unwrap_or_default())
}

/// A key from the command line, which can be any bytes except zeros.
pub fn key(name: &OsStr) -> &[u8] {
    name.as_bytes()
}

/// Whether an id has the form of a generated one: 12 or more digits, `-`, digits. Such an id cannot be pushed.
pub fn is_generated(id: &[u8]) -> bool {
    let mut parts = id.split(|byte| *byte == b'-');
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(ms), Some(number), None) => ms.len() >= 12 && is_number(ms) && is_number(number),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_generated;

    #[test]
    fn generated_ids_are_recognised() {
        for id in ["179527212781-0", "1795272127819-12"] {
            assert!(is_generated(id.as_bytes()), "{id}");
        }
        for id in
            ["", "m-1", "17952721278-0", "1795272127819-", "1795272127819", "1795272127819-1-2", "1795272127819-x"]
        {
            assert!(!is_generated(id.as_bytes()), "{id}");
        }
    }
}

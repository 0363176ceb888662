//! Pushes many messages under ids of their own, so that `load` and `import` can be repeated.

use crate::server::{persistently, reply, Failure};
use dq_client::{blocking::Client, cmd, Cmd, Error, Value};

/// The most messages of one batch: the server answers other clients in between.
pub const BATCH: usize = 500;

/// The names and values of headers.
pub type Headers = Vec<(Vec<u8>, Vec<u8>)>;

/// The rule of a recurring message: options of DQ.SCHEDULE with their values.
pub type Rule = Vec<(&'static str, Vec<u8>)>;

/// A message to push.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewMessage {
    pub id: Vec<u8>,
    pub payload: Vec<u8>,
    /// In Unix ms; `None`: due at once.
    pub due: Option<i64>,
    pub headers: Headers,
    /// How often it was delivered before.
    pub attempt: Option<i64>,
    /// Why it is dead, if it is.
    pub dead: Option<Vec<u8>>,
    /// Further options with their values. For what is missing, the settings of the queue apply.
    pub options: Vec<(&'static str, Vec<u8>)>,
}

/// The options that `DQ.SCHEDULE` takes as well.
const OF_SCHEDULES: [&str; 5] = ["PRIORITY", "RETRIES", "LEASE", "TTL", "GROUP"];

/// What a push did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    New,
    /// The queue holds a message of this id, or has accepted the id within its `DEDUPE`.
    Duplicate,
    /// The queue holds a dead message of this id.
    Dead,
}

impl NewMessage {
    /// The same with an option, if it has a value.
    pub fn with(mut self, option: &'static str, value: Option<impl ToString>) -> NewMessage {
        self.options.extend(value.map(|value| (option, value.to_string().into_bytes())));
        self
    }

    fn push(&self, queue: &[u8]) -> Cmd {
        let mut command = cmd("DQ.PUSH");
        command.arg(queue).arg(&self.payload).arg("ID").arg(&self.id);
        if let Some(reason) = &self.dead {
            command.arg("DEAD").arg("REASON").arg(reason);
        }
        if let Some(attempt) = self.attempt {
            command.arg("ATTEMPT").arg(attempt);
        }
        self.write_options(&mut command, |_| true);
        command
    }

    /// The declaration of a schedule with the options of its rule.
    pub fn schedule(&self, queue: &[u8], rule: &[(&'static str, Vec<u8>)]) -> Cmd {
        let mut command = cmd("DQ.SCHEDULE");
        command.arg(queue).arg(&self.id).arg(&self.payload);
        rule.iter().for_each(|(option, value)| _ = command.arg(*option).arg(value));
        self.write_options(&mut command, |option| OF_SCHEDULES.contains(&option));
        command
    }

    fn write_options(&self, command: &mut Cmd, takes: impl Fn(&str) -> bool) {
        if let Some(due) = self.due {
            command.arg("AT").arg(due);
        }
        for (option, value) in self.options.iter().filter(|(option, _)| takes(option)) {
            command.arg(*option).arg(value);
        }
        if !self.headers.is_empty() {
            command.arg("HEADERS").arg(self.headers.len());
            self.headers.iter().for_each(|(name, value)| _ = command.arg(name).arg(value));
        }
    }

    pub fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let options: usize = self.options.iter().map(|(_, value)| value.len()).sum();
        self.payload.len() + self.id.len() + headers + options
    }
}

/// Pushes messages in their order. A batch that does not get through is sent again; its ids make that harmless. Returns
/// the outcomes of those before the first that was refused, and why that was. Some after it may have been pushed too.
pub fn push_all(client: &Client, queue: &[u8], messages: &[NewMessage]) -> (Vec<Pushed>, Option<Error>) {
    let commands: Vec<Cmd> = messages.iter().map(|message| message.push(queue)).collect();
    let mut outcomes = Vec::with_capacity(messages.len());
    for reply in persistently(client, &commands) {
        outcomes.push(match reply {
            Ok(Value::Nil) => Pushed::Duplicate,
            Ok(_) => Pushed::New,
            Err(Error::DeadId(_)) => Pushed::Dead,
            Err(error) => return (outcomes, Some(error)),
        });
    }
    (outcomes, None)
}

/// The type of a key as `TYPE` returns it; `none` if there is no such key.
pub fn type_of(client: &Client, key: &[u8]) -> Result<String, Failure> {
    let reply = client.call(cmd("TYPE").arg(key), dq_client::Resend::Harmless)?;
    Ok(reply::text(&reply).unwrap_or_default())
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

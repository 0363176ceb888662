//! Messages: typed where something depends on them, and as the server sent them for printing.

use super::failure::Failure;
use super::reply::Fields;
use dq_client::{blocking::Client, cmd, Resend, State, Value};
use std::ops::Deref;

/// A message as `DQ.GET`, `DQ.PEEK` and `DQ.SCAN` return it.
///
/// It is not the `Message` of the client: a field or a state of a newer server is printed as well, and of a million
/// messages only the fields are read that a filter needs.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    fields: Fields,
}

impl Message {
    /// `None` if the reply is null: there is no such message.
    pub fn read(reply: Value) -> Result<Option<Message>, Failure> {
        Ok(Fields::read(reply)?.map(Message::from))
    }

    /// Reads a message; `None` if the queue has none of this id.
    pub fn get(client: &Client, queue: &[u8], id: &[u8]) -> Result<Option<Message>, Failure> {
        Message::read(client.call(cmd("DQ.GET").arg(queue).arg(id), Resend::Harmless)?)
    }

    /// Gives a field another value, or removes it.
    pub fn set(&mut self, name: &str, value: Option<Value>) {
        self.fields.0.retain(|(field, _)| field != name);
        self.fields.0.extend(value.map(|value| (name.to_owned(), value)));
    }

    /// Keeps at most this many bytes of the payload, for lists of many that may be large.
    pub fn shorten_payload(&mut self, most: usize) {
        for (name, value) in &mut self.fields.0 {
            if let ("payload", Value::BulkString(payload)) = (name.as_str(), value) {
                payload.truncate(most);
            }
        }
    }

    pub fn id(&self) -> &[u8] {
        self.bytes("id")
    }

    /// `None` if it is a state of a newer server.
    pub fn state(&self) -> Option<State> {
        self.text("state").parse().ok()
    }

    pub fn payload(&self) -> &[u8] {
        self.bytes("payload")
    }

    pub fn priority(&self) -> i64 {
        self.int("priority").unwrap_or(0)
    }

    /// How many deliveries have begun; `None` if that is not known of a letter.
    pub fn attempt(&self) -> Option<i64> {
        self.int("attempt")
    }

    /// When it was pushed, in Unix ms.
    pub fn created(&self) -> Option<i64> {
        self.int("created")
    }

    /// When it is due, in Unix ms.
    pub fn due(&self) -> Option<i64> {
        self.int("due")
    }

    /// When its lease ends, in Unix ms; `None` if it is not in flight.
    pub fn deadline(&self) -> Option<i64> {
        self.int("deadline")
    }

    /// When it died, in Unix ms; `None` if it is not dead.
    pub fn died(&self) -> Option<i64> {
        self.int("died")
    }

    /// When it was completed, in Unix ms; `None` if it is not done.
    pub fn done(&self) -> Option<i64> {
        self.int("done")
    }

    /// The receipt of its current delivery; empty if it is not in flight.
    pub fn receipt(&self) -> &[u8] {
        self.bytes("receipt")
    }

    /// The number of its current delivery, which is in its receipt. Deliveries that began later have larger ones.
    pub fn delivery(&self) -> Option<i64> {
        self.text("receipt").rsplit_once('#')?.1.parse().ok()
    }

    /// When its current delivery began, in Unix ms. The number of a delivery is made of that instant and a count of 20
    /// bits.
    pub fn delivered(&self) -> Option<i64> {
        self.delivery().map(|number| number >> 20)
    }

    /// The text of its last failure; empty if there is none.
    pub fn error(&self) -> &[u8] {
        self.bytes("error")
    }

    /// Whether the lease of its last delivery expired without an ack or a nack.
    pub fn has_lost_lease(&self) -> bool {
        self.int("lease-expired") == Some(1)
    }

    /// Its group; empty if it has none.
    pub fn group(&self) -> &[u8] {
        self.bytes("group")
    }

    /// The consumer that holds it; empty if none does, or if that has no name.
    pub fn consumer(&self) -> &[u8] {
        self.bytes("consumer")
    }

    /// Its batch; empty if it has none.
    pub fn batch(&self) -> &[u8] {
        self.bytes("batch")
    }

    /// The queue in which a letter died; `None` if the message is not a letter as it died.
    pub fn origin(&self) -> Option<&[u8]> {
        match self.get("from") {
            Some(Value::BulkString(queue)) => Some(queue),
            Some(_) | None => None,
        }
    }

    /// Whether it is a schedule.
    pub fn recurs(&self) -> bool {
        self.get("every").is_some() || self.get("cron").is_some()
    }

    /// Whether another message takes its place when its delivery ends (`REPLACE LATER`).
    pub fn has_successor(&self) -> bool {
        self.number("next") > 0
    }

    /// The names and values of its headers.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let pairs = match self.get("headers") {
            Some(Value::Map(pairs)) => pairs.as_slice(),
            Some(_) | None => &[],
        };
        pairs.iter().filter_map(|pair| match pair {
            (Value::BulkString(name), Value::BulkString(value)) => Some((name.as_slice(), value.as_slice())),
            _ => None,
        })
    }

    /// The value of a header as text.
    pub fn header(&self, name: &str) -> Option<String> {
        let (_, value) = self.headers().find(|(header, _)| *header == name.as_bytes())?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

impl From<Fields> for Message {
    fn from(fields: Fields) -> Message {
        Message { fields }
    }
}

impl Deref for Message {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.fields
    }
}

#[cfg(test)]
mod tests {
    use super::{Fields, Message, State, Value};

    fn message(field: &str, text: &str) -> Message {
        Message::from(Fields(vec![(field.to_owned(), Value::BulkString(text.into()))]))
    }

    #[test]
    fn a_state_of_a_newer_server_is_none_that_is_known() {
        let message = |state: &str| message("state", state);
        assert_eq!(message("inflight").state(), Some(State::Inflight));
        assert_eq!(message("frozen").state(), None);
    }

    #[test]
    fn later_deliveries_have_larger_numbers() {
        let message = |receipt: &str| message("receipt", receipt);
        assert_eq!(message("m#12").delivery(), Some(12));
        assert_eq!(message("m").delivery(), None);
    }
}

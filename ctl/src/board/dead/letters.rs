//! Dead letters: messages that `DEADFORWARD QUEUE` has moved here from the queue in which they died.

use crate::server::Message;
use dq_client::{State, Value};

/// The header that names the former queue.
const FROM: &str = "dq-queue";

/// Whether a message was moved here from another queue, and has not died in this one as well.
pub fn is_letter(message: &Message) -> bool {
    reason(message).is_some()
}

fn reason(message: &Message) -> Option<String> {
    message.header("dq-reason").filter(|_| message.state() != Some(State::Dead))
}

/// The same message with the fields that it had in its former queue, which is its field `from`; `None` if it is no
/// letter.
pub fn as_it_died(mut message: Message) -> Option<Message> {
    let reason = reason(&message)?;
    let [error, died, attempts] = ["dq-error", "dq-died", "dq-attempts"].map(|name| message.header(name));
    let text = |text: String| Value::BulkString(text.into_bytes());
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).map(Value::Int);
    let from = message
        .headers()
        .find(|(name, _)| *name == FROM.as_bytes())
        .map(|(_, value)| Value::BulkString(value.to_vec()));
    for (name, value) in [
        ("reason", Some(text(reason))),
        ("error", error.filter(|error| !error.is_empty()).map(text)),
        ("died", number(died)),
        ("attempt", number(attempts)),
        ("from", from),
    ] {
        message.set(name, value);
    }
    Some(message)
}

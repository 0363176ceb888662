//! Dead letters: messages that `DEADFORWARD QUEUE` has moved here from the queue in which they died.

use super::cause::header;
use crate::server::Fields;
use dq_client::Value;

/// The header that names the former queue.
const FROM: &[u8] = b"dq-queue";

/// Whether a message was moved here from another queue, and has not died in this one as well.
pub fn is_letter(message: &Fields) -> bool {
    reason(message).is_some()
}

fn reason(message: &Fields) -> Option<String> {
    header(message, "dq-reason").filter(|_| message.text("state") != "dead")
}

/// The same message with the fields that it had in its former queue, which is its field `from`; `None` if it is no
/// letter.
pub fn as_it_died(mut message: Fields) -> Option<Fields> {
    let reason = reason(&message)?;
    let [error, died, attempts] = ["dq-error", "dq-died", "dq-attempts"].map(|name| header(&message, name));
    let text = |text: String| Value::BulkString(text.into_bytes());
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).map(Value::Int);
    let from = headers(&message).find(|(name, _)| *name == FROM).map(|(_, value)| Value::BulkString(value.to_vec()));
    for (name, value) in [
        ("reason", Some(text(reason))),
        ("error", error.filter(|error| !error.is_empty()).map(text)),
        ("died", number(died)),
        ("attempt", number(attempts)),
        ("from", from),
    ] {
        message.0.retain(|(field, _)| field != name);
        message.0.extend(value.map(|value| (name.to_owned(), value)));
    }
    Some(message)
}

/// The headers as bytes.
fn headers(message: &Fields) -> impl Iterator<Item = (&[u8], &[u8])> {
    let pairs = match message.get("headers") {
        Some(Value::Map(pairs)) => pairs.as_slice(),
        _ => &[],
    };
    pairs.iter().filter_map(|pair| match pair {
        (Value::BulkString(name), Value::BulkString(value)) => Some((name.as_slice(), value.as_slice())),
        _ => None,
    })
}

//! Dead letters: messages that `DEADFORWARD QUEUE` has moved here from the queue in which they died.
//!
//! A script sends one of them back, so that it is in exactly one of the two queues, whatever fails.

use super::cause::header;
use crate::failure::Failure;
use crate::name::shown;
use crate::reply::{text, unexpected, Fields};
use crate::time::millis;
use dq_client::{cmd, Client, Cmd, Resend, Value};
use std::time::Duration;

/// The header that names the former queue.
const FROM: &[u8] = b"dq-queue";
const SEND_BACK: &str = include_str!("send_back.lua");
/// How many messages are sent back at a time. The server serves other clients between any two of them.
const STEP: usize = 100;

/// Whether a message was moved here from another queue, and has not died in this one as well.
pub fn is_letter(message: &Fields) -> bool {
    reason(message).is_some()
}

fn reason(message: &Fields) -> Option<String> {
    header(message, "dq-reason").filter(|_| message.text("state") != "dead")
}

/// The same message with the fields that it had in its former queue, which is its field `from`; `None` if it is no letter.
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

/// What became of letters that were to be sent back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SentBack {
    pub sent: u64,
    /// A consumer works on them, so they stay.
    pub in_flight: u64,
    /// Their former queue has messages of their ids, so they stay.
    pub known: u64,
    /// The queue that they name does not exist, or does not move its dead messages here, so they stay.
    pub foreign: u64,
}

impl SentBack {
    /// How many stay where they are.
    pub fn left(&self) -> u64 {
        self.in_flight + self.known + self.foreign
    }
}

/// Sends letters of a queue back to where they died, to be due after `delay`. Ids of other messages are skipped. `done` is
/// added to as it is done, also if there is an error in the end.
///
/// # Errors
/// If a former queue refuses a message. Some that come after it have been sent then.
pub fn send_back(
    client: &Client,
    queue: &[u8],
    ids: &[&[u8]],
    delay: Duration,
    done: &mut SentBack,
) -> Result<(), Failure> {
    for step in ids.chunks(STEP) {
        let script = |id: &&[u8]| cmd("EVAL").arg(SEND_BACK).arg(1).arg(queue).arg(*id).arg(millis(delay)).clone();
        let scripts: Vec<Cmd> = step.iter().map(script).collect();
        let mut refused = None;
        for (id, reply) in step.iter().zip(client.batch(&scripts)) {
            match reply {
                Ok(reply) => count(&reply, done)?,
                Err(error) => refused = refused.or(Some((id, error))),
            }
        }
        if let Some((id, error)) = refused {
            return Err(refusal(client, queue, id, error));
        }
    }
    Ok(())
}

fn count(reply: &Value, done: &mut SentBack) -> Result<(), Failure> {
    let counted = match text(reply).as_deref() {
        Some("sent") => &mut done.sent,
        Some("inflight") => &mut done.in_flight,
        Some("known") => &mut done.known,
        Some("foreign") => &mut done.foreign,
        Some("none") => return Ok(()),
        _ => return Err(unexpected(reply)),
    };
    *counted += 1;
    Ok(())
}

const RIGHTS: &str = "to send messages back, a user needs +eval +dq.get +dq.info +dq.push +dq.cancel for both queues";

/// Why a letter was not sent back, with the names of both queues if that is still known.
fn refusal(client: &Client, queue: &[u8], id: &[u8], error: dq_client::Error) -> Failure {
    let command = cmd("DQ.GET").arg(queue).arg(id).clone();
    let letter = client.call(&command, Resend::Never).ok().and_then(|reply| Fields::read(reply).ok().flatten());
    let from = letter.and_then(as_it_died).map(|letter| shown(letter.bytes("from")));
    let to = from.as_ref().map_or_else(String::new, |from| format!(" to {from}"));
    let failure = Failure::of_script(error, RIGHTS).about(from.as_deref());
    failure.of(format!("the message {} was not sent back{to}", shown(id)))
}

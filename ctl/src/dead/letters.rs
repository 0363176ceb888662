//! Dead letters: messages that `DEADFORWARD QUEUE` has moved here from the queue in which they died.
//!
//! They go back by a push to that queue, and are cancelled here once it has accepted them. So none is lost, whatever fails in
//! between: it may be in both queues then.

use super::cause::header;
use crate::advice::quoted;
use crate::failure::Failure;
use crate::name::shown;
use crate::reply::{list, text, Fields};
use crate::time::millis;
use crate::transfer::{get_all, is_generated};
use dq_client::{cmd, Client, Cmd, Error, Resend, Value};
use std::collections::BTreeSet;
use std::time::Duration;

/// The header that names the former queue, and what the headers begin with that the server has added.
const FROM: &[u8] = b"dq-queue";
const ADDED: &[u8] = b"dq-";
/// How many messages are sent at a time.
const STEP: usize = 50;

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
    /// Of those that were sent, a consumer took them just before they were removed here, so their work may be done twice.
    pub taken: u64,
}

impl SentBack {
    /// How many stay where they are.
    pub fn left(&self) -> u64 {
        self.in_flight + self.known
    }
}

/// Sends letters of a queue back to where they died, to be due after `delay`. Ids of other messages are skipped. `done` is
/// added to as it is done, also if there is an error in the end.
///
/// # Errors
/// If a former queue does not exist, or refuses a message. Some that come after it may have been sent.
pub fn send_back(
    client: &Client,
    queue: &[u8],
    ids: &[&[u8]],
    delay: Duration,
    done: &mut SentBack,
) -> Result<(), Failure> {
    let mut existing = BTreeSet::new();
    for step in ids.chunks(STEP) {
        let letters = get_all(client, queue, step)?.into_iter().flatten().filter_map(as_it_died);
        let (busy, letters): (Vec<Fields>, Vec<Fields>) =
            letters.partition(|letter| letter.text("state") == "inflight");
        done.in_flight += busy.len() as u64;
        for letter in &letters {
            must_exist(client, letter, &mut existing)?;
        }
        let letters: Vec<&Fields> = letters.iter().collect();
        let refused = push_all(client, queue, &letters, delay, &[], done)?;
        // DEDUPE of the former queue refuses the id of a message that it moved, for a time. There nobody else can push the id
        // meanwhile, so nothing is replaced.
        let mut known = Vec::new();
        for letter in refused {
            if holds(client, letter)? {
                done.known += 1;
            } else {
                known.push(letter);
            }
        }
        done.known += push_all(client, queue, &known, delay, &["REPLACE"], done)?.len() as u64;
    }
    Ok(())
}

/// Pushes letters to their former queues, and removes those that were accepted. Returns those whose ids were refused.
fn push_all<'a>(
    client: &Client,
    queue: &[u8],
    letters: &[&'a Fields],
    delay: Duration,
    options: &[&str],
    done: &mut SentBack,
) -> Result<Vec<&'a Fields>, Failure> {
    let pushes: Vec<Cmd> = letters.iter().map(|letter| push(letter, delay).arg(options).clone()).collect();
    let (mut accepted, mut refused, mut failed) = (Vec::new(), Vec::new(), None);
    for (letter, reply) in letters.iter().zip(client.batch(&pushes)) {
        match reply {
            Ok(Value::Nil) | Err(Error::DeadId(_)) => refused.push(*letter),
            Ok(_) => accepted.push(letter.bytes("id")),
            Err(error) => failed = failed.or(Some((letter, error))),
        }
    }
    remove(client, queue, &accepted, done)?;
    let Some((letter, error)) = failed else { return Ok(refused) };
    let (id, from) = (shown(letter.bytes("id")), shown(letter.bytes("from")));
    let failure = Failure::from(error).of_write().about(Some(&from));
    Err(failure.of(format!("the message {id} was not sent back to {from}")))
}

/// Whether the former queue of a letter has a message of its id.
fn holds(client: &Client, letter: &Fields) -> Result<bool, Failure> {
    let held = get_all(client, letter.bytes("from"), &[letter.bytes("id")])?;
    Ok(held.iter().any(Option::is_some))
}

/// A queue that is gone is not made again by a push, which would give it other settings.
fn must_exist(client: &Client, letter: &Fields, existing: &mut BTreeSet<Vec<u8>>) -> Result<(), Failure> {
    let from = letter.bytes("from");
    if !existing.contains(from) {
        if client.call(cmd("DQ.INFO").arg(from), Resend::Harmless)? == Value::Nil {
            let (id, from) = (shown(letter.bytes("id")), shown(from));
            let text = format!(
                "the message {id} died in {from}, which does not exist: dqctl create {} makes it",
                quoted(&from)
            );
            return Err(Failure::failed(text));
        }
        existing.insert(from.to_vec());
    }
    Ok(())
}

/// The push of a letter to its former queue, without the headers that the server has added, and without an id that the server
/// has generated.
fn push(letter: &Fields, delay: Duration) -> Cmd {
    let mut command = cmd("DQ.PUSH");
    command.arg(letter.bytes("from")).arg(letter.bytes("payload")).arg("DELAY").arg(millis(delay));
    if !is_generated(letter.bytes("id")) {
        command.arg("ID").arg(letter.bytes("id"));
    }
    if let Some(priority) = letter.int("priority").filter(|priority| *priority != 0) {
        command.arg("PRIORITY").arg(priority);
    }
    let own: Vec<_> = headers(letter).filter(|(name, _)| !name.starts_with(ADDED)).collect();
    if !own.is_empty() {
        command.arg("HEADERS").arg(own.len()).arg(own);
    }
    command
}

/// Removes letters that their former queues have accepted.
fn remove(client: &Client, queue: &[u8], ids: &[&[u8]], done: &mut SentBack) -> Result<(), Failure> {
    if ids.is_empty() {
        return Ok(());
    }
    let states = list(client.call(cmd("DQ.CANCEL").arg(queue).arg(ids), Resend::Harmless)?)?;
    let is_untouched = |state: &&Value| matches!(text(state).as_deref(), Some("ready" | "delayed"));
    done.sent += ids.len() as u64;
    done.taken += ids.len().saturating_sub(states.iter().filter(is_untouched).count()) as u64;
    Ok(())
}

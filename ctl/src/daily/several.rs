//! A change of all queues that a pattern names, one after another.

use super::confirm::agrees_to;
use super::queues::read;
use crate::cli::ConfirmArgs;
use crate::failure::{Failure, Outcome};
use crate::name::{shown, QueueName};
use crate::output::{separated, Output};
use crate::queues;
use dq_client::Client;

/// How many queues a question names.
const NAMED: usize = 3;

/// Changes the queue of this name, or all queues that match it. If one of several refuses, that is reported, and the others are
/// changed nevertheless. `verb` is that of the question: `Pause`.
pub fn each(
    client: &Client,
    typed: &QueueName,
    (verb, confirm): (&str, &ConfirmArgs),
    output: &Output,
    change: impl Fn(&QueueName, &Output) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let Some(Named { names, missing }) = named(client, typed)? else { return change(typed, output) };
    let mut outcome = Outcome::found(!names.is_empty());
    if !names.is_empty() && !agrees_to(confirm, || question(verb, typed, &names))? {
        return Ok(Outcome::Nothing);
    }
    for name in &names {
        match change(name, &output.about(name)) {
            Ok(Outcome::Done) => {}
            Ok(Outcome::Nothing) => outcome = Outcome::Nothing,
            Err(failure) if failure.is_of_any_queue() => return Err(failure.of(name)),
            Err(failure) => {
                eprintln!("dqctl: {}", failure.about(Some(&name.to_string())).of_write().of(name));
                outcome = Outcome::Nothing;
            }
        }
    }
    missing.map_or(Ok(outcome), Err)
}

/// The queues that match a pattern.
pub struct Named {
    pub names: Vec<QueueName>,
    /// Why those of some servers are not among them.
    pub missing: Option<Failure>,
}

/// The queues that match what somebody typed; `None` if it is the name of one queue. Reports on standard error if none matches.
pub fn named(client: &Client, typed: &QueueName) -> Result<Option<Named>, Failure> {
    let Some(pattern) = pattern(client, typed)? else { return Ok(None) };
    let (names, missing) = queues::find_reachable(client, Some(pattern))?;
    let names: Vec<QueueName> = names.iter().map(|name| QueueName::read(shown(name).as_bytes())).collect();
    if names.is_empty() {
        eprintln!("dqctl: no queue matches {typed}; dqctl ls lists the queues");
    }
    Ok(Some(Named { names, missing }))
}

/// The pattern that somebody typed; `None` if it is the name of one queue. A queue whose name looks like a pattern comes first.
fn pattern<'a>(client: &Client, typed: &'a QueueName) -> Result<Option<&'a str>, Failure> {
    if !typed.as_bytes().iter().any(|byte| b"*?[".contains(byte)) {
        return Ok(None);
    }
    match read(client, typed.as_bytes()) {
        Ok(Some(_)) => return Ok(None),
        Err(failure) if !failure.is_denied() => return Err(failure),
        // A user may be allowed the change alone.
        Ok(None) | Err(_) => {}
    }
    let text = std::str::from_utf8(typed.as_bytes());
    text.map(Some).map_err(|_| Failure::usage(format!("{typed} is no pattern, because it is not UTF-8")))
}

/// `Pause 12 queues that match svc:*: svc:a, svc:b, svc:c and 9 more? [y/N] `
fn question(verb: &str, typed: &QueueName, names: &[QueueName]) -> String {
    let named: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {} more", separated(&more.to_string())),
    };
    let match_it = match names.len() {
        1 => "1 queue that matches".to_owned(),
        number => format!("{} queues that match", separated(&number.to_string())),
    };
    format!("{verb} {match_it} {typed}: {}{more}? [y/N] ", named.join(", "))
}

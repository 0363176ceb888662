//! All queues that a pattern names.

use super::confirm::agrees_to;
use super::queues::read;
use crate::advice::tell;
use crate::board::names;
use crate::cli::ConfirmArgs;
use crate::failure::{Failure, Outcome};
use crate::name::{shown, QueueName};
use crate::output::{separated, Output};
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
    let question = || format!("{verb} {}? [y/N] ", matching(typed, &names.iter().collect::<Vec<_>>()));
    if !names.is_empty() && !agrees_to(confirm, question)? {
        return Ok(Outcome::Nothing);
    }
    for name in &names {
        if of_one(name, change(name, &output.about(name)))? != Some(Outcome::Done) {
            outcome = Outcome::Nothing;
        }
    }
    missing.map_or(Ok(outcome), Err)
}

/// What came of one of several queues. Reports its failure, and returns `None`; a failure that the others would share ends all.
pub fn of_one<T>(name: &QueueName, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(failure) if failure.is_of_any_queue() => Err(failure.of(name)),
        Err(failure) => {
            tell(failure.about(Some(&name.to_string())).of_write().of(name));
            Ok(None)
        }
    }
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
    let (names, missing) = names::find_reachable(client, Some(pattern))?;
    let names: Vec<QueueName> = names.iter().map(|name| QueueName::read(shown(name).as_bytes())).collect();
    if names.is_empty() {
        tell(format!("no queue matches {typed}; dqctl ls lists the queues"));
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

/// For a question: `12 queues that match svc:* (svc:a, svc:b, svc:c and 9 more)`.
pub fn matching(typed: &QueueName, names: &[&QueueName]) -> String {
    let named: Vec<String> = names.iter().take(NAMED).map(ToString::to_string).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {} more", separated(&more.to_string())),
    };
    let match_it = match names.len() {
        1 => "1 queue that matches".to_owned(),
        number => format!("{} queues that match", separated(&number.to_string())),
    };
    format!("{match_it} {typed} ({}{more})", named.join(", "))
}

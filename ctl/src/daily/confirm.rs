//! The question before many messages are changed. Without a person at a terminal nobody is asked.

use crate::cli::ConfirmArgs;
use crate::failure::Failure;
use crate::name::QueueName;
use crate::output::Output;
use crate::wording::messages;
use std::io::{self, IsTerminal, Write};

/// Asks on a terminal whether to go on, with the number of messages. `verb` is what is done to them, such as `Purge`. `count`
/// returns `None` if the queue does not exist: that, and that there is no message, the command says itself.
///
/// Returns the most messages that may be changed, because more may have come since they were counted; `None` if the answer
/// is no.
pub fn agrees(
    args: &ConfirmArgs,
    output: &Output,
    queue: &QueueName,
    verb: &str,
    count: impl FnOnce() -> Result<Option<u64>, Failure>,
) -> Result<Option<u64>, Failure> {
    // The question goes to standard error, so it is asked although the answer of the command goes to a file.
    if args.yes || output.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(Some(u64::MAX));
    }
    let (most, number) = match count() {
        Ok(Some(0) | None) => return Ok(Some(0)),
        Ok(Some(number)) => (number, messages(number)),
        // A user may be allowed the change alone.
        Err(failure) if !failure.is_denied() => return Err(failure),
        Err(_) => (u64::MAX, "messages, which could not be counted,".to_owned()),
    };
    // In one piece, so that nothing else comes between.
    io::stderr().write_all(format!("{verb} {number} of the queue {queue}? [y/N] ").as_bytes())?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let agrees = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !agrees {
        eprintln!("dqctl: nothing was changed");
    }
    Ok(agrees.then_some(most))
}

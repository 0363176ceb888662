//! The question before many messages are changed. A program in a pipe is never asked.

use crate::cli::ConfirmArgs;
use crate::failure::Failure;
use crate::name::QueueName;
use crate::output::Output;
use crate::wording::messages;
use std::io::{self, IsTerminal, Write};

/// Asks on a terminal whether to go on, with the number of messages. `verb` is what is done to them, such as `Purge`. `count`
/// returns `None` if the queue does not exist: that, and that there is no message, the command says itself.
pub fn agrees(
    args: &ConfirmArgs,
    output: &Output,
    queue: &QueueName,
    verb: &str,
    count: impl FnOnce() -> Result<Option<u64>, Failure>,
) -> Result<bool, Failure> {
    if args.yes || !output.is_for_people() || !io::stdin().is_terminal() {
        return Ok(true);
    }
    let number = match count() {
        Ok(Some(0) | None) => return Ok(true),
        Ok(Some(number)) => messages(number),
        // A user may be allowed the change alone.
        Err(_) => "messages, which could not be counted,".to_owned(),
    };
    eprint!("{verb} {number} of the queue {queue}? [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let agrees = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !agrees {
        eprintln!("dqctl: nothing was changed");
    }
    Ok(agrees)
}

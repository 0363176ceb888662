//! The question before many messages are changed. Without a person at a terminal nobody is asked.

use crate::advice::{dump_of_dead, reaching};
use crate::cli::ConfirmArgs;
use crate::dead::Filter;
use crate::failure::Failure;
use crate::name::QueueName;
use crate::output::text::visible;
use crate::wording::messages;
use std::fs::File;
use std::io::{self, IsTerminal, Write};

/// What is to be done, and to which messages.
pub struct Question<'a> {
    /// Such as `Purge`.
    pub verb: &'a str,
    /// Their states, such as `delayed and dead`; empty if they can be in any.
    pub states: String,
    /// What else is so of all of them, such as ` with error~timeout`; empty if nothing is.
    pub which: String,
}

impl<'a> Question<'a> {
    /// About the messages that a filter selects.
    pub fn of(verb: &'a str, filter: &Filter) -> Question<'a> {
        Question { verb, states: filter.among.to_string(), which: filter.to_string() }
    }

    /// Asks about the messages of several queues, which `place` names. `number` is that of the messages, if they could be counted.
    pub fn agrees_to_all(&self, args: &ConfirmArgs, place: &str, number: Option<u64>) -> Result<bool, Failure> {
        agrees_to(args, || self.text(place, "QUEUE", number))
    }

    /// `queue` is the one in the command that keeps what a redrive clears.
    fn text(&self, place: &str, queue: &str, number: Option<u64>) -> String {
        let states = if self.states.is_empty() { " ".to_owned() } else { format!(" {} ", self.states) };
        let number = match number {
            Some(number) => messages(number).replace(' ', &states),
            None => format!("{}messages, which could not be counted,", states.trim_start()),
        };
        // Who looks for the cause later needs what is lost.
        let kept = match self.states.as_str() {
            "dead" => format!(" ({} keeps them)", dump_of_dead(queue)),
            _ => String::new(),
        };
        let end = match self.verb {
            "Purge" | "Cancel" => format!(" for good{kept}"),
            "Redrive" if !kept.is_empty() => format!(", which clears their errors and attempts{kept}"),
            _ => String::new(),
        };
        format!("{} {number} of {place}{}{end}? [y/N] ", self.verb, self.which)
    }
}

/// Asks on a terminal whether to go on, with the number of messages. `count` returns `None` if the queue does not exist: that,
/// and that there is no message, the command says itself.
///
/// Returns the most messages that may be changed, because more may have come since they were counted; `None` if the answer
/// is no.
pub fn agrees<'a>(
    args: &ConfirmArgs,
    question: impl Fn() -> Question<'a>,
    queue: &QueueName,
    count: impl FnOnce() -> Result<Option<u64>, Failure>,
) -> Result<Option<u64>, Failure> {
    if !is_asked(args) {
        return Ok(Some(u64::MAX));
    }
    let number = match count() {
        Ok(Some(0) | None) => return Ok(Some(0)),
        Ok(Some(number)) => Some(number),
        // A user may be allowed the change alone.
        Err(failure) if !failure.is_denied() => return Err(failure),
        Err(_) => None,
    };
    let text = question().text(&format!("the queue {queue}"), &queue.to_string(), number);
    Ok(ask(&text)?.then_some(number.unwrap_or(u64::MAX)))
}

/// Asks on a terminal whether to go on.
pub fn agrees_to(args: &ConfirmArgs, question: impl FnOnce() -> String) -> Result<bool, Failure> {
    Ok(!is_asked(args) || ask(&question())?)
}

/// Whether a person is there who is to be asked.
pub fn is_asked(args: &ConfirmArgs) -> bool {
    !args.yes && io::stdin().is_terminal()
}

/// The question goes to standard error, so it is asked although the answer of the command goes to a file; and to the terminal if
/// errors go to a file too.
fn ask(question: &str) -> Result<bool, Failure> {
    // In one piece, so that nothing else comes between.
    let question = visible(&reaching(question));
    if io::stderr().is_terminal() {
        io::stderr().write_all(question.as_bytes())?;
    } else {
        File::options().write(true).open("/dev/tty")?.write_all(question.as_bytes())?;
    }
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let agrees = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !agrees {
        say!("dqctl: nothing was changed");
    }
    Ok(agrees)
}

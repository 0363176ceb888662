//! Changes of queues and messages, for the commands and for the page.
//!
//! An [`Act`] is a command as the command line defines it; its file in `each` describes how it differs from the others.
//! Its [`Plan`] has the queues and the number of messages that it would change, `question` puts that in words, and
//! `run` changes one queue, never more messages of it than the plan counted.

mod change;
mod command;
mod count;
mod each;
mod letters;
mod plan;
mod question;
mod report;
mod site;
mod steps;
mod why;

pub use plan::Plan;
pub use report::Report;
pub use why::{no_such_id, where_the_dead_are};

use crate::cli::Act;
use crate::output::{Task, Unit};
use crate::server::Failure;
use crate::text::QueueName;
use dq_client::Raw;
use std::io::{self, IsTerminal, Read};

impl Act {
    /// Reads a payload from standard input, if it is to come from there.
    pub fn read_input(&mut self) -> Result<(), Failure> {
        self.change_mut().input().map_or(Ok(()), read_payload)
    }

    /// Refuses what the definitions of the options cannot refuse.
    pub fn check(&self) -> Result<(), Failure> {
        self.change().check()
    }

    pub fn queue(&self) -> &QueueName {
        self.change().queue()
    }

    /// Whether the messages are only counted.
    pub fn is_dry(&self) -> bool {
        self.change().many().is_some_and(|many| many.dry_run)
    }

    /// Whether to skip the question.
    pub fn is_agreed(&self) -> bool {
        self.change().confirm().is_some_and(|confirm| confirm.yes)
    }

    /// Whether it changes all messages that there are, so that a person wants to know their number first.
    pub fn is_of_many(&self) -> bool {
        self.change().is_of_many()
    }

    /// The change as a task whose progress is shown.
    pub fn task(&self) -> Task {
        Task { done: self.done(), unit: Unit::Messages, repeat: "the same command goes on with the others" }
    }

    /// Reports that its pattern names no queue that could be changed.
    pub fn none(&self) -> String {
        format!("no queue matches {}, or none has such a message; dqctl ls lists the queues", self.queue())
    }
}

/// The payload from the command line, or from standard input.
fn read_payload(payload: &mut Option<Raw>) -> Result<(), Failure> {
    let mut input = io::stdin();
    match payload {
        Some(given) if given.0 != b"-" => return Ok(()),
        None if input.is_terminal() => return Err(Failure::usage("no payload: name it, or pipe it into dqctl")),
        Some(_) | None => {}
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    *payload = Some(Raw(bytes));
    Ok(())
}

//! The options of `dead`, and those that select dead messages.

use crate::board::{dead::Condition, Among, Filter};
use crate::output::Output;
use crate::text::{parse_span, QueueName};
use clap::Args;
use dq_client::State;
use std::time::Duration;

/// How many messages or errors are shown if nobody says how many.
const SHOWN: u32 = 10;
const SELECT: &str = "Conditions";

#[derive(Args, Debug)]
pub struct DeadArgs {
    /// The queue, or with --by-error a glob such as 'svc:*' for all that match
    pub queue: QueueName,
    /// Count them by their errors, without the numbers and ids in these
    #[arg(long)]
    pub by_error: bool,
    /// The most messages or errors; 10 if it is not given, but with --by-error all in a pipe
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Instead of dead messages, those that DEADFORWARD has moved here from other queues
    #[arg(long)]
    pub letters: bool,
    #[command(flatten)]
    pub select: SelectArgs,
}

impl DeadArgs {
    /// The most messages or errors that are shown.
    pub fn most(&self, output: &Output) -> u32 {
        let is_all = self.by_error && !output.is_for_people;
        self.count.unwrap_or(if is_all { u32::MAX } else { SHOWN })
    }

    pub fn filter(&self) -> Filter {
        self.select.filter(among(self.letters, None), None)
    }
}

/// Selects dead messages.
#[derive(Args, Debug)]
pub struct SelectArgs {
    /// Only messages with this: error~timeout; fields: error, cause, reason, id, group, payload, and with --letters
    /// from (the queue in which they died); signs: ~ !~ = !=; can be repeated
    #[arg(long = "where", value_name = "CONDITION", help_heading = SELECT)]
    pub conditions: Vec<Condition>,
    /// Only messages that have been dead, or in their state, for at least this time
    #[arg(long, value_name = "TIME", value_parser = parse_span, help_heading = SELECT)]
    pub older: Option<Duration>,
}

impl SelectArgs {
    /// `oldest` is how many of the selected messages are meant: those that have been for longest.
    pub fn filter(&self, among: Among, oldest: Option<u32>) -> Filter {
        Filter { among, conditions: self.conditions.clone(), older: self.older, oldest }
    }
}

/// Letters, or the messages of a state, by default dead ones.
pub fn among(letters: bool, state: Option<State>) -> Among {
    match state {
        _ if letters => Among::Letters,
        Some(state) => Among::State(state),
        None => Among::default(),
    }
}

//! What is known of a command line besides its options.

use super::Cli;
use crate::text::QueueName;
use clap::{ArgMatches, CommandFactory};

/// The command that the command line names, also if its options are wrong.
pub fn named() -> Option<String> {
    let command = Cli::command();
    let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    words.find(|word| command.find_subcommand(word).is_some())
}

/// The queue that a command is about.
pub fn queue_of(matches: &ArgMatches) -> Option<String> {
    let (_, options) = matches.subcommand()?;
    options.try_get_one::<QueueName>("queue").ok().flatten().map(ToString::to_string)
}

//! The commands in groups: what a bare `dqctl` shows, and the list in its help.

use super::Cli;
use crate::text::name::QueueName;
use clap::{ArgMatches, Command, CommandFactory};

/// Each command is in one group.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Look", &["ls", "info", "stats", "top", "doctor"]),
    ("Messages", &["push", "schedule", "get", "peek", "find", "cancel", "reschedule", "promote", "batch", "await"]),
    ("Failed and dead messages", &["dead", "redrive", "bury"]),
    ("Deliveries", &["consumers", "release", "complete", "nack", "groups"]),
    ("Queues", &["create", "alter", "pause", "resume", "purge", "delete"]),
    ("Programs that run", &["work", "export", "web"]),
    ("Move and set up", &["dump", "load", "import", "completions", "man", "help"]),
];

/// The command line, with the overview in its help.
pub fn command() -> Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}{{after-help}}",
        groups(&command)
    );
    command.help_template(template)
}

/// All commands, for somebody who has named none.
pub fn overview() -> String {
    let command = Cli::command();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!(
        "{about}\n{}\ndqctl COMMAND --help shows the options of a command, and dqctl --help those of all",
        groups(&command)
    )
}

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

fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text.push_str(&format!("\n{heading}:\n"));
        for name in names {
            let found = command.find_subcommand(name);
            let about = found.and_then(Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_else(|| "Show the help of a command".to_owned());
            let aliases: Vec<&str> = found.into_iter().flat_map(Command::get_visible_aliases).collect();
            let aliases = if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
            text.push_str(&format!("  {name:<11}  {about}{aliases}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::GROUPS;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn each_command_is_in_one_group() {
        let mut separated: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut command = Cli::command();
        command.build();
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        separated.sort_unstable();
        all.sort_unstable();
        assert_eq!(separated, all);
    }
}

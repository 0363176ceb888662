//! Settings of a queue that are typed on the last line, as `dqctl alter` takes them.

use super::action::{Action, Kind};
use super::app::App;
use super::prompt::{edit, Prompt};
use crate::cli::AlterArgs;
use crate::daily::queues::{read, settings, value};
use crate::failure::Failure;
use crate::output::text::named;
use crate::output::Output;
use clap::{Args, Command, FromArgMatches};
use crossterm::event::KeyCode;
use dq_client::{cmd, Client, Cmd, Resend};

impl App {
    /// Asks for settings, below those that the queue has.
    pub fn ask_for_settings(&mut self, queue: Vec<u8>) {
        self.details.get_or_insert_default().scroll = 0;
        self.said = None;
        self.prompt = Prompt::Alter(queue, String::new());
    }

    /// What is wrong is said above what was typed, which can be corrected.
    pub fn alter_key(&mut self, code: KeyCode, queue: Vec<u8>, mut text: String) {
        self.said = None;
        match code {
            KeyCode::Esc => return,
            KeyCode::Enter => match command(&queue, &text) {
                Ok(_) => {
                    self.prompt = Prompt::Question(Action { queue, kind: Kind::Alter(text) });
                    return;
                }
                Err(why) => self.say_wrong(why.to_string()),
            },
            code => edit(&mut text, code),
        }
        self.prompt = Prompt::Alter(queue, text);
    }

    /// The names of the settings that are typed, as far as they are, or that a question is about.
    pub fn typed_settings(&self) -> Option<Vec<String>> {
        match &self.prompt {
            Prompt::Alter(_, text) | Prompt::Question(Action { kind: Kind::Alter(text), .. }) => {
                Some(options(text).into_iter().map(|(name, _)| name).collect())
            }
            Prompt::None | Prompt::Filter | Prompt::Find(_) | Prompt::Pause(..) | Prompt::Question(_) => None,
        }
    }
}

/// The options of `dqctl alter`, without that of its help, which would be printed over the screen.
fn alter() -> Command {
    AlterArgs::augment_args(Command::new("alter").no_binary_name(true).disable_help_flag(true))
}

/// The names and values in a text such as `lease 1m backoff 1s,1h`. A value can have several words, as that of `forward`.
fn options(text: &str) -> Vec<(String, String)> {
    let command = alter();
    let is_known = |name: &str| command.get_opts().any(|option| option.get_long() == Some(name));
    let mut options: Vec<(String, String)> = Vec::new();
    for word in text.split_whitespace() {
        let name = word.trim_start_matches("--").to_lowercase();
        match options.last_mut() {
            Some((_, value)) if !is_known(&name) => {
                value.push_str(if value.is_empty() { "" } else { " " });
                value.push_str(word);
            }
            _ => options.push((name, String::new())),
        }
    }
    options
}

/// `DQ.ALTER` with the settings that were typed.
fn command(queue: &[u8], text: &str) -> Result<Cmd, Failure> {
    let options = options(text);
    if options.is_empty() {
        return Err(Failure::usage("give a setting and its value, such as lease 1m"));
    }
    let option = |(name, value): (String, String)| match value.as_str() {
        "" => format!("--{name}"),
        value => format!("--{name}={value}"),
    };
    let queue_and_options = ["queue".to_owned()].into_iter().chain(options.into_iter().map(option));
    let parsed =
        alter().try_get_matches_from(queue_and_options).and_then(|matches| AlterArgs::from_arg_matches(&matches));
    let args = parsed.map_err(|error| {
        let why = Failure::of_usage(&error).to_string();
        // The help that it names is that of the program, not of a setting.
        Failure::usage(why.rsplit_once("; see ").map_or(why.as_str(), |(why, _)| why).to_owned())
    })?;
    let mut command = cmd("DQ.ALTER").arg(queue).clone();
    args.settings.write(&mut command);
    Ok(command)
}

/// Changes the settings, and says what they were, so that they can be changed back.
pub fn execute(client: &Client, queue: &[u8], text: &str) -> Result<String, Failure> {
    let output = Output::new(false);
    // A user who may only alter queues is told that it was altered.
    let now = || read(client, queue).ok().flatten().map(settings);
    let before = now();
    client.call(&command(queue, text)?, Resend::Harmless)?;
    let (name, after) = (named(queue), now());
    let Some((before, after)) = before.zip(after) else { return Ok(format!("altered {name}")) };
    let differ = after.0.iter().map(|(field, _)| field).filter(|field| before.get(field) != after.get(field));
    let changes: Vec<String> = differ
        .map(|field| format!("{field}: {} -> {}", value(&before, field, &output), value(&after, field, &output)))
        .collect();
    Ok(match changes.as_slice() {
        [] => format!("{name} has these settings already"),
        changes => format!("altered {name}: {}", changes.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::command;

    fn words(text: &str) -> Result<String, String> {
        let command = command(b"mail", text).map_err(|why| why.to_string())?.get_packed_command();
        let command = String::from_utf8(command).unwrap();
        Ok(command.lines().filter(|line| !line.starts_with(['*', '$'])).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn settings_are_typed_as_for_alter() {
        for (typed, sent) in [
            ("lease 1m", "LEASE 60000"),
            ("RETRIES -1  maxlen 5", "MAXLEN 5 RETRIES -1"),
            ("--backoff 1s,1h jitter 20", "BACKOFF 1000 3600000 JITTER 20"),
            ("deadforward QUEUE letters", "DEADFORWARD QUEUE letters"),
        ] {
            assert_eq!(words(typed), Ok(format!("DQ.ALTER mail {sent}")));
        }
        for (typed, why) in [
            ("", "give a setting and its value, such as lease 1m"),
            ("lease", "a value is required for '--lease <TIME>' but none was supplied"),
            ("leese 1m", "unexpected argument '--leese' found tip: a similar argument exists: '--lease'"),
            ("help", "unexpected argument '--help' found"),
        ] {
            assert_eq!(words(typed), Err(why.to_owned()));
        }
        assert!(words("lease 60000").unwrap_err().contains("a time is a number with a unit"));
    }
}

//! The settings of a queue as options, under their names in `DQ.INFO`.

use crate::text::{Takes, SETTINGS};
use clap::{Arg, ArgMatches, Command, Error};

/// The settings that were given, as words of `DQ.CREATE` and `DQ.ALTER`. The others stay as they are.
#[derive(Clone, Debug, Default)]
pub struct SettingsArgs(pub Vec<String>);

impl clap::Args for SettingsArgs {
    fn augment_args(command: Command) -> Command {
        SETTINGS.iter().fold(command, |command, setting| {
            let (name, takes) = (setting.name, setting.takes);
            let arg = Arg::new(name).long(name).help(setting.help());
            let arg = arg.value_name(takes.placeholder()).help_heading("Settings");
            let arg = match takes {
                Takes::Order => arg.value_parser(["due", "turn"]),
                Takes::Time | Takes::Number | Takes::Backoff | Takes::Rate | Takes::Target => {
                    arg.allow_negative_numbers(true).value_parser(move |text: &str| takes.read(text))
                }
            };
            command.arg(if name == "jitter" { arg.requires("backoff") } else { arg })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for SettingsArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SettingsArgs, Error> {
        let mut words = Vec::new();
        for setting in &SETTINGS {
            let value = match setting.takes {
                Takes::Order => matches.get_one::<String>(setting.name).map(|order| vec![order.clone()]),
                Takes::Time | Takes::Number | Takes::Backoff | Takes::Rate | Takes::Target => {
                    matches.get_one::<Vec<String>>(setting.name).cloned()
                }
            };
            if let Some(value) = value {
                words.push(setting.name.to_ascii_uppercase());
                words.extend(value);
            }
        }
        Ok(SettingsArgs(words))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

//! The settings of a queue as options, under their names in `DQ.INFO`: one table for the command line, its help and the page.

use crate::text::{millis, parse_span};
use clap::{Arg, ArgMatches, Command, Error};
use Takes::{Backoff, Number, Order, Rate, Target, Time};

/// What a setting takes.
#[derive(Clone, Copy)]
enum Takes {
    Time,
    Number,
    /// The first wait and the longest.
    Backoff,
    Rate,
    Order,
    /// A kind and a name.
    Target,
}

const SETTINGS: [(&str, Takes, &str); 22] = [
    ("lease", Time, "How long a delivery may take before the message is delivered again"),
    ("maxlease", Time, "The longest time that a lease can be extended to, from the delivery on; 0: no limit"),
    ("retries", Number, "How often a message is redelivered before it becomes dead; -1: no limit"),
    ("backoff", Backoff, "The first wait after a failure, which doubles each time, and the longest: 1s,1h"),
    ("jitter", Number, "With --backoff: by up to how many percent the waits are shortened"),
    ("ttl", Time, "Messages that are not completed within this time after they were due become dead; 0: never"),
    ("maxlen", Number, "The most messages that are not dead; 0: no limit"),
    ("maxinflight", Number, "The most messages in flight; 0: no limit"),
    ("rate", Rate, "The most deliveries in any span of a time: 100/1m; 0: no limit"),
    ("deadlen", Number, "The most dead messages that are kept; -1: all"),
    ("deadttl", Time, "How long a dead message is kept; 0: for ever"),
    ("retain", Time, "How long a completed message is kept as done; 0: not at all"),
    ("donelen", Number, "The most done messages that are kept; -1: all"),
    ("maxpayload", Number, "The largest payload in bytes; 0: no limit"),
    ("groupinflight", Number, "The most messages of a group in flight or waiting for a retry; 0: no limit"),
    ("grouprate", Rate, "The same as --rate, for each group by itself: 10/1s; 0: no limit"),
    ("errors", Number, "How many errors of past attempts are kept of a message"),
    ("grouporder", Order, "In which order groups are served"),
    ("dedupe", Time, "For how long an accepted id is refused although its message is gone; 0: not at all"),
    ("forward", Target, "Where messages that are due are written: 'STREAM jobs', 'LIST jobs', 'CHANNEL jobs' or NONE"),
    ("deadforward", Target, "Where dead messages are moved: 'QUEUE dead', 'STREAM dead', 'LIST dead' or NONE"),
    ("delay", Time, "How long a message waits that is pushed without a delay"),
];

/// The settings that were given, as words of `DQ.CREATE` and `DQ.ALTER`. The others stay as they are.
#[derive(Clone, Debug, Default)]
pub struct SettingsArgs(pub Vec<String>);

impl Takes {
    fn placeholder(self) -> &'static str {
        match self {
            Time => "TIME",
            Number => "N",
            Backoff => "BASE,MAX",
            Rate => "N/TIME",
            Order => "ORDER",
            Target => "TARGET",
        }
    }

    /// The words of a value.
    fn read(self, text: &str) -> Result<Vec<String>, String> {
        const RATE: &str = "deliveries and a time, such as 100/1m, or 0";
        let ms = |text: &str| parse_span(text).map(|time| millis(time).to_string());
        Ok(match self {
            Time => vec![ms(text)?],
            Number => vec![text.parse::<i64>().map_err(|_| "it must be a whole number")?.to_string()],
            Backoff => {
                let (base, max) = text.split_once(',').ok_or("the first wait and the longest, such as 1s,1h")?;
                vec![ms(base)?, ms(max)?]
            }
            Rate if text == "0" => vec!["0".to_owned(), "0".to_owned()],
            Rate => {
                let (count, period) = text.split_once('/').ok_or(RATE)?;
                vec![count.trim().parse::<u64>().map_err(|_| RATE)?.to_string(), ms(period)?]
            }
            Order | Target => text.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

impl clap::Args for SettingsArgs {
    fn augment_args(command: Command) -> Command {
        SETTINGS.into_iter().fold(command, |command, (name, takes, help)| {
            let arg = Arg::new(name).long(name).help(help).value_name(takes.placeholder()).help_heading("Settings");
            let arg = match takes {
                Order => arg.value_parser(["due", "turn"]),
                takes => arg.allow_negative_numbers(true).value_parser(move |text: &str| takes.read(text)),
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
        for (name, takes, _) in SETTINGS {
            let value = match takes {
                Order => matches.get_one::<String>(name).map(|order| vec![order.clone()]),
                _ => matches.get_one::<Vec<String>>(name).cloned(),
            };
            if let Some(value) = value {
                words.push(name.to_ascii_uppercase());
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

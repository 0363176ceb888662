//! The settings of a queue as options, under their names in `DQ.INFO`: one table for the command line, its help and the page.

use crate::text::time::{millis, parse_span};
use clap::{Arg, ArgMatches, Command, Error};

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

const SETTINGS: [(&str, Takes, &str); 21] = [
    ("lease", Takes::Time, "How long a delivery may take before the message is delivered again"),
    (
        "maxlease",
        Takes::Time,
        "The longest time from a delivery to the end of its lease, however often it is extended; 0: no limit",
    ),
    ("retries", Takes::Number, "How often a message is redelivered before it becomes dead; -1: no limit"),
    ("backoff", Takes::Backoff, "The first wait after a failure, which doubles each time, and the longest: 1s,1h"),
    ("jitter", Takes::Number, "With --backoff: by up to how many percent the waits are shortened"),
    ("ttl", Takes::Time, "Messages that are not completed within this time after they were due become dead; 0: never"),
    ("maxlen", Takes::Number, "The most messages that are not dead; 0: no limit"),
    ("maxinflight", Takes::Number, "The most messages in flight; 0: no limit"),
    ("rate", Takes::Rate, "The most deliveries in any span of a time: 100/1m; 0: no limit"),
    ("deadlen", Takes::Number, "The most dead messages that are kept; -1: all"),
    ("deadttl", Takes::Time, "How long a dead message is kept; 0: for ever"),
    ("retain", Takes::Time, "How long a completed message is kept as done; 0: not at all"),
    ("donelen", Takes::Number, "The most done messages that are kept; -1: all"),
    ("maxpayload", Takes::Number, "The largest payload in bytes; 0: no limit"),
    (
        "groupinflight",
        Takes::Number,
        "The most messages of a group that are in flight or wait for a retry; 0: no limit",
    ),
    ("grouprate", Takes::Rate, "The same as --rate, for each group by itself: 10/1s; 0: no limit"),
    ("errors", Takes::Number, "How many errors of past attempts are kept of a message"),
    ("grouporder", Takes::Order, "In which order groups are served"),
    (
        "dedupe",
        Takes::Time,
        "For how long an accepted id is refused, even if its message is gone; 0: while its message is there",
    ),
    (
        "forward",
        Takes::Target,
        "Where the server writes messages that are due: 'STREAM jobs', 'LIST jobs', 'CHANNEL jobs' or NONE",
    ),
    (
        "deadforward",
        Takes::Target,
        "Where the server moves messages that are dead: 'QUEUE dead', 'STREAM dead', 'LIST dead' or NONE",
    ),
];
const DELAY: (&str, Takes, &str) = ("delay", Takes::Time, "How long a message waits that is pushed without a delay");

/// The settings that were given, as words of `DQ.CREATE` and `DQ.ALTER`. The others stay as they are.
#[derive(Clone, Debug, Default)]
pub struct SettingsArgs(Vec<String>);

/// The words of one value.
#[derive(Clone, Debug)]
struct Words(Vec<String>);

impl SettingsArgs {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn words(&self) -> &[String] {
        &self.0
    }
}

impl Takes {
    fn placeholder(self) -> &'static str {
        match self {
            Takes::Time => "TIME",
            Takes::Number => "N",
            Takes::Backoff => "BASE,MAX",
            Takes::Rate => "N/TIME",
            Takes::Order => "ORDER",
            Takes::Target => "TARGET",
        }
    }

    fn read(self, text: &str) -> Result<Words, String> {
        const RATE: &str = "deliveries and a time, such as 100/1m, or 0";
        let ms = |text: &str| parse_span(text).map(|time| millis(time).to_string());
        Ok(Words(match self {
            Takes::Time => vec![ms(text)?],
            Takes::Number => vec![text.parse::<i64>().map_err(|_| "it must be a whole number")?.to_string()],
            Takes::Backoff => {
                let (base, max) = text.split_once(',').ok_or("the first wait and the longest, such as 1s,1h")?;
                vec![ms(base)?, ms(max)?]
            }
            Takes::Rate if text == "0" => vec!["0".to_owned(), "0".to_owned()],
            Takes::Rate => {
                let (count, period) = text.split_once('/').ok_or(RATE)?;
                vec![count.trim().parse::<u64>().map_err(|_| RATE)?.to_string(), ms(period)?]
            }
            Takes::Order | Takes::Target => text.split_whitespace().map(str::to_owned).collect(),
        }))
    }
}

fn settings() -> impl Iterator<Item = (&'static str, Takes, &'static str)> {
    SETTINGS.into_iter().chain([DELAY])
}

impl clap::Args for SettingsArgs {
    fn augment_args(command: Command) -> Command {
        settings().fold(command, |command, (name, takes, help)| {
            let arg = Arg::new(name).long(name).help(help).value_name(takes.placeholder()).help_heading("Settings");
            let arg = match takes {
                Takes::Order => arg.value_parser(["due", "turn"]),
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
        for (name, takes, _) in settings() {
            let value = match takes {
                Takes::Order => matches.get_one::<String>(name).map(|order| vec![order.clone()]),
                _ => matches.get_one::<Words>(name).map(|words| words.0.clone()),
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

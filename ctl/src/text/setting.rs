//! The settings of a queue, in one table: their names, what they take, and which of their numbers mean something else.
//! The command line, its help, the page and what is printed use it.

use super::{millis, parse_span};
use Takes::{Backoff, Number, Order, Rate, Target, Time};

/// What a setting takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// A length of time, in ms on the server.
    Time,
    Number,
    /// The first wait and the longest: the fields `backoff-base` and `backoff-max` of `DQ.INFO`.
    Backoff,
    /// Deliveries and a time, which is in a field whose name ends with `-period`.
    Rate,
    Order,
    /// A kind and a name.
    Target,
}

/// A setting.
pub struct Setting {
    /// As `DQ.CREATE` takes it.
    pub name: &'static str,
    pub takes: Takes,
    /// A number with a special meaning, and that meaning in words.
    pub special: Option<(i64, &'static str)>,
    help: &'static str,
}

const NO_LIMIT: Option<(i64, &str)> = Some((0, "no limit"));
const ALL: Option<(i64, &str)> = Some((-1, "all"));
const NONE: Option<(i64, &str)> = Some((0, "none"));

#[rustfmt::skip]
pub const SETTINGS: [Setting; 22] = [
    setting("lease", Time, None, "How long a delivery may take before the message is delivered again"),
    setting("maxlease", Time, NO_LIMIT, "The longest time that a lease can be extended to, from the delivery on"),
    setting("retries", Number, Some((-1, "no limit")), "How often a message is redelivered before it becomes dead"),
    setting("backoff", Backoff, None,
        "The first wait after a failure, which doubles each time, and the longest: 1s,1h"),
    setting("jitter", Number, None, "With --backoff: by up to how many percent the waits are shortened"),
    setting("ttl", Time, NO_LIMIT, "Messages that are not completed within this time after they were due become dead"),
    setting("maxlen", Number, NO_LIMIT, "The most messages that are not dead"),
    setting("maxinflight", Number, NO_LIMIT, "The most messages in flight"),
    setting("rate", Rate, NO_LIMIT, "The most deliveries in any span of a time: 100/1m"),
    setting("deadlen", Number, ALL, "The most dead messages that are kept"),
    setting("deadttl", Time, Some((0, "for ever")), "How long a dead message is kept"),
    setting("retain", Time, NONE, "How long a completed message is kept as done"),
    setting("donelen", Number, ALL, "The most done messages that are kept"),
    setting("maxpayload", Number, NO_LIMIT, "The largest payload in bytes"),
    setting("groupinflight", Number, NO_LIMIT, "The most messages of a group in flight or waiting for a retry"),
    setting("grouprate", Rate, NO_LIMIT, "The same as --rate, for each group by itself: 10/1s"),
    setting("errors", Number, None, "How many errors of past attempts are kept of a message"),
    setting("grouporder", Order, None, "In which order groups are served"),
    setting("dedupe", Time, NONE, "For how long an accepted id is refused although its message is gone"),
    setting("forward", Target, None,
        "Where messages that are due are written: 'STREAM jobs', 'LIST jobs', 'CHANNEL jobs' or NONE"),
    setting("deadforward", Target, None,
        "Where dead messages are moved: 'QUEUE dead', 'STREAM dead', 'LIST dead' or NONE"),
    setting("delay", Time, NONE, "How long a message waits that is pushed without a delay"),
];

const fn setting(
    name: &'static str,
    takes: Takes,
    special: Option<(i64, &'static str)>,
    help: &'static str,
) -> Setting {
    Setting { name, takes, special, help }
}

impl Setting {
    /// The line of the help.
    pub fn help(&self) -> String {
        match self.special {
            Some((number, meaning)) => format!("{}; {number}: {meaning}", self.help),
            None => self.help.to_owned(),
        }
    }
}

impl Takes {
    pub fn placeholder(self) -> &'static str {
        match self {
            Time => "TIME",
            Number => "N",
            Backoff => "BASE,MAX",
            Rate => "N/TIME",
            Order => "ORDER",
            Target => "TARGET",
        }
    }

    /// The words of a value, as `DQ.CREATE` takes them.
    pub fn read(self, text: &str) -> Result<Vec<String>, String> {
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

/// The words for a number with a special meaning. The page uses the same words.
pub fn meaning(field: &str, number: i64) -> Option<&'static str> {
    let special = if is_period(field) { NONE } else { find(field)?.special };
    special.filter(|(none, _)| *none == number).map(|(_, meaning)| meaning)
}

/// Whether a field of `DQ.INFO` is a setting that is a length of time in ms.
pub fn is_time(field: &str) -> bool {
    is_period(field)
        || matches!(field, "backoff-base" | "backoff-max")
        || find(field).is_some_and(|setting| setting.takes == Time)
}

/// Whether a field is the time of a rate.
fn is_period(field: &str) -> bool {
    field.strip_suffix("-period").and_then(find).is_some_and(|setting| setting.takes == Rate)
}

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use super::{is_time, meaning, SETTINGS};

    #[test]
    fn numbers_that_are_none_have_words() {
        for (field, number, expected) in [
            ("maxlen", 0, Some("no limit")),
            ("retries", -1, Some("no limit")),
            ("retries", 0, None),
            ("deadlen", -1, Some("all")),
            ("deadttl", 0, Some("for ever")),
            ("grouprate-period", 0, Some("none")),
            ("lease", 0, None),
            ("backoff-base", 0, None),
            ("pushed", 0, None),
        ] {
            assert_eq!(meaning(field, number), expected, "{field} {number}");
        }
    }

    #[test]
    fn lengths_of_time_are_told_from_numbers() {
        for field in ["lease", "rate-period", "grouprate-period", "backoff-base", "backoff-max", "delay"] {
            assert!(is_time(field), "{field}");
        }
        for field in ["rate", "backoff-jitter", "retries", "forward", "lease-period"] {
            assert!(!is_time(field), "{field}");
        }
        assert!(SETTINGS.iter().all(|setting| !setting.help().ends_with('.')));
    }
}

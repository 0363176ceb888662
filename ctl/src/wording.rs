//! The texts of the server in the words of the command line: its options, and its commands.

use crate::output::separated;
use crate::time::exact;

/// Texts that name commands or words of the server, by how they begin, and what dqctl says instead.
const TEXTS: [(&str, &str); 7] = [
    (
        "queue exists with other settings",
        "the queue exists with other settings, which stay as they are; dqctl alter QUEUE changes them",
    ),
    ("CRON never fires", "--cron never fires: there is no such date, as 30 February"),
    ("FORWARD needs", "--forward takes 'STREAM NAME', 'LIST NAME', 'CHANNEL NAME' or NONE"),
    ("DEADFORWARD needs", "--deadforward takes 'QUEUE NAME', 'STREAM NAME', 'LIST NAME' or NONE"),
    ("RATE takes", "--rate takes a number of deliveries and a time, such as 100/1m, or 0 for no limit"),
    ("GROUPRATE takes", "--grouprate takes a number of deliveries and a time, such as 10/1s, or 0 for no limit"),
    ("BACKOFF base must", "--backoff takes the first wait and the longest one, which must not be shorter: 1s,1h"),
];

/// Options of the server that are not named like those of dqctl.
const OPTIONS: [(&str, &str); 4] =
    [("AS", "the name of a consumer"), ("COUNT", "-n"), ("RESULT", "the result"), ("AT", "--at")];

/// Parts of texts that say that a value can be right on no queue.
const OF_VALUES: [&str; 9] = [
    "ERR syntax error",
    " must be ",
    " must not be ",
    " takes two numbers",
    "ERR CRON ",
    "ERR unknown time zone",
    "ERR a receipt is not an id",
    "ERR the first run would be after",
    "looks like seconds",
];

/// Whether the server refused a value for what it is, so that the same refusal would follow again.
pub fn is_of_value(text: &str) -> bool {
    text.starts_with("ERR ") && OF_VALUES.iter().any(|part| text.contains(part))
}

/// A number of messages: `1 message`, `1,200 messages`.
pub fn messages(number: u64) -> String {
    let noun = if number == 1 { "message" } else { "messages" };
    format!("{} {noun}", separated(&number.to_string()))
}

/// What dqctl says for an error of the server.
pub fn of_dqctl(text: &str) -> String {
    let text = text.strip_prefix("ERR ").unwrap_or(text);
    let text = text.strip_prefix("syntax error, ").unwrap_or(text);
    if let Some((_, said)) = TEXTS.iter().find(|(begin, _)| text.starts_with(begin)) {
        return (*said).to_owned();
    }
    // Of the words that dqctl passes on, only those of a target can lack one.
    if let Some(kind) = text.strip_suffix(" needs a value").filter(|word| is_option(word)) {
        return format!("{kind} needs a name, such as '{kind} jobs'");
    }
    let text = &text.replacen("CRON has ", "--cron has ", 1).replacen("TZ is ", "--tz takes ", 1);
    match text.split_once(" must be ") {
        Some((option, rule)) if is_option(option) => format!("{} must be {}", named(option), in_units(rule)),
        _ => text.to_owned(),
    }
}

fn is_option(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

fn named(option: &str) -> String {
    let other = OPTIONS.iter().find(|(name, _)| *name == option);
    other.map_or_else(|| format!("--{}", option.to_ascii_lowercase()), |(_, said)| (*said).to_owned())
}

/// A range of milliseconds as times.
fn in_units(rule: &str) -> String {
    let range = rule.strip_prefix("a whole number of milliseconds from ").and_then(|range| range.split_once(" to "));
    match range.map(|(min, max)| (min.parse(), max.parse())) {
        Some((Ok(min), Ok(max))) => format!("a time from {} to {}", exact(min), exact(max)),
        _ => rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{messages, of_dqctl};

    #[test]
    fn one_message_is_singular() {
        assert_eq!([1, 0, 1_200].map(messages), ["1 message", "0 messages", "1,200 messages"]);
    }

    #[test]
    fn options_of_the_server_are_named_as_those_of_dqctl() {
        for (text, said) in [
            ("ERR RETRIES must be a whole number from -1 to 9", "--retries must be a whole number from -1 to 9"),
            ("ERR FOR must be a whole number of milliseconds from 1 to 60000", "--for must be a time from 1ms to 1m"),
            ("ERR AS must be 1 to 128 bytes", "the name of a consumer must be 1 to 128 bytes"),
            ("ERR a queue cannot forward to itself", "a queue cannot forward to itself"),
            ("ERR the value of the header 'a' must be at most", "the value of the header 'a' must be at most"),
            ("ERR syntax error, LIST needs a value", "LIST needs a name, such as 'LIST jobs'"),
            ("DENIED by a rule", "DENIED by a rule"),
        ] {
            assert_eq!(of_dqctl(text), said);
        }
        assert!(of_dqctl("ERR syntax error, DEADFORWARD needs STREAM, LIST").starts_with("--deadforward takes"));
    }
}

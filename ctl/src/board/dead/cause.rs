//! The cause of a death: the first line of the error, without what differs from message to message.

use crate::server::Message;
use crate::text::readable;
use std::ops::RangeInclusive;

/// The most characters of a cause.
const LONGEST: usize = 200;
/// Replaces a number, an id or an address.
const BLANK: char = '#';
/// A code of an answer or of an exit has at most this many digits. Codes are kept, because they tell causes apart.
const CODE: usize = 3;
/// Words before a code: `HTTP 503`, `exit status: 1`. A number after any other word is a count or an id: `order 7`.
#[rustfmt::skip]
const OF_CODES: [&str; 10] =
    ["code", "errno", "error", "exit", "exited", "http", "https", "signal", "smtp", "status"];
/// Words before a code of three digits. A line can begin with such a code as well: `550 no such user`.
#[rustfmt::skip]
const OF_ANSWERS: [&str; 17] = [
    "answer", "answered", "failed", "gave", "gives", "got", "received", "refused", "rejected", "reply", "replied",
    "responded", "response", "returned", "returns", "said", "says",
];
/// Codes that may stand between a colon and their name: `stripe: 402 Payment Required`. Any other number there may be
/// an id, which would split one cause into many.
const OF_ERRORS: RangeInclusive<u16> = 400..=599;
/// Words that can stand between such a word and its code: `a status of 503`.
const BETWEEN: [&str; 6] = ["a", "by", "is", "of", "was", "with"];
/// Signs that may precede a code. After any other sign, as in `$250` or `error/12`, a number is not a code.
const BEFORE_CODE: &str = "'\"([<=";
/// A word of at least this many hexadecimal digits is an id.
const HEX: usize = 8;
/// Python writes the line that matters last.
const TRACEBACK: &str = "Traceback ";

/// The error of a message whose last lease expired without an ack or a nack.
const LEASE: &str = "(lease expired)";

/// The error of a dead message for a list, the most telling line first. If its lease expired, that precedes the error
/// of an earlier attempt.
pub fn error_of(message: &Message) -> String {
    match (message.has_lost_lease(), readable(message.error())) {
        (false, error) if error.is_empty() => message.header("dq-error").unwrap_or_default(),
        (false, error) if error.starts_with(TRACEBACK) => format!("{}: {error}", line_of(&error).unwrap_or_default()),
        (false, error) => error,
        (true, error) if error.is_empty() => LEASE.to_owned(),
        (true, error) => format!("{LEASE} after {error}"),
    }
}

/// The cause of the death of a message; in parentheses if its last attempt left no error.
pub fn cause_of(message: &Message) -> String {
    if message.has_lost_lease() {
        return LEASE.to_owned();
    }
    let error = readable(message.error());
    match line_of(&error) {
        Some(line) => normalized(line),
        None => format!("({})", message.text("reason")),
    }
}

/// The most telling line of an error.
fn line_of(error: &str) -> Option<&str> {
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    if first.starts_with(TRACEBACK) {
        return Some(lines.next_back().unwrap_or(first));
    }
    Some(first)
}

/// Replaces all numbers except codes, and ids and e-mail addresses.
fn normalized(line: &str) -> String {
    let (mut cause, mut code) = (String::new(), Some(CODE));
    let mut rest = line;
    while let Some(start) = rest.find(is_of_word) {
        let (between, after) = rest.split_at(start);
        let is_numbered = between.ends_with(BLANK);
        let may_be_code = between.chars().next_back().is_none_or(|c| c.is_whitespace() || BEFORE_CODE.contains(c));
        cause.push_str(between.strip_suffix(BLANK).unwrap_or(between));
        let (word, after) = after.split_at(after.find(|c| !is_of_word(c)).unwrap_or(after.len()));
        let at = cause.len();
        let code_here = if cause.trim_end().ends_with(':') && is_error(word, after) { Some(CODE) } else { code };
        write_word(word, code_here.filter(|_| may_be_code), &mut cause);
        if is_numbered && !cause.get(at..).is_some_and(|written| written.starts_with(BLANK)) {
            cause.insert(at, BLANK);
        }
        code = code_after(word, code);
        rest = after;
    }
    cause.push_str(rest);
    match cause.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", cause.get(..end).unwrap_or_default()),
        None => cause,
    }
}

/// Whether a word is the code of an error, which a name such as `Payment Required` follows.
fn is_error(word: &str, after: &str) -> bool {
    let number = word.trim_end_matches(['.', ':']);
    let is_named = after.trim_start().starts_with(char::is_uppercase);
    number.len() == CODE && number.parse().is_ok_and(|number| OF_ERRORS.contains(&number)) && is_named
}

/// The fewest digits of a code after this word; `None` if no code can follow. `code` is the same for the word itself.
fn code_after(word: &str, code: Option<usize>) -> Option<usize> {
    let name: String = word.chars().filter(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
    match name.as_str() {
        // One code only, as in `exit status 1 of 3`; but in `HTTP/1.1 404` the version is none.
        "" if word.chars().any(|c| c.is_ascii_digit()) && !word.contains('.') => None,
        "" => code,
        word if OF_CODES.contains(&word) => Some(1),
        word if OF_ANSWERS.contains(&word) => Some(CODE),
        word if BETWEEN.contains(&word) => code,
        _ => None,
    }
}

/// Words include what joins the parts of addresses, times and ids.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || "_-.:@+".contains(c)
}

/// Writes a word. A number that stands alone is kept if it is a code, that is, if it has at least `code` digits.
fn write_word(word: &str, code: Option<usize>, cause: &mut String) {
    let inner = word.trim_end_matches(['.', ':', '-', '+']);
    let end = word.get(inner.len()..).unwrap_or_default();
    let (is_digit, is_hex) = (|c: char| c.is_ascii_digit(), |c: char| c.is_ascii_hexdigit() || c == '-');
    let is_code = code.is_some_and(|least| (least..=CODE).contains(&inner.len()));
    if inner.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.')) {
        cause.push(BLANK);
    } else if !inner.contains(is_digit) || (is_code && inner.chars().all(is_digit)) {
        cause.push_str(inner);
    } else if inner.len() >= HEX && inner.chars().all(is_hex) {
        cause.push(BLANK);
    } else {
        write_numbers(inner, cause);
    }
    cause.push_str(end);
}

/// Writes a word with one blank for each of its numbers, and for numbers that are only joined by signs.
fn write_numbers(word: &str, cause: &mut String) {
    let mut rest = word;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(start);
        cause.push_str(before);
        cause.push(BLANK);
        let end = number.find(|c: char| !c.is_ascii_digit() && !"-.:+".contains(c)).unwrap_or(number.len());
        let length = number.get(..end).unwrap_or(number).trim_end_matches(|c: char| !c.is_ascii_digit()).len();
        rest = number.get(length..).unwrap_or_default();
    }
    cause.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::{error_of, line_of, normalized};
    use crate::server::{Fields, Message};
    use dq_client::Value;

    #[test]
    fn what_differs_from_message_to_message_is_replaced() {
        for (error, cause) in [
            ("connect to 10.0.0.5:5432: refused", "connect to #: refused"),
            ("timeout after 523ms", "timeout after #ms"),
            ("timeout after 30 s", "timeout after # s"),
            ("order 48213 not found", "order # not found"),
            ("order 7 not found", "order # not found"),
            ("order #7 not found", "order # not found"),
            ("order #48213 not found", "order # not found"),
            ("no row with id=12, of 3", "no row with id=#, of #"),
            ("no order 450 found", "no order # found"),
            ("550 no such user 429", "550 no such user #"),
            ("HTTP 503 from upstream req 442", "HTTP 503 from upstream req #"),
            ("req 442: 503 Service Unavailable", "req #: 503 Service Unavailable"),
            ("request: 442 of 7", "request: # of #"),
            ("user (429)", "user (#)"),
            ("gave up after 500 ms", "gave up after # ms"),
            ("disk at 512 %", "disk at # %"),
            ("job 450.1 and v450", "job # and v#"),
            ("3 items missing", "# items missing"),
            ("$250 was refused: error ~7", "$# was refused: error ~#"),
            ("error/12/x, status *404", "error/#/x, status *#"),
            ("no issue in #general", "no issue in #general"),
            ("a # b", "a # b"),
            ("no user bob@example.com", "no user #"),
            ("job 550e8400-e29b-41d4-a716-446655440000 failed.", "job # failed."),
            ("key deadbeef01 is gone", "key # is gone"),
            ("at 2026-12-01T09:00:00.123Z: late", "at #T#Z: late"),
            ("user_77 and user_8", "user_# and user_#"),
            ("Überlauf: ünknown", "Überlauf: ünknown"),
            ("--- @ ...", "--- @ ..."),
        ] {
            assert_eq!(normalized(error), cause);
        }
        assert_eq!(normalized(&"ü".repeat(300)).chars().count(), 201);
    }

    #[test]
    fn codes_of_answers_are_kept() {
        for error in [
            "503 Service Unavailable",
            "exit status: 1",
            "Request failed with status code 404",
            "Client error '404 Not Found' for url",
            "[Errno 111] Connection refused",
            "a status of 503",
            "status=500",
            "got 429",
            "killed by signal 9",
            "upstream said 402",
            "payment declined by stripe: 402 Payment Required",
            "Wikimedia gave 429, giving up",
            "SMTP server: 550. No such user",
            "boom (status 503)",
        ] {
            assert_eq!(normalized(error), error);
        }
        assert_eq!(normalized("HTTP/1.1 404 for order 7"), "HTTP/# 404 for order #");
        assert_eq!(normalized("exit status 1 of 3"), "exit status 1 of #");
        assert_eq!(normalized("upstream said 402 for 77"), "upstream said 402 for #");
    }

    #[test]
    fn the_line_that_says_most_is_used() {
        assert_eq!(line_of("\n refused \nmore"), Some("refused"));
        assert_eq!(line_of("Traceback (most recent call last):\n  File\nKeyError: 'a'\n"), Some("KeyError: 'a'"));
        assert_eq!(line_of(" \n"), None);
    }

    #[test]
    fn a_list_shows_the_line_of_a_traceback_that_says_most_first() {
        let error = "Traceback (most recent call last):\n  File\nKeyError: 'a'\n";
        let message = Message::from(Fields(vec![("error".to_owned(), Value::BulkString(error.into()))]));
        assert_eq!(error_of(&message), format!("KeyError: 'a': {error}"));
    }
}

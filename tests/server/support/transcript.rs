//! Replays the redis-cli sessions of the documentation on a server and compares the replies.
//!
//! In a `console` block, lines that begin with the prompt are sent, and what follows is the expected reply. Ids,
//! receipts, cursors and times differ from run to run, so only their form is compared. If a later line uses one that
//! was shown earlier, it sends the one that this run returned. If a shown reply ends in the line `...`, only the part
//! before that line is compared.

use super::client::Client;
use super::reply::Reply;

const PROMPT: &str = "127.0.0.1:6379> ";

/// A line that is sent, and the reply that is shown.
struct Exchange {
    command: String,
    answer: String,
}

/// All sessions of one document.
pub struct Transcript(Vec<Exchange>);

impl Transcript {
    /// Reads the `console` blocks of a document.
    pub fn of(document: &str) -> Transcript {
        let mut exchanges: Vec<Exchange> = Vec::new();
        let mut in_block = false;
        for line in document.lines() {
            if line.trim_start().starts_with("```") {
                in_block = line.trim() == "```console";
            } else if let (true, Some(command)) = (in_block, line.strip_prefix(PROMPT)) {
                exchanges.push(Exchange { command: command.to_owned(), answer: String::new() });
            } else if let (true, Some(last)) = (in_block, exchanges.last_mut()) {
                last.answer.push_str(line);
                last.answer.push('\n');
            }
        }
        for exchange in &mut exchanges {
            exchange.answer.truncate(exchange.answer.trim_end().len());
        }
        Transcript(exchanges)
    }

    /// The lines that are sent, as the document has them.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|exchange| exchange.command.as_str())
    }

    /// Sends every line to a server and compares the replies with those in `document`.
    #[track_caller]
    pub fn replay(&self, c: &mut Client, document: &str) {
        assert!(!self.0.is_empty(), "{document} shows nothing");
        let mut seen: Vec<(String, String)> = Vec::new();
        for Exchange { command, answer } in &self.0 {
            let mut said = command.clone();
            for (shown, came) in &seen {
                said = said.replace(shown, came);
            }
            let got = print(&c.cmd(&words(&said)));
            let (whole, start) = (shape(&got), answer.strip_suffix("\n...").map(shape));
            let is_shown = start.map_or(whole == shape(answer), |start| whole.starts_with(&start));
            assert!(is_shown, "{command}\nanswers\n{got}\nand {document} shows\n{answer}");
            seen.extend(changing(answer).into_iter().zip(changing(&got)).filter(|(shown, came)| shown != came));
            // The longest come first, so that no id is mistaken for a part of another one.
            seen.sort_by_key(|(shown, _)| std::cmp::Reverse(shown.len()));
        }
    }
}

fn print(reply: &Reply) -> String {
    format_reply(reply, "").trim_end().to_owned()
}

/// Splits a line into words as redis-cli does: at spaces, except within quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(first) = chars.next() {
        match first {
            ' ' => {}
            '"' | '\'' => {
                let mut word = String::new();
                while let Some(next) = chars.next().filter(|next| *next != first) {
                    match (next, first) {
                        ('\\', '"') => word.extend(chars.next()),
                        _ => word.push(next),
                    }
                }
                words.push(word);
            }
            _ => {
                let mut word = String::from(first);
                while let Some(next) = chars.next_if(|next| *next != ' ') {
                    word.push(next);
                }
                words.push(word);
            }
        }
    }
    words
}

/// Formats a reply as redis-cli prints it to a terminal. Every line but the first begins with `indent`.
fn format_reply(reply: &Reply, indent: &str) -> String {
    match reply {
        Reply::Simple(text) => format!("{text}\n"),
        Reply::Error(text) => format!("(error) {text}\n"),
        Reply::Int(n) => format!("(integer) {n}\n"),
        Reply::Bulk(bytes) => format!("{}\n", quote(bytes)),
        Reply::NullBulk | Reply::NullArray | Reply::Null => "(nil)\n".to_owned(),
        Reply::Array(items) if items.is_empty() => "(empty array)\n".to_owned(),
        Reply::Array(items) => {
            let width = items.len().to_string().len();
            let deeper = format!("{indent}{}", " ".repeat(width + 2));
            let line = |(n, item): (usize, &Reply)| {
                let before = if n == 0 { "" } else { indent };
                format!("{before}{:width$}) {}", n + 1, format_reply(item, &deeper))
            };
            items.iter().enumerate().map(line).collect()
        }
        other => panic!("not a reply of RESP2: {other:?}"),
    }
}

fn quote(bytes: &[u8]) -> String {
    let inner: String = bytes
        .iter()
        .map(|byte| match byte {
            b'\\' | b'"' => format!("\\{}", char::from(*byte)),
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            b'\t' => "\\t".to_owned(),
            0x20..=0x7e => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02x}"),
        })
        .collect();
    format!("\"{inner}\"")
}

/// The parts of a text that differ from run to run: ids, receipt numbers, cursors and times.
fn changing(text: &str) -> Vec<String> {
    parts(text).into_iter().filter_map(|(part, changes)| changes.then_some(part)).collect()
}

/// A text with those parts replaced by the name of their kind.
fn shape(text: &str) -> String {
    let kind = |part: &str| match (part.starts_with('#'), part.contains('-')) {
        (true, _) => "#<n>",
        (_, true) => "<id>",
        _ if part.len() == DIGITS_OF_A_CURSOR => "<cursor>",
        _ => "<ms>",
    };
    parts(text).into_iter().map(|(part, changes)| if changes { kind(&part).to_owned() } else { part }).collect()
}

/// The number of digits of a time in Unix milliseconds in this century.
const DIGITS_OF_A_TIME: usize = 13;
/// The number of digits of a cursor within a queue in this century. At both ends of a scan the cursor is 0.
const DIGITS_OF_A_CURSOR: usize = 19;

/// Splits a text into parts, each with whether it differs from run to run.
fn parts(text: &str) -> Vec<(String, bool)> {
    let digits = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    let mut parts: Vec<(String, bool)> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut len = 0;
        if first == '#' && digits(&rest[1..]) > 0 {
            len = 1 + digits(&rest[1..]);
        } else if digits(rest) == DIGITS_OF_A_TIME {
            len = DIGITS_OF_A_TIME;
            let seq = rest[len..].strip_prefix('-').map_or(0, digits);
            len += if seq > 0 { 1 + seq } else { 0 };
        } else if digits(rest) == DIGITS_OF_A_CURSOR {
            len = DIGITS_OF_A_CURSOR;
        }
        let changes = len > 0;
        // A run of digits that is not a time is one part, so that its end is not mistaken for a time.
        let len = len.max(digits(rest)).max(first.len_utf8());
        parts.push((rest[..len].to_owned(), changes));
        rest = &rest[len..];
    }
    parts
}

#[test]
fn a_dialogue_is_read_and_compared_like_redis_cli() {
    let text = "```console\n127.0.0.1:6379> DQ.PUSH q \"a b\"\n\"1700000000000-0\"\n127.0.0.1:6379> PING\nPONG\n```\n";
    let read: Vec<_> = Transcript::of(text).0.into_iter().map(|e| (e.command, e.answer)).collect();
    assert_eq!(read[0], ("DQ.PUSH q \"a b\"".to_owned(), "\"1700000000000-0\"".to_owned()));
    assert_eq!(read[1], ("PING".to_owned(), "PONG".to_owned()));
    assert_eq!(words(&read[0].0), ["DQ.PUSH", "q", "a b"]);
    let message = Reply::Array(vec![Reply::bulk("id"), Reply::Int(1), Reply::NullBulk]);
    let printed = print(&Reply::Array(vec![message.clone(), message]));
    let expected = "1) 1) \"id\"\n   2) (integer) 1\n   3) (nil)\n2) 1) \"id\"\n   2) (integer) 1\n   3) (nil)";
    assert_eq!(printed, expected);
    assert_eq!(shape("\"1700000000000-12#99\" (integer) 1700000000001 m#7 12"), "\"<id>#<n>\" (integer) <ms> m#<n> 12");
    assert_eq!(shape("\"1882463523799040000\" \"0\""), "\"<cursor>\" \"0\"");
    assert_eq!(changing("m#7 at 1700000000001"), ["#7", "1700000000001"]);
}

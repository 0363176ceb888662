//! Names, times, numbers and other text as a person reads them. The lowest room: it knows nothing of servers and commands.

mod json;
mod name;
mod number;
mod said;
mod time;

pub use json::indented;
pub use name::{put, readable, shown, MessageId, QueueName};
pub use number::{bytes, messages, separated};
pub use said::{finish, in_background, pass_on, say};
pub use time::{distance, exact, instant, millis, now_ms, parse_instant, parse_span, span, unix_ms, with_distance};

/// Whether a character would move the cursor, or turn the direction of the text that follows.
pub fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text without such characters: a payload must not move the cursor, and a row is one line.
pub fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            visible.extend(c.escape_default());
        } else {
            visible.push(c);
        }
    }
    visible
}

/// Labels with their values: `{queue="mail",state="ready"}`.
pub fn labels(pairs: &[(&str, &str)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

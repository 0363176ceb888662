//! Names, times, numbers, settings and other text as a person reads them. The lowest room: it knows nothing of servers
//! and commands.

mod json;
mod name;
mod number;
mod setting;
mod streams;
mod time;

pub use json::{escaped, indented};
pub use name::{put, readable, shown, MessageId, QueueName};
pub use number::{bytes, counted, messages, separated};
pub use setting::{is_time, meaning, Takes, SETTINGS};
pub use streams::{finish, in_background, pass_on_errors, pass_on_output, print_error_line};
pub use time::{distance, exact, instant, millis, now_ms, parse_instant, parse_span, span, unix_ms, with_distance};

/// Whether a character would move the cursor, turn the direction of the text that follows, or hide in it: controls,
/// marks of direction, separators of lines, and format characters without a glyph. Those that join or part letters
/// belong to a text.
pub fn is_unsafe(c: char) -> bool {
    let has_no_glyph = matches!(
        c,
        '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || has_no_glyph
}

/// Whether a character would make two names look the same: one of those, the soft hyphen, or one that joins or parts
/// letters.
pub fn is_unseen(c: char) -> bool {
    is_unsafe(c) || matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}')
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

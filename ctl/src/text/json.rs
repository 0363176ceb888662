//! JSON with a line for each value. Digits, escapes and the order of names stay as they were written.

use super::is_unseen;
use serde_json::value::RawValue;

/// JSON in which each character that nobody sees is written as its number, as a terminal needs it.
pub fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unseen(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// What is nested deeper is not laid out: its lines would be mostly blank, and many times as long as the text.
const DEEPEST: usize = 30;

/// Lays JSON out with a line for each value. Returns `None` if the text is no object and no array, or nested too deep.
pub fn indented(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) || serde_json::from_str::<&RawValue>(text).is_err() {
        return None;
    }
    let mut layout = Layout { out: String::with_capacity(2 * text.len()), depth: 0, place: Place::Between };
    for c in text.chars() {
        layout.write(c);
        if layout.depth > DEEPEST {
            return None;
        }
    }
    Some(layout.out)
}

/// JSON that is being laid out.
struct Layout {
    out: String,
    depth: usize,
    place: Place,
}

/// Where in the JSON the next character is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Between,
    InString,
    /// In a string, after a backslash.
    AfterBackslash,
}

impl Layout {
    fn write(&mut self, c: char) {
        match (self.place, c) {
            (Place::Between, c) => self.write_between(c),
            (Place::InString, '"') => self.write_in_string(c, Place::Between),
            (Place::InString, '\\') => self.write_in_string(c, Place::AfterBackslash),
            (Place::InString | Place::AfterBackslash, c) => self.write_in_string(c, Place::InString),
        }
    }

    fn write_in_string(&mut self, c: char, next: Place) {
        self.out.push(c);
        self.place = next;
    }

    /// Writes a character that is outside of strings.
    fn write_between(&mut self, c: char) {
        match c {
            '{' | '[' => {
                self.out.push(c);
                self.depth += 1;
                self.begin_line();
            }
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                self.end_container();
                self.out.push(c);
            }
            ',' => {
                self.out.push(c);
                self.begin_line();
            }
            ':' => self.out.push_str(": "),
            '"' => self.write_in_string(c, Place::InString),
            c if c.is_ascii_whitespace() => {}
            c => self.out.push(c),
        }
    }

    fn begin_line(&mut self) {
        self.out.push('\n');
        self.out.push_str(&"  ".repeat(self.depth));
    }

    /// Begins the line of a closing bracket, which stays on the line of the opening one if nothing is between.
    fn end_container(&mut self) {
        let written = self.out.trim_end();
        if written.ends_with(['{', '[']) {
            self.out.truncate(written.len());
        } else {
            self.begin_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{escaped, indented, DEEPEST};

    #[test]
    fn what_nobody_sees_is_escaped_and_read_as_the_same() {
        let text = "a\u{7f}\u{9b}\u{61c}\u{200b}\u{2028}\u{feff}\u{e0041}\u{200d}ü\u{1f600}";
        let json = escaped(&serde_json::to_string(text).unwrap());
        assert_eq!(json, r#""a\u007f\u009b\u061c\u200b\u2028\ufeff\udb40\udc41\u200düX""#.replace('X', "\u{1f600}"));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn each_value_has_its_line_and_stays_as_it_is() {
        let text = r#"{"b":1.10,"a":[1, {"x":"a,{\"\\"}],"e":{ },"n":[]}"#;
        let lines = [
            "{",
            r#"  "b": 1.10,"#,
            r#"  "a": ["#,
            "    1,",
            "    {",
            r#"      "x": "a,{\"\\""#,
            "    }",
            "  ],",
            r#"  "e": {},"#,
            r#"  "n": []"#,
            "}",
        ];
        assert_eq!(indented(text).unwrap().lines().collect::<Vec<_>>(), lines);
        for other in ["", "12", "\"text\"", "{", "[1] x", "{a:1}"] {
            assert_eq!(indented(other), None, "{other}");
        }
        let nested = |depth: usize| indented(&("[".repeat(depth) + &"]".repeat(depth)));
        assert!(nested(DEEPEST).is_some() && nested(DEEPEST + 1).is_none());
    }
}

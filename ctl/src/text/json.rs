//! JSON with a line for each value. Digits, escapes and the order of names stay as they were written.

use serde_json::value::RawValue;

/// What is nested deeper is not indented: its lines would be mostly blank.
const DEEPEST: usize = 30;
const INDENT: &str = "  ";

/// `None` if the text is no object and no array.
pub fn indented(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) || serde_json::from_str::<&RawValue>(text).is_err() {
        return None;
    }
    let (mut out, mut depth, mut rest) = (String::with_capacity(2 * text.len()), 0_usize, text.chars().peekable());
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&INDENT.repeat(depth));
    };
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                out.push(c);
                let mut is_escaped = false;
                for c in rest.by_ref() {
                    out.push(c);
                    if c == '"' && !is_escaped {
                        break;
                    }
                    is_escaped = c == '\\' && !is_escaped;
                }
            }
            '{' | '[' => {
                out.push(c);
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = rest.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                    continue;
                }
                depth += 1;
                if depth > DEEPEST {
                    return None;
                }
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{indented, DEEPEST};

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
        assert_eq!(indented(&("[".repeat(DEEPEST + 2) + &"]".repeat(DEEPEST + 2))), None);
    }
}

//! JSON on several lines, for a person. Numbers and the order of names stay as they are, which a parser would not keep.

use serde::de::IgnoredAny;

/// An object or a list with a line for each of its values. `None` if the text is neither.
pub fn indented(text: &str) -> Option<String> {
    let is_nested = text.trim_start().starts_with(['{', '[']);
    if !is_nested || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return None;
    }
    let (mut out, mut depth, mut in_string, mut is_escaped) = (String::new(), 0_usize, false, false);
    let mut chars = text.chars().filter(|c| !c.is_control()).peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    while let Some(c) = chars.next() {
        if in_string {
            in_string = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            out.push(c);
            continue;
        }
        match c {
            ' ' => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if_eq(&' ').is_some() {}
                // An empty one stays on its line.
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
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
            other => {
                in_string = other == '"';
                out.push(other);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn values_are_on_lines_of_their_own_and_stay_as_they_are() {
        let text = "{\"b\":[1, 2.50e3,{ }],\n \"a\":\"x, \\\"{y}: [\", \"n\":12345678901234567890123, \"e\":[]}";
        let expected = "{\n  \"b\": [\n    1,\n    2.50e3,\n    {}\n  ],\n  \"a\": \"x, \\\"{y}: [\",\n  \
            \"n\": 12345678901234567890123,\n  \"e\": []\n}";
        assert_eq!(indented(text).as_deref(), Some(expected));
        for other in ["", "text", "17", "\"text\"", "{\"a\":", "{a}"] {
            assert_eq!(indented(other), None, "{other}");
        }
    }
}

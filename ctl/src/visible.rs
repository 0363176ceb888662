//! Text that is safe to print.

/// Whether a character would move the cursor, or turn the direction of the text that follows.
pub fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text without such characters: a payload must not move the cursor, and a row is one line.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("a\tb\x1b[2J\u{9b}ü\u{202e}"), "a\\tb\\u{1b}[2J\\u{9b}ü\\u{202e}");
    }
}

//! Text that is safe to print.

/// Text without control characters: a payload must not move the cursor, and a row is one line.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
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
        assert_eq!(visible("a\tb\x1b[2J\u{9b}ü"), "a\\tb\\u{1b}[2J\\u{9b}ü");
    }
}

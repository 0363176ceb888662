//! Text on the screen: cut to its width, and without anything that would move the cursor.

use crate::text::{indented, separated, shown, visible};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The most bytes of a payload that are shown.
const PAYLOAD: usize = 64 * 1024;
/// The most bytes of JSON that is indented: it is read whole for that, each time the screen is drawn.
const JSON: usize = 4 * 1024 * 1024;
/// Bytes in a line of a dump.
const DUMP: usize = 16;

/// How text looks. Without colours (`NO_COLOR`), the last three differ by their words alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    Plain,
    Bold,
    Dim,
    /// The line of the cursor, and what is a warning or bad in it.
    Selected,
    SelectedWarning,
    SelectedBad,
    Warning,
    Bad,
}

/// A line of the screen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Line(pub Vec<(Style, String)>);

impl Line {
    pub fn new(style: Style, text: impl Into<String>) -> Line {
        Line(vec![(style, text.into())])
    }

    /// Adds text. It must have been made [`visible`].
    pub fn add(&mut self, style: Style, text: impl Into<String>) {
        self.0.push((style, text.into()));
    }

    /// The same line, exactly as wide as the screen.
    pub fn fitted(self, width: usize) -> Line {
        let (mut left, mut parts) = (width, Vec::new());
        let last = self.0.last().map_or(Style::Plain, |(style, _)| *style);
        for (style, text) in self.0 {
            let text = if text.width() > left { cut(&text, left) } else { text };
            left = left.saturating_sub(text.width());
            parts.push((style, text));
        }
        let fill = if last == Style::Selected { last } else { Style::Plain };
        parts.push((fill, " ".repeat(left)));
        Line(parts)
    }

    /// The same line as the one of the cursor.
    pub fn selected(self) -> Line {
        let selected = |style| match style {
            Style::Warning => Style::SelectedWarning,
            Style::Bad => Style::SelectedBad,
            Style::SelectedWarning | Style::SelectedBad => style,
            Style::Plain | Style::Bold | Style::Dim | Style::Selected => Style::Selected,
        };
        Line(self.0.into_iter().map(|(style, text)| (selected(style), text)).collect())
    }
}

/// The name of a queue, a message, a group or a consumer, as the command line takes that of a queue.
pub fn named(name: &[u8]) -> String {
    visible(&shown(name))
}

/// The same in at most `width` columns. Names are cut in the middle, because they differ at their ends.
pub fn named_in(width: usize, name: &[u8]) -> String {
    // Without a column there is no room for the ellipsis either.
    Some(cut_in_the_middle(&named(name), width)).filter(|_| width > 0).unwrap_or_default()
}

/// The beginning and the end of a name, in at most `width` columns.
pub fn cut_in_the_middle(name: &str, width: usize) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let end = width.saturating_sub(1) / 2;
    let tail: String = fitting(name.chars().rev(), end).chars().rev().collect();
    format!("{}…{tail}", fitting(name.chars(), width.saturating_sub(1 + end)))
}

/// The first characters that take at most `width` columns.
fn fitting(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

/// The first columns of a text, with an ellipsis if there were more.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    fitting(text.chars(), width.saturating_sub(1)) + if width > 0 { "…" } else { "" }
}

/// A cell of a column: cut or filled to its width.
pub fn left(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let fill = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(fill))
}

/// The lines of a payload: text by its lines, JSON indented, anything else as a dump of its bytes.
pub fn payload(bytes: &[u8], width: usize) -> Vec<String> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= JSON);
    let json = text.and_then(indented);
    let whole = json.as_ref().map_or(bytes, String::as_bytes);
    let part = whole.get(..whole.len().min(PAYLOAD)).unwrap_or(whole);
    let mut lines = match std::str::from_utf8(part) {
        Err(error) if error.error_len().is_some() => {
            part.chunks(DUMP).enumerate().map(|(number, bytes)| dumped(number * DUMP, bytes)).collect()
        }
        // The last character may be cut, by us.
        _ => wrapped(&String::from_utf8_lossy(part), width),
    };
    if part.len() < whole.len() {
        let all = separated(bytes.len());
        lines.push(format!("… this is the beginning of {all} bytes: dqctl get QUEUE ID --payload prints all"));
    }
    lines
}

/// Lines that are longer than the screen are wrapped.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let (mut part, mut used) = (String::new(), 0);
        for c in visible(line.trim_end_matches('\r')).chars() {
            let columns = c.width().unwrap_or(0);
            if used + columns > width.max(2) {
                lines.push(std::mem::take(&mut part));
                used = 0;
            }
            part.push(c);
            used += columns;
        }
        lines.push(part);
    }
    lines
}

/// A text in lines of at most `width` columns, those after the first one indented. No word is broken.
pub fn by_words(text: &str, width: usize) -> String {
    let (mut lines, mut used) = (String::new(), 0);
    for word in text.split(' ') {
        if used > 0 && used + 1 + word.width() > width {
            lines.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += word.width();
    }
    lines
}

/// A text in lines that end between words, except in a word that is longer than a line.
pub fn paragraph(style: Style, text: &str, width: usize) -> Vec<Line> {
    wrapped(&by_words(text, width), width).into_iter().map(|text| Line::new(style, text)).collect()
}

fn dumped(offset: usize, bytes: &[u8]) -> String {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String =
        bytes.iter().map(|&byte| if (32..127).contains(&byte) { char::from(byte) } else { '.' }).collect();
    format!("{offset:08x}  {:<47}  {text}", hex.join(" "))
}

#[cfg(test)]
mod tests {
    use super::{cut, left, payload, Line, Style};
    use crate::text::visible;

    #[test]
    fn nothing_that_moves_the_cursor_is_shown() {
        assert_eq!(visible("a\x1b[2J\tb\u{9b}\u{202e}ü"), "a\\u{1b}[2J\\tb\\u{9b}\\u{202e}ü");
        assert_eq!(visible("\u{61c}\u{2028}\u{feff}\u{200b}"), "\\u{61c}\\u{2028}\\u{feff}\\u{200b}");
        assert_eq!(visible("می\u{200c}خواهم"), "می\u{200c}خواهم", "it parts letters");
        let lines = payload(b"one\r\ntwo\x1b[31m", 80);
        assert_eq!(lines, ["one", "two\\u{1b}[31m"]);
        assert_eq!(payload(&[0, 27, 255, 65], 80), ["00000000  00 1b ff 41                                      ...A"]);
    }

    #[test]
    fn cells_are_as_wide_as_their_columns() {
        assert_eq!(left("ab", 4), "ab  ");
        assert_eq!(
            (cut("abcdef", 4), cut("日本語", 5), cut("日本語", 4)),
            ("abc…".into(), "日本…".into(), "日…".into())
        );
        assert_eq!(left("日本語", 4), "日… ");
        let line = Line(vec![(Style::Plain, "日本語".to_owned()), (Style::Bad, "xyz".to_owned())]).fitted(8);
        assert_eq!(line.0.iter().map(|(_, text)| text.as_str()).collect::<String>(), "日本語x…");
    }

    #[test]
    fn long_payloads_are_wrapped_and_bounded() {
        assert_eq!(payload(b"abcdef", 4), ["abcd", "ef"]);
        let lines = payload(&vec![b'x'; 100_000], 80);
        assert_eq!(
            lines.last().unwrap(),
            "… this is the beginning of 100,000 bytes: dqctl get QUEUE ID --payload prints all"
        );
        // A character that is cut at the end does not make it binary.
        let text = format!("{}ü", "x".repeat(65_535));
        assert!(payload(format!("{text}{text}").as_bytes(), 80)[0].starts_with("xxx"));
    }

    #[test]
    fn json_that_is_longer_than_what_is_shown_is_indented() {
        let lines = payload(format!("[{}1]", "12345,".repeat(40_000)).as_bytes(), 80);
        assert_eq!(lines[..3], ["[", "  12345,", "  12345,"]);
        assert!(lines.len() < 10_000 && lines.last().unwrap().contains("240,003 bytes"), "{:?}", lines.last());
    }
}

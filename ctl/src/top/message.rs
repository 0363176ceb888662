//! One message in full.

use super::cursor::Cursor;
use crate::board::shown_fields;
use crate::output::{left, named, named_in, payload, wrapped, Line, Style};
use crate::server;
use crate::text::bytes;
use unicode_width::UnicodeWidthStr;

/// The lines around the fields: the title, and which of the lines are shown.
pub const AROUND: usize = 2;

pub struct Message {
    pub queue: Vec<u8>,
    pub id: Vec<u8>,
    /// `None`: it has not been read yet. `Some(None)`: the message no longer exists.
    pub read: Option<Option<server::Message>>,
    /// On the first line of the screen.
    cursor: Cursor,
    /// How many lines it has.
    count: usize,
}

impl Message {
    pub fn new(queue: Vec<u8>, id: Vec<u8>) -> Message {
        Message { queue, id, read: None, cursor: Cursor::default(), count: 0 }
    }

    pub fn go(&mut self, by: isize, height: usize) {
        self.cursor.go(by, (self.count + 1).saturating_sub(height));
    }

    /// `height` is that of the fields.
    pub fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        let all = self.fields(width);
        self.count = all.len();
        self.go(0, height);
        let mut title = Line::new(Style::Bold, named_in(width / 2, &self.id));
        title.add(Style::Plain, format!("  of {}", named(&self.queue)));
        let last = (self.cursor.place + height).min(self.count);
        let place = Line::new(Style::Dim, format!("lines {} to {last} of {}", self.cursor.place + 1, self.count));
        [title, place].into_iter().chain(all.into_iter().skip(self.cursor.place).take(height)).collect()
    }

    fn fields(&self, width: usize) -> Vec<Line> {
        let message = match &self.read {
            None => return vec![Line::new(Style::Dim, "Reading …")],
            Some(None) => {
                return vec![Line::new(Style::Warning, "The message no longer exists: it was completed or cancelled.")]
            }
            Some(Some(message)) => message,
        };
        let is_long = |name: &str| name == "payload" || name == "result";
        let mut fields = shown_fields(message);
        fields.retain(|(name, _)| !is_long(name) && name != "id");
        let column = (fields.iter().map(|(name, _)| name.width()).max().unwrap_or(0) + 2).min(width / 2);
        let mut lines = Vec::new();
        for (name, value) in &fields {
            for (number, part) in wrapped(value, width.saturating_sub(column)).into_iter().enumerate() {
                let mut line = Line::new(Style::Bold, left(if number == 0 { name } else { "" }, column));
                line.add(Style::Plain, part);
                lines.push(line);
            }
        }
        for (name, _) in message.0.iter().filter(|(name, _)| is_long(name)) {
            let whole = message.bytes(name);
            let size = bytes(whole.len() as u64);
            lines.extend([Line::default(), Line::new(Style::Bold, format!("{name}, {size}"))]);
            lines.extend(payload(whole, width).into_iter().map(|text| Line::new(Style::Plain, text)));
        }
        lines
    }
}

//! One message in full.

use super::cursor::Cursor;
use crate::board::message;
use crate::output::text::{left, named, named_in, payload, wrapped, Line, Style};
use crate::server::reply::{self, Fields};
use crate::text::number::bytes;
use dq_client::Value;
use unicode_width::UnicodeWidthStr;

/// The lines around the fields: the title, and which of the lines are shown.
pub const AROUND: usize = 2;

pub struct Message {
    pub queue: Vec<u8>,
    pub id: Vec<u8>,
    /// `None`: it has not been read yet. `Some(None)`: the message no longer exists.
    pub read: Option<Option<Fields>>,
    /// The first line on the screen.
    scroll: usize,
    /// How many lines it has.
    count: usize,
}

impl Message {
    pub fn new(queue: Vec<u8>, id: Vec<u8>) -> Message {
        Message { queue, id, read: None, scroll: 0, count: 0 }
    }

    pub fn go(&mut self, by: isize, height: usize) {
        let mut cursor = Cursor { place: self.scroll, top: 0 };
        cursor.go(by, (self.count + 1).saturating_sub(height));
        self.scroll = cursor.place;
    }

    /// `height` is that of the fields.
    pub fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        let all = self.fields(width);
        self.count = all.len();
        self.go(0, height);
        let mut title = Line::new(Style::Bold, named_in(width / 2, &self.id));
        title.add(Style::Plain, format!("  of {}", named(&self.queue)));
        let last = (self.scroll + height).min(self.count);
        let place = Line::new(Style::Dim, format!("lines {} to {last} of {}", self.scroll + 1, self.count));
        [title, place].into_iter().chain(all.into_iter().skip(self.scroll).take(height)).collect()
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
        let fields = message.0.iter().filter(|(name, _)| !is_long(name) && name != "id");
        let fields =
            fields.filter(|(name, value)| *value != Value::Nil && !message::says_nothing(message, name, value));
        let fields = fields.flat_map(|(name, value)| {
            match reply::int(value).and_then(|number| message::meaning(name, number)) {
                Some(words) => vec![(name.clone(), words.to_owned())],
                None => message::lines(message, name, value),
            }
        });
        let fields: Vec<(String, String)> = fields.collect();
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
            let size = bytes(i64::try_from(whole.len()).unwrap_or(i64::MAX));
            lines.extend([Line::default(), Line::new(Style::Bold, format!("{name}, {size}"))]);
            lines.extend(payload(whole, width).into_iter().map(|text| Line::new(Style::Plain, text)));
        }
        lines
    }
}

//! The page of a message.

use super::app::App;
use crate::dead::{header, is_letter};
use crate::message;
use crate::output::text::{bytes, left, named, named_in, payload, shown, wrapped, Line, Style};
use crate::reply::{self, Fields};
use dq_client::Value;
use unicode_width::UnicodeWidthStr;

pub struct MessagePage {
    pub id: Vec<u8>,
    /// `None`: it has not been read yet. `Some(None)`: the message no longer exists.
    pub message: Option<Option<Fields>>,
    pub scroll: usize,
}

pub fn message_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let (Some(page), Some(queue)) = (app.message.as_mut(), app.queue.as_ref()) else { return Vec::new() };
    let mut title = Line::new(Style::Bold, named_in(width / 2, &page.id));
    title.add(Style::Plain, format!("  of {}", named(&queue.name)));
    let from = page.message.iter().flatten().filter(|message| is_letter(message));
    if let Some(from) = from.filter_map(|letter| header(letter, "dq-queue")).next() {
        title.add(Style::Plain, format!("  died in {}", shown(&from)));
    }
    let lines = message_lines(page, width);
    (app.lines, app.height) = (lines.len(), height);
    scrolled(title, lines, &mut page.scroll, height)
}

/// A title, which of the lines are shown, and these.
pub fn scrolled(title: Line, lines: Vec<Line>, scroll: &mut usize, height: usize) -> Vec<Line> {
    *scroll = (*scroll).min(lines.len().saturating_sub(height));
    let mut below = Line::default();
    if lines.len() > height {
        let last = (*scroll + height).min(lines.len());
        below.add(Style::Dim, format!("lines {} to {last} of {}", *scroll + 1, lines.len()));
    }
    let mut shown = vec![title, below];
    shown.extend(lines.into_iter().skip(*scroll).take(height));
    shown
}

/// Names and values, which continue below each other.
pub fn pairs(pairs: &[(String, String)], width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let column = (pairs.iter().map(|(name, _)| name.width()).max().unwrap_or(0) + 2).min(width / 2);
    for (name, value) in pairs {
        let parts = wrapped(value, width.saturating_sub(column).max(8));
        for (number, part) in parts.into_iter().enumerate() {
            let mut line = Line::new(Style::Bold, left(if number == 0 { name } else { "" }, column));
            line.add(Style::Plain, part);
            lines.push(line);
        }
    }
    lines
}

fn message_lines(page: &MessagePage, width: usize) -> Vec<Line> {
    let message = match &page.message {
        None => return vec![Line::new(Style::Dim, "Reading …")],
        Some(None) => {
            return vec![Line::new(Style::Warning, "The message no longer exists: it was completed or cancelled.")]
        }
        Some(Some(message)) => message,
    };
    let is_long = |name: &str| name == "payload" || name == "result";
    let fields = message.0.iter().filter(|(name, _)| !is_long(name) && name != "id");
    let fields = fields.filter(|(name, value)| *value != Value::Nil && !message::says_nothing(message, name, value));
    let fields =
        fields.flat_map(|(name, value)| match reply::int(value).and_then(|number| message::meaning(name, number)) {
            Some(words) => vec![(name.clone(), words.to_owned())],
            None => message::lines(message, name, value),
        });
    let mut lines = pairs(&fields.collect::<Vec<_>>(), width);
    for (name, _) in message.0.iter().filter(|(name, _)| is_long(name)) {
        let whole = message.bytes(name);
        lines.push(Line::default());
        lines
            .push(Line::new(Style::Bold, format!("{name}, {}", bytes(i64::try_from(whole.len()).unwrap_or(i64::MAX)))));
        lines.extend(payload(whole, width).into_iter().map(|text| Line::new(Style::Plain, text)));
    }
    lines
}

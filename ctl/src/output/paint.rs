//! Text in the colours of a terminal: one table for lists and for `dqctl top`.

use crate::output::text::Style;
use crossterm::queue;
use crossterm::style::{Attribute, Color, SetAttribute, SetForegroundColor};
use std::io::{self, Write};

/// Writes text in a style. Without colours, it differs by its attributes alone.
pub fn paint(out: &mut impl Write, style: Style, text: &str, has_colours: bool) -> io::Result<()> {
    let colour = match style {
        Style::Warning | Style::SelectedWarning => Some(Color::Yellow),
        Style::Bad | Style::SelectedBad => Some(Color::Red),
        Style::Plain | Style::Bold | Style::Dim | Style::Selected => None,
    };
    match style {
        Style::Bold | Style::Bad => queue!(out, SetAttribute(Attribute::Bold))?,
        Style::Dim => queue!(out, SetAttribute(Attribute::Dim))?,
        Style::Selected | Style::SelectedWarning | Style::SelectedBad => queue!(out, SetAttribute(Attribute::Reverse))?,
        Style::Plain | Style::Warning => {}
    }
    if let Some(colour) = colour.filter(|_| has_colours) {
        queue!(out, SetForegroundColor(colour))?;
    }
    out.write_all(text.as_bytes())?;
    queue!(out, SetAttribute(Attribute::Reset))
}

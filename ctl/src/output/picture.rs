//! A list on a terminal that is shown again and again in the same place. The last one stays when the program ends.
//!
//! The terminal keeps all its modes, so nothing has to be restored if the program is interrupted.

use super::text::{Line, Style};
use super::{size, Output, Table};
use crate::server::failure::Failure;
use crate::text::number::separated;
use crate::text::time::{millis, span};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use crossterm::{cursor, queue};
use std::io::{self, Write};
use std::time::Instant;

pub struct Picture<'a> {
    output: &'a Output,
    /// How many lines the last one has, and the size of the terminal then.
    shown: usize,
    size: (usize, usize),
    lines: Vec<Line>,
    /// When these were made.
    made: Option<Instant>,
}

impl Picture<'_> {
    pub fn new(output: &Output) -> Picture<'_> {
        Picture { output, shown: 0, size: size(), lines: Vec::new(), made: None }
    }

    /// Shows a table as far as the terminal has lines, how many rows are left out, a summary, and what is wrong.
    pub fn table(&mut self, table: &Table, summary: &str, wrong: Option<Failure>) -> Result<(), Failure> {
        let (width, height) = size();
        self.lines = table.lines(width);
        // One line for the summary, one for what is wrong, and one for the cursor.
        let most = height.saturating_sub(3).max(2);
        let rest = self.lines.len().saturating_sub(most);
        self.lines.truncate(most);
        let left_out = if rest > 0 { format!("… and {} more; ", separated(rest)) } else { String::new() };
        if !summary.is_empty() {
            self.lines.push(Line::new(Style::Dim, left_out + summary));
        }
        self.made = Some(Instant::now());
        self.show(wrong.map(|wrong| Line::new(Style::Bad, wrong.to_string())))
    }

    /// Shows one line.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.lines = vec![Line::new(Style::Plain, text)];
        self.made = Some(Instant::now());
        self.show(None)
    }

    /// Shows the last list, and below it how old that is and why there is no newer one. It is a failure if there is none at all.
    pub fn failed(&mut self, failure: Failure) -> Result<(), Failure> {
        let Some(made) = self.made else { return Err(failure) };
        self.show(Some(Line::new(Style::Bad, format!("{} old: {failure}", span(millis(made.elapsed()))))))
    }

    /// All that changes is written at once, so that it does not flicker.
    fn show(&mut self, below: Option<Line>) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let (width, _) = size();
        queue!(bytes, BeginSynchronizedUpdate)?;
        if size() != self.size {
            // The lines of another width may have been broken, and then nobody knows where the first one is.
            queue!(bytes, Clear(ClearType::All), cursor::MoveTo(0, 0))?;
        } else if self.shown > 0 {
            queue!(bytes, cursor::MoveToPreviousLine(u16::try_from(self.shown).unwrap_or(u16::MAX)))?;
        }
        self.size = size();
        self.shown = self.lines.len() + usize::from(below.is_some());
        for line in self.lines.iter().chain(&below) {
            // A line that is as wide as the terminal takes one line, and a wider one would take two.
            let line = if line.width() > width { &line.clone().fitted(width) } else { line };
            queue!(bytes, Clear(ClearType::UntilNewLine))?;
            self.output.write(&mut bytes, line)?;
            bytes.extend(b"\r\n");
        }
        queue!(bytes, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)?;
        let mut out = io::stdout().lock();
        out.write_all(&bytes)?;
        Ok(out.flush()?)
    }
}

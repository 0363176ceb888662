//! The terminal: taken at the start, written line by line, and given back at the end, also after a panic.

use crate::output::{paint, Line};
use crate::server::Failure;
use crossterm::{cursor, queue, terminal};
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::panic;

/// The terminal while `top` uses it. Dropping this restores it.
pub struct Terminal {
    colours: bool,
    /// What each line of the screen shows.
    lines: Vec<Line>,
    size: (u16, u16),
}

impl Terminal {
    pub fn take() -> Result<Terminal, Failure> {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_dumb || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            let text = "top needs a terminal; in a pipe, use dqctl ls, info or peek";
            return Err(Failure::failed(text));
        }
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            drop(give_back());
            before(info);
        }));
        terminal::enable_raw_mode()?;
        // From here on, dropping it restores the terminal.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let terminal = Terminal { colours: !no_color, lines: Vec::new(), size: (0, 0) };
        let mut out = io::stdout().lock();
        queue!(out, terminal::EnterAlternateScreen, terminal::DisableLineWrap, cursor::Hide)?;
        out.flush()?;
        drop(out);
        Ok(terminal)
    }

    /// Columns and lines.
    pub fn size(&self) -> (u16, u16) {
        // A terminal that does not know its size gets the usual one.
        match terminal::size() {
            Ok((width, height)) if width > 0 && height > 0 => (width, height),
            _ => (80, 24),
        }
    }

    /// Shows a screen. Only the lines that differ are written.
    pub fn show(&mut self, lines: Vec<Line>, size: (u16, u16)) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        queue!(out, terminal::BeginSynchronizedUpdate)?;
        if size != self.size {
            queue!(out, terminal::Clear(terminal::ClearType::All))?;
            self.lines.clear();
            self.size = size;
        }
        for (number, line) in lines.iter().enumerate().take(usize::from(size.1)) {
            if self.lines.get(number) != Some(line) {
                queue!(out, cursor::MoveTo(0, u16::try_from(number).unwrap_or(u16::MAX)))?;
                for (style, text) in &line.0 {
                    paint(&mut out, *style, text, self.colours)?;
                }
            }
        }
        queue!(out, terminal::EndSynchronizedUpdate)?;
        self.lines = lines;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(give_back());
    }
}

/// Restores the terminal. Doing that twice is harmless. Nothing is written to it while what this returns is held.
pub fn give_back() -> StdoutLock<'static> {
    // First, since a terminal that takes no output would not let the writes end.
    let _ = terminal::disable_raw_mode();
    let mut out = io::stdout().lock();
    let _ = queue!(out, terminal::EnableLineWrap, cursor::Show, terminal::LeaveAlternateScreen);
    let _ = out.flush();
    out
}

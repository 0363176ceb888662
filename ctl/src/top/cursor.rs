//! A place in a list, and the part of the list that a screen shows.

use crate::output::{Line, Table};
use crossterm::event::KeyCode;
use std::ops::Range;

#[derive(Clone, Copy, Default, Debug)]
pub struct Cursor {
    pub place: usize,
    /// The first row on the screen.
    pub top: usize,
}

impl Cursor {
    /// Moves by `by` rows, within `count`.
    pub fn go(&mut self, by: isize, count: usize) {
        self.place = self.place.saturating_add_signed(by).min(count.saturating_sub(1));
    }

    /// The rows on a screen of this height, among which the cursor is.
    pub fn window(&mut self, count: usize, height: usize) -> Range<usize> {
        let height = height.max(1);
        self.place = self.place.min(count.saturating_sub(1));
        self.top =
            self.top.min(count.saturating_sub(height)).min(self.place).max((self.place + 1).saturating_sub(height));
        self.top..(self.top + height).min(count)
    }

    /// The lines of a table of the rows in the window, with the one of the cursor marked.
    pub fn marked(&self, table: &Table, width: usize) -> Vec<Line> {
        let mut lines = table.lines(width);
        if let Some(line) = lines.get_mut(1 + self.place - self.top).filter(|_| !table.rows.is_empty()) {
            *line = std::mem::take(line).fitted(width).selected();
        }
        lines
    }
}

/// How far a key moves on a screen of this height.
pub fn step(code: KeyCode, height: usize) -> Option<isize> {
    let page = isize::try_from(height).unwrap_or(isize::MAX).max(1);
    match code {
        KeyCode::Down | KeyCode::Char('j') => Some(1),
        KeyCode::Up | KeyCode::Char('k') => Some(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(page),
        KeyCode::PageUp => Some(-page),
        KeyCode::Home | KeyCode::Char('g') => Some(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => Some(isize::MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn the_cursor_stays_in_its_list_and_on_the_screen() {
        let mut cursor = Cursor::default();
        assert_eq!(cursor.window(0, 3), 0..0);
        cursor.go(isize::MAX, 10);
        assert_eq!((cursor.place, cursor.window(10, 3)), (9, 7..10));
        cursor.go(-1, 10);
        assert_eq!(cursor.window(10, 3), 7..10, "the screen does not move with it");
        cursor.go(-3, 10);
        assert_eq!(cursor.window(10, 3), 5..8);
        assert_eq!((cursor.window(2, 3), cursor.place), (0..2, 1), "the list got shorter");
    }
}

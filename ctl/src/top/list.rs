//! The list of queues.

use super::cursor::Cursor;
use crate::board::{table::summary, table::table, table::WATCHED, About, Board, Named, Rows, Sort, Status};
use crate::output::{named, Line, Style};
use crate::text::{separated, visible};

/// The lines around the rows: the title, the heading, and the line about the queue under the cursor, which is kept
/// free, so that the list does not move.
pub const AROUND: usize = 3;

/// The order of the queues, the filter and the cursor.
#[derive(Default)]
pub struct List {
    pub sort: Sort,
    pub is_reversed: bool,
    /// The filter: only queues whose names contain it are shown.
    pub filter: String,
    /// All queues that are shown, in their order, and those on the screen.
    order: Vec<Vec<u8>>,
    pub visible: Vec<Vec<u8>>,
    /// `None`: the cursor is on the first line, whichever queue that is.
    selected: Option<Vec<u8>>,
    cursor: Cursor,
}

impl List {
    /// Sorts by a column, and goes to the first line.
    pub fn sort_by(&mut self, sort: Sort) {
        (self.sort, self.selected) = (sort, None);
    }

    pub fn selected(&self) -> Option<&Vec<u8>> {
        self.order.get(self.cursor.place)
    }

    /// The cursor stays on its queue from now on, wherever that is.
    pub fn go(&mut self, by: isize) {
        self.cursor.go(by, self.order.len());
        self.keep_selected();
    }

    /// Shows all queues again. The cursor stays on its queue.
    pub fn clear_filter(&mut self) {
        if !self.filter.is_empty() {
            self.filter.clear();
            self.keep_selected();
        }
    }

    /// From now on, the cursor stays on its queue, even if that is on the first line.
    pub fn keep_selected(&mut self) {
        self.selected = self.selected().cloned();
    }

    /// Sorts and filters. The cursor stays on its queue, or on its line if the queue is gone.
    fn arrange(&mut self, rows: &Rows) {
        let filter = self.filter.to_lowercase();
        let all = rows.iter().map(|(name, row)| (name.as_slice(), row));
        let mut order: Vec<Named> = all.filter(|(name, _)| named(name).to_lowercase().contains(&filter)).collect();
        let sort = self.sort;
        order.sort_by(|a, b| if self.is_reversed { sort.compare(*b, *a) } else { sort.compare(*a, *b) });
        self.order = order.into_iter().map(|(name, _)| name.to_vec()).collect();
        self.cursor.place = match &self.selected {
            None => 0,
            Some(selected) => self.order.iter().position(|name| name == selected).unwrap_or(self.cursor.place),
        };
    }

    fn lines(&mut self, rows: &Rows, about: &About, width: usize, height: usize) -> Vec<Line> {
        self.arrange(rows);
        let window = self.cursor.window(self.order.len(), height);
        self.visible = self.order.get(window).unwrap_or_default().to_vec();
        let named = |name: &Vec<u8>| Some((rows.get_key_value(name)?.0.as_slice(), rows.get(name)?));
        let mut lines = self.cursor.marked(&table(self.visible.iter().filter_map(named), WATCHED), width);
        if self.order.is_empty() {
            let text = if !about.is_known {
                "Looking for queues …".to_owned()
            } else if rows.is_empty() {
                "There are no queues. A queue is created by its first push: dqctl push mail hello".to_owned()
            } else {
                format!("No queue has {:?} in its name.", visible(&self.filter))
            };
            lines = vec![Line::default(), Line::new(Style::Dim, text)];
        }
        lines
    }

    /// How many queues there are, and what they are sorted by.
    fn title(&self, server: &str, rows: &Rows) -> Line {
        let mut line = Line::new(Style::Bold, format!("dq {}", visible(server)));
        let unread = rows.values().filter(|row| row.status == Status::Unread).count();
        let text = match unread {
            0 => summary(self.order.iter().filter_map(|name| rows.get(name))),
            _ => format!("read {} of {} queues", separated(rows.len() - unread), separated(rows.len())),
        };
        line.add(Style::Plain, format!("  {text}"));
        if !self.filter.is_empty() {
            line.add(Style::Warning, format!("  with {:?}", visible(&self.filter)));
        }
        let arrow = if (self.sort == Sort::Queue) == self.is_reversed { '↓' } else { '↑' };
        line.add(Style::Dim, format!("  by {} {arrow}", self.sort.name()));
        line
    }
}

pub fn lines(list: &mut List, board: &Board, server: &str, width: usize, height: usize) -> Vec<Line> {
    let about = board.about();
    board.rows(|rows| {
        let table = list.lines(rows, &about, width, height.saturating_sub(AROUND));
        let mut lines = vec![list.title(server, rows)];
        lines.extend(table);
        lines.resize(height.saturating_sub(1), Line::default());
        let selected = list.selected().and_then(|name| Some((name, rows.get(name)?)));
        // What the row has no room for.
        lines.extend(selected.map(|(name, row)| {
            let mut line = Line::new(Style::Bold, named(name));
            line.add(row.style(), format!("  {}", visible(&row.state())));
            line
        }));
        lines
    })
}

#[cfg(test)]
mod tests {
    use super::List;
    use crate::board::row::Row;
    use crate::board::sort::Sort;
    use crate::board::{About, Rows};

    fn shown(list: &mut List, rows: &Rows) -> Vec<String> {
        list.lines(rows, &About::default(), 80, 3);
        list.visible.iter().map(|name| String::from_utf8(name.clone()).unwrap()).collect()
    }

    #[test]
    fn queues_are_sorted_and_filtered_and_the_cursor_stays_on_its_queue() {
        let queues = [("a", ("dead", 1)), ("b", ("dead", 5)), ("c", ("closed", 1)), ("d", ("ready", 1))];
        let mut rows: Rows = queues.map(|(name, number)| (name.into(), Row::with_numbers(&[number]))).into();
        let mut list = List::default();
        assert_eq!(shown(&mut list, &rows), ["c", "a", "b"], "trouble first");
        list.go(2);
        assert_eq!(list.selected(), Some(&b"b".to_vec()));
        list.is_reversed = true;
        shown(&mut list, &rows);
        assert_eq!(list.selected(), Some(&b"b".to_vec()));
        list.sort_by(Sort::Dead);
        list.is_reversed = false;
        assert_eq!(shown(&mut list, &rows), ["b", "a", "c"]);
        assert_eq!(list.selected(), Some(&b"b".to_vec()), "it goes to the first line");
        list.go(1);
        rows.remove(b"a".as_slice());
        shown(&mut list, &rows);
        assert_eq!(list.selected(), Some(&b"c".to_vec()), "the next one follows one that is gone");
        list.filter = "c".to_owned();
        assert_eq!(shown(&mut list, &rows), ["c"]);
        list.clear_filter();
        shown(&mut list, &rows);
        assert_eq!(list.selected(), Some(&b"c".to_vec()), "it was on the first line of the filtered list");
    }
}

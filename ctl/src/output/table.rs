//! Tables for a terminal: no wider than the terminal, with numbers right-aligned.

use super::text::{cut, cut_in_the_middle, Line, Style};
use crate::text::{separated, visible};
use unicode_width::UnicodeWidthStr;

/// The longest text that is shown even if there is room for more.
const TEXT: usize = 60;
/// To how many columns names, texts and ids are cut, one step after the other until all fit. Names come after texts,
/// because they tell rows apart, and ids come last, because they are copied.
const STEPS: [Step; 6] = [(40, 30, 40), (20, 30, 40), (20, 12, 40), (12, 12, 40), (8, 8, 40), (8, 8, 8)];
/// To how many columns names are cut before columns of zeros are left out.
const NAMES_FIRST: Step = (24, usize::MAX, usize::MAX);
/// The widths to which names, texts and ids are cut.
type Step = (usize, usize, usize);
/// Between two columns.
const GAP: &str = "  ";

/// A column: its name, and what its cells are.
#[derive(Clone, Copy)]
pub enum Column {
    /// Names, whose ends tell them apart: they are cut in the middle.
    Name(&'static str),
    /// Ids, which are cut like names, but only if nothing else can be.
    Id(&'static str),
    /// Texts, whose beginnings matter most.
    Text(&'static str),
    /// Numbers.
    Number(&'static str),
    /// Words, times and lengths of time, which are never cut.
    Word(&'static str),
}

impl Column {
    pub fn name(self) -> &'static str {
        match self {
            Column::Name(name) | Column::Id(name) | Column::Text(name) | Column::Number(name) | Column::Word(name) => {
                name
            }
        }
    }

    /// To how many columns its cells are cut at most, if names, texts and ids may be cut to these.
    fn shortest(self, (of_names, of_texts, of_ids): Step) -> Option<usize> {
        match self {
            Column::Id(_) => Some(of_ids),
            Column::Name(_) => Some(of_names),
            Column::Text(_) => Some(of_texts),
            Column::Number(_) | Column::Word(_) => None,
        }
    }

    /// A cell that takes at most `width` columns.
    fn cut(self, cell: &str, width: usize) -> String {
        match self {
            Column::Name(_) | Column::Id(_) => cut_in_the_middle(cell, width),
            Column::Text(_) => cut(cell, width),
            Column::Number(_) | Column::Word(_) => cell.to_owned(),
        }
    }
}

/// A cell of a list, and how it looks on a terminal.
pub type Cell = (Style, String);

/// A list: its columns, and rows of as many cells.
pub struct Table {
    pub columns: &'static [Column],
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A list without styles.
    pub fn plain(columns: &'static [Column], rows: impl Iterator<Item = Vec<String>>) -> Table {
        let cells = |row: Vec<String>| row.into_iter().map(|text| (Style::Plain, text)).collect();
        Table { columns, rows: rows.map(cells).collect() }
    }

    /// The heading and the rows, for a terminal with this many columns. Columns without a value are left out, and so
    /// are those of zeros if something would have to be cut.
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let mut columns: Vec<(Column, Vec<Cell>)> = Vec::new();
        for (number, column) in self.columns.iter().enumerate() {
            let cell = |row: &Vec<Cell>| row.get(number).map(|cell| shown(*column, cell));
            let mut cells: Vec<Cell> = self.rows.iter().filter_map(cell).collect();
            if number > 0 && !cells.is_empty() && cells.iter().all(|(_, text)| text.is_empty()) {
                continue;
            }
            cells.insert(0, (Style::Bold, column.name().to_uppercase()));
            columns.push((*column, cells));
        }
        // Long names are cut before columns are left out, and those before texts are cut.
        let mut with_zeros = widths(&columns);
        shrink(&columns, &mut with_zeros, width, &[NAMES_FIRST]);
        if excess(&with_zeros, width) > 0 {
            columns.retain(|(_, cells)| !is_zero(cells));
        }
        let mut widths = widths(&columns);
        shrink(&columns, &mut widths, width, &STEPS);
        (0..=self.rows.len())
            .map(|number| {
                let mut line = Line::default();
                // Blanks are written with the text that follows them, so that no line ends with one.
                let mut blanks = 0;
                for ((column, cells), width) in columns.iter().zip(&widths) {
                    let Some((style, cell)) = cells.get(number) else { continue };
                    let text = column.cut(cell, *width);
                    let fill = width.saturating_sub(text.width());
                    let (before, after) = if matches!(column, Column::Number(_)) { (fill, 0) } else { (0, fill) };
                    if text.is_empty() {
                        blanks += width + GAP.len();
                        continue;
                    }
                    let text = " ".repeat(blanks + before) + &text;
                    match line.0.last_mut() {
                        Some((before, last)) if before == style => last.push_str(&text),
                        _ => line.add(*style, text),
                    }
                    blanks = after + GAP.len();
                }
                line
            })
            .collect()
    }
}

/// A cell as a terminal shows it.
fn shown(column: Column, (style, text): &Cell) -> Cell {
    (*style, if matches!(column, Column::Number(_)) { separated(text) } else { visible(text) })
}

/// How many columns the cells need.
fn widths(columns: &[(Column, Vec<Cell>)]) -> Vec<usize> {
    let widest = |cells: &[Cell]| cells.iter().map(|(_, text)| text.width()).max().unwrap_or(0);
    let most = |column: &Column| if matches!(column, Column::Text(_)) { TEXT } else { usize::MAX };
    columns.iter().map(|(column, cells)| widest(cells).min(most(column))).collect()
}

/// By how much columns of these widths exceed a terminal.
fn excess(widths: &[usize], width: usize) -> usize {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    (widths.iter().sum::<usize>() + gaps).saturating_sub(width)
}

/// Whether all cells of a column are zero or a dash; its first cell is the heading.
fn is_zero(cells: &[Cell]) -> bool {
    cells.len() > 1 && cells.iter().skip(1).all(|(_, text)| ["0", "0.0", "-"].contains(&text.as_str()))
}

/// Makes the widest of the columns that can be cut narrower until all fit, or until none can be cut further.
fn shrink(columns: &[(Column, Vec<Cell>)], widths: &mut [usize], width: usize, steps: &[Step]) {
    let mut excess = excess(widths, width);
    for step in steps {
        while excess > 0 {
            let pairs = columns.iter().zip(widths.iter_mut());
            let cuttable =
                pairs.filter(|((column, _), width)| column.shortest(*step).is_some_and(|shortest| **width > shortest));
            let Some((_, widest)) = cuttable.max_by_key(|(_, width)| **width) else { break };
            *widest -= 1;
            excess -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, Table};
    use crate::output::text::Style;
    use unicode_width::UnicodeWidthStr;

    const COLUMNS: &[Column] = &[
        Column::Name("queue"),
        Column::Number("ready"),
        Column::Word("state"),
        Column::Text("error"),
        Column::Name("group"),
    ];

    fn table(name: &str, error: &str) -> Table {
        table_of(&[[name, "1234567", "open", error, ""], ["q", "7", "paused", "", ""]])
    }

    fn table_of(rows: &[[&str; 5]]) -> Table {
        Table::plain(COLUMNS, rows.iter().map(|row| row.map(str::to_owned).into()))
    }

    fn lines(table: &Table, width: usize) -> Vec<String> {
        let text = |parts: Vec<(Style, String)>| parts.into_iter().map(|(_, text)| text).collect();
        table.lines(width).into_iter().map(|line| text(line.0)).collect()
    }

    #[test]
    fn numbers_are_to_the_right_and_empty_columns_left_out() {
        let lines = lines(&table("mail", "refused"), 80);
        assert_eq!(
            lines,
            ["QUEUE      READY  STATE   ERROR", "mail   1,234,567  open    refused", "q              7  paused",]
        );
    }

    #[test]
    fn a_table_is_no_wider_than_the_terminal() {
        let name = format!("{}-emails:eu", "a-very-long-prefix-".repeat(5));
        let shown = table(&name, &"日本語".repeat(40));
        for width in [40, 60, 100] {
            let lines = lines(&shown, width);
            assert!(lines.iter().all(|line| line.width() <= width), "{width}: {lines:?}");
            assert!(lines[1].starts_with("a-") && lines[1].contains(":eu "), "{lines:?}");
        }
        assert!(lines(&shown, 200)[1].starts_with(&name), "what fits is not cut");
        let narrow = lines(&shown, 10);
        assert!(narrow[1].contains("1,234,567") && narrow[1].contains("open"), "numbers and words are never cut");
    }

    #[test]
    fn texts_are_cut_before_names() {
        let row = |tenant| [tenant, "8", "open", "no consumer, messages die", ""];
        let table = table_of(&["tenant:0:jobs", "tenant:1:jobs"].map(row));
        let lines = lines(&table, 42);
        assert!(lines[1].starts_with("tenant:0:jobs ") && lines[1].ends_with("…"), "{lines:?}");
        assert!(lines.iter().all(|line| line.width() <= 42), "{lines:?}");
    }

    #[test]
    fn one_long_name_leaves_room_for_words() {
        let table = table_of(&[[&"n".repeat(180), "8", "open", "no consumer, messages die", ""]]);
        let lines = lines(&table, 70);
        assert!(lines[1].ends_with("no consumer, messages die"), "{lines:?}");
    }

    #[test]
    fn one_long_name_leaves_room_for_columns_of_zeros() {
        let table = table_of(&[[&"n".repeat(180), "0", "open", "messages die", ""]]);
        let lines = lines(&table, 60);
        assert!(lines[0].contains("READY") && lines[1].ends_with("0  open   messages die"), "{lines:?}");
    }

    #[test]
    fn columns_of_zeros_give_way_to_texts() {
        let table = table_of(&["0", "-"].map(|ready| ["mail", ready, "paused", "messages die, full", ""]));
        let line = |width| lines(&table, width).remove(1);
        assert_eq!(line(40), "mail       0  paused  messages die, full");
        assert_eq!(line(39), "mail   paused  messages die, full");
    }
}

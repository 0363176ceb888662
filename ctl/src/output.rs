//! What is printed: a table on a terminal, lines with tabs in a pipe, and JSON on request.

use crate::failure::Failure;
use crate::visible::visible;
use serde_json::{Map, Value as Json};
use std::io::{self, IsTerminal, Write};

/// The longest payload or error that is shown in a column of a table.
const COLUMN: usize = 60;

/// The columns of a list: their names, and rows of as many cells.
pub struct Table {
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: &'static [&'static str]) -> Table {
        Table { columns, rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

/// How to print, which depends on where the output goes.
pub struct Output {
    pub json: bool,
    is_terminal: bool,
    bold: bool,
}

impl Output {
    pub fn new(json: bool) -> Output {
        let is_terminal = io::stdout().is_terminal();
        // https://no-color.org: any value but an empty one.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Output { json, is_terminal, bold: is_terminal && !no_color && !is_dumb }
    }

    /// One line.
    pub fn line(&self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(io::stdout().lock(), "{}", visible(text))?)
    }

    /// Bytes as they are.
    pub fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// One JSON object on a line.
    pub fn object(&self, object: &Map<String, Json>) -> Result<(), Failure> {
        let line = serde_json::to_string(object).map_err(Failure::failed)?;
        Ok(writeln!(io::stdout().lock(), "{line}")?)
    }

    /// Prints a result: text for a person, an object for a program.
    pub fn result(&self, text: &str, object: Json) -> Result<(), Failure> {
        match object {
            Json::Object(object) if self.json => self.object(&object),
            _ => self.line(text),
        }
    }

    /// A list. On a terminal, columns are aligned and long cells are cut; in a pipe, cells are whole, with tabs between.
    pub fn table(&self, table: &Table) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if !self.is_terminal {
            for row in &table.rows {
                let cells: Vec<String> = row.iter().map(|cell| visible(cell)).collect();
                writeln!(out, "{}", cells.join("\t"))?;
            }
            return Ok(());
        }
        let rows: Vec<Vec<String>> =
            table.rows.iter().map(|row| row.iter().map(|cell| cut(&visible(cell))).collect()).collect();
        let header: Vec<String> = table.columns.iter().map(|name| name.to_uppercase()).collect();
        let mut widths = vec![0; header.len()];
        for row in rows.iter().chain([&header]) {
            widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.chars().count()));
        }
        let aligned = |row: &[String]| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        if self.bold {
            writeln!(out, "\x1b[1m{}\x1b[0m", aligned(&header))?;
        } else {
            writeln!(out, "{}", aligned(&header))?;
        }
        for row in &rows {
            writeln!(out, "{}", aligned(row))?;
        }
        Ok(())
    }

    /// A line of several parts: with tabs between in a pipe, and as a sentence on a terminal, where nothing is cut.
    pub fn sentence(&self, parts: &[String]) -> Result<(), Failure> {
        let parts: Vec<String> =
            parts.iter().map(|part| visible(part)).filter(|part| !part.is_empty() || !self.is_terminal).collect();
        let line = match parts.split_first() {
            Some((first, rest)) if self.is_terminal => format!("{first}: {}", rest.join("; ")),
            _ => parts.join("\t"),
        };
        Ok(writeln!(io::stdout().lock(), "{line}")?)
    }

    /// What only a person wants to know: it is printed on a terminal and not in a pipe.
    pub fn remark(&self, text: &str) -> Result<(), Failure> {
        if self.is_terminal {
            self.line(text)?;
        }
        Ok(())
    }

    /// Names and values, one on a line: aligned on a terminal, with a tab between in a pipe.
    pub fn pairs(&self, pairs: &[(String, String)]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, value) in pairs {
            let value = visible(value);
            match (self.is_terminal, self.bold) {
                (false, _) => writeln!(out, "{name}\t{value}")?,
                (true, false) => writeln!(out, "{name:<width$}  {value}")?,
                (true, true) => writeln!(out, "\x1b[1m{name:<width$}\x1b[0m  {value}")?,
            }
        }
        Ok(())
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(COLUMN) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_cells_are_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"ü".repeat(61)), format!("{}…", "ü".repeat(60)));
    }
}

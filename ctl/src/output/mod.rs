//! What is printed: a table on a terminal, lines with tabs in a pipe, and JSON on request.

mod paint;
mod progress;
mod signal;
mod table;
mod text;

use crate::server::Failure;
use crate::text::{distance, escaped, instant, separated, visible, with_distance, QueueName};
use serde::Serialize;
use serde_json::{json, Value as Json};
use std::io::{self, IsTerminal, Write};

pub use paint::paint;
pub use progress::{Progress, Task, Unit};
pub use signal::is_ignored;
use text::by_words;
pub use text::{cut, left, named, named_in, paragraph, payload, wrapped, Line, Style};

pub use table::{Cell, Column, Table};

/// How to print, which depends on where the output goes.
pub struct Output {
    pub json: bool,
    /// Whether a person reads it on a terminal, and not a program.
    pub is_for_people: bool,
    /// Whether a list in a pipe begins with the names of its columns.
    has_heading: bool,
    has_styles: bool,
    /// The queue that a result is about, if the command changes several.
    queue: Option<QueueName>,
}

impl Output {
    pub fn new(json: bool, has_heading: bool) -> Output {
        let is_for_people = io::stdout().is_terminal();
        // https://no-color.org: any value but an empty one.
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Output { json, is_for_people, has_heading, has_styles: is_for_people && !no_color && !is_dumb, queue: None }
    }

    /// The same, which names a queue in front of its result.
    pub fn about(&self, queue: &QueueName) -> Output {
        Output { queue: Some(queue.clone()), ..*self }
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

    /// One JSON object on a line. On a terminal, characters that nobody sees are escaped.
    pub fn object(&self, object: &impl Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_string(object).map_err(Failure::failed)?;
        if self.is_for_people {
            line = escaped(&line);
        }
        Ok(writeln!(io::stdout().lock(), "{line}")?)
    }

    /// Prints a result: text for a person, an object for a program.
    pub fn result(&self, text: &str, object: Json) -> Result<(), Failure> {
        match (object, &self.queue) {
            (Json::Object(mut object), queue) if self.json => {
                if let Some(queue) = queue {
                    object.insert("queue".to_owned(), json!(queue));
                }
                self.object(&object)
            }
            (_, Some(queue)) => self.pairs(&[(queue.to_string(), text.to_owned())]),
            (_, None) => self.line(text),
        }
    }

    /// Prints how many messages were changed or found, and on a terminal what was done to them.
    pub fn counted<N: Copy + ToString>(&self, number: N, verb: &str, object: Json) -> Result<(), Failure> {
        let number = number.to_string();
        let text = if self.is_for_people { format!("{} {verb}", separated(&number)) } else { number };
        self.result(&text, object)
    }

    /// A list. On a terminal, columns are aligned and fit into its width; in a pipe, cells are whole, with tabs
    /// between.
    pub fn table(&self, table: &Table) -> Result<(), Failure> {
        if self.is_for_people {
            return self.lines(&table.lines(width()));
        }
        if self.has_heading {
            let names: Vec<&str> = table.columns.iter().map(|column| column.name()).collect();
            writeln!(io::stdout().lock(), "{}", names.join("\t"))?;
        }
        self.rows(table)
    }

    /// More rows of a list in a pipe.
    pub fn rows(&self, table: &Table) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        for row in &table.rows {
            let cells: Vec<String> = row.iter().map(|(_, text)| visible(text)).collect();
            writeln!(out, "{}", cells.join("\t"))?;
        }
        Ok(())
    }

    /// A list as JSON objects, or as a table.
    pub fn list<T, S: Serialize>(
        &self,
        columns: &'static [Column],
        items: &[T],
        object: impl Fn(&T) -> S,
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<(), Failure> {
        if self.json {
            return items.iter().try_for_each(|item| self.object(&object(item)));
        }
        self.table(&Table::plain(columns, items.iter().map(row)))
    }

    /// Lines of a terminal.
    fn lines(&self, lines: &[Line]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        for line in lines {
            self.write(&mut out, line)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn write(&self, out: &mut impl Write, line: &Line) -> io::Result<()> {
        line.0.iter().try_for_each(|(style, text)| match style {
            Style::Plain => out.write_all(text.as_bytes()),
            _ if !self.has_styles => out.write_all(text.as_bytes()),
            style => paint(out, *style, text, true),
        })
    }

    /// An instant in Unix ms, if there is one: on a terminal how far it is from the present, and in a pipe exactly.
    pub fn instant(&self, unix_ms: impl Into<Option<i64>>) -> String {
        unix_ms.into().map_or_else(String::new, if self.is_for_people { distance } else { instant })
    }

    /// The same for an instant that stands alone: on a terminal, how far it is from the present is added.
    pub fn moment(&self, unix_ms: i64) -> String {
        let shown: fn(i64) -> String = if self.is_for_people { with_distance } else { instant };
        shown(unix_ms)
    }

    /// A line of several parts: with tabs between in a pipe, and on a terminal as a sentence, which continues on the
    /// next line where it is full, and begins in a style.
    pub fn sentence(&self, style: Style, parts: &[String]) -> Result<(), Failure> {
        let parts: Vec<String> =
            parts.iter().map(|part| visible(part)).filter(|part| !part.is_empty() || !self.is_for_people).collect();
        match parts.split_first() {
            Some((first, rest)) if self.is_for_people => {
                let text = by_words(&format!("{first}: {}", rest.join("; ")), width());
                let rest = text.strip_prefix(first.as_str()).unwrap_or_default().to_owned();
                self.lines(&[Line(vec![(style, first.clone()), (Style::Plain, rest)])])
            }
            _ => Ok(writeln!(io::stdout().lock(), "{}", parts.join("\t"))?),
        }
    }

    /// A remark for a person: printed on a terminal, and not in a pipe.
    pub fn remark(&self, text: &str) -> Result<(), Failure> {
        if self.is_for_people {
            self.line(text)?;
        }
        Ok(())
    }

    /// Names and values, one on a line: aligned on a terminal, with a tab between in a pipe.
    pub fn pairs(&self, pairs: &[(String, String)]) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let width = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, value) in pairs {
            if !self.is_for_people {
                writeln!(out, "{name}\t{}", visible(value))?;
                continue;
            }
            // On a terminal, the lines of a value stand below each other.
            let lines: Vec<String> = value.split('\n').map(visible).collect();
            let value = lines.join(&format!("\n{:width$}  ", ""));
            self.write(
                &mut out,
                &Line(vec![(Style::Bold, format!("{name:<width$}")), (Style::Plain, format!("  {value}\n"))]),
            )?;
        }
        Ok(())
    }
}

/// The columns of the terminal.
pub fn width() -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = set.or_else(|| crossterm::terminal::size().ok().map(|(columns, _)| columns.into()));
    columns.filter(|columns| *columns > 0).unwrap_or(80)
}

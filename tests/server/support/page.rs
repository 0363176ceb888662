//! Parses the pages of the command reference.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A page of the command reference.
pub struct Page {
    /// The command, in lower case.
    pub name: String,
    pub text: String,
}

/// The column of the range in a table of options; that of the default follows.
const RANGE: usize = 1;

/// A row of the table of options.
pub struct OptionRow {
    /// What a client writes: `DELAY ms`, `payload`.
    pub usage: String,
    pub range: Range,
    /// The unchanged text of the cell of the range.
    pub range_text: String,
}

/// A parameter `dq.default-…` as `docs/settings.md` describes it.
pub struct Parameter {
    /// The name of the parameter, and that of its field of `DQ.INFO`.
    pub name: String,
    pub field: String,
    pub default: String,
    /// Its smallest and its largest value; `None` if it is a choice between words.
    pub range: Option<(i64, i64)>,
}

/// The valid values of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// A whole number.
    Number { min: i64, max: i64 },
    /// A string of this many bytes.
    Bytes { min: usize, max: usize },
    /// Another kind of value, or the page does not say.
    Other,
}

/// What is under a heading of the second level, if there is one.
pub fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n"))?;
    Some(rest[..rest.find("\n## ").unwrap_or(rest.len())].trim())
}

impl Page {
    /// The pages of all commands, sorted by name.
    pub fn all() -> Vec<Page> {
        let mut pages: Vec<Page> =
            markdown_files(&root().join("docs/commands")).iter().filter_map(Page::read).collect();
        pages.sort_by(|left, right| left.name.cmp(&right.name));
        pages
    }

    fn read(path: &PathBuf) -> Option<Page> {
        let name = path.file_stem()?.to_str()?.to_owned();
        let text = std::fs::read_to_string(path).expect("a page");
        (name != "README").then_some(Page { name, text })
    }

    /// The headings in order, with their `#` signs.
    pub fn headings(&self) -> Vec<&str> {
        prose(&self.text).filter(|line| line.starts_with('#')).collect()
    }

    /// The text between the title and the first heading.
    pub fn summary(&self) -> &str {
        let end = self.text.find("\n## ").expect("headings");
        self.text[..end].split_once('\n').expect("a summary").1.trim()
    }

    /// The text below a heading.
    #[track_caller]
    pub fn section(&self, heading: &str) -> &str {
        section(&self.text, heading).unwrap_or_else(|| panic!("{} has no {heading:?}", self.name))
    }

    /// The syntax as the page shows it, on one line.
    pub fn shown_syntax(&self) -> String {
        let words = self.section("Syntax").split_whitespace().filter(|word| *word != "```");
        words.collect::<Vec<_>>().join(" ")
    }

    /// The syntax with all settings.
    pub fn syntax(&self) -> String {
        let usages = settings().into_iter().map(|(row, _)| row.usage).chain(targets().map(|(syntax, _)| syntax));
        let settings = usages.map(|usage| format!("[{usage}]")).collect::<Vec<_>>().join(" ");
        self.shown_syntax().replace("[settings]", &settings)
    }

    /// The words of the syntax that are required: without what is in brackets or follows an `|`.
    pub fn required(&self) -> Vec<String> {
        let mut depth = 0;
        let open: String = self
            .syntax()
            .chars()
            .filter(|next| {
                depth += i32::from(*next == '[');
                let outside = depth == 0;
                depth -= i32::from(*next == ']');
                outside
            })
            .collect();
        open.split_whitespace().take_while(|word| *word != "|").map(str::to_owned).collect()
    }

    /// The rows of the table of options. A row `settings` stands for the table of `docs/settings.md`, and a row that
    /// links to the options of another page for those that the syntax of this page has too.
    pub fn options(&self) -> Vec<OptionRow> {
        let rows = table(self.section("Options"));
        let (shared, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|cells| cells[0].contains(".md#options)"));
        let rows = rows.into_iter().map(|cells| OptionRow::read(&cells));
        let (settings_row, mut rows): (Vec<_>, Vec<_>) = rows.partition(|row| row.usage == "settings");
        if !settings_row.is_empty() {
            rows.extend(settings().into_iter().map(|(row, _)| row));
            rows.extend(targets().flat_map(|(_, rows)| rows));
        }
        let syntax = self.shown_syntax();
        let words: Vec<&str> = syntax.split([' ', '[', ']']).collect();
        for cells in shared {
            let name = cells[0].split("](").nth(1).and_then(|link| link.split('#').next()).expect("a link to a page");
            let page = Page::read(&root().join("docs/commands").join(name)).expect("a page of a command");
            let missing = |row: &OptionRow| {
                row.token().is_some_and(|token| words.contains(&token))
                    && rows.iter().all(|own| own.token() != row.token())
            };
            let missing: Vec<OptionRow> = page.options().into_iter().filter(missing).collect();
            rows.extend(missing);
        }
        rows
    }

    /// The items of a line `- title: ...` in a section, without their quotes.
    pub fn listed(&self, section: &str, title: &str) -> Vec<String> {
        let start = format!("- {title}: ");
        let line = self.section(section).lines().find_map(|line| line.strip_prefix(&start));
        code(line.unwrap_or_else(|| panic!("{}: no {title}", self.name)))
    }

    /// The letters of the effects that the page mentions, in order.
    pub fn effects(&self) -> Vec<char> {
        let mut letters: Vec<char> = Vec::new();
        for after in self.text.split("effect `").skip(1) {
            match after.as_bytes() {
                [letter, b'`', ..] if !letters.contains(&char::from(*letter)) => letters.push(char::from(*letter)),
                _ => {}
            }
        }
        letters
    }
}

/// The settings of a queue as `docs/settings.md` lists them, each with its parameters.
fn settings() -> Vec<(OptionRow, Vec<Parameter>)> {
    let text = std::fs::read_to_string(root().join("docs/settings.md")).expect("the page of settings");
    let row = |cells: Vec<String>| {
        let option = OptionRow::read(&cells);
        // The range of each number, or one range for all of them.
        let ranges: Vec<Range> = cells[RANGE].split(" then ").map(Range::read).collect();
        let parameter = |(nth, words): (usize, &[&str])| {
            let range = match *ranges.get(nth).unwrap_or(&ranges[0]) {
                Range::Number { min, max } => Some((min, max)),
                // A choice between words.
                _ => None,
            };
            let name = words[0].trim_matches('`');
            let field = name.strip_prefix("dq.default-").expect("the parameter of a setting");
            let default = words[1].trim_end_matches(',').trim_matches('`').to_owned();
            Parameter { name: name.to_owned(), field: field.to_owned(), default, range }
        };
        let parameters =
            cells[RANGE + 1].split_whitespace().collect::<Vec<_>>().chunks(2).enumerate().map(parameter).collect();
        (option, parameters)
    };
    table(&text).into_iter().map(row).collect()
}

/// The settings `FORWARD` and `DEADFORWARD` as `docs/settings.md` describes them: their syntax, and their options.
fn targets() -> impl Iterator<Item = (String, Vec<OptionRow>)> {
    let text = std::fs::read_to_string(root().join("docs/settings.md")).expect("the page of settings");
    ["Forwarding", "Dead messages"].into_iter().map(move |title| {
        let section = text.split_once(&format!("\n## {title}\n")).expect("a section on the setting").1;
        let syntax = section.split("```").nth(1).expect("its syntax").split_whitespace().collect::<Vec<_>>().join(" ");
        (syntax, table(section).iter().map(|cells| OptionRow::read(cells)).collect())
    })
}

/// The parameters `dq.default-…` that the page of settings lists.
pub fn setting_parameters() -> Vec<Parameter> {
    settings().into_iter().flat_map(|(_, parameters)| parameters).collect()
}

impl OptionRow {
    fn read(cells: &[String]) -> OptionRow {
        let range = &cells[RANGE];
        OptionRow { usage: code(&cells[0]).join(" "), range: Range::read(range), range_text: range.clone() }
    }

    /// The token of the option, if it has one.
    pub fn token(&self) -> Option<&str> {
        self.words().next().filter(|word| is_token(word))
    }

    /// The words that a client writes, without those that repeat.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.usage.split_whitespace().take_while(|word| !word.starts_with('['))
    }
}

impl Range {
    fn read(cell: &str) -> Range {
        let head = cell.split(',').next().unwrap_or_default();
        match head.split_whitespace().collect::<Vec<_>>()[..] {
            [min, "to", max] => match (min.parse(), max.parse()) {
                (Ok(min), Ok(max)) => Range::Number { min, max },
                _ => Range::Other,
            },
            [min, "to", max, "bytes"] => match (min.parse(), max.parse()) {
                (Ok(min), Ok(max)) => Range::Bytes { min, max },
                _ => Range::Other,
            },
            _ => Range::Other,
        }
    }
}

/// Whether a word is a token, which is written as it is.
pub fn is_token(word: &str) -> bool {
    word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase())
}

/// The Markdown files of a folder.
pub fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The lines of a document that are not in a code block.
pub fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_block ^= fence;
        !in_block && !fence
    })
}

/// The parts of a text that are in code quotes.
fn code(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(|word| word.replace("\\|", "|")).collect()
}

/// The cells of the first table in `text`, without its header.
fn table(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    lines
        .skip(2)
        .map(|line| {
            let inner = line.trim_matches('|').replace("\\|", "\0");
            inner.split('|').map(|cell| cell.replace('\0', "\\|").trim().to_owned()).collect()
        })
        .collect()
}

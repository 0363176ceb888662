//! The reference in `docs/`: its pages agree with what the server says and does.

use crate::support::{effects_of, is_token, markdown_files, prose, root, OptionRow, Page, Range};
use crate::support::{Client, Fields, Protocol, Reply, Server, Transcript};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The headings of every page.
const HEADINGS: [&str; 10] = [
    "## Syntax",
    "## Options",
    "## Reply",
    "## Errors",
    "## Complexity",
    "## Replication",
    "## Notifications",
    "## Access",
    "## Notes",
    "## Example",
];

/// The effects that any write may cause besides its own: the dead and done messages above the limits are dropped.
const DROPS: [char; 2] = ['x', 'X'];

/// What the server says of a command.
fn docs_of(c: &mut Client, name: &str) -> Fields {
    let reply = c.ask(format!("COMMAND DOCS {name}")).fields();
    reply.0[0].1.fields()
}

#[test]
fn every_command_has_its_page_and_every_page_its_command() {
    let server = Server::start();
    let reply = server.client().ask("COMMAND LIST FILTERBY MODULE dq");
    let mut commands: Vec<String> = reply.items().iter().map(|name| name.text().to_lowercase()).collect();
    commands.sort_unstable();
    let pages = Page::all();
    assert_eq!(pages.iter().map(|page| page.name.as_str()).collect::<Vec<_>>(), commands);
    let index = std::fs::read_to_string(root().join("docs/commands/README.md")).expect("an index");
    for page in pages {
        assert!(index.contains(&format!("[{}]({}.md)", page.name.to_uppercase(), page.name)), "{}", page.name);
    }
}

#[test]
fn every_page_has_the_same_headings() {
    for page in Page::all() {
        let title = format!("# {}", page.name.to_uppercase());
        let expected: Vec<&str> = [title.as_str()].into_iter().chain(HEADINGS).collect();
        assert_eq!(page.headings(), expected);
        assert!(HEADINGS.iter().all(|heading| !page.section(&heading[3..]).is_empty()), "{}", page.name);
    }
}

#[test]
fn a_page_says_of_its_command_what_the_server_says() {
    let server = Server::start();
    let mut c = server.client_with(Protocol::Resp3);
    for page in Page::all() {
        let docs = docs_of(&mut c, &page.name);
        assert_eq!(page.summary(), docs.text("summary") + ".", "{}", page.name);
        assert_eq!(page.section("Complexity"), docs.text("complexity") + ".", "{}", page.name);
        let info = c.ask(format!("COMMAND INFO {}", page.name));
        let arity = info.items()[0].items()[1].int();
        // An option does not count, nor does the rule of a schedule: if it is missing, the error must name it.
        let required = page.required();
        let options = required.iter().skip(1).filter(|word| is_token(word)).count();
        let rule = usize::from(page.name == "dq.schedule");
        assert_eq!((required.len() - options - rule) as u64, arity.unsigned_abs(), "{}: {required:?}", page.name);
    }
}

#[test]
fn a_page_says_who_may_call_its_command() {
    let server = Server::start();
    let mut c = server.client();
    let texts = |reply: &Reply| reply.items().iter().map(Reply::text).collect::<BTreeSet<String>>();
    for page in Page::all() {
        let listed = |title| page.listed("Access", title).into_iter().collect::<BTreeSet<String>>();
        let info = c.ask(format!("COMMAND INFO {}", page.name));
        let info = info.items()[0].items();
        let mut flags = texts(&info[2]);
        // These say how it was registered.
        flags.retain(|flag| flag != "module" && flag != "movablekeys");
        assert_eq!(listed("flags"), flags, "{}", page.name);
        let spec = info[8].items()[0].fields();
        assert_eq!(listed("key"), texts(spec.get("flags")), "{}", page.name);
        // Redis 7.0 has no categories for the commands of modules, and 7.2 none of their own.
        let mut categories = texts(&info[6]);
        if !categories.is_empty() {
            categories.insert("@dq".to_owned());
            assert_eq!(categories, categories_by_flags(&flags, &page.name), "{}", page.name);
        }
    }
}

#[test]
fn the_overview_has_the_syntax_of_every_command_of_clients() {
    let overview = std::fs::read_to_string(root().join("docs/overview.md")).expect("the overview").replace("\\|", "|");
    for page in Page::all().iter().filter(|page| page.name != "dq.e") {
        let row = format!("\n| `{}` | ", page.shown_syntax());
        assert!(overview.contains(&row), "docs/overview.md lacks {row}");
    }
}

#[test]
fn the_example_of_a_configuration_has_every_parameter_with_its_default() {
    let server = Server::start();
    let parameters = server.client().ask("CONFIG GET dq.*").fields();
    let expected: BTreeSet<String> =
        parameters.0.iter().map(|(name, default)| format!("# {name} {}", default.text())).collect();
    let example = std::fs::read_to_string(root().join("redis.conf.example")).expect("the example");
    let shown: BTreeSet<String> = example.lines().filter(|line| line.starts_with("# dq.")).map(str::to_owned).collect();
    assert_eq!(shown, expected);
}

/// The ACL categories of a command with these flags, by the rule in `docs/commands/README.md`.
fn categories_by_flags(flags: &BTreeSet<String>, name: &str) -> BTreeSet<String> {
    let has = |flag: &str| flags.contains(flag);
    let chosen = [
        (true, "@dq"),
        (has("write"), "@write"),
        (has("readonly"), "@read"),
        (has("fast"), "@fast"),
        (!has("fast"), "@slow"),
        (has("blocking"), "@blocking"),
        (name == "dq.e", "@dangerous"),
    ];
    chosen.iter().filter(|(applies, _)| *applies).map(|(_, category)| (*category).to_owned()).collect()
}

/// An argument that is named by a word: the word, and whether a number follows it.
struct Token {
    word: String,
    is_number: bool,
    /// The name under which a page writes the words between which this one is a choice, such as `state`.
    choice: Option<String>,
}

fn tokens(arguments: &[Reply], choice: Option<&str>, found: &mut Vec<Token>) {
    for argument in arguments {
        let argument = argument.fields();
        if argument.has("token") {
            let is_number = matches!(argument.text("type").as_str(), "integer" | "unix-time");
            let choice = choice.filter(|_| argument.text("type") == "pure-token").map(str::to_owned);
            found.push(Token { word: argument.text("token"), is_number, choice });
        }
        if argument.has("arguments") {
            let name = argument.text("name");
            let choice = Some(&name[..]).filter(|name| matches!(*name, "state" | "order" | "reason"));
            tokens(argument.get("arguments").items(), choice, found);
        }
    }
}

#[test]
fn a_page_lists_exactly_the_options_of_its_command() {
    let server = Server::start();
    let mut c = server.client_with(Protocol::Resp3);
    for page in Page::all() {
        let (name, syntax, rows) = (&page.name, page.syntax(), page.options());
        let mut known = Vec::new();
        tokens(docs_of(&mut c, name).get("arguments").items(), None, &mut known);
        let in_syntax: Vec<&str> = syntax.split([' ', '[', ']']).collect();
        for Token { word, is_number, choice } in &known {
            if let Some(choice) = choice {
                let row = rows.iter().find(|row| row.usage.ends_with(choice.as_str())).expect("a row for the choice");
                assert!(row.range_text.contains(&format!("`{}`", word.to_lowercase())), "{name}: {word}");
                assert!(in_syntax.contains(&choice.as_str()), "{name}");
            } else {
                assert!(in_syntax.contains(&word.as_str()), "{name}: {word} is not in {syntax}");
                let row = rows.iter().find(|row| row.token() == Some(word)).unwrap_or_else(|| panic!("{name}: {word}"));
                let has_range = matches!(row.range, Range::Number { .. });
                assert!(has_range || !is_number, "{name}: {word} has no range");
            }
        }
        let is_known = |word: &str| known.iter().any(|token| token.word == word);
        for word in in_syntax.iter().filter(|word| is_token(word)) {
            assert!(is_known(word), "{name}: the server knows no {word}");
        }
        for word in rows.iter().filter_map(OptionRow::token) {
            assert!(is_known(word), "{name}: the server knows no {word}");
        }
        for row in rows.iter().filter(|row| row.token().is_none()) {
            assert!(in_syntax.contains(&row.usage.as_str()), "{name}: {} is not in {syntax}", row.usage);
        }
    }
}

/// The shortest call that the page of a command shows, with `value` for one of its words and `option` at its end.
fn call(page: &Page, replaced: &str, value: &str, option: &str) -> String {
    let words = page.required().into_iter().enumerate().take_while(|(n, word)| *n == 0 || !is_token(word));
    let stand_in = |(n, word): (usize, String)| match word.as_str() {
        _ if n == 0 => word,
        word if word == replaced => value.to_owned(),
        "key" => "q".to_owned(),
        "cursor" => "0".to_owned(),
        "count" | "numkeys" => "1".to_owned(),
        _ => "m".to_owned(),
    };
    let words: Vec<String> = words.map(stand_in).collect();
    format!("{} {option}", words.join(" "))
}

/// The options that are part of another one, and the words before them.
const OPTIONS_OF_OPTIONS: [(&str, &str); 2] = [("JITTER", "BACKOFF 1 1"), ("TRIM", "FORWARD STREAM s")];

/// A call that gives `value` to the option or argument of a row.
fn call_with(page: &Page, row: &OptionRow, value: &str) -> String {
    let Some(token) = row.token() else { return call(page, &row.usage, value, "") };
    let all = row.range_text.contains("each");
    let values = row.words().skip(1).enumerate().map(|(n, _)| if n == 0 || all { value } else { "m" });
    let outer = OPTIONS_OF_OPTIONS.iter().filter(|(inner, _)| *inner == token).map(|(_, outer)| *outer);
    let option: Vec<&str> = outer.chain([token]).chain(values).collect();
    call(page, "", "", &option.join(" "))
}

/// The error of a call, if it has one. It runs in a transaction, so that nothing waits, and on a new queue.
fn error_of(c: &mut Client, line: &str) -> Option<String> {
    c.ask("FLUSHALL").ok();
    match &c.multi(&[line])[0] {
        Reply::Error(text) => Some(text.clone()),
        _ => None,
    }
}

#[test]
fn the_ranges_of_the_pages_are_those_of_the_server() {
    let server = Server::start();
    let mut c = server.client();
    let mut probed = 0;
    for page in Page::all() {
        for row in page.options() {
            let name = row.words().next().expect("a name").to_owned();
            let (inside, outside, says) = match row.range {
                Range::Number { min, max } => {
                    let words = |numbers: [i128; 2]| numbers.map(|number| number.to_string());
                    let outside = words([i128::from(min) - 1, i128::from(max) + 1]).to_vec();
                    let outside = [outside, vec!["x".to_owned(), "1.5".to_owned()]].concat();
                    (words([min.into(), max.into()]), outside, format!(" from {min} to {max}"))
                }
                Range::Bytes { min, max } => {
                    let word = |len: usize| if len == 0 { "\"\"".to_owned() } else { "m".repeat(len) };
                    let of = if matches!(name.as_str(), "GROUP" | "AS" | "BATCH") { &name } else { "ID" };
                    let says = format!("{of} must be {min} to {max} bytes");
                    ([word(min), word(max)], vec![word(min - 1), word(max + 1)], says)
                }
                Range::Other => continue,
            };
            probed += 1;
            for value in inside {
                let line = call_with(&page, &row, &value);
                let error = error_of(&mut c, &line).unwrap_or_default();
                assert!(!error.contains(" must be "), "{}: {line}: {error}", page.name);
            }
            for value in outside {
                let line = call_with(&page, &row, &value);
                let error = error_of(&mut c, &line).unwrap_or_default();
                let named =
                    matches!(row.range, Range::Bytes { .. }) || error.starts_with(&format!("ERR {name} must be "));
                let seconds = format!("ERR {name} is Unix time in milliseconds; {value} looks like seconds");
                let is_seconds = matches!(name.as_str(), "AT" | "UNTIL") && error == seconds;
                assert!(named && error.contains(&says) || is_seconds, "{}: {line}: {error:?}, not {says:?}", page.name);
            }
        }
    }
    assert!(probed > 40, "{probed} ranges");
}

/// The letter of an effect, which follows the version and the checksum. For one message, a push, a delivery, an ack and
/// a delivery after an ack write a shorter form; the pages of the commands name the longer one.
fn letter(effect: &[u8]) -> char {
    assert_eq!(effect[0] & 7, 1, "{effect:?}");
    match char::from(effect[1]) {
        'B' => 'd',
        short @ ('P' | 'D' | 'A') => short.to_ascii_lowercase(),
        letter => letter,
    }
}

#[test]
fn the_examples_of_the_pages_run_with_their_effects() {
    let pages = Page::all();
    for page in &pages {
        let example = Transcript::of(&page.text);
        let lines: Vec<String> = example.lines().map(str::to_lowercase).collect();
        assert!(lines.iter().any(|line| line.split(' ').next() == Some(&page.name)), "{}", page.name);
        let came = effects_of(|c| example.replay(c, &page.name));
        let came: BTreeSet<char> = came.iter().map(|effect| letter(effect)).collect();

        let is_used = |used: &&Page| lines.iter().any(|line| line.split(' ').next() == Some(&used.name));
        let mut named: BTreeSet<char> = pages.iter().filter(is_used).flat_map(Page::effects).collect();
        named.extend(DROPS);
        assert!(came.is_subset(&named), "{}: {came:?} came, {named:?} are named", page.name);
        if page.name != "dq.e" {
            let own: BTreeSet<char> = page.effects().into_iter().filter(|letter| !DROPS.contains(letter)).collect();
            assert!(own.is_subset(&came), "{}: {came:?} came, {own:?} are named", page.name);
            let looks = page.listed("Access", "flags").iter().any(|flag| flag == "readonly");
            assert_eq!(own.is_empty(), looks, "{}", page.name);
        }
    }
}

#[test]
fn the_page_of_effects_names_all_of_them() {
    let pages = Page::all();
    let (effect, others): (Vec<&Page>, Vec<&Page>) = pages.iter().partition(|page| page.name == "dq.e");
    let named: BTreeSet<char> = others.into_iter().flat_map(Page::effects).collect();
    let listed: BTreeSet<char> = effect[0].effects().into_iter().collect();
    assert!(named.is_subset(&listed), "{named:?} are named, {listed:?} are listed");
}

/// The address by which GitHub links to a heading.
fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// All pages below `docs/`.
fn all_pages() -> Vec<PathBuf> {
    let folders = ["docs", "docs/commands", "docs/internals", "docs/internals/decisions", "docs/recipes"];
    let folders = folders.map(|folder| root().join(folder));
    folders.iter().flat_map(|folder| markdown_files(folder)).collect()
}

/// The targets of the links of a document, except those to other sites.
fn links(text: &str) -> Vec<String> {
    let targets = prose(text).flat_map(|line| line.split("](").skip(1)).filter_map(|after| after.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut files = all_pages();
    files.push(root().join("README.md"));
    let read =
        |path: &Path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut followed = 0;
    for file in files {
        for link in links(&read(&file)) {
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { file.clone() } else { file.parent().expect("a folder").join(path) };
            assert!(target.exists(), "{}: {link}", file.display());
            if !heading.is_empty() {
                let text = read(&target);
                let mut headings = prose(&text).filter(|line| line.starts_with('#')).map(anchor);
                assert!(headings.any(|anchor| anchor == heading), "{}: {link}", file.display());
            }
            followed += 1;
        }
    }
    assert!(followed > 100, "{followed} links");
}

#[test]
fn every_page_is_in_the_summary_of_the_site() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the summary");
    let listed: BTreeSet<PathBuf> = links(&summary).iter().map(|link| root().join("docs").join(link)).collect();
    for page in all_pages().into_iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        assert!(listed.contains(&page), "docs/SUMMARY.md does not list {}", page.display());
    }
}

#[test]
fn a_heading_is_linked_to_as_on_github() {
    assert_eq!(anchor("## What is lost, and when"), "what-is-lost-and-when");
    assert_eq!(links("a [b](c.md#d) [e](https://f.g) ```\n"), ["c.md#d"]);
}

#[test]
fn the_tests_that_the_pages_name_are_there() {
    let mut named = 0;
    // Classes of the libraries of other languages begin with a capital letter.
    let is_of_a_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == ':';
    // The decisions name functions of the source in the same form.
    for path in all_pages().into_iter().filter(|path| !path.starts_with(root().join("docs/internals/decisions"))) {
        let text = std::fs::read_to_string(&path).unwrap();
        for test in
            text.split('`').skip(1).step_by(2).filter(|code| code.contains("::") && code.chars().all(is_of_a_name))
        {
            let (module, name) = test.rsplit_once("::").expect("folder::file::test");
            let file = root().join("tests/server").join(module.replace("::", "/"));
            let sources = [file.with_extension("rs"), file.join("mod.rs")];
            let source: String = sources.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
            assert!(source.contains(&format!("fn {name}()")), "{}: {test}", path.display());
            named += 1;
        }
    }
    assert!(named > 30, "docs/tested.md names its tests");
}

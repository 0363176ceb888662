//! What clients and programs rely on, as `docs/interface.txt` lists it: a change of it is seen in that file.
//!
//! `DQ_BLESS=1 cargo test --test server interface::frozen` writes the file. Once a version is released, the file only
//! gains lines, and its lines only gain words: see CONTRIBUTING.md, Releases.

use crate::support::{root, section, Client, Page, Protocol, Reply, Server};
use std::collections::BTreeSet;
use std::fmt::Write;

/// After these, the messages of `q` have all fields that there are, and so has what a pop of `p` returns.
const CALLS: [&str; 18] = [
    "DQ.CREATE q LEASE 60000 RETRIES 5 BACKOFF 600000 600000",
    "DQ.PUSH q x ID held GROUP g BATCH b HEADERS 1 a 1 RETAIN 600000 PRIORITY 9",
    "DQ.POP q AS worker",
    "DQ.NACK q held DELAY 0 ERROR boom CHECKPOINT half",
    "DQ.POP q AS worker",
    "DQ.BATCH q b THEN x ID next",
    "DQ.PUSH q x ID rejected",
    "DQ.BURY q rejected ERROR no",
    "DQ.PUSH q x ID expired RETRIES 0",
    "DQ.POP q LEASE 1",
    "DQ.PUSH q x ID done RETAIN 600000",
    "DQ.POP q",
    "DQ.COMPLETE q done RESULT r",
    "DQ.SCHEDULE q often x EVERY 3600000 OFFSET 5 TIMES 9",
    "DQ.SCHEDULE q nightly x CRON @daily TZ Europe/Berlin",
    "DQ.PUSH q x ID waits GROUP h",
    "DQ.PAUSE q GROUP h",
    "DQ.PUSH p x PRIORITY 9 HEADERS 1 a 1 GROUP g BATCH b ERROR e CHECKPOINT c",
];

fn names<'a>(title: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().fold(format!("fields {title}:"), |line, name| line + " " + name)
}

/// The names of the fields of all these maps, in the order of their first occurrence.
fn all_names(maps: &[Reply]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let fields = maps.iter().map(Reply::fields);
    let all = fields.flat_map(|fields| fields.names().into_iter().map(str::to_owned).collect::<Vec<_>>());
    all.filter(|name| seen.insert(name.clone())).collect()
}

/// The words in backquotes for which this holds.
fn quoted(text: &str, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2).filter_map(|code| code.split(' ').next());
    quoted.filter(|word| is_wanted(word)).map(str::to_owned).collect()
}

fn interface(c: &mut Client) -> String {
    let (mut lines, pages) = (Vec::new(), Page::all());
    for page in &pages {
        lines.push(format!("command {}", page.syntax()));
        let [flags, key] = ["flags", "key"].map(|title| page.listed("Access", title).join(" "));
        lines.push(format!("access {}: {flags}; key: {key}", page.name));
    }
    let parameters = c.ask("CONFIG GET dq.*").fields().0;
    let parameters = parameters.iter().map(|(name, default)| format!("parameter {name} {}", default.text()));
    lines.extend(parameters.collect::<BTreeSet<String>>());
    for call in CALLS {
        let reply = c.ask(call);
        assert!(!reply.is_error(), "{call}: {reply:?}");
    }
    c.until_state("q", "expired", "dead");
    lines.push(names("DQ.INFO", c.ask("DQ.INFO q").fields().names()));
    let scan = c.ask("DQ.SCAN q 0 COUNT 100");
    let (done, held): (Vec<Reply>, Vec<Reply>) =
        scan.items()[1].items().iter().cloned().partition(|message| message.fields().has("done"));
    lines.push(names("DQ.GET", all_names(&held).iter().map(String::as_str)));
    lines.push(names("DQ.GET of a done message", all_names(&done).iter().map(String::as_str)));
    let popped = c.ask("DQ.POP p META");
    lines.push(names("META", popped.items()[0].items()[4].fields().names()));
    lines.push(names("DQ.STATS", c.ask("DQ.STATS q").fields().names()));
    lines.push(names("DQ.BATCHINFO", c.ask("DQ.BATCHINFO q b").fields().names()));
    let info = c.ask("INFO dq").text();
    let fields = info.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name);
    lines.push(names("INFO dq", fields));
    let shared = std::fs::read_to_string(root().join("docs/commands/README.md")).expect("the page of all commands");
    let mut errors: BTreeSet<String> = pages.iter().flat_map(codes).collect();
    errors.extend(first_words(section(&shared, "Common errors").expect("the table"), is_code));
    lines.extend(errors.into_iter().map(|word| format!("error {word}")));
    let is_event = |word: &str| word.starts_with("dq.") && !word.contains('-');
    let notices = pages.iter().map(|page| page.section("Notifications")).chain([shared.as_str()]);
    let events: BTreeSet<String> = notices.flat_map(|text| quoted(text, is_event)).collect();
    lines.extend(events.into_iter().map(|event| format!("event {event}")));
    let effects = pages.iter().find(|page| page.name == "dq.e").expect("the page of effects").effects();
    lines.push(effects.into_iter().fold("effects".to_owned(), |line, letter| format!("{line} {letter}")));
    let mut text = String::new();
    lines.into_iter().for_each(|line| writeln!(text, "{line}").expect("a string"));
    text
}

/// The first words of the errors of a page: they are in the first cells of the table, as are options that an error
/// names.
fn codes(page: &Page) -> BTreeSet<String> {
    let syntax = page.syntax();
    let options: BTreeSet<&str> = syntax.split([' ', '[', ']']).collect();
    first_words(page.section("Errors"), |word| is_code(word) && !options.contains(word))
}

/// The words in backquotes of the first cells of a table for which this holds.
fn first_words(table: &str, is_wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    quoted(&cells.collect::<Vec<_>>().join("\n"), is_wanted)
}

fn is_code(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase())
}

#[test]
fn the_interface_is_the_one_that_is_listed() {
    let path = root().join("docs/interface.txt");
    let server = Server::start();
    let found = interface(&mut server.client_with(Protocol::Resp3));
    if std::env::var_os("DQ_BLESS").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let missing = |of: &str, other: &str| {
        let known: BTreeSet<&str> = other.lines().collect();
        of.lines().filter(|line| !known.contains(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(found == listed, "not listed: {:#?}\nlisted: {:#?}", missing(&found, &listed), missing(&listed, &found));
}

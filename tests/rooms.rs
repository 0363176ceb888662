//! The rooms of the source, as ARCHITECTURE.md draws them: each uses only those below it, and no files use each other
//! in a circle.
//!
//! `cargo test --test rooms` shows it: the imports are read from the source.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A room, and the rooms that its files must not name.
const ROOMS: [(&str, &[&str]); 5] = [
    ("queue/src", &["redis_module", "unsafe {"]),
    ("src/module_api", &["dq_queue", "crate::schedule", "crate::host", "crate::commands"]),
    ("src/schedule", &["crate::host", "crate::commands", "dq_queue::{", "dq_queue::Queue"]),
    ("src/host", &["crate::commands"]),
    ("src/commands", &["unsafe {", "unsafe fn"]),
];

/// The rooms of `ctl/src` from the lowest to the highest. Those on one line do not know each other.
const LEVELS_OF_DQCTL: [&[&str]; 7] = [
    &["text"],
    &["server"],
    &["output", "http"],
    &["board"],
    &["cli"],
    &["acts", "findings"],
    &["daily", "top", "web", "work", "export", "moving"],
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn each_room_uses_only_those_below_it() {
    for (room, forbidden) in ROOMS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(room);
        let files = files(&folder);
        assert!(files.len() > 3, "{} is a room", folder.display());
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for (nth, line) in code.enumerate() {
                let named = forbidden.iter().find(|name| line.contains(**name));
                assert_eq!(named, None, "{}, line of code {nth}: {line}", file.display());
            }
        }
    }
}

/// The path of a module, from the root of its crate.
type Module = Vec<String>;

/// The modules below `root`, which are its files, and the code of each without comments and unit tests.
fn modules(root: &Path) -> BTreeMap<Module, String> {
    let module = |file: &PathBuf| {
        let name = file.strip_prefix(root).unwrap().with_extension("");
        let parts = name.iter().map(|part| part.to_str().unwrap().to_owned());
        parts.filter(|part| !["mod", "lib", "main"].contains(&part.as_str())).collect()
    };
    let code = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.replace("\npub mod tests {", "\nmod tests {");
        let code = code.split("\n#[cfg(test)]\nmod tests {").next().unwrap();
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    let files = files(root).into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.map(|file| (module(&file), code(&file))).collect()
}

/// Reads a path such as `a::b` or `a::{b, c::d}` at the start of `rest` and adds what it names, behind `prefix`, to
/// `found`. Returns what follows the path.
fn read_path<'a>(prefix: &[String], mut rest: &'a str, found: &mut Vec<Module>) -> &'a str {
    let mut path = prefix.to_vec();
    loop {
        rest = rest.trim_start();
        if rest.starts_with('{') {
            while rest.starts_with(['{', ',']) {
                rest = read_path(&path, &rest[1..], found).trim_start();
            }
            return rest.strip_prefix('}').unwrap_or(rest);
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        path.push(rest[..end].to_owned());
        rest = &rest[end..];
        let Some(next) = rest.strip_prefix("::") else { break };
        rest = next;
    }
    if path.last().is_some_and(|last| !last.is_empty()) {
        found.push(path);
    }
    rest
}

/// The path `path` of the module `of`, from the root of the crate.
fn from_root(of: &Module, path: &[String]) -> Module {
    let up = path.iter().take_while(|part| *part == "super").count();
    match path.first() {
        Some(first) if first == "crate" => path[1..].to_vec(),
        _ => [&of[..of.len().saturating_sub(up)], &path[up..]].concat(),
    }
}

/// What the code of a module names of its crate.
fn named(of: &Module, code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    let starts = code.match_indices("crate::").chain(code.match_indices("super::"));
    for (at, _) in starts.filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c))) {
        read_path(&[], &code[at..], &mut found);
    }
    found.iter().map(|path| from_root(of, path)).collect()
}

/// What a module passes on with `pub use`: the path under which it is found there, and where it comes from.
fn passed_on(of: &Module, code: &str) -> Vec<(Module, Module)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        if code[..at].rsplit('\n').next().is_some_and(|before| before.starts_with("pub")) {
            read_path(&[], &code[at + 4..], &mut found);
        }
    }
    let here = |path: &Module| [of.as_slice(), &path[path.len() - 1..]].concat();
    let moved = found.iter().map(|path| (here(path), from_root(of, path)));
    // A macro is passed on by its own name.
    moved.filter(|(here, from)| here != from).collect()
}

/// The module in which the thing of this path is defined.
fn home<'a, T>(path: &[String], modules: &'a BTreeMap<Module, T>, passed_on: &BTreeMap<Module, Module>) -> &'a Module {
    let known = (0..=path.len()).rev().find_map(|known| {
        let (module, rest) = path.split_at(known);
        let elsewhere = || passed_on.get(module).map(|from| home(&[from, rest].concat(), modules, passed_on));
        modules.get_key_value(module).map(|(module, _)| module).or_else(elsewhere)
    });
    known.expect("the root of the crate is a module")
}

#[test]
fn each_room_of_dqctl_uses_only_those_of_lower_levels() {
    let level = |room: &String| LEVELS_OF_DQCTL.iter().position(|rooms| rooms.contains(&room.as_str()));
    for (of, code) in &modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("ctl/src")) {
        let Some(room) = of.first() else { continue };
        let own = level(room).unwrap_or_else(|| panic!("{room} has a level"));
        for path in named(of, code).iter().filter(|path| path.first() != Some(room)) {
            let used = path.first().and_then(level);
            assert!(used.is_some_and(|used| used < own), "{} uses {}", of.join("::"), path.join("::"));
        }
    }
}

#[test]
fn no_files_of_a_room_use_each_other_in_a_circle() {
    for root in ["queue/src", "src", "ctl/src"] {
        let modules = modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join(root));
        let passed_on = modules.iter().flat_map(|(of, code)| passed_on(of, code)).collect();
        let uses = |of: &Module| -> BTreeSet<&Module> {
            let paths = named(of, &modules[of]);
            let used = paths.iter().map(|path| home(path, &modules, &passed_on));
            // A parent and its children are one thing in several files.
            used.filter(|used| !used.starts_with(of) && !of.starts_with(used)).collect()
        };
        let uses: BTreeMap<&Module, BTreeSet<&Module>> = modules.keys().map(|of| (of, uses(of))).collect();
        assert!(uses.values().map(BTreeSet::len).sum::<usize>() > modules.len(), "the imports of {root} were read");
        for start in modules.keys() {
            let mut ways = BTreeMap::from([(start, vec![start])]);
            let mut open = vec![start];
            while let Some(of) = open.pop() {
                for used in &uses[of] {
                    let way = [ways[of].as_slice(), &[used]].concat();
                    assert!(*used != start, "files of {root} use each other: {way:?}");
                    if ways.insert(used, way).is_none() {
                        open.push(used);
                    }
                }
            }
        }
    }
}

//! The rooms of the source, as ARCHITECTURE.md draws them: each uses only those below it.
//!
//! `cargo test --test rooms` shows it: the imports are read from the source.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

/// A room, and the rooms that its files must not name.
const ROOMS: [(&str, &[&str]); 5] = [
    ("queue/src", &["redis_module", "unsafe {"]),
    ("src/module_api", &["dq_queue", "crate::schedule", "crate::host", "crate::commands"]),
    ("src/schedule", &["crate::host", "crate::commands", "dq_queue::{", "dq_queue::Queue"]),
    ("src/host", &["crate::commands"]),
    ("src/commands", &["unsafe {", "unsafe fn"]),
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

//! Small libraries for LD_PRELOAD, for what only the operating system can do: set the clock, make a fork or a timer
//! fail, or make a disk slow.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The variable that names the libraries that are loaded into a program before its own.
pub const PRELOAD: &str = "LD_PRELOAD";

/// The library with this name, compiled once per run from the source in the folder of this file.
pub fn library(name: &str) -> PathBuf {
    static LIBRARIES: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    let compiled = libraries.get_or_insert_default().entry(name.to_owned());
    compiled.or_insert_with(|| compile(name)).clone()
}

/// The variable with which all servers of a run get a slow disk: how many ms a slow fsync takes.
const SLOW_FSYNC: &str = "DQ_SLOW_FSYNC";

/// The environment of a server: what its test asked for, and the slow disk if the whole run has one.
pub fn preloading(asked: &[(String, String)]) -> Vec<(String, String)> {
    let mut environment = asked.to_vec();
    if std::env::var_os(SLOW_FSYNC).is_some() {
        let slow_disk = library("slow_disk").to_string_lossy().into_owned();
        match environment.iter_mut().find(|(name, _)| name == PRELOAD) {
            Some((_, libraries)) => *libraries = format!("{libraries}:{slow_disk}"),
            None => environment.push((PRELOAD.to_owned(), slow_disk)),
        }
    }
    environment
}

fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/server/support/{name}.c"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.so", std::process::id()));
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "cc compiles {name}.c");
    library
}

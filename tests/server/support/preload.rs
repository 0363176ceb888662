//! Small libraries for LD_PRELOAD, for what only the operating system can do: set the clock, or make a fork or a timer
//! fail.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The library with this name, compiled once per run from the source in the folder of this file.
pub fn library(name: &str) -> PathBuf {
    static LIBRARIES: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);
    let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    let compiled = libraries.get_or_insert_default().entry(name.to_owned());
    compiled.or_insert_with(|| compile(name)).clone()
}

fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/server/support/{name}.c"));
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.so", std::process::id()));
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "cc compiles {name}.c");
    library
}

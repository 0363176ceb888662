//! Where servers of tests keep their files: in memory if the machine has a memory file system with room, so that no
//! test depends on the speed of a disk. `scripts/find-test-dir.sh` decides. The tests of the clients include this file
//! too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What decides, below the folder of the repository.
const SCRIPT: &str = "scripts/find-test-dir.sh";

/// The directory in which each server of a test makes its own.
pub fn test_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let mut scripts = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|dir| dir.join(SCRIPT));
        let found =
            Command::new(scripts.find(|script| script.is_file()).expect("the script")).output().expect("it runs");
        assert!(found.status.success(), "{SCRIPT}: {}", String::from_utf8_lossy(&found.stderr));
        PathBuf::from(String::from_utf8_lossy(&found.stdout).trim_end())
    })
}

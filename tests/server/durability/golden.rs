//! Files that a server has written with format version 1, and with each release, and the digests to which every later
//! version loads them.
//!
//! `DQ_BLESS=1 cargo test --test server golden` writes those of the current version again, until it is released. Write
//! them on Redis 7.0: a server does not load the RDB file of a newer one. Those of a release are never written again
//! (`queue/tests/model/frozen.rs`).

use crate::support::{every_state, Server};
use std::path::{Path, PathBuf};

const DIGEST: &str = "server.digest";
const RDB: &str = "queue.rdb";
const AOF: &str = "queue.aof";
const DUMP: &str = "queue.dump";

/// The folder that blessing writes.
const CURRENT: &str = "v1";

fn golden(folder: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder).join(name)
}

fn digest(folder: &str) -> String {
    std::fs::read_to_string(golden(folder, DIGEST)).expect("a golden digest").trim().to_owned()
}

/// The folders of all versions and releases. Writes the golden files again first if `DQ_BLESS` is set.
fn folders() -> Vec<String> {
    bless();
    let folders = std::fs::read_dir(golden("", "")).unwrap();
    let mut names: Vec<String> = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Writes the golden files again if `DQ_BLESS` is set. Does so once for all tests of this file.
fn bless() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("DQ_BLESS").is_none() {
            return;
        }
        let server = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
        let mut c = server.client();
        every_state(&mut c, "q");
        c.ask("DQ.PAUSE q FOR 4398046511103").ok();
        c.ask("SAVE").ok();
        c.ask("BGREWRITEAOF");
        c.until_rewritten();
        std::fs::write(golden(CURRENT, DIGEST), c.digest("q") + "\n").unwrap();
        std::fs::write(golden(CURRENT, DUMP), c.ask("DUMP q").bytes()).unwrap();
        std::fs::copy(server.dir().join("dump.rdb"), golden(CURRENT, RDB)).unwrap();
        let files = std::fs::read_dir(server.dir().join("appendonlydir")).unwrap();
        let base = files.map(|file| file.unwrap().path()).find(|path| path.to_string_lossy().ends_with(".base.aof"));
        std::fs::copy(base.expect("a base file"), golden(CURRENT, AOF)).unwrap();
    });
}

#[test]
fn an_rdb_file_of_each_version_loads_to_its_digest() {
    for folder in folders() {
        let mut server = Server::start();
        server.kill9();
        std::fs::copy(golden(&folder, RDB), server.dir().join("dump.rdb")).unwrap();
        server.boot();
        assert_eq!(server.client().digest("q"), digest(&folder), "{folder}");
    }
}

#[test]
fn an_aof_of_each_version_replays_to_its_digest() {
    for folder in folders() {
        let mut server = Server::with_aof(&[]);
        server.kill9();
        // Servers take an AOF of a version before 7.0 as the base file.
        std::fs::remove_dir_all(server.dir().join("appendonlydir")).unwrap();
        std::fs::copy(golden(&folder, AOF), server.dir().join("appendonly.aof")).unwrap();
        server.boot();
        assert_eq!(server.client().digest("q"), digest(&folder), "{folder}");
    }
}

#[test]
fn a_dump_of_each_version_restores_to_its_digest() {
    for folder in folders() {
        let server = Server::start();
        let mut c = server.client();
        let dump = std::fs::read(golden(&folder, DUMP)).unwrap();
        c.cmd(&[&b"RESTORE"[..], b"q", b"0", &dump]).ok();
        assert_eq!(c.digest("q"), digest(&folder), "{folder}");
    }
}

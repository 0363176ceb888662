//! Two versions of the module whose formats differ: an older one reads what a newer one writes as long as nothing new
//! is used, and refuses as a whole what it cannot read. The newer one is built with the feature `next-format`. The
//! checker has rolling upgrades under load (`checker`, `Cast::UpgradedPair`).

use super::raw_writes::GOES_ON;
use crate::support::{eventually, every_command, every_state, expect_line, known_of_every_command, Client, Server};
use std::path::PathBuf;

/// What the older module says about bytes of the newer one.
const REFUSAL: &str = "the bytes need format version 2, and this version of the module reads up to version 1";

/// An AOF without the bytes of an RDB file, whose refusal is another matter.
const EFFECTS: [&str; 6] = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no"];

fn follow(replica: &Server, master: &Server) {
    let mut r = replica.client();
    r.ask(format!("REPLICAOF 127.0.0.1 {}", master.port())).ok();
    eventually("the link is up", || r.info("replication", "master_link_status") == "up");
}

#[track_caller]
fn expect_equal(c: &mut Client, r: &mut Client) {
    eventually("the replica equals its master", || c.ask("DEBUG DIGEST") == r.ask("DEBUG DIGEST"));
}

/// Uses something that only the newer module knows, in a queue that has been used before.
fn use_something_new(c: &mut Client, key: &str) {
    every_state(c, key);
    c.ask(format!("DQ.ALTER {key} COLOUR 7")).ok();
    assert_eq!(c.ask(format!("DQ.INFO {key}")).fields().int("colour"), 7);
}

/// The files of a server, with their bytes.
fn files(server: &Server, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(server.dir().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let kept = |path: &PathBuf| path.extension().is_some_and(|end| end == "rdb" || end == "aof" || end == "manifest");
    let mut files: Vec<_> = entries.filter(kept).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn every_command_reaches_a_replica_of_the_other_version() {
    for older_is_master in [true, false] {
        let (mut master, mut replica) = (Server::start(), Server::of_the_next_format(&[]));
        if !older_is_master {
            std::mem::swap(&mut master, &mut replica);
        }
        // Some of it is in the file of the full synchronisation.
        let mut c = master.client();
        every_state(&mut c, "before");
        follow(&replica, &master);
        let known = every_command(&mut c);
        let mut r = replica.client();
        expect_equal(&mut c, &mut r);
        assert_eq!(known_of_every_command(&mut r), known);
    }
}

#[test]
fn an_older_module_refuses_a_dump_that_uses_something_new() {
    let (newer, older) = (Server::of_the_next_format(&[]), Server::start());
    let (mut c, mut o) = (newer.client(), older.client());
    every_state(&mut c, "q");
    let restore = |o: &mut Client, dump: &[u8]| o.cmd(&[b"RESTORE".as_slice(), b"q", b"0", dump, b"REPLACE"]);
    restore(&mut o, c.ask("DUMP q").bytes()).ok();
    let digest = o.digest("q");
    assert_eq!(digest, c.digest("q"));
    c.ask("DQ.ALTER q COLOUR 7").ok();
    assert_eq!(restore(&mut o, c.ask("DUMP q").bytes()).error(), "ERR Bad data format");
    expect_line(&older, REFUSAL);
    assert_eq!(o.digest("q"), digest, "the older queue is still there");
}

#[test]
fn an_older_module_does_not_start_with_files_that_use_something_new() {
    for (args, folder) in [(&[][..], ""), (&EFFECTS, "appendonlydir")] {
        let mut server = Server::of_the_next_format(args);
        let mut c = server.client();
        use_something_new(&mut c, "q");
        c.ask("SAVE").ok();
        let digest = c.digest("q");
        server.kill9();
        let before = files(&server, folder);
        assert!(!before.is_empty());
        server.change_module();
        server.boot_in_vain();
        expect_line(&server, REFUSAL);
        assert!(files(&server, folder) == before, "its files are as they were");
        server.change_module();
        server.boot();
        assert_eq!(server.client().digest("q"), digest);
    }
}

#[test]
fn an_older_replica_does_not_start_to_follow_a_master_that_uses_something_new() {
    let (master, mut replica) = (Server::of_the_next_format(&[]), Server::start());
    let mut c = master.client();
    use_something_new(&mut c, "q");
    replica.client().ask(format!("REPLICAOF 127.0.0.1 {}", master.port())).ok();
    replica.until_it_ends();
    expect_line(&replica, REFUSAL);
    c.push("q x");
    replica.change_module();
    replica.boot();
    follow(&replica, &master);
    expect_equal(&mut c, &mut replica.client());
}

#[test]
fn an_older_replica_refuses_an_effect_that_uses_something_new() {
    let (master, mut replica) = (Server::of_the_next_format(&[]), Server::with(&GOES_ON));
    let mut c = master.client();
    follow(&replica, &master);
    let digest = {
        let mut r = replica.client();
        every_state(&mut c, "other");
        every_state(&mut c, "q");
        expect_equal(&mut c, &mut r);
        r.digest("q")
    };
    c.ask("DQ.ALTER q COLOUR 7").ok();
    expect_line(&replica, REFUSAL);
    c.push("other x");
    let mut r = replica.client();
    eventually("other queues go on", || r.digest("other") == c.digest("other"));
    assert_eq!(r.digest("q"), digest, "nothing of the effect was applied");
    // A newer module gets the queue whole.
    replica.kill9();
    replica.change_module();
    replica.boot();
    follow(&replica, &master);
    expect_equal(&mut c, &mut replica.client());
}

#[test]
fn an_older_replica_stops_at_something_new_if_errors_must_stop_it() {
    let (master, mut replica) = (Server::of_the_next_format(&[]), Server::start());
    let mut c = master.client();
    follow(&replica, &master);
    use_something_new(&mut c, "q");
    replica.until_it_ends();
    expect_line(&replica, REFUSAL);
}

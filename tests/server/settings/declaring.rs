//! Declaring a queue: every process can state at its start which queue it needs.

use crate::support::{effects_of, in_both_protocols, Reply, Server};

const EXISTS: &str = "QUEUEEXISTS queue exists with other settings: DQ.ALTER changes them";

#[test]
fn a_queue_that_is_as_declared_is_confirmed_and_untouched() {
    in_both_protocols(|c| {
        c.create("q LEASE 5000 BACKOFF 10 20 JITTER 30 DEADTTL 7 MAXPAYLOAD 9");
        c.push("q x");
        let (digest, changes, about) = (c.digest("q"), c.changes(), c.about_but_time("q"));
        let offset = c.info("replication", "master_repl_offset");
        c.ask("DQ.CREATE q MAXPAYLOAD 9 DEADTTL 7 BACKOFF 10 20 JITTER 30 LEASE 5000 RETRIES 16").ok();
        for others in [
            "",
            "LEASE 5000",
            "LEASE 5000 BACKOFF 10 20 DEADTTL 7 MAXPAYLOAD 9",
            "LEASE 5000 BACKOFF 10 20 JITTER 30 DEADTTL 8 MAXPAYLOAD 9",
            "LEASE 5000 BACKOFF 10 20 JITTER 30 DEADTTL 7 MAXPAYLOAD 9 MAXLEN 1",
        ] {
            assert_eq!(c.ask(format!("DQ.CREATE q {others}")).error(), EXISTS, "{others}");
        }
        assert_eq!((c.digest("q"), c.changes(), c.about_but_time("q")), (digest, changes, about));
        assert_eq!(c.info("replication", "master_repl_offset"), offset);
    });
}

#[test]
fn a_declaration_compares_with_the_defaults_of_now() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q");
    c.ask("DQ.CREATE q").ok();
    c.configure("dq.default-lease", 5_000);
    assert_eq!(c.ask("DQ.CREATE q").error(), EXISTS);
    c.ask("DQ.CREATE q LEASE 30000").ok();
}

#[test]
fn a_confirmed_queue_disturbs_no_watcher_and_writes_nothing() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.create("q LEASE 5000");
    c.pause("q");
    watcher.ask("WATCH q").ok();
    c.ask("DQ.CREATE q LEASE 5000").ok();
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!(c.about("q").int("paused"), 1, "a pause is no setting that is declared");
    let effects = effects_of(|c| {
        for _ in 0..3 {
            c.create("q LEASE 5000");
            c.multi(&["DQ.CREATE q LEASE 5000"])[0].ok();
            c.script("DQ.CREATE q LEASE 5000").ok();
        }
    });
    assert_eq!(effects.len(), 1);
}

#[test]
fn a_change_may_make_its_queue() {
    in_both_protocols(|c| {
        assert_eq!(c.ask("DQ.ALTER q LEASE 7000").error(), "ERR no such key");
        assert_eq!(c.ask("DQ.ALTER q LEASE 7000 mkqueue RETRIES 3"), Reply::Simple("OK".into()));
        let settings = |c: &mut crate::support::Client| {
            let about = c.about("q");
            ["lease", "retries", "maxlen", "deadlen"].map(|field| about.int(field))
        };
        assert_eq!(settings(c), [7_000, 3, 0, -1], "the defaults for the rest");
        c.push("q x");
        c.ask("DQ.ALTER q MKQUEUE LEASE 8000").ok();
        assert_eq!(settings(c), [8_000, 3, 0, -1], "only what is named changes");
        let (digest, changes) = (c.digest("q"), c.changes());
        c.ask("DQ.ALTER q MKQUEUE LEASE 8000").ok();
        c.ask("DQ.ALTER q MKQUEUE").ok();
        assert_eq!((c.digest("q"), c.changes(), c.len("q")), (digest, changes, 1));
        for words in ["MKQUEUE MKQUEUE", "MKQUEUE LEASE 0", "MKQUEUE BOGUS", "MKQUEUE BACKOFF 5 LEASE 5"] {
            assert!(c.ask(format!("DQ.ALTER new {words}")).error().starts_with("ERR "), "{words}");
        }
        assert_eq!(c.ask("EXISTS new"), Reply::Int(0), "a refused change makes none");
        c.ask("SET text x").ok();
        let wrong = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(c.ask("DQ.ALTER text MKQUEUE").error(), wrong);
    });
}

#[test]
fn without_memory_a_change_makes_no_queue_but_changes_one() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q");
    c.configure("maxmemory", 1);
    assert!(c.ask("DQ.ALTER new MKQUEUE LEASE 5").error().starts_with("OOM "));
    assert!(c.script("DQ.ALTER new MKQUEUE").error().contains("OOM "));
    assert_eq!(c.ask("EXISTS new"), Reply::Int(0));
    c.ask("DQ.ALTER q MKQUEUE LEASE 5").ok();
    assert_eq!(c.about("q").int("lease"), 5);
    c.configure("maxmemory", 0);
    c.ask("DQ.ALTER new MKQUEUE LEASE 5").ok();
}

#[test]
fn a_queue_made_by_a_change_is_the_same_everywhere() {
    let mut master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &["--dq.default-retries", "1", "--dq.default-deadttl", "5"]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.alter("q MKQUEUE LEASE 5000");
    c.multi(&["DQ.ALTER r LEASE 5", "DQ.ALTER r MKQUEUE BACKOFF 1 2 JITTER 3"]);
    c.script("DQ.ALTER s MKQUEUE MAXPAYLOAD 3").ok();
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    let digests = ["q", "r", "s"].map(|key| c.digest(key));
    assert_eq!(["q", "r", "s"].map(|key| r.digest(key)), digests);
    assert_eq!(r.about("q").int("retries"), 16);
    master.restart_from_aof();
    let mut c = master.client();
    assert_eq!(["q", "r", "s"].map(|key| c.digest(key)), digests);
}

#[test]
fn a_queue_that_exists_is_confirmed_without_memory() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q LEASE 5000");
    c.ask("CONFIG SET maxmemory 1").ok();
    c.ask("DQ.CREATE q LEASE 5000").ok();
    assert!(c.ask("DQ.CREATE other").error().starts_with("OOM "));
}

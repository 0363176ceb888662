//! Missing keys: a missing queue answers as an empty one does, and reading does not create it.

use crate::support::{eventually, in_both_protocols, Client, Reply, Server};

/// What every command except a push replies if there is no queue.
fn expect_answers_of_nothing(c: &mut Client, key: &str) {
    let (null, null_array) = (c.null(), c.null_array());
    let (two_nulls, nothing) = (Reply::Array(vec![null.clone(), null.clone()]), Reply::Array(vec![]));
    let last_page = Reply::Array(vec![Reply::bulk("0"), nothing.clone()]);
    let no_ack = Reply::Array(vec![Reply::Int(0), null_array.clone()]);
    let no_key = Reply::Error("ERR no such key".into());
    for (line, expected) in [
        ("DQ.POP {q}", &null_array),
        ("DQ.POP {q} COUNT 5 LEASE 10", &null_array),
        ("DQ.POP {q} NOACK", &null_array),
        ("DQ.POP {q} BLOCK 1", &null_array),
        ("DQ.ACK {q} m", &Reply::Int(0)),
        ("DQ.ACK {q} m m#1 1-1 1-1#1", &Reply::Int(0)),
        ("DQ.NACK {q} m", &null),
        ("DQ.NACK {q} m#1 DELAY 5 ERROR e DEAD", &null),
        ("DQ.EXTEND {q} m", &null),
        ("DQ.EXTEND {q} m#1 LEASE 5", &null),
        ("DQ.MEXTEND {q} 2 m m#1 LEASE 5", &two_nulls),
        ("DQ.LEN {q}", &Reply::Int(0)),
        ("DQ.LEN {q} delayed", &Reply::Int(0)),
        ("DQ.LEN {q} ready", &Reply::Int(0)),
        ("DQ.LEN {q} inflight", &Reply::Int(0)),
        ("DQ.LEN {q} dead", &Reply::Int(0)),
        ("DQ.GET {q} m", &null_array),
        ("DQ.INFO {q}", &null_array),
        ("DQ.STATS {q}", &null_array),
        ("DQ.MPOP 1 {q}", &null_array),
        ("DQ.ACKPOP {q} 1 m COUNT 5", &no_ack),
        ("DQ.ACKPOP {q} 2 m 1-1 BLOCK 1", &no_ack),
        ("DQ.MPOP 2 {q} {q} NOACK COUNT 5", &null_array),
        ("DQ.MPOP 1 {q} BLOCK 1", &null_array),
        ("DQ.CANCEL {q} m 1-1", &two_nulls),
        ("DQ.RESCHEDULE {q} m DELAY 5", &Reply::Int(0)),
        ("DQ.REDRIVE {q}", &Reply::Int(0)),
        ("DQ.BATCH {q} b CANCEL", &Reply::Int(0)),
        ("DQ.BATCHINFO {q} b", &null_array),
        ("DQ.RELEASE {q} w NOCOUNT", &Reply::Int(0)),
        ("DQ.CONSUMERS {q} 0", &last_page),
        ("DQ.REDRIVE {q} IDS 2 m 1-1 DELAY 5", &Reply::Int(0)),
        ("DQ.PURGE {q}", &Reply::Int(0)),
        ("DQ.PURGE {q} dead ready", &Reply::Int(0)),
        ("DQ.PEEK {q}", &nothing),
        ("DQ.PEEK {q} dead COUNT 5", &nothing),
        ("DQ.SCAN {q} 0", &last_page),
        ("DQ.SCAN {q} 0 STATE dead COUNT 5", &last_page),
        ("DQ.ALTER {q}", &no_key),
        ("DQ.ALTER {q} LEASE 5", &no_key),
        ("DQ.PAUSE {q}", &no_key),
        ("DQ.RESUME {q}", &no_key),
    ] {
        let line = line.replace("{q}", key);
        assert_eq!(&c.ask(&line), expected, "{line}");
    }
}

#[test]
fn a_missing_queue_answers_like_a_missing_message() {
    in_both_protocols(|c| expect_answers_of_nothing(c, "absent"));
}

#[test]
fn asking_creates_nothing_and_changes_nothing() {
    let server = Server::start();
    let mut c = server.client();
    let changes = c.info("persistence", "rdb_changes_since_last_save");
    expect_answers_of_nothing(&mut c, "absent");
    assert_eq!(c.ask("DBSIZE"), Reply::Int(0));
    assert_eq!(c.info("persistence", "rdb_changes_since_last_save"), changes);
}

#[test]
fn asking_disturbs_no_watcher() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("WATCH absent").ok();
    expect_answers_of_nothing(&mut c, "absent");
    assert_eq!(c.multi(&["PING"]), [Reply::Simple("PONG".into())]);
}

#[test]
fn a_deleted_and_an_expired_queue_are_missing() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.ask("DEL q");
        expect_answers_of_nothing(c, "q");
        c.push("q x ID m");
        c.ask("PEXPIRE q 1");
        eventually("it is gone", || c.ask("TTL q") == Reply::Int(-2));
        expect_answers_of_nothing(c, "q");
    });
}

#[test]
fn a_missing_message_of_a_queue_answers_the_same() {
    in_both_protocols(|c| {
        c.push("q x ID other DELAY 600000");
        let (null, null_array) = (c.null(), c.null_array());
        for (line, expected) in [
            ("DQ.POP q", &null_array),
            ("DQ.ACK q m m#1", &Reply::Int(0)),
            ("DQ.NACK q m", &null),
            ("DQ.EXTEND q m", &null),
            ("DQ.GET q m", &null_array),
            ("DQ.CANCEL q m", &Reply::Array(vec![c.null()])),
            ("DQ.RESCHEDULE q m DELAY 5", &Reply::Int(0)),
            ("DQ.REDRIVE q IDS 1 m", &Reply::Int(0)),
            ("DQ.PURGE q ready inflight dead", &Reply::Int(0)),
            ("DQ.PEEK q", &Reply::Array(vec![])),
        ] {
            assert_eq!(&c.ask(line), expected, "{line}");
        }
    });
}

#[test]
fn a_refused_push_creates_no_queue() {
    let server = Server::start();
    let mut c = server.client();
    for line in
        ["q", "q x DELAY", "q x BOGUS", "q x DELAY -1", "q x REPLACE", "q x ID 100000000000-1", "q x DELAY 1 AT 1"]
    {
        assert!(matches!(c.ask(format!("DQ.PUSH {line}")), Reply::Error(_)), "{line}");
        assert_eq!(c.ask("EXISTS q"), Reply::Int(0), "{line}");
    }
    for line in [
        "MPUSH q 2 x",
        "MPUSH q 2 x y IDS a 100000000000-1",
        "CREATE q LEASE 0",
        "CREATE q BOGUS",
        "CREATE q BACKOFF 2 1",
    ] {
        assert!(matches!(c.ask(format!("DQ.{line}")), Reply::Error(_)), "{line}");
        assert_eq!(c.ask("EXISTS q"), Reply::Int(0), "{line}");
    }
    c.configure("maxmemory", 1);
    assert!(c.ask("DQ.PUSH q x").error().starts_with("OOM "));
    assert_eq!(c.ask("EXISTS q"), Reply::Int(0));
}

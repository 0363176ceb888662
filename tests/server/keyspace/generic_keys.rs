//! Generic commands: a queue works with DEL, EXPIRE, RENAME, COPY, DUMP, WATCH and the like as any key does.

use crate::support::{eventually, every_state, in_both_protocols, touches, Client, Protocol, Reply, Server};

#[test]
fn its_type_has_a_name() {
    in_both_protocols(|c| {
        c.push("q x");
        assert_eq!(c.ask("TYPE q"), Reply::Simple("DQ--queue".into()));
        let found = c.ask("SCAN 0 TYPE DQ--queue COUNT 100");
        assert_eq!(found.items()[1], Reply::Array(vec![Reply::bulk("q")]));
    });
}

#[test]
fn an_empty_queue_stays_as_an_empty_stream_does() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-lease", 77);
    c.push("q x ID m");
    c.pop_one("q NOACK");
    assert_eq!(c.ask("EXISTS q"), Reply::Int(1));
    c.configure("dq.default-lease", 88);
    c.push("q x");
    let about = c.about("q");
    assert_eq!((about.int("lease"), about.int("pushed")), (77, 2), "with its settings and totals");
}

#[test]
fn it_can_be_deleted() {
    for line in ["DEL q", "UNLINK q", "FLUSHDB", "FLUSHALL", "FLUSHALL ASYNC", "FLUSHALL SYNC", "SET q text"] {
        let server = Server::start();
        let mut c = server.client();
        every_state(&mut c, "q");
        c.pipeline((0..500).map(|n| format!("DQ.PUSH q {n} DELAY {n}")));
        assert!(!matches!(c.ask(line), Reply::Error(_)), "{line}");
        c.ask("DEL q");
        assert!(c.ask("DQ.INFO q").is_null(), "{line}");
        c.push("q x ID lapsed");
        assert_eq!(c.len("q"), 1, "{line}: a queue made again is new");
        assert_eq!(c.about("q").int("pushed"), 1, "{line}");
    }
}

#[test]
fn it_can_expire() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x DELAY 600000");
    assert_eq!(c.ask("PEXPIRE q 20"), Reply::Int(1));
    eventually("it is gone", || c.ask("DBSIZE") == Reply::Int(0));
    c.push("q x");
    assert_eq!(c.ask("TTL q"), Reply::Int(-1));
    assert_eq!(c.len("q"), 1);
}

#[test]
fn an_expiry_outlives_what_happens_in_the_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x");
    c.ask("EXPIRE q 1000");
    let receipt = c.pop_one("q").receipt().to_owned();
    c.push("q y");
    c.ack(format!("q {receipt}"));
    assert!(c.ask("TTL q").int() > 0);
}

/// Sends the lines, then checks that the queue continues to work under `key`.
fn expect_moved(lines: &[&str], key: &str) {
    let server = Server::start();
    let mut c = server.client();
    let cast = every_state(&mut c, "q");
    c.push("q x ID due DELAY 80");
    c.push("q x ID loan PRIORITY 126");
    c.pop_one("q LEASE 80");
    let digest = c.digest("q");
    for line in lines {
        assert!(!matches!(c.ask(line), Reply::Error(_) | Reply::Int(0)), "{line}");
    }
    assert_eq!(c.digest(key), digest);
    // The timer finds the queue under its new name: nobody touches the messages themselves.
    eventually("what is due moves", || (c.len(&format!("{key} delayed")), c.len(&format!("{key} inflight"))) == (3, 2));
    assert_eq!(c.pop_ids(format!("{key} NOACK")), ["loan"]);
    assert_eq!(c.ask(format!("DQ.ACK {key} due")), Reply::Int(0));
    c.push(format!("{key} x ID due REPLACE PRIORITY 120"));
    assert_eq!(c.pop_ids(format!("{key} NOACK")), ["due"]);
    cast.expect_alive(&mut c, key);
}

#[test]
fn it_can_be_renamed() {
    expect_moved(&["RENAME q other"], "other");
    expect_moved(&["DQ.PUSH other old", "RENAME q other"], "other");
    expect_moved(&["RENAMENX q other"], "other");
}

#[test]
fn it_can_be_moved_to_another_database() {
    expect_moved(&["MOVE q 3", "SELECT 3"], "q");
}

#[test]
fn its_database_can_change_places_with_another() {
    expect_moved(&["SWAPDB 0 1", "SELECT 1"], "q");
    expect_moved(&["SELECT 1", "DQ.PUSH q old", "SWAPDB 1 0"], "q");
}

#[test]
fn a_copy_is_a_queue_of_its_own() {
    expect_moved(&["COPY q other", "DEL q"], "other");
    expect_moved(&["SET other text", "COPY q other REPLACE", "DEL q"], "other");
    let server = Server::start();
    let mut c = server.client();
    let cast = every_state(&mut c, "q");
    let (digest, about) = (c.digest("q"), c.about_but_time("q"));
    assert_eq!(c.ask("COPY q other"), Reply::Int(1));
    assert_eq!((c.digest("other"), c.about_but_time("other")), (digest.clone(), about.clone()), "totals too");
    cast.expect_alive(&mut c, "other");
    assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about), "the original is untouched");
    c.ask("DEL other");
    cast.expect_alive(&mut c, "q");
}

#[test]
fn a_dump_restores_the_same_queue() {
    let server = Server::start();
    let mut c = server.client();
    let cast = every_state(&mut c, "q");
    let (digest, about, portraits) = (c.digest("q"), c.about_but_time("q"), cast.portraits(&mut c, "q"));
    let dump = c.ask("DUMP q");
    let restore = |c: &mut Client, more: &[&[u8]]| {
        let mut args = vec![b"RESTORE".as_slice(), b"q", b"0", dump.bytes()];
        args.extend_from_slice(more);
        c.cmd(&args)
    };
    assert!(restore(&mut c, &[]).error().starts_with("BUSYKEY"));
    c.push("q x");
    restore(&mut c, &[b"REPLACE"]).ok();
    assert_eq!((c.digest("q"), c.about_but_time("q")), (digest.clone(), about), "totals too");
    assert_eq!(cast.portraits(&mut c, "q"), portraits);
    let other = Server::start();
    let mut elsewhere = other.client();
    restore(&mut elsewhere, &[]).ok();
    assert_eq!(elsewhere.digest("q"), digest, "on another server");
    cast.expect_alive(&mut elsewhere, "q");
    cast.expect_alive(&mut c, "q");
}

#[test]
fn the_digest_tells_queues_apart() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    let mut digests = vec![c.digest("q")];
    for line in [
        "DQ.PUSH q x ID n DELAY 600000",
        "DQ.POP q LEASE 600000",
        "DQ.EXTEND q m LEASE 700000",
        "DQ.NACK q m DELAY 600000 ERROR e",
        "DQ.PUSH q y ID m REPLACE PRIORITY 1",
        "DQ.POP q NOACK",
    ] {
        c.ask(line);
        digests.push(c.digest("q"));
    }
    let different: std::collections::HashSet<_> = digests.iter().collect();
    assert_eq!(different.len(), digests.len());
}

#[test]
fn the_digest_does_not_change_as_time_moves_messages() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID due AT 1000000000000");
    c.pop_one("q LEASE 60");
    c.push("q x ID later DELAY 60");
    c.push("q x ID spent RETRIES 0 PRIORITY 1");
    c.pop_one("q LEASE 60");
    c.push("q x ID expired DELAY 30 TTL 30");
    let digest = c.digest("q");
    eventually("time has moved all", || {
        let about = c.about("q");
        (about.int("ready"), about.int("dead")) == (2, 2)
    });
    assert_eq!(c.digest("q"), digest);
}

#[test]
fn its_memory_is_counted() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x");
    let small = c.ask("MEMORY USAGE q").int();
    let payload = "p".repeat(1000);
    c.pipeline((0..1000).map(|_| format!("DQ.PUSH q {payload} DELAY 600000")));
    let large = c.ask("MEMORY USAGE q").int();
    assert!(small > 0 && large >= small + 1_000_000, "{small}, {large}");
    assert!(c.ask("MEMORY USAGE q SAMPLES 0").int() >= small + 1_000_000);
}

#[test]
fn it_answers_to_object_like_any_key() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x");
    assert_eq!(c.ask("OBJECT ENCODING q"), Reply::bulk("raw"));
    assert_eq!(c.ask("OBJECT REFCOUNT q"), Reply::Int(1));
    assert!(c.ask("OBJECT IDLETIME q").int() >= 0);
    assert_eq!(c.ask("TOUCH q"), Reply::Int(1));
    assert_eq!(c.ask("RANDOMKEY"), Reply::bulk("q"));
}

#[test]
fn a_watcher_sees_what_commands_change() {
    let server = Server::start();
    for line in [
        "DQ.PUSH q x ID m",
        "DQ.POP q",
        "DQ.EXTEND q m LEASE 999999",
        "DQ.NACK q m DELAY 0",
        "DQ.PUSH q x ID m REPLACE",
        "DQ.POP q LEASE 99999",
        "DQ.ACK q m",
    ] {
        assert!(touches(&server, |c| assert!(!c.ask(line).is_null())), "{line}");
    }
}

#[test]
fn a_watcher_does_not_see_what_changed_nothing() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxlen", 1);
    c.push("q x ID m DELAY 600000");
    for line in [
        "DQ.POP q",
        "DQ.POP q BLOCK 1",
        "DQ.ACK q m",
        "DQ.NACK q m",
        "DQ.EXTEND q m",
        "DQ.PUSH q x ID m",
        "DQ.PUSH q x",
    ] {
        assert!(!touches(&server, |c| drop(c.ask(line))), "{line}");
    }
}

#[test]
fn a_watcher_does_not_see_what_time_moved() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m RETRIES 0 PRIORITY 1");
    c.pop_one("q LEASE 30");
    c.push("q x ID n DELAY 30");
    let moved = |c: &mut Client| {
        c.until_state("q", "n", "ready");
        c.until_state("q", "m", "dead");
        eventually("the timer has moved them", || c.len("q ready") == 1 && c.len("q dead") == 1);
    };
    assert!(!touches(&server, moved));
}

#[test]
fn a_caching_client_hears_of_commands_and_not_of_time() {
    let server = Server::start();
    let (mut caching, mut c) = (server.client_with(Protocol::Resp3), server.client());
    c.push("q x ID m DELAY 30");
    caching.ask("CLIENT TRACKING ON").ok();
    caching.get("q", "m");
    c.until_state("q", "m", "ready");
    assert!(c.pop("absent").is_empty());
    assert_eq!(caching.ask("PING"), Reply::Simple("PONG".into()), "nothing came before it");
    c.pop_one("q");
    let message = caching.receive();
    assert_eq!(message.items(), [Reply::bulk("invalidate"), Reply::Array(vec![Reply::bulk("q")])]);
}

#[test]
fn its_name_may_be_any_bytes() {
    let mut server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    let names = [b"\0".as_slice(), b"", b" ", b"\r\n", b"\xff\x00\xfe", b"%s%n%d", "очередь".as_bytes(), &[b'k'; 5000]];
    for name in names {
        for delay in [b"0".as_slice(), b"20"] {
            let id = c.cmd(&[b"DQ.PUSH", name, b"x", b"DELAY", delay]);
            let popped = waiting.cmd(&[b"DQ.POP", name, b"BLOCK", b"0", b"LEASE", b"600000"]);
            let message = popped.items()[0].items();
            assert_eq!(message[0], id);
            assert_eq!(c.cmd(&[b"DQ.ACK", name, message[3].bytes()]), Reply::Int(1));
        }
    }
    server.restart_from_rdb();
    let mut c = server.client();
    for name in names {
        assert_eq!(c.cmd(&[b"DQ.LEN", name]), Reply::Int(0));
        assert_eq!(c.cmd(&[b"EXISTS", name]), Reply::Int(1));
    }
}

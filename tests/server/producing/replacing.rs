//! REPLACE: a push replaces the message that has the same id.

use crate::support::{in_both_protocols, Client, Server};

/// Replaces `m` and checks that the new message keeps nothing of the old one.
fn replace_and_expect_news(c: &mut Client) {
    let pushed = c.about("q").int("pushed");
    assert_eq!(c.push("q new ID m PRIORITY 1 REPLACE"), "m");
    let message = c.get("q", "m");
    assert_eq!(message.text("state"), "ready");
    assert_eq!(message.text("payload"), "new");
    assert_eq!((message.int("attempt"), message.int("priority")), (0, 1));
    for gone in ["error", "reason", "died", "deadline", "receipt"] {
        assert!(!message.has(gone), "{gone} belonged to the old one");
    }
    let about = c.about("q");
    assert_eq!(about.int("pushed"), pushed + 1, "a replacement is a push");
    assert_eq!(about.int("duplicates"), 0);
    assert_eq!(c.len("q ready"), 1);
    assert_eq!(["delayed", "inflight", "dead"].map(|state| c.len(&format!("q {state}"))), [0, 0, 0]);
    assert_eq!(c.pop_one("q").attempt, 1);
}

#[test]
fn a_delayed_message_is_replaced() {
    in_both_protocols(|c| {
        c.push("q old ID m DELAY 600000");
        replace_and_expect_news(c);
    });
}

#[test]
fn a_ready_message_is_replaced() {
    in_both_protocols(|c| {
        c.push("q old ID m");
        replace_and_expect_news(c);
    });
}

#[test]
fn replacing_a_message_in_flight_makes_its_receipt_stale() {
    in_both_protocols(|c| {
        c.push("q old ID m");
        let old = c.pop_one("q").receipt().to_owned();
        replace_and_expect_news(c);
        assert_eq!(c.ack(format!("q {old}")), 0);
        assert_eq!(c.ask(format!("DQ.NACK q {old}")), c.null());
        assert_eq!(c.ask(format!("DQ.EXTEND q {old}")), c.null());
        assert_eq!(c.state("q", "m"), "inflight", "the new delivery is untouched");
    });
}

#[test]
fn a_message_replaced_after_its_lease_refuses_late_acks() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q old ID m");
    let old = c.pop_one("q LEASE 1").receipt().to_owned();
    c.until_state("q", "m", "ready");
    c.push("q new ID m REPLACE");
    assert_eq!(c.ack(format!("q {old}")), 0);
    assert_eq!(c.ack("q m"), 0, "the new one was never delivered");
    assert_eq!(c.pop_one("q").payload, b"new");
}

#[test]
fn a_dead_message_is_replaced() {
    in_both_protocols(|c| {
        c.push("q old ID m");
        c.pop_one("q");
        assert_eq!(c.nack("q m DEAD ERROR no"), "dead");
        replace_and_expect_news(c);
    });
}

#[test]
fn replacing_what_is_not_there_is_a_push() {
    let server = Server::start();
    let mut c = server.client();
    assert_eq!(c.push("q x ID m REPLACE"), "m");
    assert_eq!(c.pop_one("q").payload, b"x");
}

#[test]
fn the_replacement_takes_a_new_place_in_the_order() {
    let server = Server::start();
    let mut c = server.client();
    for id in ["a", "b", "c"] {
        c.push(format!("q x ID {id} AT 1000000001000"));
    }
    c.push("q x ID a AT 1000000001000 REPLACE");
    assert_eq!(c.pop_ids("q COUNT 3"), ["b", "c", "a"]);
}

#[test]
fn replacing_again_and_again_delivers_the_last_once() {
    let server = Server::start();
    let mut c = server.client();
    for n in 1..=100 {
        c.push(format!("q {n} ID m DELAY 600000 REPLACE"));
    }
    assert_eq!(c.len("q"), 1);
    c.push("q last ID m DELAY 20 REPLACE");
    c.until_state("q", "m", "ready");
    assert_eq!(c.pop_one("q").payload, b"last");
    assert!(c.pop("q").is_empty());
    assert_eq!(c.about("q").int("pushed"), 101);
}

#[test]
fn a_replaced_message_frees_its_payload() {
    let server = Server::start();
    let mut c = server.client();
    c.push(format!("q {} ID m", "x".repeat(1000)));
    c.push("q short ID m REPLACE");
    assert_eq!(c.about("q").int("payload-bytes"), 5);
}

#[test]
fn a_full_queue_replaces_what_counts_already() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxlen", 3);
    c.push("q x ID flying PRIORITY 9");
    c.pop_one("q");
    c.push("q x ID delayed DELAY 600000");
    c.push("q x ID ready");
    for id in ["flying", "delayed", "ready"] {
        assert_eq!(c.push(format!("q new ID {id} REPLACE")), id);
    }
    assert_eq!(c.len("q"), 3);
}

#[test]
fn a_full_queue_refuses_to_replace_a_dead_message() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-maxlen", 1);
    c.push("q old ID m");
    c.pop_one("q");
    c.nack("q m DEAD");
    c.push("q x ID other");
    let digest = c.digest("q");
    let reply = c.ask("DQ.PUSH q new ID m REPLACE");
    assert_eq!(reply.error(), "QUEUEFULL queue holds 1 message (MAXLEN)");
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.get("q", "m").text("payload"), "old");
    assert_eq!(c.state("q", "m"), "dead");
}

/// The due time of a message that was just pushed with these options.
fn due_of(c: &mut Client, options: &str) -> i64 {
    c.push(format!("q x ID m REPLACE {options}"));
    c.get("q", "m").int("due")
}

#[test]
fn replacements_with_maxwait_are_put_off_only_so_long() {
    in_both_protocols(|c| {
        let first = due_of(c, "DELAY 600000 MAXWAIT 900000") - 600_000;
        c.until_after(first + 5);
        assert!(due_of(c, "DELAY 600000 MAXWAIT 900000") > first + 600_000, "it is not bounded yet");
        assert_eq!(due_of(c, "DELAY 899999 MAXWAIT 900000"), first + 900_000);
        assert_eq!(due_of(c, "AT 8000000000000 MAXWAIT 900000"), first + 900_000);
        due_of(c, "DELAY 1000000");
        assert_eq!(due_of(c, "DELAY 600000 MAXWAIT 100"), first + 100, "a plain replacement belongs to the chain");
        assert_eq!(c.push_many("q 2 x y IDS m m REPLACE DELAY 600000 MAXWAIT 7").len(), 2);
        assert_eq!(c.get("q", "m").int("due"), first + 7);
        c.until_state("q", "m", "ready");
        assert_eq!(c.pop_one("q").payload, b"y");
        let second = c.expect_ms_from_now(300_000, |c| due_of(c, "DELAY 600000 MAXWAIT 300000"));
        assert_eq!(due_of(c, "DELAY 600000 MAXWAIT 300000"), second, "a delivery ends the chain, a push begins one");
    });
}

#[test]
fn a_chain_of_replacements_survives_a_restart_and_a_failover() {
    let mut master = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    let first = due_of(&mut c, "DELAY 600000 MAXWAIT 900000") - 600_000;
    c.until_after(first);
    due_of(&mut c, "DELAY 600000");
    let expect = |c: &mut Client, wait: i64, how: &str| {
        assert_eq!(due_of(c, &format!("DELAY 900000 MAXWAIT {wait}")), first + wait, "{how}");
    };
    c.ask("DEBUG RELOAD").ok();
    expect(&mut c, 1, "RDB");
    c.ask("DEBUG LOADAOF").ok();
    expect(&mut c, 2, "AOF");
    c.ask("BGREWRITEAOF");
    c.until_rewritten();
    c.ask("DEBUG LOADAOF").ok();
    expect(&mut c, 3, "a rewritten AOF");
    assert_eq!(c.ask("COPY q copy").int(), 1);
    let dump = c.ask("DUMP copy");
    c.cmd(&[b"RESTORE".as_slice(), b"q", b"0", dump.bytes(), b"REPLACE"]).ok();
    expect(&mut c, 4, "COPY and DUMP");
    assert_eq!(c.ask("WAIT 1 20000").int(), 1);
    assert_eq!(c.digest("q"), r.digest("q"));
    drop(c);
    master.kill9();
    r.ask("REPLICAOF NO ONE").ok();
    expect(&mut r, 5, "a failover");
}

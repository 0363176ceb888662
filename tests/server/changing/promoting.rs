//! DQ.PROMOTE: makes delayed messages due at once.

use crate::support::{effects_of, in_both_protocols, Reply, Server};

#[test]
fn promoted_messages_are_delivered_by_priority_and_in_push_order() {
    in_both_protocols(|c| {
        c.push("q x ID now");
        c.push("q x ID late DELAY 900000");
        c.push("q x ID soon DELAY 600000");
        c.push("q x ID high DELAY 700000 PRIORITY 1");
        let before = c.now();
        assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(3));
        let after = c.now();
        for id in ["late", "soon", "high"] {
            assert!((before..=after).contains(&c.get("q", id).int("due")), "{id}");
        }
        assert_eq!(c.pop_ids("q COUNT 9"), ["high", "now", "late", "soon"]);
        assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(0));
        assert_eq!(c.ask("DQ.PROMOTE absent"), Reply::Int(0));
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn with_a_count_the_next_ones_are_promoted() {
    in_both_protocols(|c| {
        c.push("q x ID last DELAY 900000 PRIORITY 9");
        c.push("q x ID second DELAY 700000");
        c.push("q x ID first DELAY 600000");
        let delayed = c.peek_ids("q delayed COUNT 9");
        assert_eq!(delayed, ["first", "second", "last"]);
        assert_eq!(c.ask("DQ.PROMOTE q COUNT 2"), Reply::Int(2));
        assert_eq!(c.counts("q"), [1, 2, 0, 0]);
        assert_eq!(c.pop_ids("q COUNT 9"), ["second", "first"], "among themselves push order decides");
        assert_eq!(c.ask("DQ.PROMOTE q COUNT 5"), Reply::Int(1));
        assert_eq!(c.pop_ids("q"), ["last"]);
    });
}

#[test]
fn with_a_time_those_due_until_then_are_promoted() {
    in_both_protocols(|c| {
        c.push("q x ID now");
        for (id, at) in [("b", 8_000_000_000_000_u64), ("c", 8_000_000_000_001), ("a", 7_000_000_000_000)] {
            c.push(format!("q x ID {id} AT {at}"));
        }
        assert_eq!(c.ask("DQ.PROMOTE q UNTIL 100000000000"), Reply::Int(0));
        assert_eq!(c.ask("DQ.PROMOTE q UNTIL 6999999999999"), Reply::Int(0));
        assert_eq!(c.ask("DQ.PROMOTE q COUNT 1 until 8000000000000"), Reply::Int(1));
        assert_eq!(c.peek_ids("q delayed COUNT 9"), ["b", "c"]);
        assert_eq!(c.multi(&["DQ.PROMOTE q UNTIL 8000000000000"]), [Reply::Int(1)]);
        assert_eq!(c.peek_ids("q delayed COUNT 9"), ["c"]);
        assert_eq!(c.script("DQ.PROMOTE q UNTIL 8796093022207"), Reply::Int(1));
        assert_eq!(c.counts("q"), [0, 4, 0, 0]);
    });
}

#[test]
fn the_time_to_live_of_a_promoted_message_starts_again() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m TTL 300 DELAY 700000");
    let before = c.now();
    assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(1));
    let after = c.now();
    c.until_state("q", "m", "dead");
    let died = c.get("q", "m").int("died");
    assert!((before + 300..=after + 300).contains(&died), "{before} + 300 <= {died} <= {after} + 300");
}

#[test]
fn a_message_in_backoff_is_promoted_with_its_attempts() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    let first = c.pop_one("q");
    assert_eq!(c.nack("q m DELAY 600000 ERROR boom"), "delayed");
    assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(1));
    let message = c.get("q", "m");
    assert_eq!((message.int("attempt"), message.text("error").as_str()), (1, "boom"));
    let second = c.pop_one("q");
    assert_eq!(second.attempt, 2);
    assert_eq!(c.ack(format!("q {}", first.receipt())), 0);
    assert_eq!(c.ack(format!("q {}", second.receipt())), 1);
}

#[test]
fn what_promotes_nothing_is_seen_by_nobody() {
    let server = Server::start();
    let (mut c, mut watcher) = (server.client(), server.client());
    c.push("q x");
    let (digest, changes, offset) = (c.digest("q"), c.changes(), c.info("replication", "master_repl_offset"));
    watcher.ask("WATCH q").ok();
    assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(0));
    assert_eq!(c.ask("DQ.PROMOTE q COUNT 7"), Reply::Int(0));
    assert_eq!(watcher.multi(&["PING"]), [Reply::Simple("PONG".into())]);
    assert_eq!((c.digest("q"), c.changes()), (digest, changes));
    assert_eq!(c.info("replication", "master_repl_offset"), offset);
}

#[test]
fn a_promotion_is_one_effect_and_replays_as_it_was() {
    let effects = effects_of(|c| {
        c.push_many("q 3 x y z DELAY 600000");
        assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(3));
        assert_eq!(c.ask("DQ.PROMOTE q"), Reply::Int(0));
    });
    assert_eq!(effects.len(), 2, "of the pushes and of the promotion");

    let mut master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    for n in 0..300 {
        c.push(format!("q x ID m{n} DELAY {} PRIORITY {}", 600_000 + n * 7_919 % 1_000, n % 3));
    }
    assert_eq!(c.ask("DQ.PROMOTE q COUNT 100"), Reply::Int(100));
    let replies = c.multi(&["DQ.PROMOTE q COUNT 50", "DQ.LEN q ready"]);
    assert_eq!(replies, [Reply::Int(50), Reply::Int(150)]);
    assert_eq!(c.script("DQ.PROMOTE q COUNT 50"), Reply::Int(50));
    let (digest, order) = (c.digest("q"), c.peek_ids("q COUNT 300"));
    assert_eq!((order.len(), c.counts("q")), (200, [100, 200, 0, 0]));
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!((r.digest("q"), r.peek_ids("q COUNT 300")), (digest.clone(), order.clone()));
    master.restart_from_aof();
    let mut c = master.client();
    assert_eq!((c.digest("q"), c.peek_ids("q COUNT 300")), (digest, order));
}

//! DQ.RESCHEDULE: gives a waiting message another due time or priority.

use crate::support::{effects_of, in_both_protocols, Reply, Server};

#[test]
fn a_message_gets_the_time_that_is_said() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.expect_ms_from_now(700_000, |c| {
            assert_eq!(c.ask("DQ.RESCHEDULE q m DELAY 700000"), Reply::Int(1));
            c.get("q", "m").int("due")
        });
        assert_eq!(c.state("q", "m"), "delayed");
        assert_eq!(c.ask("DQ.RESCHEDULE q m at 8000000000000"), Reply::Int(1));
        assert_eq!(c.get("q", "m").int("due"), 8_000_000_000_000);
        assert!(c.pop("q").is_empty());
    });
}

#[test]
fn without_delay_it_is_ready_now() {
    let server = Server::start();
    let mut c = server.client();
    for when in ["DELAY 0", "AT 100000000000", "AT 1000000001000"] {
        c.push("q x ID m DELAY 600000");
        assert_eq!(c.reschedule(format!("q m {when}")), 1);
        assert_eq!(c.state("q", "m"), "ready", "{when}");
        assert_eq!(c.pop_ids("q NOACK"), ["m"], "{when}");
    }
}

#[test]
fn it_is_delivered_at_its_new_time_and_never_before() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    for (first, second) in [(600_000, 60), (20, 120)] {
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.multi(&[&format!("DQ.PUSH q x ID m REPLACE DELAY {first}"), &format!("DQ.RESCHEDULE q m DELAY {second}")]);
        let due = c.get("q", "m").int("due");
        assert_eq!(waiting.served().id, "m");
        c.expect_delivered_at("q", "m", due);
    }
}

#[test]
fn all_else_of_it_stays() {
    in_both_protocols(|c| {
        c.push("q hello ID m PRIORITY -3 RETRIES 7 LEASE 5000 TTL 600000");
        c.pop_one("q");
        assert_eq!(c.nack("q m DELAY 500000 ERROR boom"), "delayed");
        let before = c.get("q", "m");
        assert_eq!(c.reschedule("q m DELAY 700000"), 1);
        let after = c.get("q", "m");
        assert_eq!(after.clone().without(&["due"]), before.without(&["due"]));
        assert_eq!((after.int("attempt"), after.text("error")), (1, "boom".to_owned()));
        c.reschedule("q m DELAY 0");
        assert_eq!(c.pop_one("q").attempt, 2, "attempts stay");
    });
}

#[test]
fn only_what_waits_is_moved() {
    in_both_protocols(|c| {
        c.bury("q", &["dead"]);
        c.push("q x ID flying");
        let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
        let (digest, changes) = (c.digest("q"), c.changes());
        for id in ["dead", "flying", "nobody", "1-1", "\"\""] {
            assert_eq!(c.ask(format!("DQ.RESCHEDULE q {id} DELAY 5")), Reply::Int(0), "{id}");
        }
        assert_eq!((c.digest("q"), c.changes()), (digest, changes));
        assert_eq!(c.ack(format!("q {receipt}")), 1, "the delivery is untouched");
    });
}

#[test]
fn a_late_ack_of_a_rescheduled_message_changes_nothing() {
    in_both_protocols(|c| {
        for when in ["DELAY 0", "DELAY 600000"] {
            c.push("q x ID m REPLACE");
            let receipt = c.pop_one("q LEASE 1").receipt().to_owned();
            c.until_state("q", "m", "ready");
            assert_eq!(c.reschedule(format!("q m {when}")), 1);
            assert_eq!(c.ack(format!("q {receipt} m")), 0, "{when}");
            assert_ne!(c.state("q", "m"), "absent");
        }
    });
}

#[test]
fn its_new_time_is_its_place_in_the_order() {
    let server = Server::start();
    let mut c = server.client();
    for (id, at) in [("a", 1_000_000_001_000i64), ("b", 1_000_000_002_000), ("c", 1_000_000_003_000)] {
        c.push(format!("q x ID {id} AT {at}"));
    }
    c.push("q x ID high AT 1000000009000 PRIORITY 1");
    assert_eq!(c.reschedule("q c AT 1000000000500"), 1);
    assert_eq!(c.reschedule("q a AT 1000000002000"), 1);
    assert_eq!(c.pop_ids("q COUNT 5"), ["high", "c", "a", "b"], "priority, due time, push order");
}

#[test]
fn its_ttl_restarts_at_the_new_due_time() {
    let server = Server::start();
    let mut c = server.client();
    // With its first due time it would have died long before the second.
    let replies = c.multi(&["DQ.PUSH q x ID m TTL 300", "DQ.RESCHEDULE q m DELAY 400"]);
    assert_eq!(replies[1], Reply::Int(1));
    c.until_state("q", "m", "dead");
    let message = c.get("q", "m");
    assert_eq!(message.int("died"), message.int("due") + 300);
    assert_eq!((message.int("ttl"), message.text("reason")), (300, "expired".to_owned()));
}

#[test]
fn made_ready_now_its_time_to_live_starts_now() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m TTL 300 DELAY 600000");
    let before = c.now();
    c.reschedule("q m DELAY 0");
    let after = c.now();
    c.until_state("q", "m", "dead");
    let died = c.get("q", "m").int("died");
    assert!((before + 300..=after + 300).contains(&died), "{before} + 300 <= {died} <= {after} + 300");
}

#[test]
fn rescheduled_to_the_past_its_ttl_starts_now() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m TTL 600000 DELAY 700000");
    assert_eq!(c.reschedule("q m AT 1000000001000"), 1);
    assert_eq!(c.state("q", "m"), "ready");
    c.push("q x ID n TTL 300 DELAY 700000");
    let before = c.now();
    c.reschedule("q n AT 1000000001000");
    let after = c.now();
    c.until_state("q", "n", "dead");
    let died = c.get("q", "n").int("died");
    assert!((before + 300..=after + 300).contains(&died), "{before} + 300 <= {died} <= {after} + 300");
}

#[test]
fn ready_messages_are_rescheduled_and_dead_ones_are_not() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID lapsed");
    let replies = c.pipeline([
        "DQ.POP q LEASE 5",
        "DQ.PUSH q x ID expired TTL 5",
        "DEBUG SLEEP 0.05",
        "DQ.RESCHEDULE q expired DELAY 600000",
        "DQ.RESCHEDULE q lapsed DELAY 600000",
    ]);
    assert_eq!(replies[3..], [Reply::Int(0), Reply::Int(1)]);
    assert_eq!((c.state("q", "expired"), c.state("q", "lapsed")), ("dead".to_owned(), "delayed".to_owned()));
}

#[test]
fn moved_again_and_again_it_is_delivered_once() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    for n in 0..200 {
        assert_eq!(c.reschedule(format!("q m DELAY {}", 600_000 - n)), 1);
    }
    assert_eq!(c.counts("q"), [1, 0, 0, 0]);
    c.reschedule("q m DELAY 20");
    c.until_state("q", "m", "ready");
    assert_eq!(c.pop_ids("q COUNT 5"), ["m"]);
    assert!(c.pop("q").is_empty());
    assert_eq!(c.about("q").int("pushed"), 1);
}

#[test]
fn a_missing_queue_moves_nothing() {
    in_both_protocols(|c| {
        assert_eq!(c.ask("DQ.RESCHEDULE absent m DELAY 5"), Reply::Int(0));
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn it_replays_as_it_was() {
    let effects = effects_of(|c| {
        c.push("q x ID m");
        assert_eq!([c.reschedule("q m DELAY 600000"), c.reschedule("q nobody DELAY 1")], [1, 0]);
    });
    assert_eq!(effects.len(), 2);
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    c.push("q x ID m TTL 600000");
    c.pop_one("q LEASE 1");
    c.until_state("q", "m", "ready");
    c.reschedule("q m DELAY 600000");
    let (digest, message) = (c.digest("q"), c.get("q", "m"));
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!((c.digest("q"), c.get("q", "m")), (digest, message));
}

#[test]
fn it_works_without_memory_and_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.configure("maxmemory", 1);
        assert_eq!(c.reschedule("q m DELAY 600000"), 1);
        c.configure("maxmemory", 0);
        assert_eq!(c.multi(&["DQ.RESCHEDULE q m DELAY 0", "DQ.RESCHEDULE q n DELAY 0"]), [1, 0].map(Reply::Int));
        assert_eq!(c.script("DQ.RESCHEDULE q m AT 8000000000000"), Reply::Int(1));
        assert_eq!(c.get("q", "m").int("due"), 8_000_000_000_000);
    });
}

#[test]
fn another_priority_alone_changes_the_place_and_nothing_else() {
    in_both_protocols(|c| {
        c.push("q x ID low RETRIES 3");
        c.push("q x ID high PRIORITY 1");
        c.push("q x ID late DELAY 600000");
        let before = ["low", "late"].map(|id| c.get("q", id));
        for id in ["low", "late"] {
            assert_eq!(c.ask(format!("DQ.RESCHEDULE q {id} PRIORITY 7")), Reply::Int(1));
        }
        for (id, before) in ["low", "late"].into_iter().zip(before) {
            let now = c.get("q", id);
            assert_eq!(now.int("priority"), 7, "{id}");
            assert_eq!(now.without(&["priority"]), before.without(&["priority"]), "{id}");
        }
        assert_eq!(c.counts("q"), [1, 2, 0, 0]);
        assert_eq!(c.pop_ids("q COUNT 9"), ["low", "high"]);
    });
}

#[test]
fn another_priority_alone_leaves_the_time_to_live() {
    let server = Server::start();
    let mut c = server.client();
    let replies = c.multi(&["DQ.PUSH q x ID m TTL 1000", "DQ.GET q m"]);
    let due = replies[1].fields().int("due");
    assert_eq!(c.reschedule("q m PRIORITY 5"), 1);
    // Again as late as possible, so that a TTL that restarted would end later.
    c.until_after(due + 100);
    let _ = c.ask("DQ.RESCHEDULE q m PRIORITY 6");
    c.until_state("q", "m", "dead");
    assert_eq!(c.get("q", "m").int("died"), due + 1_000);
}

#[test]
fn another_priority_and_another_time_go_together() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        c.expect_ms_from_now(600_000, |c| {
            assert_eq!(c.ask("DQ.RESCHEDULE q m PRIORITY -128 DELAY 600000"), Reply::Int(1));
            c.get("q", "m").int("due")
        });
        assert_eq!(c.get("q", "m").int("priority"), -128);
        assert_eq!(c.ask("DQ.RESCHEDULE q m at 8000000000000 priority 127"), Reply::Int(1));
        let message = c.get("q", "m");
        assert_eq!((message.int("due"), message.int("priority")), (8_000_000_000_000, 127));
        assert_eq!(c.ask("DQ.RESCHEDULE absent m PRIORITY 1"), Reply::Int(0));
    });
}

#[test]
fn another_priority_makes_the_receipt_stale() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    let receipt = c.pop_one("q LEASE 1").receipt().to_owned();
    c.until_state("q", "m", "ready");
    assert_eq!(c.reschedule("q m PRIORITY 0"), 1);
    assert_eq!(c.ack(format!("q {receipt}")), 0);
    assert_eq!(c.pop_one("q").attempt, 2);
}

#[test]
fn another_priority_is_the_same_everywhere() {
    let mut master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.push_many("q 4 1 2 3 4 IDS a b c d TTL 600000");
    c.reschedule("q a PRIORITY -5");
    c.multi(&["DQ.RESCHEDULE q b PRIORITY 5 DELAY 600000", "DQ.RESCHEDULE q c PRIORITY 127"]);
    c.script("DQ.RESCHEDULE q d PRIORITY 9");
    let (digest, order) = (c.digest("q"), c.peek_ids("q COUNT 9"));
    assert_eq!(order, ["c", "d", "a"]);
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!((r.digest("q"), r.peek_ids("q COUNT 9")), (digest.clone(), order.clone()));
    master.restart_from_aof();
    let mut c = master.client();
    assert_eq!((c.digest("q"), c.peek_ids("q COUNT 9")), (digest, order));
}

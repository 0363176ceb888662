//! DQ.POP: a message is delivered when it is due and never before, in a defined order, to one consumer at a time.

use crate::support::{eventually, in_both_protocols, Random, Reply, Server};

#[test]
fn a_message_is_its_id_payload_attempt_and_receipt() {
    in_both_protocols(|c| {
        let id = c.push("q hello");
        let reply = c.ask("DQ.POP q");
        let [message] = reply.items() else { panic!("an array of one message, not {reply:?}") };
        let [got_id, payload, attempt, receipt] = message.items() else { panic!("four parts, not {message:?}") };
        assert_eq!(got_id, &Reply::bulk(&id));
        assert_eq!(payload, &Reply::bulk("hello"));
        assert_eq!(attempt, &Reply::Int(1));
        assert!(matches!(receipt, Reply::Bulk(_)));
        let number = receipt.text().strip_prefix(&format!("{id}#")).expect("the id, a hash and a number").to_owned();
        assert!(!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()), "{number}");
    });
}

#[test]
fn an_empty_queue_answers_null() {
    in_both_protocols(|c| {
        c.push("q x");
        c.pop_one("q NOACK");
        assert_eq!(c.ask("DQ.POP q"), c.null_array());
        assert_eq!(c.ask("DQ.POP q COUNT 10"), c.null_array());
        assert_eq!(c.ask("DQ.POP q NOACK"), c.null_array());
    });
}

#[test]
fn what_is_not_due_is_not_delivered() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x DELAY 600000 PRIORITY 127");
    assert!(c.pop("q COUNT 10").is_empty());
    c.push("q x ID now PRIORITY -128");
    assert_eq!(c.pop_ids("q COUNT 10"), ["now"]);
}

#[test]
fn a_message_is_delivered_when_due_and_never_before() {
    let server = Server::start();
    let mut c = server.client();
    for n in 0..20 {
        let id = c.push(format!("q x ID m{n} DELAY {}", 1 + 3 * n));
        let due = c.get("q", &id).int("due");
        eventually("it is delivered", || c.pop("q LEASE 600000").len() == 1);
        c.expect_delivered_at("q", &id, due);
    }
}

#[test]
fn no_state_is_told_before_its_time() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m DELAY 100");
    let due = c.get("q", "m").int("due");
    // A message that reads as ready was read at or after its due time, and one that reads as delayed was read before
    // it.
    eventually("it is ready", || {
        let before = c.now();
        let state = c.state("q", "m");
        let after = c.now();
        assert!(state != "ready" || after >= due);
        assert!(state != "delayed" || before < due);
        state == "ready"
    });
}

#[test]
fn a_pop_is_exact_however_late_the_timer_is() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.timer-budget", 100);
    let due = c.now() + 1_000;
    let at = |n| format!("DQ.PUSH q x ID m{n} AT {}", due - i64::from(n % 7));
    c.pipeline((0..5_000).map(at));
    c.until_after(due);
    let ids = c.pop_ids("q COUNT 5000");
    let mut expected: Vec<i32> = (0..5_000).collect();
    expected.sort_by_key(|n| (-(n % 7), *n));
    assert_eq!(ids, expected.iter().map(|n| format!("m{n}")).collect::<Vec<_>>());
}

#[test]
fn the_order_is_priority_then_due_time_then_push() {
    let server = Server::start();
    let mut c = server.client();
    for (id, options) in [
        ("low", "PRIORITY -5 AT 1000000001000"),
        ("second", "AT 1000000002000"),
        ("third", "AT 1000000002000"),
        ("first", "AT 1000000001500"),
        ("high", "PRIORITY 1 AT 1000000003000"),
        ("highest", "PRIORITY 127 AT 1000000004000"),
        ("lowest", "PRIORITY -128 AT 1000000000500"),
    ] {
        c.push(format!("q x ID {id} {options}"));
    }
    let order = ["highest", "high", "first", "second", "third", "low", "lowest"];
    assert_eq!(c.pop_ids("q COUNT 10"), order);
}

#[test]
fn the_order_holds_for_any_mix_of_delays_and_priorities() {
    let server = Server::start();
    let mut c = server.client();
    let mut random = Random::seeded(17);
    let first_due = c.now() + 500;
    let mut expected = Vec::new();
    let mut lines = Vec::new();
    for n in 0..2_000 {
        let priority = random.below(9) as i64 - 4;
        let due = first_due + random.below(50) as i64;
        expected.push((-priority, due, n));
        lines.push(format!("DQ.PUSH q x ID m{n} AT {due} PRIORITY {priority}"));
    }
    c.pipeline(lines);
    c.until_after(first_due + 50);
    expected.sort_unstable();
    let mut got = Vec::new();
    while got.len() < expected.len() {
        got.extend(c.pop_ids(format!("q COUNT {}", 1 + random.below(70))));
    }
    assert_eq!(got, expected.iter().map(|(_, _, n)| format!("m{n}")).collect::<Vec<_>>());
}

#[test]
fn count_is_the_most_that_come() {
    let server = Server::start();
    let mut c = server.client();
    for id in ["a", "b", "c", "d"] {
        c.push(format!("q x ID {id}"));
    }
    assert_eq!(c.pop_ids("q"), ["a"], "one, where nothing is said");
    assert_eq!(c.pop_ids("q COUNT 2"), ["b", "c"]);
    assert_eq!(c.pop_ids("q COUNT 2147483647"), ["d"]);
}

#[test]
fn a_message_in_flight_is_nobody_elses() {
    let server = Server::start();
    let (mut one, mut other) = (server.client(), server.client());
    one.push("q x ID m");
    one.pop_one("q");
    assert!(other.pop("q COUNT 10").is_empty());
    assert!(one.pop("q COUNT 10").is_empty());
    assert_eq!(one.state("q", "m"), "inflight");
}

#[test]
fn noack_delivers_at_most_once() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let reply = c.ask("DQ.POP q NOACK");
        let message = reply.items()[0].items();
        assert_eq!(message[..3], [Reply::bulk("m"), Reply::bulk("x"), Reply::Int(1)]);
        assert_eq!(message[3], c.null(), "no receipt");
        assert_eq!(c.state("q", "m"), "absent");
        assert_eq!(c.ack("q m"), 0);
        let about = c.about("q");
        let totals = ["pushed", "delivered", "acked", "lease-expired"].map(|name| about.int(name));
        assert_eq!(totals, [1, 1, 0, 0]);
        assert_eq!(c.ask("EXISTS q"), Reply::Int(1), "an empty queue stays");
    });
}

#[test]
fn attempts_count_the_deliveries() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    for attempt in 1..=5 {
        assert_eq!(c.get("q", "m").int("attempt"), attempt - 1);
        assert_eq!(c.pop_one("q").attempt, attempt);
        assert_eq!(c.get("q", "m").int("attempt"), attempt);
        assert_eq!(c.nack("q m DELAY 0"), "ready");
    }
    assert_eq!(c.pop_one("q NOACK").attempt, 6, "without an ack too");
}

#[test]
fn no_receipt_is_given_twice() {
    let mut server = Server::start();
    let mut c = server.client();
    c.push("q x ID m RETRIES -1");
    let mut receipts = std::collections::HashSet::new();
    for n in 0..200 {
        assert!(receipts.insert(c.pop_one("q").receipt().to_owned()));
        c.nack("q m DELAY 0");
        if n == 100 {
            server.restart_from_rdb();
            c = server.client();
        }
    }
    // A new queue of the same name: the old receipts must not be valid for it.
    c.ask("DEL q");
    c.push("q x ID m");
    assert!(receipts.insert(c.pop_one("q").receipt().to_owned()));
}

#[test]
fn an_ack_ends_a_message_for_good() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let receipt = c.pop_one("q").receipt().to_owned();
        assert_eq!(c.ask(format!("DQ.ACK q {receipt}")), Reply::Int(1));
        assert_eq!(c.state("q", "m"), "absent");
        assert_eq!(c.ask(format!("DQ.ACK q {receipt}")), Reply::Int(0));
        assert_eq!(c.about("q").int("acked"), 1);
    });
}

#[test]
fn an_ack_of_many_counts_those_it_removed() {
    let server = Server::start();
    let mut c = server.client();
    for id in ["a", "b", "c", "d"] {
        c.push(format!("q x ID {id}"));
    }
    let popped = c.pop("q COUNT 3");
    let (a, b) = (popped[0].receipt(), popped[1].receipt());
    // `a` by its receipt, twice; `b` both ways; `c` by its id; `d` was not delivered; the rest never existed.
    assert_eq!(c.ack(format!("q {a} {a} {b} b c d nobody nobody#1")), 3);
    assert_eq!((c.len("q"), c.about("q").int("acked")), (1, 3));
    assert_eq!(c.state("q", "d"), "ready");
}

//! Leases: when a lease ends, the message can be delivered again, and receipts tell the deliveries apart.

use crate::support::{eventually, in_both_protocols, Reply, Server};

#[test]
fn a_message_whose_lease_ends_returns_to_its_place() {
    let server = Server::start();
    let mut c = server.client();
    for (id, at) in [("a", 1_000_000_001_000i64), ("b", 1_000_000_002_000), ("c", 1_000_000_003_000)] {
        c.push(format!("q x ID {id} AT {at}"));
    }
    assert_eq!(c.pop_ids("q COUNT 2 LEASE 20"), ["a", "b"]);
    c.until_state("q", "a", "ready");
    c.until_state("q", "b", "ready");
    assert_eq!(c.get("q", "a").int("due"), 1_000_000_001_000, "its due time is unchanged");
    let messages = c.pop("q COUNT 3");
    let seen: Vec<_> = messages.iter().map(|message| (message.id.as_str(), message.attempt)).collect();
    assert_eq!(seen, [("a", 2), ("b", 2), ("c", 1)]);
}

#[test]
fn nobody_gets_it_before_the_lease_ends() {
    let server = Server::start();
    let (mut c, mut other) = (server.client(), server.client());
    c.push("q x ID m RETRIES -1");
    for _ in 0..5 {
        c.pop_one("q LEASE 600000");
        let deadline = c.extend("q m LEASE 40");
        eventually("it is delivered again", || !other.pop("q LEASE 600000").is_empty());
        c.expect_delivered_at("q", "m", deadline);
        assert_eq!(c.nack("q m DELAY 0"), "ready");
    }
}

#[test]
fn the_ended_leases_are_counted() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID back");
    c.push("q x ID dead RETRIES 0");
    c.pop("q COUNT 2 LEASE 1");
    eventually("both are counted", || c.about("q").int("lease-expired") == 2);
    let about = c.about("q");
    assert_eq!(["inflight", "ready", "dead"].map(|name| about.int(name)), [0, 1, 1]);
}

#[test]
fn the_lease_is_from_pop_then_message_then_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-lease", 111_000);
    for (message, pop, expected) in [
        ("", "", 111_000),
        ("LEASE 222000", "", 222_000),
        ("", "LEASE 333000", 333_000),
        ("LEASE 222000", "LEASE 333000", 333_000),
    ] {
        c.expect_ms_from_now(expected, |c| {
            c.push(format!("q x ID m {message} REPLACE"));
            c.pop_one(format!("q {pop}"));
            c.get("q", "m").int("deadline")
        });
    }
}

#[test]
fn a_receipt_is_valid_until_the_next_delivery() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let first = c.pop_one("q LEASE 1").receipt().to_owned();
        c.until_state("q", "m", "ready");
        assert_eq!(c.ask(format!("DQ.ACK q {first}")), Reply::Int(1), "the work is done and must not run twice");
        assert_eq!(c.state("q", "m"), "absent");
        assert!(c.pop("q").is_empty());
    });
}

#[test]
fn a_bare_id_acks_late_too() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    c.pop_one("q LEASE 1");
    c.until_state("q", "m", "ready");
    assert_eq!(c.ack("q m"), 1);
}

#[test]
fn a_late_ack_completes_a_message_that_its_lease_killed() {
    in_both_protocols(|c| {
        for by_receipt in [true, false] {
            c.push("q x ID m RETRIES 0");
            let receipt = c.pop_one("q LEASE 1").receipt().to_owned();
            c.until_state("q", "m", "dead");
            let name = if by_receipt { receipt.as_str() } else { "m" };
            assert_eq!(c.ack(format!("q {name}")), 1);
            assert_eq!(c.state("q", "m"), "absent");
            assert_eq!(c.len("q dead"), 0);
        }
    });
}

#[test]
fn a_stale_receipt_changes_nothing() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let first = c.pop_one("q LEASE 1").receipt().to_owned();
        c.until_state("q", "m", "ready");
        let second = c.pop_one("q LEASE 600000").receipt().to_owned();
        assert_ne!(first, second);
        let (digest, about) = (c.digest("q"), c.about_but_time("q"));
        assert_eq!(c.ask(format!("DQ.ACK q {first}")), Reply::Int(0));
        assert_eq!(c.ask(format!("DQ.NACK q {first} DEAD")), c.null());
        assert_eq!(c.ask(format!("DQ.EXTEND q {first} LEASE 1")), c.null());
        assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
        assert_eq!(c.ack(format!("q {second}")), 1);
    });
}

#[test]
fn a_nacked_delivery_cannot_be_acked_any_more() {
    let server = Server::start();
    let mut c = server.client();
    for (options, state) in [("DELAY 0", "ready"), ("DELAY 600000", "delayed"), ("DEAD", "dead")] {
        c.push("q x ID m REPLACE");
        let receipt = c.pop_one("q").receipt().to_owned();
        assert_eq!(c.nack(format!("q {receipt} {options}")), state);
        assert_eq!(c.ack(format!("q {receipt}")), 0, "{state}");
        assert_eq!(c.ack("q m"), 0, "{state}");
        assert_eq!(c.state("q", "m"), state);
    }
}

#[test]
fn only_messages_in_flight_can_be_acked_nacked_or_extended() {
    in_both_protocols(|c| {
        c.push("q x ID ready");
        c.push("q x ID delayed DELAY 600000");
        for id in ["ready", "delayed", "absent"] {
            assert_eq!(c.ask(format!("DQ.ACK q {id}")), Reply::Int(0), "{id}");
            assert_eq!(c.ask(format!("DQ.NACK q {id}")), c.null(), "{id}");
            assert_eq!(c.ask(format!("DQ.EXTEND q {id}")), c.null(), "{id}");
        }
        assert_eq!(c.about("q").int("nacked"), 0);
    });
}

#[test]
fn an_expired_lease_can_be_neither_nacked_nor_extended() {
    in_both_protocols(|c| {
        for (retries, state) in [(5, "ready"), (0, "dead")] {
            c.push(format!("q x ID m RETRIES {retries} REPLACE"));
            let receipt = c.pop_one("q LEASE 1").receipt().to_owned();
            c.until_state("q", "m", state);
            for name in ["m", &receipt] {
                assert_eq!(c.ask(format!("DQ.NACK q {name}")), c.null());
                assert_eq!(c.ask(format!("DQ.EXTEND q {name}")), c.null());
            }
            assert_eq!(c.state("q", "m"), state);
        }
    });
}

#[test]
fn what_names_no_message_is_not_found_whatever_its_form() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    let (id, number) = receipt.split_once('#').unwrap();
    let number: u64 = number.parse().unwrap();
    let digest = c.digest("q");
    let long = "n".repeat(70_000);
    for name in [
        "\"\"",
        "#",
        "m#",
        &format!("#{number}"),
        "m#x",
        "m#0",
        "m#-1",
        "m#99999999999999999999999",
        &format!("{id}#{}", number + 1),
        &format!("{id}#{}", number - 1),
        &format!("{id}#0{number}"),
        &format!("{id}#+{number}"),
        &format!("{receipt}#1"),
        "0-0",
        "99999999999999999999-99999999999999999999",
        &long,
    ] {
        assert_eq!(c.ack(format!("q {name}")), 0, "{name}");
        assert!(c.ask(format!("DQ.NACK q {name}")).is_null(), "{name}");
        assert!(c.ask(format!("DQ.EXTEND q {name}")).is_null(), "{name}");
        if !name.contains('#') {
            assert!(c.ask(format!("DQ.GET q {name}")).is_null(), "{name}");
        }
    }
    assert_eq!(c.digest("q"), digest);
}

#[test]
fn a_receipt_of_another_queue_is_worth_nothing() {
    let server = Server::start();
    let mut c = server.client();
    for key in ["here", "there"] {
        c.push(format!("{key} x ID m"));
    }
    let here = c.pop_one("here").receipt().to_owned();
    c.pop_one("there");
    assert_eq!(c.ack(format!("there {here}")), 0);
    assert_eq!(c.state("there", "m"), "inflight");
    assert_eq!(c.ack(format!("here {here}")), 1);
}

#[test]
fn extending_starts_the_lease_anew_from_now() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let receipt = c.pop_one("q").receipt().to_owned();
        for lease in [700_000, 90_000, 4_398_046_511_103] {
            let deadline = c.expect_ms_from_now(lease, |c| c.ask(format!("DQ.EXTEND q {receipt} LEASE {lease}")).int());
            let message = c.get("q", "m");
            assert_eq!(message.int("deadline"), deadline);
            assert_eq!(message.text("receipt"), receipt, "the receipt stays");
            assert_eq!(message.int("attempt"), 1);
        }
        assert_eq!(c.ack(format!("q {receipt}")), 1);
    });
}

#[test]
fn extending_without_a_lease_takes_the_messages_else_the_queues() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-lease", 111_000);
    for (options, lease) in [("", 111_000), ("LEASE 222000", 222_000)] {
        c.push(format!("q x ID m {options} REPLACE"));
        c.pop_one("q LEASE 600000");
        c.expect_ms_from_now(lease, |c| c.extend("q m"));
    }
}

#[test]
fn a_lease_may_become_shorter() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    c.pop_one("q LEASE 600000");
    c.extend("q m LEASE 1");
    c.until_state("q", "m", "ready");
    assert_eq!(c.pop_one("q").attempt, 2);
}

#[test]
fn an_extended_lease_does_not_end_at_its_old_deadline() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    let replies = c.multi(&["DQ.POP q LEASE 300", "DQ.EXTEND q m LEASE 600000"]);
    let old_deadline = replies[1].int() - 600_000 + 300;
    c.until_after(old_deadline);
    assert_eq!(c.state("q", "m"), "inflight");
    assert!(c.pop("q").is_empty());
    assert_eq!(c.about("q").int("lease-expired"), 0);
}

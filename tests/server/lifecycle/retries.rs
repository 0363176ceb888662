//! Retries: a failed message returns after a growing backoff and becomes dead when its retries are used up.

use crate::support::{in_both_protocols, Client, Reply, Server};

/// Delivers and nacks `m` until its next delivery is the wanted attempt, then delivers that.
fn deliver_nth(c: &mut Client, attempt: i64) {
    c.push("q x ID m RETRIES -1 REPLACE");
    for _ in 1..attempt {
        c.pop_one("q");
        assert_eq!(c.nack("q m DELAY 0"), "ready");
    }
    assert_eq!(c.pop_one("q").attempt, attempt);
}

#[test]
fn the_backoff_doubles_with_each_nack_up_to_its_maximum() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-backoff-base", 20_000);
    c.configure("dq.default-backoff-max", 150_000);
    for (attempt, wait) in [(1, 20_000), (2, 40_000), (3, 80_000), (4, 150_000), (5, 150_000), (80, 150_000)] {
        deliver_nth(&mut c, attempt);
        c.expect_ms_from_now(wait, |c| {
            assert_eq!(c.nack("q m"), "delayed");
            c.get("q", "m").int("due")
        });
    }
}

#[test]
fn a_queue_without_backoff_retries_at_once() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-backoff-base", 0);
    c.configure("dq.default-backoff-max", 0);
    for attempt in [1, 2, 70] {
        deliver_nth(&mut c, attempt);
        assert_eq!(c.nack("q m"), "ready");
    }
}

#[test]
fn a_nack_may_say_itself_when_it_is_due_again() {
    in_both_protocols(|c| {
        c.push("q x ID m RETRIES -1");
        c.pop_one("q");
        c.expect_ms_from_now(77_000, |c| {
            assert_eq!(c.ask("DQ.NACK q m DELAY 77000"), Reply::bulk("delayed"));
            c.get("q", "m").int("due")
        });
        c.push("q x ID m REPLACE");
        c.pop_one("q");
        assert_eq!(c.ask("DQ.NACK q m DELAY 0"), Reply::bulk("ready"));
        assert_eq!(c.pop_one("q").attempt, 2);
    });
}

#[test]
fn a_nacked_message_returns_when_due_and_never_before() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.push("q x ID m");
    c.pop_one("q");
    c.nack("q m DELAY 60");
    let due = c.get("q", "m").int("due");
    waiting.wait_for_message("q");
    assert_eq!(waiting.served().attempt, 2);
    c.expect_delivered_at("q", "m", due);
}

#[test]
fn an_error_is_kept_with_the_message() {
    in_both_protocols(|c| {
        let text = b"no route \0 to \xff host\r\n".as_slice();
        c.push("q x ID m");
        c.pop_one("q");
        c.cmd(&[b"DQ.NACK".as_slice(), b"q", b"m", b"ERROR", text, b"DELAY", b"600000"]);
        assert_eq!(c.get("q", "m").get("error"), &Reply::bulk(text));
        c.push("q x ID n");
        c.pop_one("q");
        c.nack("q n ERROR DEAD DELAY 0");
        assert_eq!(c.get("q", "n").text("error"), "DEAD", "what follows ERROR is its text");
        assert_eq!(c.state("q", "n"), "ready");
    });
}

#[test]
fn an_error_is_kept_to_its_first_1024_bytes() {
    let server = Server::start();
    let mut c = server.client();
    let long: Vec<u8> = (0..5000_u32).map(|n| (n % 251) as u8).collect();
    for len in [1, 1023, 1024, 1025, 5000] {
        c.push("q x ID m REPLACE");
        c.pop_one("q");
        c.cmd(&[b"DQ.NACK".as_slice(), b"q", b"m", b"ERROR", &long[..len], b"DEAD"]);
        let kept = &long[..len.min(1024)];
        assert_eq!(c.get("q", "m").get("error"), &Reply::bulk(kept), "{len} bytes");
    }
}

#[test]
fn a_rejected_message_is_dead_for_good() {
    in_both_protocols(|c| {
        c.push("q x ID m RETRIES -1");
        let receipt = c.pop_one("q").receipt().to_owned();
        c.expect_ms_from_now(0, |c| {
            assert_eq!(c.nack(format!("q {receipt} DELAY 5000 DEAD ERROR no-such-user")), "dead");
            c.get("q", "m").int("died")
        });
        let message = c.get("q", "m");
        assert_eq!(message.text("state"), "dead");
        assert_eq!(message.text("reason"), "rejected");
        assert_eq!(message.text("error"), "no-such-user");
        assert_eq!(message.int("attempt"), 1);
        assert!(c.pop("q COUNT 10").is_empty());
    });
}

#[test]
fn spent_retries_are_death_by_nack() {
    in_both_protocols(|c| {
        c.push("q x ID m RETRIES 2");
        for attempt in 1..=2 {
            assert_eq!(c.pop_one("q").attempt, attempt);
            assert_eq!(c.nack("q m DELAY 0"), "ready");
        }
        assert_eq!(c.pop_one("q").attempt, 3, "two redeliveries after the first");
        c.expect_ms_from_now(0, |c| {
            assert_eq!(c.nack("q m DELAY 0 ERROR enough"), "dead");
            c.get("q", "m").int("died")
        });
        let message = c.get("q", "m");
        assert_eq!(message.text("reason"), "retries");
        assert_eq!(message.text("error"), "enough");
        assert_eq!(message.int("attempt"), 3);
    });
}

#[test]
fn spent_retries_are_death_by_the_end_of_a_lease() {
    in_both_protocols(|c| {
        c.push("q x ID m RETRIES 1");
        c.pop_one("q LEASE 1");
        c.until_state("q", "m", "ready");
        c.pop_one("q LEASE 600000");
        let deadline = c.extend("q m LEASE 30");
        c.until_state("q", "m", "dead");
        let message = c.get("q", "m");
        assert_eq!(message.text("reason"), "retries");
        assert_eq!(message.int("died"), deadline, "the instant of its death, not of its notice");
        assert_eq!(message.int("attempt"), 2);
        assert!(c.pop("q").is_empty());
    });
}

#[test]
fn no_retries_is_one_delivery() {
    let server = Server::start();
    let mut c = server.client();
    c.configure("dq.default-retries", 0);
    c.push("q x ID m");
    c.pop_one("q");
    assert_eq!(c.nack("q m"), "dead");
}

#[test]
fn retries_without_limit_never_end() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m RETRIES -1");
    for attempt in 1..=300 {
        assert_eq!(c.pop_one("q").attempt, attempt);
        assert_eq!(c.nack("q m DELAY 0"), "ready");
    }
}

#[test]
fn a_rejection_of_the_last_retry_is_a_rejection() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m RETRIES 0");
    c.pop_one("q");
    c.nack("q m DEAD");
    assert_eq!(c.get("q", "m").text("reason"), "rejected", "the first that applies");
}

#[test]
fn a_death_by_an_expired_lease_is_told_from_others() {
    in_both_protocols(|c| {
        for (id, options) in [("held", "RETRIES 1"), ("late", "RETRIES 1 TTL 1"), ("nacked", "RETRIES 0")] {
            c.push(format!("q x ID {id} {options}"));
            c.pop("q LEASE 600000");
            if id == "held" {
                c.nack("q held DELAY 0 ERROR refused");
                c.pop("q LEASE 1");
            }
            if id == "late" {
                c.ask("DQ.EXTEND q late LEASE 1");
            }
            if id == "nacked" {
                c.nack("q nacked");
            }
            c.until_state("q", id, "dead");
        }
        let held = c.get("q", "held");
        assert_eq!((held.text("reason").as_str(), held.text("error").as_str()), ("retries", "refused"));
        assert_eq!(held.int("lease-expired"), 1);
        assert!(!c.get("q", "late").has("lease-expired"), "its TTL has ended");
        assert!(!c.get("q", "nacked").has("lease-expired"));
        c.ask("DQ.REDRIVE q IDS 1 held");
        assert!(!c.get("q", "held").has("lease-expired"));
        c.ask("DEL q");
    });
}

#[test]
fn a_message_is_nacked_once_a_delivery() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    let receipt = c.pop_one("q").receipt().to_owned();
    assert_eq!(c.nack(format!("q {receipt} DELAY 0")), "ready");
    for name in [receipt.as_str(), "m"] {
        assert!(c.ask(format!("DQ.NACK q {name} DELAY 0")).is_null());
    }
    assert_eq!(c.about("q").int("nacked"), 1);
}

#[test]
fn a_nacked_message_keeps_its_priority_and_its_place() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID urgent PRIORITY 5");
    c.push("q x ID a AT 1000000001000");
    c.push("q x ID b AT 1000000001000");
    assert_eq!(c.pop_ids("q COUNT 2"), ["urgent", "a"]);
    c.nack("q a DELAY 0");
    c.nack("q urgent DELAY 0");
    // `a` is due again: behind `b`, which has been due since 1000.
    assert_eq!(c.pop_ids("q COUNT 3"), ["urgent", "b", "a"]);
}

//! Extending several leases at once, and how long a delivery may last at most.

use crate::support::{effects_of, in_both_protocols, Clock, Reply, Server};

#[test]
fn several_leases_are_extended_in_one_step() {
    in_both_protocols(|c| {
        c.ask("DQ.MPUSH q 4 w x y z IDS a b c d");
        let receipts: Vec<String> =
            c.pop("q COUNT 3 LEASE 600000").iter().map(|message| message.receipt().to_owned()).collect();
        let [a, b, c_] = &receipts[..] else { panic!("{receipts:?}") };
        c.ack(format!("q {b}"));
        let line = format!("DQ.MEXTEND q 6 {a} {b} c d nobody # LEASE 700000");
        let reply = c.ask(line);
        let null = c.null();
        let [first, gone, third, ready, nobody, nothing] = reply.items() else { panic!("{reply:?}") };
        assert_eq!([gone, ready, nobody, nothing], [&null; 4]);
        assert_eq!(first, third, "each lease runs from the same instant");
        for id in ["a", "c"] {
            assert_eq!(c.get("q", id).int("deadline"), first.int(), "{id}");
        }
        assert_eq!(c.get("q", "c").text("receipt"), *c_);
    });
}

#[test]
fn each_lease_is_its_own_if_none_is_given() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q LEASE 600000");
    c.push("q x ID a LEASE 700000");
    c.push("q x ID b");
    c.pop("q COUNT 2");
    let reply = c.ask("DQ.MEXTEND q 2 a b");
    let [a, b] = reply.items() else { panic!("{reply:?}") };
    assert_eq!(a.int() - b.int(), 100_000);
}

#[test]
fn several_extensions_are_one_effect() {
    let effects = effects_of(|c| {
        c.ask("DQ.MPUSH q 3 x y z IDS a b c");
        c.pop("q COUNT 3");
        c.ask("DQ.MEXTEND q 4 a b nobody c LEASE 600000");
        c.ask("DQ.MEXTEND q 1 nobody");
    });
    assert_eq!(effects.iter().map(|effect| char::from(effect[1])).collect::<String>(), "pde");
}

#[test]
fn no_lease_is_longer_than_maxlease_allows() {
    in_both_protocols(|c| {
        c.create("q LEASE 600000 MAXLEASE 300000");
        for (message, pop) in [("", ""), ("LEASE 700000", ""), ("", "LEASE 800000")] {
            let deadline = c.expect_ms_from_now(300_000, |c| {
                c.push(format!("q x ID m {message} REPLACE"));
                c.pop_one(format!("q {pop}"));
                c.get("q", "m").int("deadline")
            });
            assert_eq!(c.extend("q m"), deadline, "the answer is the end that applies");
            assert_eq!(c.extend("q m LEASE 4398046511103"), deadline);
            assert_eq!(c.ask("DQ.MEXTEND q 1 m LEASE 900000").items()[0], Reply::Int(deadline));
            assert_eq!(c.get("q", "m").int("deadline"), deadline);
        }
        c.expect_ms_from_now(1_000, |c| c.extend("q m LEASE 1000"));
    });
}

#[test]
fn a_delivery_that_is_extended_for_ever_ends() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let (mut c, mut other) = (server.client(), server.client());
    c.create("q MAXLEASE 600000");
    c.push("q x ID m");
    let receipt = c.pop_one("q LEASE 600000").receipt().to_owned();
    let deadline = c.get("q", "m").int("deadline");
    other.send("DQ.POP q BLOCK 0");
    let (started, mut ahead) = (c.now(), 0);
    while let Reply::Int(end) = c.ask(format!("DQ.EXTEND q {receipt} LEASE 300000")) {
        assert!(end <= deadline, "{end} {deadline}");
        ahead += 150_000;
        clock.set(ahead);
        c.until_after(started + ahead);
    }
    assert!(c.latest_now() >= deadline, "it is not lost before");
    assert_eq!(other.receive().items()[0].items()[2], Reply::Int(2));
    assert_eq!(c.about("q").int("lease-expired"), 1);
}

#[test]
fn a_lowered_maxlease_counts_from_the_next_extension() {
    in_both_protocols(|c| {
        c.create("q RETRIES 0");
        c.push("q x ID m");
        c.push("q x ID n RETRIES 5");
        let began = c.now();
        c.pop("q COUNT 2 LEASE 600000");
        c.until_after(began + 5);
        c.alter("q MAXLEASE 1");
        assert_eq!(c.state("q", "m"), "inflight", "a running lease keeps its end");
        let mut replies = Vec::new();
        let end = c.expect_ms_from_now(0, |c| {
            replies = c.multi(&["DQ.MEXTEND q 2 m n LEASE 500", "DQ.GET q m", "DQ.GET q n"]);
            replies[0].items()[0].int()
        });
        assert_eq!(replies[1].fields().text("state"), "dead");
        assert_eq!(replies[1].fields().int("died"), end);
        assert_eq!(replies[2].fields().text("state"), "ready");
        assert_eq!(c.about("q").int("lease-expired"), 2);
        assert_eq!(c.pop_one("q").attempt, 2);
    });
}

#[test]
fn maxlease_counts_from_the_beginning_after_a_restart() {
    for restart in [Server::restart_from_aof, Server::restart_from_rdb] {
        let mut server = Server::with_aof(&[]);
        let mut c = server.client();
        c.create("q MAXLEASE 600000");
        c.push("q x ID m");
        c.pop_one("q LEASE 1000");
        let end = c.extend("q m LEASE 700000");
        restart(&mut server);
        assert_eq!(server.client().extend("q m LEASE 700000"), end);
    }
}

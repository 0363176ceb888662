//! Consumers with names: who holds what, and what becomes of it when a consumer is gone.

use crate::support::{effects_of, eventually, in_both_protocols, Client, Reply, Server};
use std::collections::BTreeSet;

/// The consumers that a page shows: name, messages in flight, beginning of the oldest delivery.
fn page(c: &mut Client, line: &str) -> (String, Vec<(String, i64, i64)>) {
    let reply = c.ask(format!("DQ.CONSUMERS {line}"));
    let row = |row: &Reply| {
        let [name, inflight, oldest] = row.items() else { panic!("{row:?}") };
        (name.text(), inflight.int(), oldest.int())
    };
    let mut rows: Vec<_> = reply.items()[1].items().iter().map(row).collect();
    rows.sort();
    (reply.items()[0].text(), rows)
}

/// How many messages each consumer holds.
fn held(c: &mut Client, key: &str) -> Vec<(String, i64)> {
    page(c, &format!("{key} 0 COUNT 1000")).1.into_iter().map(|(name, inflight, _)| (name, inflight)).collect()
}

fn owned(rows: &[(&str, i64)]) -> Vec<(String, i64)> {
    rows.iter().map(|(name, inflight)| ((*name).to_owned(), *inflight)).collect()
}

#[test]
fn a_queue_says_who_holds_what() {
    in_both_protocols(|c| {
        c.ask("DQ.MPUSH q 6 1 2 3 4 5 6 IDS a b c d e f");
        let began = c.expect_ms_from_now(0, |c| {
            c.pop("q COUNT 2 AS w1");
            page(c, "q 0").1[0].2
        });
        c.until_after(began + 1);
        c.ask("DQ.MPOP 1 q AS w2");
        c.ask("DQ.ACKPOP q 1 a COUNT 1 as w1");
        c.pop("q");
        c.pop("q NOACK AS w3");
        assert_eq!(held(c, "q"), owned(&[("w1", 2), ("w2", 1)]));
        assert_eq!(page(c, "q 0").1[0].2, began, "b is the oldest delivery of w1");
        for (id, consumer) in [("b", Some("w1")), ("c", Some("w2")), ("d", Some("w1")), ("e", None)] {
            let shown = c.get("q", id);
            assert_eq!(shown.has("consumer").then(|| shown.text("consumer")).as_deref(), consumer, "{id}");
        }
        assert_eq!(c.ask("DQ.PEEK q inflight COUNT 1").items()[0].fields().text("consumer"), "w1");
        assert_eq!(c.ask("DQ.SCAN q 0 COUNT 1").items()[1].items()[0].fields().text("consumer"), "w1");
        c.extend("q b LEASE 700000");
        assert_eq!(page(c, "q 0").1[0].2, began, "an extension does not change the beginning");
        c.ack("q b");
        c.nack("q c DELAY 0");
        c.cancel("q d");
        assert_eq!(held(c, "q"), []);
        assert!(!c.get("q", "c").has("consumer"));
        assert_eq!(page(c, "none 0"), ("0".to_owned(), Vec::new()));
    });
}

#[test]
fn a_listing_of_consumers_in_pages_returns_each_once() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..300).flat_map(|nth| ["DQ.PUSH q x".to_owned(), format!("DQ.POP q AS worker-{nth}")]));
    let (mut cursor, mut names) = ("0".to_owned(), Vec::new());
    loop {
        let (next, rows) = page(&mut c, &format!("q {cursor} COUNT 7"));
        assert!(rows.len() <= 7);
        names.extend(rows.into_iter().map(|(name, ..)| name));
        cursor = next;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!((names.len(), names.iter().collect::<BTreeSet<_>>().len()), (300, 300));
}

#[test]
fn an_ended_lease_is_held_by_nobody_from_its_end_on() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    c.pop_one("q LEASE 30 AS w");
    let deadline = c.get("q", "m").int("deadline");
    c.until_after(deadline);
    let replies = c.multi(&["DQ.CONSUMERS q 0", "DQ.GET q m", "DQ.RELEASE q w"]);
    assert_eq!(replies[0].items()[1], Reply::Array(vec![]));
    assert!(!replies[1].fields().has("consumer"));
    assert_eq!(replies[2], Reply::Int(0));
    assert_eq!(c.pop_one("q").attempt, 2);
    assert_eq!(held(&mut c, "q"), [], "the next delivery has no name");
}

#[test]
fn a_blocked_client_keeps_its_name() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    for line in ["DQ.POP q BLOCK 0 AS w", "DQ.MPOP 2 p q BLOCK 0 AS w", "DQ.ACKPOP q 1 m BLOCK 0 AS w"] {
        waiting.send(line);
        c.until_blocked(1);
        c.push("q x ID m");
        waiting.receive();
        assert_eq!(held(&mut c, "q"), owned(&[("w", 1)]), "{line}");
        c.ack("q m");
    }
}

#[test]
fn a_consumer_that_is_gone_loses_its_messages_at_once() {
    in_both_protocols(|c| {
        c.create("q BACKOFF 600000 600000");
        c.ask("DQ.MPUSH q 3 1 2 3 IDS a b c RETRIES 5");
        c.push("q 4 ID last RETRIES 0");
        let receipts: Vec<String> =
            c.pop("q COUNT 4 LEASE 600000 AS gone").iter().map(|message| message.receipt().to_owned()).collect();
        c.push("q 5 ID other");
        c.pop_one("q LEASE 600000 AS alive");
        assert_eq!(c.ask("DQ.RELEASE q gone COUNT 1"), Reply::Int(1));
        assert_eq!(c.state("q", "a"), "ready", "the oldest delivery comes first");
        assert_eq!(held(c, "q"), owned(&[("alive", 1), ("gone", 3)]));
        assert_eq!(c.ask("DQ.RELEASE q gone"), Reply::Int(3), "those that die are counted");
        assert_eq!(held(c, "q"), owned(&[("alive", 1)]));
        let died = c.get("q", "last");
        assert_eq!((died.text("state"), died.text("reason")), ("dead".to_owned(), "retries".to_owned()));
        assert_eq!(c.ask("DQ.RELEASE q gone"), Reply::Int(0));
        let about = c.about("q");
        assert_eq!(["lease-expired", "nacked", "given-back"].map(|total| about.int(total)), [4, 0, 0]);
        assert_eq!(c.ack(format!("q {}", receipts[0])), 1, "a late ack counts until the next delivery");
        let again = c.pop("q COUNT 5");
        let seen: Vec<_> = again.iter().map(|message| (message.id.as_str(), message.attempt)).collect();
        assert_eq!(seen, [("b", 2), ("c", 2)], "at their old places, without a backoff");
        assert_eq!(c.ack(format!("q {} {}", receipts[1], receipts[3])), 1, "only the dead one was not delivered again");
    });
}

#[test]
fn a_release_without_counting_takes_the_attempts_back() {
    in_both_protocols(|c| {
        c.ask("DQ.MPUSH q 2 1 2 IDS a b RETRIES 0");
        c.push("q 3 ID old TTL 20 RETRIES 0");
        let receipts: Vec<String> =
            c.pop("q COUNT 3 LEASE 600000 AS gone").iter().map(|message| message.receipt().to_owned()).collect();
        let began = c.now();
        c.until_after(began + 25);
        assert_eq!(c.ask("DQ.RELEASE q gone NOCOUNT"), Reply::Int(3));
        assert_eq!(c.get("q", "old").text("reason"), "expired");
        assert_eq!(c.about("q").int("given-back"), 3);
        assert_eq!(c.ack(format!("q {}", receipts.join(" "))), 0, "its receipts are stale");
        let again = c.pop("q COUNT 5");
        let seen: Vec<_> = again.iter().map(|message| (message.id.as_str(), message.attempt)).collect();
        assert_eq!(seen, [("a", 1), ("b", 1)]);
    });
}

#[test]
fn a_release_serves_blocked_clients() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.create("q MAXINFLIGHT 1");
    for nocount in ["", "NOCOUNT"] {
        c.push("q x ID m");
        c.pop_one("q LEASE 600000 AS gone");
        waiting.send("DQ.POP q BLOCK 0");
        c.until_blocked(1);
        assert_eq!(c.ask(format!("DQ.RELEASE q gone {nocount}")), Reply::Int(1));
        assert_eq!(waiting.receive().items()[0].items()[0], Reply::bulk("m"));
        c.ack("q m");
    }
}

#[test]
fn a_run_and_a_delivery_with_a_successor_are_released_too() {
    let server = Server::start();
    let mut c = server.client();
    c.ask("DQ.SCHEDULE q run x EVERY 600000 AT 100000000001 RETRIES 0");
    c.push("q old ID m");
    c.pop("q COUNT 2 LEASE 600000 AS gone");
    c.push("q new ID m REPLACE LATER");
    assert_eq!(held(&mut c, "q"), owned(&[("gone", 2)]));
    assert_eq!(c.get("q", "m").text("consumer"), "gone");
    assert_eq!(c.ask("DQ.RELEASE q gone"), Reply::Int(2));
    assert_eq!(c.get("q", "m").text("payload"), "new");
    eventually("the run has failed", || c.get("q", "run").int("failed-runs") == 1);
}

#[test]
fn names_survive_restarts_copies_and_failovers() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    c.ask("DQ.MPUSH q 4 1 2 3 4 IDS a b c d");
    c.pop("q COUNT 2 LEASE 600000 AS w1");
    c.pop("q COUNT 2 LEASE 600000 AS w2");
    c.push("q 5 ID d REPLACE LATER DELAY 600000");
    let (expected, digest) = (page(&mut c, "q 0"), c.digest("q"));
    c.ask("COPY q copy");
    assert_eq!((page(&mut c, "copy 0"), c.digest("copy")), (expected.clone(), digest.clone()));
    let replica = Server::replica_of(&server, &[]);
    let mut r = replica.client();
    assert_eq!((page(&mut r, "q 0"), r.digest("q")), (expected.clone(), digest.clone()));
    c.ask("DQ.RELEASE q w1 COUNT 1");
    c.ask("DQ.RELEASE q w2 COUNT 1 NOCOUNT");
    let digest = c.digest("q");
    eventually("the replica follows", || replica.client().digest("q") == digest);
    assert_eq!(held(&mut replica.client(), "q"), owned(&[("w1", 1), ("w2", 1)]));
    for restart in [Server::restart_from_aof, Server::restart_from_rdb] {
        restart(&mut server);
        let mut c = server.client();
        assert_eq!(c.digest("q"), digest);
        assert_eq!(held(&mut c, "q"), owned(&[("w1", 1), ("w2", 1)]));
    }
}

#[test]
fn a_release_is_one_effect() {
    let effects = effects_of(|c| {
        c.ask("DQ.MPUSH q 3 x y z IDS a b c");
        c.pop("q COUNT 3 AS w");
        c.ask("DQ.RELEASE q w");
        c.ask("DQ.RELEASE q w");
    });
    assert_eq!(effects.iter().map(|effect| char::from(effect[1])).collect::<String>(), "pdR");
}

#[test]
fn names_take_memory_only_while_they_are_borne() {
    let server = Server::start();
    let mut c = server.client();
    c.pipeline((0..1_000).map(|_| "DQ.PUSH q x".to_owned()));
    let usage = |c: &mut Client| c.ask("MEMORY USAGE q").int();
    c.pipeline((0..1_000).map(|_| "DQ.POP q LEASE 600000".to_owned()));
    let plain = usage(&mut c);
    c.ask("DEL q");
    c.pipeline((0..1_000).map(|_| "DQ.PUSH q x".to_owned()));
    c.pipeline((0..1_000).map(|nth| format!("DQ.POP q LEASE 600000 AS worker-{}", nth % 10)));
    let named = usage(&mut c);
    assert!(named > plain && named < plain + 30_000, "{plain} {named}");
    for nth in 0..10 {
        c.ask(format!("DQ.RELEASE q worker-{nth} NOCOUNT"));
    }
    c.pipeline((0..1_000).map(|_| "DQ.POP q LEASE 600000".to_owned()));
    assert!(usage(&mut c) < plain + 10_000, "{plain} {}", usage(&mut c));
}

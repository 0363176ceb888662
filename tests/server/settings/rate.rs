//! RATE: at most n deliveries begin in any span of the period, for all consumers together and whatever happens to the
//! server.

use crate::support::{eventually, in_both_protocols, Client, Clock, Reply, Server};

/// When the rate limit allows the next delivery; `None` if it allows one now.
fn next_delivery(c: &mut Client, key: &str) -> Option<i64> {
    let about = c.about(key);
    let next = about.get("next-delivery");
    (!next.is_null()).then(|| next.int())
}

fn pushed(c: &mut Client, key: &str, count: usize) {
    let words: Vec<String> = (0..count).map(|nth| format!("x{nth}")).collect();
    c.push_many(format!("{key} {count} {}", words.join(" ")));
}

/// The instants at which the deliveries of these receipts began.
fn begun(receipts: &[String]) -> Vec<i64> {
    let number = |receipt: &String| receipt.rsplit('#').next().unwrap().parse::<i64>().unwrap();
    receipts.iter().map(|receipt| number(receipt) >> 20).collect()
}

fn expect_no_window_above(begun: &[i64], most: usize, period: i64) {
    for first in begun {
        let window = begun.iter().filter(|later| (*first..first + period).contains(later)).count();
        assert!(window <= most, "{window} deliveries within {period} ms: {begun:?}");
    }
}

#[test]
fn a_queue_is_delivered_from_no_faster_than_its_rate() {
    in_both_protocols(|c| {
        c.create("q RATE 3 200");
        pushed(c, "q", 12);
        let mut receipts = Vec::new();
        eventually("all are delivered", || {
            receipts.extend(c.pop("q COUNT 10").iter().map(|message| message.receipt().to_owned()));
            receipts.len() == 12
        });
        expect_no_window_above(&begun(&receipts), 3, 200);
    });
}

#[test]
fn a_pop_delivers_what_the_rate_leaves() {
    in_both_protocols(|c| {
        c.create("q RATE 3 600000");
        pushed(c, "q", 9);
        assert_eq!(next_delivery(c, "q"), None);
        assert_eq!(c.pop("q").len(), 1);
        assert_eq!(c.pop("q COUNT 9").len(), 2);
        let about = c.about("q");
        assert_eq!((about.int("rate"), about.int("rate-period")), (3, 600_000));
        let now = c.now();
        assert!(next_delivery(c, "q").is_some_and(|next| next > now && next <= now + 600_000));
        assert_eq!(c.ask("DQ.POP q"), c.null_array());
        assert_eq!(c.counts("q")[1], 6, "they stay ready");
    });
}

#[test]
fn every_delivery_counts_and_none_is_given_back() {
    in_both_protocols(|c| {
        c.create("q RATE 3 600000 BACKOFF 0 0");
        pushed(c, "q", 5);
        let first = c.pop_one("q LEASE 1");
        eventually("its lease ends", || c.state("q", &first.id) == "ready");
        let again = c.pop_one("q");
        assert_eq!(again.id, first.id);
        c.nack(format!("q {} NOCOUNT", again.receipt()));
        assert_eq!(c.pop("q NOACK").len(), 1);
        assert_eq!(c.ask("DQ.POP q NOACK"), c.null_array());
        assert_eq!(c.about("q").int("delivered"), 3);
    });
}

#[test]
fn a_blocked_client_is_served_as_soon_as_the_rate_allows() {
    let server = Server::start();
    let (mut c, mut one, mut any) = (server.client(), server.client(), server.client());
    c.create("q RATE 1 1000");
    c.push_many("q 3 x y z IDS a b c");
    assert_eq!(c.pop_ids("q"), ["a"]);
    let next = next_delivery(&mut c, "q").expect("the limit is reached");
    one.wait_for_message("q");
    c.until_blocked(1);
    any.wait_for_any(&["other", "q"]);
    assert_eq!(one.served().id, "b");
    c.expect_delivered_at("q", "b", next);
    let (key, message) = any.served_from_any();
    assert_eq!((key.as_str(), message.id.as_str()), ("q", "c"));
    c.expect_delivered_at("q", "c", next + 1_000);
}

#[test]
fn a_pop_of_several_queues_passes_over_one_at_its_limit() {
    in_both_protocols(|c| {
        c.create("limited RATE 1 600000");
        pushed(c, "limited", 2);
        pushed(c, "free", 1);
        assert_eq!(c.pop("limited").len(), 1);
        assert_eq!(c.pop_any("2 limited free").expect("a message").0, "free");
        assert_eq!(c.ask("DQ.MPOP 2 limited free"), c.null_array());
    });
}

#[test]
fn a_rate_holds_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        c.create("q RATE 2 600000");
        pushed(c, "q", 5);
        let null = c.null_array();
        let replies = c.multi(&["DQ.POP q", "DQ.POP q COUNT 5", "DQ.POP q BLOCK 0"]);
        assert_eq!((replies[0].items().len(), replies[1].items().len(), &replies[2]), (1, 1, &null));
        assert!(c.script("DQ.POP q").is_null());
    });
}

#[test]
fn a_longer_period_counts_what_is_known_and_off_forgets() {
    in_both_protocols(|c| {
        c.create("q RATE 2 300000");
        pushed(c, "q", 9);
        assert_eq!(c.pop("q COUNT 9").len(), 2);
        c.alter("q RATE 4 600000");
        assert_eq!(c.pop("q COUNT 9").len(), 2, "two have begun");
        c.alter("q RATE 1 600000");
        assert_eq!(c.ask("DQ.POP q"), c.null_array());
        c.alter("q RATE 0 0");
        assert_eq!(next_delivery(c, "q"), None);
        c.alter("q RATE 1 600000");
        assert_eq!(c.pop("q COUNT 9").len(), 1, "switched off, it forgot");
    });
}

#[test]
fn a_restart_or_a_copy_does_not_burst() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    c.create("q RATE 3 600000");
    pushed(&mut c, "q", 9);
    assert_eq!(c.pop("q COUNT 2").len(), 2);
    let digest = c.digest("q");
    c.ask("COPY q copy").int();
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.pop("copy COUNT 9").len(), 1);
    let dumped = c.ask("DUMP q");
    assert_eq!(c.cmd(&[b"RESTORE", &b"restored"[..], b"0", dumped.bytes()]), Reply::Simple("OK".into()));
    assert_eq!(c.pop("restored COUNT 9").len(), 1);
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.pop("q COUNT 9").len(), 1);
    c.configure("aof-use-rdb-preamble", "no");
    c.until_rewritten();
    let digest = c.digest("q");
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.ask("DQ.POP q"), c.null_array());
}

#[test]
fn a_promoted_replica_goes_on_with_the_rate() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.create("q RATE 3 600000");
    pushed(&mut c, "q", 9);
    assert_eq!(c.pop("q COUNT 2").len(), 2);
    let digest = c.digest("q");
    eventually("the replica follows", || r.digest("q") == digest);
    assert_eq!(next_delivery(&mut r, "q"), None);
    r.ask("REPLICAOF NO ONE").ok();
    assert_eq!(r.pop("q COUNT 9").len(), 1);
    assert!(next_delivery(&mut r, "q").is_some());
}

#[test]
fn one_zero_alone_is_no_rate() {
    in_both_protocols(|c| {
        c.create("q");
        let digest = c.digest("q");
        for words in ["RATE 0 5", "RATE 5 0"] {
            for command in ["CREATE new", "ALTER q"] {
                let error = c.ask(format!("DQ.{command} {words}"));
                assert_eq!(error.error(), "ERR RATE takes two numbers from 1, or 0 0 for no limit");
            }
        }
        for words in ["RATE 1000001 5", "RATE 5 86400001", "RATE -1 5", "RATE x 5", "RATE 5"] {
            assert!(c.ask(format!("DQ.ALTER q {words}")).is_error(), "{words}");
        }
        assert_eq!(c.digest("q"), digest);
        assert_eq!(c.ask("EXISTS new").int(), 0);
        c.alter("q RATE 1000000 86400000");
        assert!(c.ask("CONFIG SET dq.default-rate 5").is_error());
        c.ask("CONFIG SET dq.default-rate 5 dq.default-rate-period 1000").ok();
        c.push("made x");
        assert_eq!(c.about("made").int("rate"), 5);
        c.ask("CONFIG SET dq.default-rate 0 dq.default-rate-period 0").ok();
    });
}

#[test]
fn statistics_show_how_long_the_rate_alone_held_back() {
    in_both_protocols(|c| {
        c.create("q RATE 1 600000");
        pushed(c, "q", 2);
        let limited = |c: &mut Client| c.ask("DQ.STATS q").fields().int("rate-limited-ms");
        assert_eq!(c.pop("q").len(), 1);
        eventually("time passes", || limited(c) > 0);
        c.pause("q");
        let paused = limited(c);
        let now = c.now();
        c.until_after(now + 3);
        assert_eq!(limited(c), paused, "the pause holds it back too");
    });
}

#[test]
fn a_thousand_clients_wait_at_a_limit_without_any_work() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q RATE 1 600000");
    pushed(&mut c, "q", 3);
    assert_eq!(c.pop("q NOACK").len(), 1);
    let mut waiting: Vec<Client> = (0..1000).map(|_| server.client()).collect();
    waiting.iter_mut().for_each(|client| client.wait_for_message("q"));
    c.until_blocked(1000);
    let runs = c.info("dq", "dq_timer_runs");
    pushed(&mut c, "q", 100);
    c.ask("DQ.PROMOTE q");
    c.until_blocked(1000);
    assert_eq!(c.info("dq", "dq_timer_runs"), runs, "nothing runs before the next delivery is allowed");
    c.alter("q RATE 2 600000");
    assert_eq!(waiting[0].served().payload, b"x1", "the first one that waits is served");
    c.until_blocked(999);
    c.alter("q RATE 0 0");
    c.until_blocked(1000 - 102);
    waiting[101].served();
    assert_eq!(c.counts("q")[1], 0);
}

#[test]
fn deliveries_of_a_clock_that_was_ahead_hold_back_one_period() {
    const PERIOD: i64 = 60_000;
    let clock = Clock::new();
    clock.set(3_600_000);
    let mut server = Server::with_clock(&clock, &["--appendonly", "yes", "--appendfsync", "always"]);
    let mut c = server.client();
    c.create(format!("q RATE 2 {PERIOD}"));
    pushed(&mut c, "q", 9);
    assert_eq!(c.pop("q COUNT 9 NOACK").len(), 2);
    server.kill9();
    clock.set(0);
    server.boot();
    let replica = Server::replica_of(&server, &[]);
    let (mut c, mut r) = (server.client(), replica.client());
    assert!(c.pop("q NOACK").is_empty());
    let next = next_delivery(&mut c, "q").expect("the limit is reached");
    assert!(next <= c.now() + PERIOD, "in {} ms", next - c.now());
    eventually("the replica is the same", || r.digest("q") == c.digest("q"));
    assert_eq!(next_delivery(&mut r, "q"), Some(next));
}

#[test]
fn a_restored_queue_from_a_fast_clock_serves_waiting_clients() {
    let clock = Clock::new();
    clock.set(3_600_000);
    let (ahead, server) = (Server::with_clock(&clock, &[]), Server::start());
    let (mut other, mut c, mut waiting) = (ahead.client(), server.client(), server.client());
    other.create("q RATE 1 200");
    pushed(&mut other, "q", 2);
    other.pop_one("q NOACK");
    let dump = other.ask("DUMP q");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.cmd(&[b"RESTORE".as_slice(), b"q", b"0", dump.bytes()]).ok();
    // The message was due an hour from now. It is ready before the rate limit of the other clock would allow it.
    assert_eq!(c.ask("DQ.PROMOTE q").int(), 1);
    assert_eq!(waiting.served().payload, b"x1");
}

#[test]
fn a_client_of_two_limited_queues_is_served_by_the_first_to_open() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    for (key, period) in [("slow", 600_000), ("fast", 1_000)] {
        c.create(format!("{key} RATE 1 {period}"));
        c.push_many(format!("{key} 2 x y IDS a b"));
        assert_eq!(c.pop_ids(format!("{key} NOACK")), ["a"]);
    }
    let next = next_delivery(&mut c, "fast").expect("the limit is reached");
    waiting.wait_for_any(&["slow", "fast"]);
    assert_eq!(waiting.served_from_any().0, "fast");
    c.expect_delivered_at("fast", "b", next);
}

#[test]
fn a_limit_opens_by_itself_wherever_the_queue_has_gone() {
    for moved in [&["DEBUG RELOAD"][..], &["RENAME q other", "RENAME other q"], &["SWAPDB 0 1", "SWAPDB 1 0"]] {
        let server = Server::start();
        let (mut c, mut waiting) = (server.client(), server.client());
        c.create("q RATE 1 1000");
        c.push_many("q 2 x y IDS a b");
        assert_eq!(c.pop_ids("q NOACK"), ["a"]);
        let next = next_delivery(&mut c, "q").expect("the limit is reached");
        waiting.wait_for_message("q");
        c.until_blocked(1);
        moved.iter().for_each(|line| c.ask(line).ok());
        assert_eq!(waiting.served().id, "b", "{moved:?}");
        assert!(c.latest_now() >= next);
    }
}

//! The runs of a schedule: one after the other, whether they are completed or fail.

use crate::support::{eventually, in_both_protocols, Clock, Reply, Server};

/// Declares a schedule whose first run is ready.
const READY: &str = "AT 100000000001";

#[test]
fn after_an_ack_the_message_waits_for_its_next_time() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q s x EVERY 3600000 {READY}"));
        let before = c.now();
        let run = c.pop_one("q");
        assert_eq!((run.id.as_str(), run.attempt), ("s", 1));
        let began = c.get("q", "s").int("last-run");
        assert!((before..=c.now()).contains(&began));
        assert_eq!(c.ack(format!("q {}", run.receipt())), 1);
        assert_eq!(c.ack(format!("q {}", run.receipt())), 0, "the receipt is stale");
        let message = c.get("q", "s");
        assert_eq!((message.text("state").as_str(), message.int("attempt")), ("delayed", 0));
        assert_eq!((message.int("due") % 3_600_000, message.int("runs"), message.int("last-run")), (0, 1, began));
        assert!(message.int("due") > c.now());
        assert_eq!(c.about("q").int("acked"), 1);
    });
}

#[test]
fn runs_are_delivered_again_and_again() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q s x EVERY 20");
        let mut last = 0;
        for run in 0..5 {
            let served = c.ask("DQ.POP q BLOCK 0");
            assert_eq!(served.items().len(), 1);
            let due = c.get("q", "s").int("due");
            assert!(due > last && due % 20 == 0, "{due} after {last}");
            last = due;
            assert_eq!(c.ack("q s"), 1);
            assert_eq!(c.get("q", "s").int("runs"), run + 1);
        }
    });
}

#[test]
fn a_delivery_without_a_lease_ends_the_run() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q s x EVERY 3600000 {READY}"));
        c.push("q y");
        assert_eq!(c.pop_ids("q NOACK COUNT 9").len(), 2);
        assert!(c.pop("q NOACK").is_empty());
        let message = c.get("q", "s");
        assert_eq!((message.int("runs"), message.int("attempt"), message.text("state").as_str()), (1, 0, "delayed"));
        assert_eq!(c.about("q").int("delivered"), 2);
    });
}

#[test]
fn a_series_ends_after_its_times() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q s x EVERY 5 TIMES 2 {READY}"));
        for left in [2, 1] {
            c.ask("DQ.POP q BLOCK 0");
            assert_eq!(c.get("q", "s").int("times-left"), left);
            assert_eq!(c.ack("q s"), 1);
        }
        assert!(c.ask("DQ.GET q s").is_null());
        assert_eq!(c.ask("DQ.SCHEDULE q s x EVERY 3600000"), Reply::bulk("created"));
    });
}

#[test]
fn a_series_ends_after_until() {
    in_both_protocols(|c| {
        let until = c.now() + 3_600_000;
        c.ask(format!("DQ.SCHEDULE q s x EVERY 86400000000 {READY} UNTIL {until}"));
        assert_eq!(c.get("q", "s").int("until"), until);
        c.pop_one("q");
        assert_eq!(c.ack("q s"), 1);
        assert_eq!(c.counts("q"), [0, 0, 0, 0]);
    });
}

#[test]
fn a_rejected_run_leaves_a_dead_copy_and_the_series_goes_on() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q s x EVERY 3600000 {READY}"));
        c.pop_one("q");
        assert_eq!(c.nack("q s DEAD ERROR boom"), "dead");
        let message = c.get("q", "s");
        assert_eq!(
            (message.text("state").as_str(), message.int("runs"), message.int("failed-runs")),
            ("delayed", 1, 1)
        );
        assert!(!message.has("error"));
        let dead = &c.peek("q dead")[0];
        assert_eq!((dead.text("reason").as_str(), dead.text("error").as_str()), ("rejected", "boom"));
        assert_eq!((dead.text("payload").as_str(), dead.int("attempt")), ("x", 1));
        assert!(!dead.has("every") && dead.text("id") != "s");
        let about = c.about("q");
        assert_eq!((about.int("died"), about.int("pushed"), about.int("nacked")), (1, 1, 1));
        assert_eq!(c.redrive("q"), 1);
        assert_eq!(c.pop("q")[0].payload, b"x");
        assert_eq!(c.scan_ids("q", "RECURRING"), ["s"]);
    });
}

#[test]
fn without_dead_messages_no_copy_is_kept() {
    in_both_protocols(|c| {
        c.create("q DEADLEN 0");
        c.ask(format!("DQ.SCHEDULE q s x EVERY 3600000 {READY}"));
        assert_eq!(c.ask("DQ.BURY q s ERROR no"), Reply::bulk("ready"));
        assert_eq!(c.counts("q"), [1, 0, 0, 0]);
        assert_eq!(c.get("q", "s").int("failed-runs"), 1);
    });
}

#[test]
fn a_burial_makes_the_next_run_fail() {
    in_both_protocols(|c| {
        c.ask("DQ.SCHEDULE q s x EVERY 3600000");
        let due = c.get("q", "s").int("due");
        assert_eq!(c.ask("DQ.BURY q s"), Reply::bulk("delayed"));
        assert_eq!(c.get("q", "s").int("due"), due + 3_600_000);
        assert_eq!(c.counts("q"), [1, 0, 0, 1]);
    });
}

#[test]
fn time_alone_makes_a_run_fail_once() {
    in_both_protocols(|c| {
        c.ask(format!("DQ.SCHEDULE q lease x EVERY 3600000 {READY} RETRIES 0"));
        c.pop_one("q LEASE 1");
        c.ask(format!("DQ.SCHEDULE q ttl y EVERY 3600000 {READY} TTL 1"));
        for id in ["lease", "ttl"] {
            eventually("the run has ended", || c.get("q", id).int("failed-runs") == 1);
            assert_eq!(c.state("q", id), "delayed");
        }
        let mut reasons: Vec<String> = c.peek("q dead COUNT 9").iter().map(|dead| dead.text("reason")).collect();
        reasons.sort_unstable();
        assert_eq!(reasons, ["expired", "retries"]);
        assert_eq!(c.about("q").int("died"), 2);
        assert_eq!(c.purge("q dead"), 2);
        assert_eq!(c.scan_ids("q", "RECURRING").len(), 2);
    });
}

#[test]
fn a_replica_follows_runs_and_goes_on_with_them() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.ask("DQ.SCHEDULE q fails x EVERY 10 TTL 1");
    c.ask(format!("DQ.SCHEDULE q s x EVERY 3600000 {READY}"));
    c.ask(format!("DQ.SCHEDULE q other x EVERY 3600000 {READY}"));
    c.pop("q COUNT 2");
    c.ask("DQ.SCHEDULE q s y EVERY 7200000");
    c.ack("q s");
    c.nack("q other DEAD");
    eventually("runs fail", || c.get("q", "fails").int("failed-runs") > 2);
    c.cancel("q fails");
    eventually("the replica is the same", || r.digest("q") == c.digest("q"));
    r.ask("REPLICAOF NO ONE").ok();
    assert_eq!(r.reschedule("q s DELAY 0"), 1);
    assert_eq!(r.pop_one("q").payload, b"y");
    assert_eq!(r.ack("q s"), 1);
    assert_eq!(r.get("q", "s").int("runs"), 2);
    r.ask("DQ.SCHEDULE q late x EVERY 10 TTL 1");
    eventually("a promoted replica ends runs", || r.get("q", "late").int("failed-runs") > 0);
}

#[test]
fn a_schedule_survives_every_way_to_persist() {
    let mut server = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
    let mut c = server.client();
    c.ask(format!("DQ.SCHEDULE q s x EVERY 3600000 TIMES 9 UNTIL 8000000000000 {READY}"));
    c.pop_one("q");
    c.nack("q s DEAD ERROR boom");
    c.ask(format!("DQ.SCHEDULE q running x EVERY 3600000 {READY}"));
    c.pop_one("q LEASE 600000");
    c.ask("DQ.SCHEDULE q running later EVERY 7200000");
    let (digest, shown) = (c.digest("q"), c.get("q", "s"));
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(c.digest("q"), digest);
    c.ask("DEBUG LOADAOF").ok();
    assert_eq!(c.digest("q"), digest);
    c.ask("BGREWRITEAOF");
    c.until_rewritten();
    c.ask("DEBUG LOADAOF").ok();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.ask("COPY q copy").int(), 1);
    assert_eq!(c.digest("copy"), digest);
    let dump = c.ask("DUMP q");
    c.cmd(&[b"RESTORE".as_slice(), b"restored", b"0", dump.bytes()]).ok();
    assert_eq!(c.digest("restored"), digest);
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.get("q", "s"), shown);
    assert_eq!(c.ack("q running"), 1);
    assert_eq!(c.get("q", "running").text("payload"), "later");
}

#[test]
fn times_that_pass_while_the_server_is_down_are_one_run() {
    let clock = Clock::new();
    let mut server = Server::with_clock(&clock, &["--appendonly", "yes"]);
    let mut c = server.client();
    c.ask("DQ.SCHEDULE q s x EVERY 60000");
    let due = c.get("q", "s").int("due");
    server.kill9();
    clock.set(3_600_000);
    server.boot();
    let mut c = server.client();
    assert_eq!(c.get("q", "s").int("due"), due);
    assert_eq!(c.pop_ids("q COUNT 9"), ["s"]);
    assert_eq!(c.ack("q s"), 1);
    assert!(c.pop("q").is_empty());
    assert!(c.get("q", "s").int("due") > c.now() - 60_000);
}

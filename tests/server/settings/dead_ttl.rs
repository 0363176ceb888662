//! DEADTTL: dead messages are dropped after this time, oldest first, and only a master drops them.

use crate::support::{eventually, Client, Clock, Reply, Server};

const HOUR: i64 = 3_600_000;
const HALF_AN_HOUR: i64 = HOUR / 2;

/// Sets a clock and waits until the server uses the new time.
fn set(clock: &Clock, c: &mut Client, ms: i64, before: i64) {
    clock.set(ms);
    eventually("the server has noticed", || {
        c.push("probe x ID probe REPLACE");
        (c.get("probe", "probe").int("due") - before - ms).abs() < HOUR / 2
    });
}

#[test]
fn dead_messages_are_dropped_after_their_time_though_nobody_asks() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADTTL 50 RETRIES 0");
    c.push("q x ID rejected");
    c.push("q x ID spent");
    c.push("q x ID expired TTL 1 DELAY 1");
    c.ask("DQ.BURY q rejected");
    c.pop("q LEASE 1");
    eventually("all three have died and are gone", || {
        c.info("dq", "dq_total_died") == "3" && c.info("dq", "dq_dead") == "0"
    });
    assert_eq!(["rejected", "spent", "expired"].map(|id| c.state("q", id)), ["absent", "absent", "absent"]);
    assert_eq!((c.len("q dead"), c.about("q").int("dead"), c.about("q").int("payload-bytes")), (0, 0, 0));
}

#[test]
fn a_dead_message_is_kept_until_its_time() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADTTL 1000");
    c.bury("q", &["m"]);
    let died = c.get("q", "m").int("died");
    // A message that is gone must not have been dropped early by the server's own clock.
    eventually("it is gone", || c.state("q", "m") == "absent");
    assert!(c.latest_now() >= died + 1_000);
}

#[test]
fn the_oldest_of_the_dead_is_dropped_first() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.create(format!("q DEADTTL {HALF_AN_HOUR}"));
    c.bury("q", &["old"]);
    let started = c.now();
    set(&clock, &mut c, HOUR, started);
    c.bury("q", &["new"]);
    c.until_state("q", "old", "absent");
    assert_eq!(c.state("q", "new"), "dead");
    assert_eq!((c.len("q dead"), c.about("q").int("dead")), (1, 1));
    c.redrive("q");
    set(&clock, &mut c, 3 * HOUR, started);
    assert_eq!(c.pop_ids("q"), ["new"], "what lives again is not dropped");
}

#[test]
fn a_shorter_time_drops_in_the_same_command() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.bury("q", &["old", "older"]);
    let started = c.now();
    set(&clock, &mut c, HOUR, started);
    c.bury("q", &["new"]);
    assert_eq!(c.len("q dead"), 3, "by default they are kept for ever");
    let replies = c.multi(&[&format!("DQ.ALTER q DEADTTL {HALF_AN_HOUR}"), "DQ.LEN q dead"]);
    assert_eq!(replies[1].int(), 1);
    assert_eq!(["old", "older", "new"].map(|id| c.state("q", id)), ["absent", "absent", "dead"]);
}

#[test]
fn a_replica_drops_nothing_until_it_is_promoted() {
    let (master, clock) = (Server::start(), Clock::new());
    clock.set(HOUR);
    let port = master.port().to_string();
    let replica = Server::with_clock(&clock, &["--replicaof", "127.0.0.1", &port]);
    let (mut c, mut r) = (master.client(), replica.client());
    eventually("the replica's link is up", || r.info("replication", "master_link_status") == "up");
    c.create(format!("q DEADTTL {HALF_AN_HOUR}"));
    c.bury("q", &["m"]);
    // The replica's clock is ahead, and its timer runs.
    c.push("q x ID later DELAY 30");
    eventually("the timer of the replica has run", || r.info("dq", "dq_ready") == "1");
    assert_eq!((r.state("q", "m"), r.len("q dead")), ("dead".to_owned(), 1));
    eventually("they are the same", || r.digest("q") == c.digest("q"));
    r.ask("REPLICAOF NO ONE").ok();
    eventually("the master that it is now drops it", || r.info("dq", "dq_dead") == "0");
    assert_eq!(r.state("q", "m"), "absent");
    assert_eq!(c.state("q", "m"), "dead");
}

#[test]
fn expired_dead_are_gone_on_replicas_and_after_a_replay() {
    let mut master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.create("q DEADTTL 30");
    c.bury("q", &["a", "b"]);
    c.push("q x ID kept DELAY 600000");
    c.bury("other", &["kept"]);
    eventually("the master drops them", || c.info("dq", "dq_dead") == "1");
    eventually("the replica follows", || r.digest("q") == c.digest("q") && r.info("dq", "dq_dead") == "1");
    let digest = c.digest("q");
    master.restart_from_aof();
    let mut c = master.client();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(["a", "b", "kept"].map(|id| c.state("q", id)), ["absent", "absent", "delayed"]);
}

#[test]
fn dead_messages_that_expired_while_down_are_dropped() {
    for aof in [false, true] {
        let clock = Clock::new();
        let mut server = Server::with_clock(&clock, if aof { &["--appendonly", "yes"] } else { &[] });
        let mut c = server.client();
        c.create(format!("q DEADTTL {HALF_AN_HOUR}"));
        c.bury("q", &["m"]);
        clock.set(HOUR);
        if aof {
            server.restart_from_aof();
        } else {
            server.restart_from_rdb();
        }
        let mut c = server.client();
        eventually("nobody asks, and it is dropped", || c.info("dq", "dq_dead") == "0");
        assert_eq!(c.state("q", "m"), "absent");
        assert_eq!(c.about("q").int("deadttl"), HALF_AN_HOUR);
    }
}

#[test]
fn a_dead_message_that_is_not_kept_holds_no_id() {
    let master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    for (queue, settings) in [("a", "DEADLEN 0"), ("b", "DEADTTL 1")] {
        c.create(format!("{queue} {settings}"));
        // In one transaction, so that the timer cannot drop the dead message before.
        let replies = c.multi(&[
            &format!("DQ.PUSH {queue} x ID m TTL 5"),
            "DEBUG SLEEP 0.05",
            &format!("DQ.PUSH {queue} y ID m DELAY 600000"),
            &format!("DQ.PUSH {queue} z ID n TTL 5"),
            "DEBUG SLEEP 0.05",
            &format!("DQ.MPUSH {queue} 1 z IDS n DELAY 600000"),
        ]);
        assert_eq!(replies[2], Reply::bulk("m"), "{settings}");
        assert_eq!(replies[5], Reply::Array(vec![Reply::bulk("n")]), "{settings}");
        assert_eq!(c.get(queue, "m").text("payload"), "y");
        assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
        assert_eq!(r.digest(queue), c.digest(queue), "{settings}");
    }
}

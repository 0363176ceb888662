//! OLDER of DQ.PURGE and DQ.REDRIVE, and REASON: only messages that have been in their state for long, or died of this.

use crate::support::{eventually, in_both_protocols, Client, Clock, Reply, Server};

const HOUR: i64 = 3_600_000;

/// Sets the clock an hour ahead, and waits until the server has noticed.
fn an_hour_later(clock: &Clock, c: &mut Client) {
    let started = c.now();
    clock.set(HOUR);
    eventually("the server has noticed", || c.now() - started > HOUR / 2);
}

/// Which of these messages are there.
fn held<'a>(c: &mut Client, ids: &[&'a str]) -> Vec<&'a str> {
    ids.iter().copied().filter(|id| c.state("q", id) != "absent").collect()
}

#[test]
fn a_purge_by_age_counts_from_the_instant_of_the_state() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.create("q LEASE 600000000 RETAIN 600000000");
    // Each first message comes into its state an hour before the second one.
    for (age, delayed, ready, inflight, dead, done) in
        [(0, "d1", "r1", "i1", "x1", "o1"), (1, "d2", "r2", "i2", "x2", "o2")]
    {
        if age > 0 {
            an_hour_later(&clock, &mut c);
        }
        c.push(format!("q x ID {delayed} DELAY 600000000"));
        for id in [inflight, dead, done] {
            c.push(format!("q x ID {id} PRIORITY 9"));
        }
        c.pop("q COUNT 3");
        assert_eq!(c.nack(format!("q {dead} DEAD")), "dead");
        assert_eq!(c.ack(format!("q {done}")), 1);
        c.push(format!("q x ID {ready}"));
    }
    for (state, old, young) in [
        ("delayed", "d1", "d2"),
        ("ready", "r1", "r2"),
        ("inflight", "i1", "i2"),
        ("dead", "x1", "x2"),
        ("done", "o1", "o2"),
    ] {
        assert_eq!(c.purge(format!("q {state} OLDER {}", 2 * HOUR)), 0, "{state}");
        assert_eq!(c.purge(format!("q {state} COUNT 2 OLDER {HOUR}")), 1, "{state}");
        assert_eq!(held(&mut c, &[old, young]), [young], "{state}");
    }
    assert_eq!(c.purge("q OLDER 0"), 5, "0 is any age");
}

#[test]
fn a_purge_by_age_obeys_groups_and_spares_schedules() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.ask("DQ.SCHEDULE q s x EVERY 600000000 GROUP g");
    c.push_many("q 2 x y IDS a b GROUP g");
    c.push("q x ID other");
    an_hour_later(&clock, &mut c);
    c.push("q x ID young GROUP g");
    assert_eq!(c.purge(format!("q GROUP g OLDER {HOUR} COUNT 1")), 1);
    assert_eq!(c.purge(format!("q GROUP g OLDER {HOUR}")), 1);
    assert_eq!(held(&mut c, &["s", "a", "b", "other", "young"]), ["s", "other", "young"]);
    assert_eq!(c.purge(format!("q OLDER {HOUR} RECURRING")), 2);
    assert_eq!(held(&mut c, &["s", "other", "young"]), ["young"]);
}

#[test]
fn dead_messages_are_redriven_by_age() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.bury("q", &["a", "b"]);
    an_hour_later(&clock, &mut c);
    c.bury("q", &["c"]);
    assert_eq!(c.redrive(format!("q OLDER {}", 2 * HOUR)), 0);
    assert_eq!(c.redrive(format!("q OLDER {HOUR} COUNT 1")), 1);
    assert_eq!(c.state("q", "a"), "ready");
    assert_eq!(c.redrive(format!("q older {HOUR} DELAY 600000")), 1);
    assert_eq!(c.state("q", "b"), "delayed");
    assert_eq!(c.redrive("q OLDER 0"), 1);
}

#[test]
fn dead_messages_are_redriven_by_the_reason_of_their_death() {
    in_both_protocols(|c| {
        c.bury("q", &["rejected", "buried"]);
        c.push("q x ID spent RETRIES 0");
        c.pop_one("q");
        assert_eq!(c.nack("q spent"), "dead");
        c.push("q x ID expired TTL 1");
        c.until_state("q", "expired", "dead");
        assert_eq!(c.redrive("q REASON expired DELAY 600000"), 1);
        assert_eq!(c.state("q", "expired"), "delayed");
        assert_eq!(c.redrive("q reason RETRIES"), 1);
        assert_eq!(c.state("q", "spent"), "ready");
        assert_eq!(c.multi(&["DQ.REDRIVE q REASON rejected COUNT 1"]), [Reply::Int(1)]);
        assert_eq!(c.script("DQ.REDRIVE q REASON rejected"), Reply::Int(1));
        assert_eq!(c.redrive("q REASON rejected"), 0);
    });
}

#[test]
fn what_was_chosen_by_age_is_the_same_everywhere() {
    let mut master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    c.bury("q", &["a", "b", "c"]);
    c.push_many("q 2 x y");
    assert_eq!(c.redrive("q OLDER 0 REASON rejected COUNT 2"), 2);
    assert_eq!(c.purge("q ready OLDER 0 COUNT 1"), 1);
    let (digest, counts) = (c.digest("q"), c.counts("q"));
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!((replica.client().digest("q"), replica.client().counts("q")), (digest.clone(), counts));
    master.restart_from_aof();
    assert_eq!(master.client().digest("q"), digest);
    master.restart_from_rdb();
    assert_eq!(master.client().digest("q"), digest);
}

//! GROUPRATE: at most n deliveries of each group begin in any span of the period.

use super::delivering::push_each;
use crate::support::{eventually, in_both_protocols, Client, Reply, Server};

/// What `DQ.GROUPS` shows of what holds a group back: the end of its pause, and its next delivery.
pub fn held_back(c: &mut Client, key: &str, group: &str) -> [Reply; 2] {
    let reply = c.ask(format!("DQ.GROUPS {key} 0 COUNT 1000"));
    let row = reply.items()[1].items().iter().find(|row| row.items()[0].text() == group);
    let [.., paused, next] = row.expect("the group is listed").items() else { panic!("{reply:?}") };
    [paused.clone(), next.clone()]
}

fn next_delivery(c: &mut Client, key: &str, group: &str) -> Option<i64> {
    let [_, next] = held_back(c, key, group);
    (!next.is_null()).then(|| next.int())
}

#[test]
fn each_group_has_the_rate_by_itself() {
    in_both_protocols(|c| {
        c.create("q GROUPINFLIGHT 0 GROUPRATE 2 600000");
        push_each(c, &["a1", "a2", "a3", "b1", "-1", "-2", "-3"]);
        assert_eq!(next_delivery(c, "q", "a"), None);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1", "a2", "b1", "-1", "-2", "-3"], "others go on");
        assert_eq!(c.ask("DQ.POP q"), c.null_array());
        let (next, now) = (next_delivery(c, "q", "a").expect("it is at its rate"), c.now());
        assert!(next > now && next <= now + 600_000);
        assert_eq!(next_delivery(c, "q", "b"), None);
        let about = c.about("q");
        assert_eq!((about.int("grouprate"), about.int("grouprate-period")), (2, 600_000));
        assert_eq!((about.int("blocked"), c.counts("q")[1]), (1, 1), "it stays ready");
        c.push("q x ID b2 GROUP b");
        assert_eq!(c.pop_ids("q COUNT 10"), ["b2"]);
    });
}

#[test]
fn retries_count_and_wait_too() {
    in_both_protocols(|c| {
        c.create("q GROUPRATE 2 600000 BACKOFF 0 0");
        push_each(c, &["a1", "a2"]);
        for _ in 0..2 {
            assert_eq!(c.pop_ids("q COUNT 10"), ["a1"]);
            c.nack("q a1");
        }
        assert_eq!(c.ask("DQ.POP q COUNT 10"), c.null_array());
        c.alter("q GROUPRATE 3 600000");
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1"]);
    });
}

#[test]
fn a_group_that_was_emptied_is_still_limited() {
    in_both_protocols(|c| {
        c.create("q GROUPRATE 1 600000");
        push_each(c, &["a1", "b1"]);
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["a1", "b1"]);
        assert_eq!(c.len("q"), 0);
        push_each(c, &["a2", "c1"]);
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["c1"]);
        c.purge("q");
        push_each(c, &["a3", "-1"]);
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["-1"], "a purge changes nothing about it");
        c.alter("q GROUPRATE 0 0");
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["a3"]);
        c.alter("q GROUPRATE 1 600000");
        push_each(c, &["a4"]);
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["a4"], "switched off, it forgot");
    });
}

#[test]
fn a_blocked_client_is_served_when_the_first_group_may_go_on() {
    let server = Server::start();
    let (mut c, mut one, mut any) = (server.client(), server.client(), server.client());
    c.create("q GROUPRATE 1 1000");
    push_each(&mut c, &["a1", "a2", "b1", "b2"]);
    assert_eq!(c.pop_ids("q COUNT 2 NOACK"), ["a1", "b1"]);
    let next = next_delivery(&mut c, "q", "a").expect("it is at its rate");
    one.wait_for_message("q");
    c.until_blocked(1);
    any.wait_for_any(&["other", "q"]);
    assert_eq!(one.served().id, "a2");
    c.expect_delivered_at("q", "a2", next);
    assert_eq!(any.served_from_any().1.id, "b2");
    c.expect_delivered_at("q", "b2", next);
}

#[test]
fn nothing_runs_while_all_groups_wait_for_their_rates() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    c.create("q GROUPRATE 1 600000");
    for round in 0..2 {
        c.pipeline((0..500).map(|nth| format!("DQ.PUSH q {round} GROUP {nth}")));
    }
    assert_eq!(c.pop("q COUNT 1000 NOACK").len(), 500);
    waiting.wait_for_message("q");
    c.until_blocked(1);
    let runs = c.info("dq", "dq_timer_runs");
    assert_eq!(c.ask("DQ.POP q"), c.null_array());
    c.until_blocked(1);
    assert_eq!(c.info("dq", "dq_timer_runs"), runs);
    c.alter("q GROUPRATE 0 0");
    assert_eq!(waiting.served().payload, b"1");
}

#[test]
fn a_rate_of_groups_holds_in_transactions_and_scripts() {
    in_both_protocols(|c| {
        c.create("q GROUPRATE 1 600000");
        push_each(c, &["a1", "a2", "b1"]);
        let null = c.null_array();
        let replies = c.multi(&["DQ.POP q COUNT 5 NOACK", "DQ.POP q COUNT 5", "DQ.POP q BLOCK 0"]);
        assert_eq!((replies[0].items().len(), &replies[1], &replies[2]), (2, &null, &null));
        assert!(c.script("DQ.POP q").is_null());
    });
}

/// A queue with one group at its rate and one that may go on once.
pub fn limited(c: &mut Client) {
    c.create("q GROUPINFLIGHT 0 GROUPRATE 2 600000");
    push_each(c, &["a1", "a2", "a3", "b1", "b2", "b3"]);
    assert_eq!(c.pop_ids("q COUNT 2 LEASE 600000"), ["a1", "a2"]);
    assert_eq!(c.pop_ids("q NOACK"), ["b1"]);
}

fn expect_limited(c: &mut Client, key: &str) {
    assert_eq!(c.pop_ids(format!("{key} COUNT 10")), ["b2"]);
    assert_eq!(c.ask(format!("DQ.POP {key}")), c.null_array());
}

#[test]
fn a_restart_or_a_copy_does_not_burst() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    limited(&mut c);
    let digest = c.digest("q");
    c.ask("COPY q copy").int();
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(c.digest("q"), digest);
    expect_limited(&mut c, "copy");
    let dumped = c.ask("DUMP q");
    c.cmd(&[b"RESTORE", &b"restored"[..], b"0", dumped.bytes()]).ok();
    expect_limited(&mut c, "restored");
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest, "from the commands");
    c.configure("aof-use-rdb-preamble", "no");
    c.until_rewritten();
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest, "from the rewritten AOF");
    server.restart_from_rdb();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest, "from the RDB");
    expect_limited(&mut c, "q");
}

#[test]
fn a_promoted_replica_goes_on_with_the_rates() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    limited(&mut c);
    let digest = c.digest("q");
    eventually("the replica follows", || r.digest("q") == digest);
    assert_eq!(held_back(&mut r, "q", "a"), held_back(&mut c, "q", "a"));
    r.ask("REPLICAOF NO ONE").ok();
    expect_limited(&mut r, "q");
}

#[test]
fn forwarding_keeps_to_the_rates_of_groups() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q GROUPRATE 1 600000 FORWARD LIST out");
    push_each(&mut c, &["a1", "a2", "-1", "b1"]);
    eventually("three are forwarded", || c.ask("LLEN out").int() == 3);
    assert_eq!((c.counts("q")[1], c.about("q").int("blocked")), (1, 1));
    c.alter("q GROUPRATE 2 600000");
    eventually("the last one is forwarded", || c.ask("LLEN out").int() == 4);
}

#[test]
fn one_zero_alone_is_no_rate_of_groups() {
    in_both_protocols(|c| {
        c.create("q");
        for words in ["GROUPRATE 0 5", "GROUPRATE 5 0"] {
            for command in ["CREATE new", "ALTER q"] {
                let error = c.ask(format!("DQ.{command} {words}"));
                assert_eq!(error.error(), "ERR GROUPRATE takes two numbers from 1, or 0 0 for no limit");
            }
        }
        for words in ["1000001 5", "5 86400001", "-1 5", "x 5", "5"] {
            assert!(c.ask(format!("DQ.ALTER q GROUPRATE {words}")).is_error(), "{words}");
        }
        assert!(c.ask("CONFIG SET dq.default-grouprate 5").is_error());
        c.ask("CONFIG SET dq.default-grouprate 5 dq.default-grouprate-period 1000").ok();
        c.push("made x");
        assert_eq!(c.about("made").int("grouprate"), 5);
        c.ask("CONFIG SET dq.default-grouprate 0 dq.default-grouprate-period 0").ok();
    });
}

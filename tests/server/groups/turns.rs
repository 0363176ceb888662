//! GROUPORDER turn: groups are served in turn, however many messages each has.

use super::delivering::push_each;
use crate::support::{in_both_protocols, Clock, Server};

#[test]
fn groups_take_turns_whoever_has_more_messages() {
    in_both_protocols(|c| {
        c.create("q GROUPINFLIGHT 0 GROUPORDER turn");
        push_each(c, &["a1", "a2", "a3", "a4", "-1", "-2", "-3"]);
        push_each(c, &["b1", "c1"]);
        let first: Vec<String> = (0..4).flat_map(|_| c.pop_ids("q NOACK")).collect();
        assert_eq!(first, ["a1", "-1", "b1", "c1"], "each has a turn before any has two");
        let rest: Vec<String> = (0..5).flat_map(|_| c.pop_ids("q NOACK")).collect();
        assert_eq!(rest, ["a2", "-2", "a3", "-3", "a4"]);
    });
}

#[test]
fn one_pop_of_many_messages_takes_turns_too() {
    in_both_protocols(|c| {
        c.create("q GROUPINFLIGHT 0 GROUPORDER turn");
        push_each(c, &["a1", "a2", "a3", "b1", "b2", "-1"]);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1", "b1", "-1", "a2", "b2", "a3"]);
    });
}

#[test]
fn a_higher_priority_comes_before_any_turn() {
    in_both_protocols(|c| {
        c.create("q GROUPINFLIGHT 0 GROUPORDER turn");
        push_each(c, &["a1", "b1"]);
        c.push("q x ID urgent GROUP c PRIORITY 1");
        c.push("q x ID more GROUP c PRIORITY 1");
        assert_eq!(c.pop_ids("q COUNT 10"), ["urgent", "more", "a1", "b1"]);
    });
}

#[test]
fn with_one_at_a_time_turns_go_on_after_each_ack() {
    in_both_protocols(|c| {
        c.create("q GROUPORDER turn");
        push_each(c, &["a1", "a2", "b1", "b2"]);
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1", "b1"]);
        c.ack("q b1");
        c.ack("q a1");
        push_each(c, &["c1"]);
        assert_eq!(c.pop_ids("q"), ["a2"]);
        assert_eq!(c.pop_ids("q COUNT 10"), ["b2", "c1"]);
    });
}

#[test]
fn turns_survive_a_restart_and_a_rewrite() {
    for way in ["rdb", "aof"] {
        let mut server = if way == "aof" { Server::with_aof(&[]) } else { Server::start() };
        let mut c = server.client();
        c.create("q GROUPINFLIGHT 0 GROUPORDER turn");
        push_each(&mut c, &["a1", "a2", "b1", "b2", "-1", "-2"]);
        assert_eq!(c.pop_ids("q COUNT 2 NOACK"), ["a1", "b1"]);
        let digest = c.digest("q");
        if way == "aof" {
            c.configure("aof-use-rdb-preamble", "no");
            c.until_rewritten();
            server.restart_from_aof();
        } else {
            server.restart_from_rdb();
        }
        let mut c = server.client();
        assert_eq!(c.digest("q"), digest, "{way}");
        assert_eq!(c.pop_ids("q COUNT 10"), ["-1", "a2", "b2", "-2"], "{way}");
    }
}

#[test]
fn a_clock_that_is_behind_blocks_no_group() {
    let clock = Clock::new();
    clock.set(3_600_000);
    let mut server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.create("q GROUPINFLIGHT 0 GROUPORDER turn");
    push_each(&mut c, &["a1", "a2", "b1", "b2"]);
    for name in ["a1", "a2", "b1", "b2"] {
        c.reschedule(format!("q {name} AT 1700000000000"));
    }
    assert_eq!(c.pop_ids("q"), ["a1"]);
    // The server is restarted with the right time, which is an hour earlier.
    clock.set(0);
    server.restart_from_rdb();
    let mut c = server.client();
    assert_eq!(c.pop_ids("q"), ["b1"]);
    assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["a2", "b2"]);
}

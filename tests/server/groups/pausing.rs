//! DQ.PAUSE GROUP: one group is paused, whether or not it has messages, and the others go on.

use super::delivering::push_each;
use super::rate::held_back;
use crate::support::{effects_of, eventually, in_both_protocols, Client, Server};

fn paused_until(c: &mut Client, group: &str) -> i64 {
    let [until, _] = held_back(c, "q", group);
    until.int()
}

#[test]
fn a_paused_group_is_passed_over_until_it_is_resumed() {
    in_both_protocols(|c| {
        c.create("q BACKOFF 0 0");
        push_each(c, &["a1", "a2", "b1", "-1"]);
        assert_eq!(c.pop_ids("q"), ["a1"]);
        c.ask("DQ.PAUSE q GROUP a").ok();
        c.nack("q a1");
        assert_eq!(c.pop_ids("q COUNT 10"), ["b1", "-1"], "a retry waits too");
        let [until, _] = held_back(c, "q", "a");
        assert!(until.is_null(), "without an end");
        assert_eq!(paused_until(c, "b"), 0);
        assert_eq!(c.about("q").int("paused"), 0, "the queue is not");
        c.resume("q");
        assert_eq!(c.ask("DQ.POP q"), c.null_array(), "the queue is resumed, and not the group");
        c.ask("DQ.RESUME q GROUP b").ok();
        c.ask("DQ.RESUME q GROUP a").ok();
        assert_eq!(c.pop_ids("q COUNT 10"), ["a1"]);
        assert_eq!(paused_until(c, "a"), 0);
    });
}

#[test]
fn a_group_without_messages_can_be_paused() {
    in_both_protocols(|c| {
        c.create("q");
        c.ask("DQ.PAUSE q GROUP a FOR 600000").ok();
        let row = c.ask("DQ.GROUPS q 0").items()[1].items()[0].clone();
        let [name, waiting, occupied, due, until, next] = row.items() else { panic!("{row:?}") };
        assert_eq!((name.text().as_str(), waiting.int(), occupied.int()), ("a", 0, 0));
        assert!(due.is_null() && next.is_null());
        let now = c.now();
        assert!(until.int() > now && until.int() <= now + 600_000);
        assert_eq!(c.about("q").int("groups"), 0);
        push_each(c, &["a1", "b1"]);
        assert_eq!(c.pop_ids("q COUNT 10 NOACK"), ["b1"]);
        c.purge("q");
        push_each(c, &["a2"]);
        assert_eq!(c.ask("DQ.POP q"), c.null_array(), "a purge does not resume it");
        c.ask("DQ.RESUME q GROUP a").ok();
        assert_eq!(c.pop_ids("q NOACK"), ["a2"]);
        assert_eq!(c.ask("DQ.GROUPS q 0").items()[1].items().len(), 0);
    });
}

#[test]
fn a_pause_of_a_group_ends_by_itself_and_serves_clients() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    push_each(&mut c, &["a1"]);
    c.ask("DQ.PAUSE q GROUP a FOR 1000").ok();
    let until = paused_until(&mut c, "a");
    waiting.wait_for_message("q");
    assert_eq!(waiting.served().id, "a1");
    c.expect_delivered_at("q", "a1", until);
    assert_eq!(paused_until(&mut c, "a"), 0);
}

#[test]
fn resuming_a_group_serves_clients() {
    let server = Server::start();
    let (mut c, mut waiting) = (server.client(), server.client());
    push_each(&mut c, &["a1"]);
    c.ask("DQ.PAUSE q GROUP a").ok();
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.ask("DQ.RESUME q GROUP a").ok();
    assert_eq!(waiting.served().id, "a1");
}

#[test]
fn a_pause_of_a_group_is_never_shortened() {
    in_both_protocols(|c| {
        c.create("q");
        c.ask("DQ.PAUSE q GROUP a FOR 500000").ok();
        let (until, changes) = (paused_until(c, "a"), c.changes());
        c.ask("DQ.PAUSE q GROUP a FOR 1000").ok();
        assert_eq!((paused_until(c, "a"), c.changes()), (until, changes));
        c.ask("DQ.PAUSE q GROUP a").ok();
        let changes = c.changes();
        c.ask("DQ.PAUSE q GROUP a FOR 600000").ok();
        let [until, _] = held_back(c, "q", "a");
        assert!(until.is_null());
        assert_eq!(c.changes(), changes);
    });
}

#[test]
fn a_group_excludes_the_words_for_the_queue() {
    in_both_protocols(|c| {
        c.create("q");
        for command in ["PAUSE", "RESUME"] {
            for word in ["IN", "OUT", "ALL"] {
                let error = c.ask(format!("DQ.{command} q {word} GROUP a"));
                assert_eq!(error.error(), format!("ERR syntax error, give {word} or GROUP, not both"));
                let error = c.ask(format!("DQ.{command} q GROUP a {word}"));
                assert_eq!(error.error(), format!("ERR syntax error, give GROUP or {word}, not both"));
            }
            assert_eq!(c.ask(format!("DQ.{command} q GROUP")).error(), "ERR syntax error, GROUP needs a value");
            assert_eq!(c.ask(format!("DQ.{command} none GROUP a")).error(), "ERR no such key");
        }
        assert_eq!(c.cmd(&["DQ.PAUSE", "q", "GROUP", ""]).error(), "ERR GROUP must be 1 to 255 bytes");
    });
}

#[test]
fn pauses_of_groups_survive_restarts_and_takeovers() {
    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    push_each(&mut c, &["a1", "b1"]);
    c.ask("DQ.PAUSE q GROUP a").ok();
    c.ask("DQ.PAUSE q GROUP empty FOR 600000").ok();
    let (digest, until) = (c.digest("q"), paused_until(&mut c, "empty"));
    c.ask("DEBUG RELOAD").ok();
    assert_eq!(c.digest("q"), digest);
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    c.configure("aof-use-rdb-preamble", "no");
    c.until_rewritten();
    server.restart_from_aof();
    let replica = Server::replica_of(&server, &[]);
    let (mut c, mut r) = (server.client(), replica.client());
    assert_eq!((c.digest("q"), paused_until(&mut c, "empty")), (digest.clone(), until));
    eventually("the replica follows", || r.digest("q") == digest);
    r.ask("REPLICAOF NO ONE").ok();
    assert_eq!(r.pop_ids("q COUNT 10"), ["b1"]);
    r.ask("DQ.RESUME q GROUP a").ok();
    assert_eq!(r.pop_ids("q COUNT 10"), ["a1"]);
}

#[test]
fn a_pause_of_a_group_is_one_effect() {
    let effects = effects_of(|c| {
        c.create("q");
        c.ask("DQ.PAUSE q GROUP a").ok();
        c.ask("DQ.RESUME q GROUP a").ok();
        c.ask("DQ.RESUME q GROUP a").ok();
    });
    assert_eq!(effects.iter().map(|effect| effect[1]).collect::<Vec<u8>>(), b"mzz");
}

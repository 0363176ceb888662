//! Groups survive restarts, copies, moves and failovers.

use super::delivering::push_each;
use crate::support::{eventually, Client, Server};

/// A queue with groups in every state.
fn lively(c: &mut Client) {
    c.create("q GROUPINFLIGHT 1 GROUPORDER turn BACKOFF 600000 600000");
    push_each(c, &["a1", "a2", "a3", "b1", "b2", "c1", "d1", "-1"]);
    c.push("q x ID a4 GROUP a DELAY 600000");
    c.ask("DQ.SCHEDULE q s z EVERY 3600000 GROUP a");
    assert_eq!(c.pop_ids("q COUNT 4 LEASE 600000"), ["a1", "b1", "c1", "d1"]);
    c.nack("q b1");
    c.nack("q d1 DEAD");
}

fn expect_lively(c: &mut Client, key: &str) {
    let of = |c: &mut Client, line: &str| c.len(&format!("{key} {line}"));
    assert_eq!(["a", "b", "c", "d"].map(|group| of(c, &format!("GROUP {group}"))), [5, 2, 1, 0]);
    assert_eq!((of(c, "dead GROUP d"), of(c, "inflight GROUP a"), of(c, "delayed GROUP b")), (1, 1, 1));
    assert_eq!(c.pop_ids(format!("{key} COUNT 10")), ["-1"], "the groups are occupied");
    c.ack(format!("{key} a1 -1"));
    assert_eq!(c.pop_ids(format!("{key} COUNT 10")), ["a2"]);
}

#[test]
fn groups_survive_every_restart() {
    let mut server = Server::start();
    let mut c = server.client();
    lively(&mut c);
    let digest = c.digest("q");
    server.restart_from_rdb();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    expect_lively(&mut c, "q");
}

#[test]
fn groups_survive_the_replay_of_an_aof() {
    for rewritten in [false, true] {
        let mut server = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
        let mut c = server.client();
        lively(&mut c);
        if rewritten {
            c.until_rewritten();
        }
        let digest = c.digest("q");
        server.restart_from_aof();
        let mut c = server.client();
        assert_eq!(c.digest("q"), digest);
        expect_lively(&mut c, "q");
    }
}

#[test]
fn a_copy_and_a_restored_dump_have_the_groups() {
    let server = Server::start();
    let mut c = server.client();
    lively(&mut c);
    let dump = c.ask("DUMP q");
    c.cmd(&[&b"RESTORE"[..], b"restored", b"0", dump.bytes()]).ok();
    assert_eq!(c.ask("COPY q copied").int(), 1);
    for key in ["restored", "copied"] {
        assert_eq!(c.digest(key), c.digest("q"));
        expect_lively(&mut c, key);
    }
    expect_lively(&mut c, "q");
}

#[test]
fn a_promoted_replica_goes_on_with_the_groups() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut follower) = (master.client(), replica.client());
    lively(&mut c);
    let digest = c.digest("q");
    eventually("the replica has it all", || follower.digest("q") == digest);
    assert_eq!(follower.about("q").int("blocked"), c.about("q").int("blocked"));
    follower.ask("REPLICAOF NO ONE").ok();
    expect_lively(&mut follower, "q");
}

#[test]
fn a_replica_follows_the_turns_of_its_master() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut follower) = (master.client(), replica.client());
    c.create("q GROUPINFLIGHT 0 GROUPORDER turn");
    push_each(&mut c, &["a1", "a2", "a3", "b1", "b2", "-1", "-2"]);
    c.ask("DQ.SCHEDULE q s z EVERY 3600000 GROUP a AT 1700000000000");
    assert_eq!(c.pop("q COUNT 4 NOACK").len(), 4);
    assert_eq!(c.pop("q").len(), 1);
    let digest = c.digest("q");
    eventually("the replica has it all", || follower.digest("q") == digest);
    follower.ask("REPLICAOF NO ONE").ok();
    let rest = c.pop_ids("q COUNT 10");
    assert_eq!(rest.len(), 3);
    assert_eq!(follower.pop_ids("q COUNT 10"), rest);
}

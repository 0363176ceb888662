//! `DEADFORWARD` as a setting: what is refused, which keys it names, and who moves the dead messages after a restart.

use super::dead::{bury, refusal_of, until_moved};
use super::{elements, ids};
use crate::support::{eventually, in_both_protocols, Cluster, Reply, Server};

#[test]
fn a_target_that_is_none_is_refused() {
    in_both_protocols(|c| {
        for (words, error) in [
            ("", "ERR syntax error, DEADFORWARD needs STREAM, LIST, QUEUE or NONE"),
            ("CHANNEL c", "ERR syntax error, DEADFORWARD needs STREAM, LIST, QUEUE or NONE"),
            ("STREAM", "ERR syntax error, STREAM needs a value"),
            ("STREAM s TRIM 0", "ERR TRIM must be"),
            ("LIST l REGISTER s m", "ERR syntax error, 'REGISTER' is not in its place"),
            ("LIST l DEADFORWARD NONE", "ERR syntax error, DEADFORWARD is given twice"),
            ("LIST q", "ERR a queue cannot forward to itself"),
            ("QUEUE q", "ERR a queue cannot forward to itself"),
            ("STREAM q", "ERR a queue cannot forward to itself"),
        ] {
            for command in ["DQ.CREATE q", "DQ.ALTER q MKQUEUE"] {
                let refused = c.ask(format!("{command} DEADFORWARD {words}").trim());
                assert!(refused.error().starts_with(error), "{words}: {refused:?}");
            }
        }
        assert_eq!(c.ask("EXISTS q").int(), 0);
    });
}

#[test]
fn a_queue_is_declared_again_with_the_same_target_only() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADFORWARD LIST l RIGHT FORWARD STREAM s");
    c.create("q DEADFORWARD LIST l FORWARD STREAM s");
    assert!(c.ask("DQ.CREATE q FORWARD STREAM s").is_error());
    c.alter("q FORWARD NONE");
    assert_eq!(c.about("q").text("deadforward"), "LIST l RIGHT", "the other one stays");
}

#[test]
fn the_targets_are_keys_of_the_command() {
    let server = Server::start();
    let mut c = server.client();
    let keys = |words: &str| format!("COMMAND GETKEYS DQ.ALTER q {words}");
    let mut named = |words: &str| c.ask(keys(words)).items().iter().map(Reply::text).collect::<Vec<_>>();
    assert_eq!(named("DEADFORWARD LIST FORWARD LEFT FORWARD STREAM s"), ["q", "FORWARD", "s"]);
    assert_eq!(named("deadforward stream s TRIM 5"), ["q", "s"]);
    assert_eq!(named("DEADFORWARD NONE"), ["q"]);
    c.ask("ACL SETUSER limited on >secret ~q %W~own* +@all").ok();
    let mut limited = server.client();
    limited.ask("AUTH limited secret").ok();
    for command in ["DQ.CREATE q", "DQ.ALTER q MKQUEUE"] {
        for words in ["STREAM s", "LIST l", "QUEUE other"] {
            let refused = limited.ask(format!("{command} DEADFORWARD {words}"));
            assert!(refused.error().starts_with("NOPERM"), "{words}: {refused:?}");
        }
    }
    limited.ask("DQ.CREATE q DEADFORWARD STREAM own").ok();
}

#[test]
fn in_a_cluster_dead_messages_stay_in_their_slot() {
    let (server, cluster) = (Server::start(), Cluster::of(1, 60_000));
    let (mut elsewhere, mut c) = (server.client(), cluster.client(0));
    assert!(c.ask("DQ.CREATE {q} DEADFORWARD LIST l").error().starts_with("CROSSSLOT"));
    c.create("{q} DEADFORWARD LIST l{q}");
    c.push("{q} x ID m");
    bury(&mut c, "{q}", &["m"]);
    until_moved(&mut c, "{q}", 1);
    elsewhere.create("r DEADFORWARD LIST l");
    let dump = elsewhere.ask("DUMP r").bytes().to_vec();
    c.cmd(&[&b"RESTORE"[..], b"r", b"0", &dump]).ok();
    c.push("r x ID m");
    bury(&mut c, "r", &["m"]);
    assert!(refusal_of(&mut c, "r").starts_with("CROSSSLOT"));
    assert_eq!(c.state("r", "m"), "dead");
}

#[test]
fn a_transaction_and_a_script_leave_the_move_to_the_timer() {
    let server = Server::with_aof(&[]);
    let mut c = server.client();
    c.create("q DEADFORWARD STREAM s");
    c.push_many("q 2 x y IDS a b");
    let replies = c.multi(&["DQ.BURY q a", "DQ.LEN q dead", "EXISTS s"]);
    assert_eq!(replies[1..], [Reply::Int(1), Reply::Int(0)]);
    c.script("DQ.BURY q b");
    until_moved(&mut c, "q", 2);
    assert_eq!(ids(&mut c, "s"), ["a", "b"]);
}

#[test]
fn a_replica_has_what_its_master_moved_and_goes_on_once_promoted() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &["--replica-read-only", "no", "--notify-keyspace-events", "KEA"]);
    let (mut c, mut r, mut subscriber) = (master.client(), replica.client(), replica.client());
    subscriber.ask("SUBSCRIBE __keyspace@0__:q");
    c.create("q DEADFORWARD LIST l");
    c.push("q x ID m");
    bury(&mut c, "q", &["m"]);
    until_moved(&mut c, "q", 1);
    let events: Vec<String> = (0..5).map(|_| subscriber.receive().items()[2].text()).collect();
    assert_eq!(events, ["dq.create", "dq.push", "dq.bury", "dq.dead", "dq.deadforward"]);
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(c.ask("DEBUG DIGEST"), r.ask("DEBUG DIGEST"));
    assert_eq!((r.about("q").int("deadforwarded"), r.about("q").text("deadforward")), (1, "LIST l".to_owned()));
    c.push("q y TTL 300");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    master.kill9();
    eventually("it is dead there too", || r.len("q dead") == 1);
    assert_eq!(elements(&mut r, "l"), ["x"]);
    r.ask("REPLICAOF NO ONE").ok();
    until_moved(&mut r, "q", 2);
    assert_eq!(elements(&mut r, "l"), ["x", "y"]);
}

#[test]
fn a_restart_keeps_the_target_and_moves_what_died_meanwhile() {
    for from_rdb in [true, false] {
        let mut server = Server::with_aof(&[]);
        let mut c = server.client();
        c.create("q DEADFORWARD STREAM s TRIM 9 FORWARD NONE");
        c.push("q x ID m");
        bury(&mut c, "q", &["m"]);
        until_moved(&mut c, "q", 1);
        c.push("q y ID late TTL 500");
        let digest = c.digest("q");
        if from_rdb {
            server.restart_from_rdb();
        } else {
            server.restart_from_aof();
        }
        let mut c = server.client();
        let (left, now) = (c.len("q"), c.digest("q"));
        assert!(left == 0 || now == digest, "{from_rdb}");
        assert_eq!(c.about("q").text("deadforward"), "STREAM s TRIM 9");
        until_moved(&mut c, "q", 2);
        assert_eq!(ids(&mut c, "s"), ["m", "late"], "{from_rdb}");
    }
}

#[test]
fn copies_and_restored_queues_move_their_dead_too() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q DEADFORWARD LIST l LEFT");
    c.push("q x ID m DELAY 600000");
    let dump = c.ask("DUMP q").bytes().to_vec();
    c.ask("COPY q copy");
    c.cmd(&[&b"RESTORE"[..], b"restored", b"0", &dump]).ok();
    c.ask("RENAME q renamed").ok();
    assert_eq!(c.digest("copy"), c.digest("restored"));
    for queue in ["copy", "restored", "renamed"] {
        bury(&mut c, queue, &["m"]);
        until_moved(&mut c, queue, 1);
    }
    assert_eq!(elements(&mut c, "l").len(), 3);
    c.alter("copy DEADFORWARD NONE");
    assert_ne!(c.digest("copy"), c.digest("restored"), "a digest tells targets apart");
}

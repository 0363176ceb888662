//! The removal and the write are one transaction, in the AOF and on the replication link: a crash leaves both or
//! neither.

use super::{elements, ids, until_forwarded};
use crate::support::{eventually, Client, Reply, Server};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Pushes until the server is gone. Returns the ids in its replies.
fn produce(mut c: Client, writer: usize, round: usize, done: &AtomicUsize) -> Vec<String> {
    let mut pushed = Vec::new();
    for n in 0.. {
        let id = format!("w{writer}:{round}:{n}");
        if c.try_ask(format!("DQ.PUSH q {id} ID {id} DELAY {}", n % 3)).is_err() {
            break;
        }
        pushed.push(id);
        done.fetch_add(1, Ordering::Relaxed);
    }
    pushed
}

/// The ids in the queue and those in the target, at one moment.
fn both(c: &mut Client, of_target: &str) -> (Vec<String>, Vec<String>) {
    let replies = c.multi(&["DQ.SCAN q 0 COUNT 1000000", of_target]);
    let queue = replies[0].items()[1].items().iter().map(|message| message.fields().text("id")).collect();
    let target = replies[1].items().iter().map(|entry| match entry {
        Reply::Array(entry) => entry[1].fields().text("id"),
        element => element.text(),
    });
    (queue, target.collect())
}

/// Kills the server several times while a rate keeps some messages in the queue.
fn kill_in_the_middle(preamble: &str, forward: &str, of_target: &str) {
    let mut server = Server::with_aof(&["--aof-use-rdb-preamble", preamble]);
    server.client().create(format!("q RATE 20 10 FORWARD {forward}"));
    let mut pushed = HashSet::new();
    for round in 0..3 {
        let done = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|writer| {
                let (c, done) = (server.client(), done.clone());
                std::thread::spawn(move || produce(c, writer, round, &done))
            })
            .collect();
        eventually("work is going on", || done.load(Ordering::Relaxed) > 300);
        if round == 1 {
            server.client().ask("BGREWRITEAOF");
        }
        server.kill9();
        pushed.extend(threads.into_iter().flat_map(|thread| thread.join().expect("its ids")));
        server.boot();
        let (queue, target) = both(&mut server.client(), of_target);
        let (in_queue, in_target): (HashSet<_>, HashSet<_>) = (queue.iter().collect(), target.iter().collect());
        assert_eq!(in_target.len(), target.len(), "round {round}: none was forwarded twice");
        assert!(in_queue.is_disjoint(&in_target), "round {round}: none is in both");
        let lost = pushed.iter().find(|id| !in_queue.contains(id) && !in_target.contains(id));
        assert_eq!(lost, None, "round {round}: none is lost");
        assert!(!target.is_empty());
    }
}

#[test]
fn a_kill_leaves_each_message_in_the_queue_or_in_the_stream() {
    kill_in_the_middle("yes", "STREAM s", "XRANGE s - +");
}

#[test]
fn a_kill_leaves_each_message_in_the_queue_or_in_the_list() {
    kill_in_the_middle("no", "LIST l", "LRANGE l 0 -1");
}

#[test]
fn a_replica_has_what_its_master_forwarded() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &["--notify-keyspace-events", "KEA"]);
    let (mut c, mut r, mut subscriber) = (master.client(), replica.client(), replica.client());
    subscriber.ask("SUBSCRIBE __keyspace@0__:q news");
    subscriber.receive();
    c.create("q FORWARD STREAM s TRIM 10");
    c.push("q x DELAY 30");
    until_forwarded(&mut c, "q", 1);
    let mut events = Vec::new();
    while events.last().map(String::as_str) != Some("dq.forward") {
        events.push(subscriber.receive().items()[2].text());
    }
    assert_eq!(events, ["dq.create", "dq.push", "dq.forward"]);
    for forward in ["LIST l LEFT REGISTER set m", "CHANNEL news", "STREAM other"] {
        c.alter(format!("q FORWARD {forward}"));
        c.push_many("q 200 ".to_owned() + &vec!["x"; 200].join(" "));
        c.ask("DQ.SCHEDULE q tick x EVERY 600000 TIMES 2 AT 1700000000000");
        let total = c.about("q").int("pushed");
        eventually("they are forwarded", || c.counts("q")[1] == 0);
        assert!(c.about("q").int("forwarded") >= total - 1);
        c.cancel("q tick");
        assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
        assert_eq!(c.ask("DEBUG DIGEST"), r.ask("DEBUG DIGEST"), "{forward}");
        assert_eq!(r.about("q").int("forwarded"), c.about("q").int("forwarded"));
        assert_eq!(r.about("q").text("forward"), forward);
    }
}

#[test]
fn a_replica_forwards_only_once_it_is_promoted() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &["--replica-read-only", "no"]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.create("q FORWARD STREAM s");
    c.pause("q");
    c.push_many("q 3 x y z IDS a b c");
    c.push("q late ID d DELAY 300");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    master.kill9();
    eventually("all are due", || r.len("q ready") == 4);
    assert_eq!(r.ask("EXISTS s").int(), 0);
    r.ask("REPLICAOF NO ONE").ok();
    r.resume("q");
    until_forwarded(&mut r, "q", 4);
    assert_eq!(ids(&mut r, "s"), ["a", "b", "c", "d"]);
}

#[test]
fn a_promoted_replica_forwards_what_its_master_could_not() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.create("q FORWARD STREAM s");
    c.push("q x ID m DELAY 1500");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    master.kill9();
    eventually("it is due", || r.len("q ready") == 1);
    r.ask("REPLICAOF NO ONE").ok();
    until_forwarded(&mut r, "q", 1);
    assert_eq!(ids(&mut r, "s"), ["m"]);
}

#[test]
fn a_demoted_master_stops_and_nothing_is_lost_or_doubled() {
    let (one, other) = (Server::start(), Server::start());
    let (mut a, mut b) = (one.client(), other.client());
    b.ask(format!("REPLICAOF 127.0.0.1 {}", one.port())).ok();
    eventually("the replica is online", || a.info("replication", "slave0").contains("state=online"));
    a.create("q RATE 50 20 FORWARD STREAM s");
    let words: Vec<String> = (0..1_000).map(|n| format!("m{n}")).collect();
    a.push_many(format!("q 1000 {} IDS {}", words.join(" "), words.join(" ")));
    eventually("some are forwarded", || a.about("q").int("forwarded") > 100);
    let failover = a.ask(format!("FAILOVER TO 127.0.0.1 {}", other.port()));
    failover.ok();
    eventually("the roles are changed", || b.info("replication", "role") == "master");
    eventually("all are forwarded", || b.about("q").int("forwarded") == 1_000);
    assert_eq!(ids(&mut b, "s"), words);
    eventually("the other follows", || a.ask("DEBUG DIGEST") == b.ask("DEBUG DIGEST"));
}

#[test]
fn a_restart_keeps_the_target_and_goes_on() {
    for way in ["rdb", "aof", "rewritten"] {
        let mut server = Server::with_aof(&["--aof-use-rdb-preamble", if way == "rdb" { "yes" } else { "no" }]);
        let mut c = server.client();
        c.create("q FORWARD LIST l LEFT REGISTER set m");
        c.push_many("q 2 a b");
        until_forwarded(&mut c, "q", 2);
        c.push("q c DELAY 600000");
        if way != "aof" {
            c.ask("BGREWRITEAOF");
            c.until_rewritten();
        }
        let digest = c.digest("q");
        server.restart_from_aof();
        let mut c = server.client();
        assert_eq!(c.about("q").text("forward"), "LIST l LEFT REGISTER set m", "{way}");
        assert_eq!(c.digest("q"), digest, "{way}");
        c.ask("DQ.PROMOTE q");
        until_forwarded(&mut c, "q", 3);
        assert_eq!(elements(&mut c, "l"), ["c", "b", "a"], "{way}");
    }
}

//! Keyspace notifications: every change of a queue is announced once, and nothing else is.

use crate::support::{eventually, Client, Reply, Server};

/// Two connections: one that listens to the key `q`, and one that sends commands.
fn listening(server: &Server) -> (Client, Client) {
    let (mut ear, mut c) = (server.client(), server.client());
    c.configure("notify-keyspace-events", "Kd");
    for channel in ["__keyspace@0__:q", "mark"] {
        ear.ask(format!("SUBSCRIBE {channel}"));
    }
    (ear, c)
}

/// The events that were announced since the last call.
#[track_caller]
fn heard(ear: &mut Client, c: &mut Client) -> Vec<String> {
    c.ask("PUBLISH mark now");
    let mut events = Vec::new();
    loop {
        let message = ear.receive();
        let [_, channel, event] = message.items() else { panic!("{message:?}") };
        if channel.text() == "mark" {
            return events;
        }
        events.push(event.text());
    }
}

/// What changes the queue `q`, one after the other, and the events that are announced for it.
const CHANGES: &[(&str, &str)] = &[
    ("DQ.ALTER q MKQUEUE", "dq.create"),
    ("DQ.ALTER q MKQUEUE MAXLEN 50", "dq.alter"),
    ("DQ.PUSH q x ID a", "dq.push"),
    ("DQ.PUSH q x ID b DELAY 600000", "dq.push"),
    ("DQ.PUSH q x ID b REPLACE", "dq.replace"),
    ("DQ.POP q COUNT 2", "dq.pop"),
    ("DQ.EXTEND q a", "dq.extend"),
    ("DQ.MEXTEND q 3 a nobody b", "dq.extend"),
    ("DQ.MEXTEND q 1 nobody", ""),
    ("DQ.RELEASE q nobody", ""),
    ("DQ.BATCH q b CANCEL", ""),
    ("DQ.NACK q a DELAY 600000", "dq.nack"),
    ("DQ.NACK q b DELAY 0", "dq.nack"),
    ("DQ.POP q", "dq.pop"),
    ("DQ.ACK q b", "dq.ack"),
    ("DQ.PUSH q x ID c", "dq.push"),
    ("DQ.POP q NOACK", "dq.pop"),
    ("DEL q", ""),
    ("DQ.SCHEDULE q s x EVERY 600000", "dq.schedule"),
    ("DQ.SCHEDULE q s x EVERY 600000", ""),
    ("DQ.PROMOTE q", "dq.promote"),
    ("DQ.POP q", "dq.pop"),
    ("DQ.SCHEDULE q s y EVERY 600000", "dq.schedule"),
    ("DQ.ACK q s", "dq.ack"),
    ("DQ.BURY q s", "dq.bury dq.dead"),
    ("DQ.PROMOTE q", "dq.promote"),
    ("DQ.POP q NOACK", "dq.pop"),
    ("DQ.PROMOTE q", "dq.promote"),
    ("DQ.POP q", "dq.pop"),
    ("DQ.NACK q s DEAD", "dq.nack dq.dead"),
    ("DEL q", ""),
    ("DQ.CREATE q MAXLEN 9", "dq.create"),
    ("DQ.ALTER q LEASE 5000 MAXLEN 0", "dq.alter"),
    ("DQ.MPUSH q 3 x y z IDS a b c", "dq.push"),
    ("DQ.MPUSH q 2 x y IDS a d", "dq.push"),
    ("DQ.RESCHEDULE q a DELAY 600000", "dq.reschedule"),
    ("DQ.RESCHEDULE q a DELAY 0", "dq.reschedule"),
    ("DQ.MPOP 2 other q COUNT 4", "dq.pop"),
    ("DQ.NACK q d NOCOUNT DELAY 600000", "dq.nack"),
    ("DQ.RESCHEDULE q d PRIORITY 5", "dq.reschedule"),
    ("DQ.PROMOTE q", "dq.promote"),
    ("DQ.NACK q a DEAD", "dq.nack dq.dead"),
    ("DQ.BURY q b", "dq.bury dq.dead"),
    ("DQ.NACK q c DEAD", "dq.nack dq.dead"),
    ("DQ.REDRIVE q COUNT 1", "dq.redrive"),
    ("DQ.CANCEL q a d nobody", "dq.cancel"),
    ("DQ.ALTER q DEADLEN 1", "dq.alter"),
    ("DQ.PUSH q x ID last RETRIES 0 PRIORITY 9", "dq.push"),
    ("DQ.POP q", "dq.pop"),
    ("DQ.NACK q last", "dq.nack dq.dead"),
    ("DQ.MPUSH q 2 x y", "dq.push"),
    ("DQ.PURGE q COUNT 1", "dq.purge"),
    ("DQ.PURGE q", "dq.purge"),
    ("DQ.PUSH q x ID k PRIORITY 99", "dq.push"),
    ("DQ.POP q", "dq.pop"),
    ("DQ.PUSH q y ID k PRIORITY 99 REPLACE LATER", "dq.replace"),
    ("DQ.BURY q k", "dq.bury"),
    ("DQ.POP q", "dq.pop"),
    ("DQ.PUSH q z ID k PRIORITY 99 REPLACE LATER", "dq.replace"),
    ("DQ.NACK q k DEAD", "dq.nack"),
    ("DQ.POP q", "dq.pop"),
    ("DQ.PUSH q z ID k PRIORITY 99 REPLACE LATER", "dq.replace"),
    ("DQ.ACK q k", "dq.ack"),
    ("DQ.ACKPOP q 1 nobody", "dq.pop"),
    ("DQ.MPUSH q 2 x y IDS l m PRIORITY 99", "dq.push"),
    ("DQ.ACKPOP q 1 k", "dq.ack dq.pop"),
    ("DQ.SCHEDULE q s x EVERY 600000 PRIORITY 100", "dq.schedule"),
    ("DQ.PROMOTE q", "dq.promote"),
    ("DQ.POP q", "dq.pop"),
    ("DQ.ACKPOP q 2 s l", "dq.ack dq.pop"),
    ("DQ.ACKPOP q 1 m", "dq.ack"),
    ("DQ.PUSH q x ID l DEAD", "dq.push dq.dead"),
    ("DQ.PUSH q x ID l REPLACE DEAD", "dq.replace dq.dead"),
    ("DQ.MPUSH q 2 x y IDS l m REPLACE DEAD", "dq.push dq.dead"),
    ("DQ.PAUSE q FOR 600000", "dq.pause"),
    ("DQ.PAUSE q", "dq.pause"),
    ("DQ.RESUME q", "dq.resume"),
];

#[test]
fn every_command_that_changes_something_is_announced_once() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    for (line, events) in CHANGES {
        let expected: Vec<&str> = events.split_whitespace().collect();
        assert!(!matches!(c.ask(line), Reply::Error(_) | Reply::NullBulk | Reply::NullArray), "{line}");
        assert_eq!(heard(&mut ear, &mut c), expected, "{line}");
    }
}

#[test]
fn a_replica_announces_what_its_master_was_told() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let ((mut ear, mut r), mut c) = (listening(&replica), master.client());
    for (line, events) in CHANGES {
        let expected: Vec<&str> = events.split_whitespace().collect();
        c.ask(line);
        assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
        assert_eq!(heard(&mut ear, &mut r), expected, "{line}");
    }
    c.multi(&["DQ.PUSH q x ID t", "DQ.POP q LEASE 600000", "DQ.PUSH q x ID t"]);
    c.script("DQ.BURY q t");
    let mut waiting = master.client();
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.push("q x");
    waiting.served();
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    let expected = ["dq.push", "dq.pop", "dq.bury", "dq.dead", "dq.push", "dq.pop"];
    assert_eq!(heard(&mut ear, &mut r), expected);
}

#[test]
fn the_death_of_a_kept_message_is_announced() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    for server in [&master, &replica] {
        let (mut ear, mut marking) = listening(server);
        for (end, event) in [("DQ.ACK q m", "dq.ack"), ("DQ.NACK q m", "dq.nack"), ("DQ.BURY q m", "dq.bury")] {
            c.pipeline(["DQ.PUSH q x ID m REPLACE", "DQ.POP q LEASE 600000", "DQ.PUSH q y ID m TTL 1 REPLACE LATER"]);
            let now = c.now();
            c.until_after(now + 1);
            assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
            heard(&mut ear, &mut marking);
            c.ask(end);
            assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
            assert_eq!(heard(&mut ear, &mut marking), [event, "dq.dead"], "{end}");
        }
    }
}

#[test]
fn loaded_and_synchronised_queues_are_not_announced() {
    let master = Server::with_aof(&[]);
    let mut c = master.client();
    c.push_many("q 2 x y IDS a b");
    c.ask("DQ.BURY q a");
    let replica = Server::start();
    let (mut ear, mut r) = listening(&replica);
    r.ask(format!("REPLICAOF 127.0.0.1 {}", master.port())).ok();
    eventually("the replica has it", || r.digest("q") == c.digest("q"));
    assert!(heard(&mut ear, &mut r).is_empty());
    let (mut ear, mut c) = listening(&master);
    c.ask("DEBUG LOADAOF").ok();
    let heard = heard(&mut ear, &mut c);
    assert!(heard.is_empty(), "{heard:?}");
}

#[test]
fn a_batch_that_replaces_is_announced_once() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    c.push_many("q 2 x y IDS a b");
    heard(&mut ear, &mut c);
    for ids in ["a b", "a new", "a a"] {
        c.push_many(format!("q 2 x y IDS {ids} REPLACE"));
        let events = heard(&mut ear, &mut c);
        assert!(events == ["dq.push"] || events == ["dq.replace"], "{ids}: {events:?}");
    }
}

#[test]
fn what_changed_nothing_is_not_announced() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    c.push("q x ID m DELAY 600000");
    heard(&mut ear, &mut c);
    for line in [
        "DQ.POP q",
        "DQ.ACK q m",
        "DQ.ACKPOP q 1 m",
        "DQ.NACK q m",
        "DQ.EXTEND q m",
        "DQ.PUSH q x ID m",
        "DQ.PUSH q x DELAY -1",
    ] {
        c.ask(line);
    }
    for line in [
        "DQ.MPUSH q 1 x IDS m",
        "DQ.MPUSH q 2 x y IDS n 100000000000-1",
        "DQ.MPOP 1 q",
        "DQ.CANCEL q nobody",
        "DQ.RESCHEDULE q nobody DELAY 5",
        "DQ.REDRIVE q",
        "DQ.REDRIVE q IDS 1 m",
        "DQ.PURGE q ready dead",
        "DQ.CREATE q",
        "DQ.CREATE q LEASE 30000",
        "DQ.CREATE q LEASE 5",
        "DQ.ALTER q MKQUEUE",
        "DQ.BURY q nobody",
        "DQ.PURGE q dead COUNT 1",
        "DQ.NACK q m NOCOUNT",
        "DQ.ALTER q",
        "DQ.ALTER q MAXLEN 0",
        "DQ.RESUME q",
    ] {
        c.ask(line);
    }
    for line in ["DQ.LEN q", "DQ.GET q m", "DQ.INFO q", "DQ.STATS q", "DQ.PEEK q delayed", "DQ.SCAN q 0"] {
        c.ask(line);
    }
    assert!(heard(&mut ear, &mut c).is_empty());
    c.pause("q");
    heard(&mut ear, &mut c);
    c.pause("q");
    c.pause("q FOR 600000");
    assert!(heard(&mut ear, &mut c).is_empty());
    c.resume("q");
    c.pause("q FOR 600000");
    heard(&mut ear, &mut c);
    c.pause("q FOR 1000");
    assert!(heard(&mut ear, &mut c).is_empty(), "a pause is never shortened");
}

#[test]
fn what_a_blocked_client_takes_is_announced() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    let mut waiting = server.client();
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.push("q x");
    waiting.served();
    assert_eq!(heard(&mut ear, &mut c), ["dq.push", "dq.pop"]);
}

#[test]
fn what_time_makes_ready_or_dead_is_announced() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    for (lines, expected) in [
        (["DQ.PUSH q x ID m DELAY 30", "PING"], ["dq.push", "dq.ready"].as_slice()),
        (["DQ.PUSH q x ID n TTL 1", "PING"], &["dq.push", "dq.dead"]),
        (["DQ.PUSH q x ID o RETRIES 0 PRIORITY 9", "DQ.POP q LEASE 1"], &["dq.push", "dq.pop", "dq.dead"]),
        (["DQ.PUSH q x ID p PRIORITY 9", "DQ.POP q LEASE 1"], &["dq.push", "dq.pop", "dq.ready"]),
        (["DQ.RESCHEDULE q p DELAY 30", "PING"], &["dq.reschedule", "dq.ready"]),
        (["DQ.REDRIVE q IDS 1 o DELAY 30", "PING"], &["dq.redrive", "dq.ready"]),
        (["DQ.MPUSH q 2 x y DELAY 30", "PING"], &["dq.push", "dq.ready"]),
        (["DQ.PAUSE q", "DQ.PUSH q x DELAY 30"], &["dq.pause", "dq.push", "dq.ready"]),
    ] {
        c.pipeline(lines);
        let mut events = Vec::new();
        eventually("time is announced", || {
            events.extend(heard(&mut ear, &mut c));
            events.len() >= expected.len()
        });
        assert_eq!(events, expected, "{}", lines[0]);
    }
}

#[test]
fn a_replica_announces_nothing_that_time_does() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let (mut ear, mut r) = listening(&replica);
    let mut c = master.client();
    c.push("q x ID m DELAY 100 TTL 100");
    eventually("it has died on both", || c.len("q dead") == 1 && r.len("q dead") == 1);
    let events = heard(&mut ear, &mut r);
    assert!(events.iter().all(|event| event == "dq.push"), "{events:?}");
}

#[test]
fn no_event_of_other_queues_or_switched_off_classes_arrives() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    c.push("other x");
    c.configure("notify-keyspace-events", "KEg");
    c.push("q x");
    assert!(heard(&mut ear, &mut c).is_empty());
    assert_eq!(c.ask("DEL q"), Reply::Int(1));
    assert_eq!(heard(&mut ear, &mut c), ["del"]);
}

//! Notifications: who listens hears of every change of a queue, once, and of nothing else.

use crate::support::{eventually, Client, Reply, Server};

/// Two connections: one that listens to the key `q`, and one that acts.
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

#[test]
fn every_command_that_changes_something_is_announced_once() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    for (line, event) in [
        ("DQ.PUSH q x ID a", "dq.push"),
        ("DQ.PUSH q x ID b DELAY 600000", "dq.push"),
        ("DQ.PUSH q x ID b REPLACE", "dq.replace"),
        ("DQ.POP q COUNT 2", "dq.pop"),
        ("DQ.EXTEND q a", "dq.extend"),
        ("DQ.NACK q a DELAY 600000", "dq.nack"),
        ("DQ.NACK q b DELAY 0", "dq.nack"),
        ("DQ.POP q", "dq.pop"),
        ("DQ.ACK q b", "dq.ack"),
        ("DQ.PUSH q x ID c", "dq.push"),
        ("DQ.POP q NOACK", "dq.pop"),
    ] {
        assert!(!c.ask(line).is_null(), "{line}");
        assert_eq!(heard(&mut ear, &mut c), [event], "{line}");
    }
}

#[test]
fn what_changed_nothing_is_not_announced() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    c.push("q x ID m DELAY 600000");
    heard(&mut ear, &mut c);
    for line in ["DQ.POP q", "DQ.ACK q m", "DQ.NACK q m", "DQ.EXTEND q m", "DQ.PUSH q x ID m", "DQ.PUSH q x DELAY -1"] {
        c.ask(line);
    }
    for line in ["DQ.LEN q", "DQ.GET q m", "DQ.INFO q"] {
        c.ask(line);
    }
    assert!(heard(&mut ear, &mut c).is_empty());
}

#[test]
fn what_a_waiting_client_takes_is_announced() {
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
fn nobody_hears_of_another_queue_or_of_what_is_switched_off() {
    let server = Server::start();
    let (mut ear, mut c) = listening(&server);
    c.push("other x");
    c.configure("notify-keyspace-events", "KEg");
    c.push("q x");
    assert!(heard(&mut ear, &mut c).is_empty());
    assert_eq!(c.ask("DEL q"), Reply::Int(1));
    assert_eq!(heard(&mut ear, &mut c), ["del"]);
}

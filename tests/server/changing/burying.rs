//! DQ.BURY: makes a message dead, whether or not it was delivered.

use crate::support::{effects_of, in_both_protocols, Reply, Server};

#[test]
fn a_buried_message_is_kept_and_says_why() {
    in_both_protocols(|c| {
        c.push("q x ID m DELAY 600000 PRIORITY 3");
        let before = c.now();
        assert_eq!(c.ask("DQ.BURY q m ERROR blocked-address"), Reply::bulk("delayed"));
        let after = c.now();
        let message = c.get("q", "m");
        assert_eq!((message.text("state").as_str(), message.text("reason").as_str()), ("dead", "rejected"));
        assert_eq!(message.text("error"), "blocked-address");
        assert_eq!((message.int("attempt"), message.int("priority")), (0, 3));
        assert!((before..=after).contains(&message.int("died")));
        assert_eq!(c.about("q").int("died"), 1);
        assert_eq!(c.about("q").int("nacked"), 0);
        assert_eq!(c.ask("DQ.BURY q m ERROR other"), c.null(), "it is dead already");
        assert_eq!(c.get("q", "m"), message);
        assert_eq!(c.ask("DQ.BURY q nobody"), c.null());
        assert_eq!(c.ask("DQ.BURY absent m"), c.null());
        assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
    });
}

#[test]
fn only_the_start_of_a_long_error_is_kept() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    assert_eq!(c.ask(format!("DQ.BURY q m ERROR {}", "e".repeat(1_025))), Reply::bulk("ready"));
    assert_eq!(c.get("q", "m").text("error"), "e".repeat(1_024));
}

#[test]
fn without_an_error_the_last_one_stays() {
    let server = Server::start();
    let mut c = server.client();
    c.push("q x ID m");
    c.pop_one("q");
    c.nack("q m DELAY 600000 ERROR first");
    assert_eq!(c.ask("DQ.BURY q m"), Reply::bulk("delayed"));
    let message = c.get("q", "m");
    assert_eq!((message.text("error").as_str(), message.int("attempt")), ("first", 1));
}

#[test]
fn a_buried_delivery_is_taken_from_its_consumer() {
    in_both_protocols(|c| {
        c.push("q x ID m");
        let held = c.pop_one("q LEASE 600000");
        assert_eq!(c.ask("DQ.BURY q m"), Reply::bulk("inflight"));
        assert_eq!(c.ack(format!("q {}", held.receipt())), 0);
        assert!(c.ask(format!("DQ.NACK q {}", held.receipt())).is_null());
        assert!(c.ask(format!("DQ.EXTEND q {}", held.receipt())).is_null());
        assert_eq!(c.counts("q"), [0, 0, 0, 1]);
        assert_eq!(c.redrive("q"), 1);
        assert_eq!(c.pop_one("q").attempt, 1);
    });
}

#[test]
fn a_buried_message_makes_room_in_a_full_queue() {
    let server = Server::start();
    let mut c = server.client();
    c.create("q MAXLEN 1");
    c.push("q x ID a");
    assert!(c.ask("DQ.PUSH q x").is_error());
    assert_eq!(c.ask("DQ.BURY q a"), Reply::bulk("ready"));
    c.push("q x ID b");
}

#[test]
fn a_queue_that_keeps_no_dead_keeps_no_buried_message() {
    let master = Server::with_aof(&[]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.create("q DEADLEN 1");
    c.push_many("q 3 x y z IDS a b c");
    for id in ["a", "b", "c"] {
        assert_eq!(c.ask(format!("DQ.BURY q {id}")), Reply::bulk("ready"), "{id}");
    }
    assert_eq!(["a", "b", "c"].map(|id| c.state("q", id)), ["absent", "absent", "dead"]);
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(r.digest("q"), c.digest("q"));
}

#[test]
fn a_burial_is_one_effect_and_replays_as_it_was() {
    let effects = effects_of(|c| {
        c.push_many("q 2 x y IDS a b");
        c.ask("DQ.BURY q a ERROR e");
        assert!(c.ask("DQ.BURY q a").is_null());
        assert!(c.ask("DQ.BURY q nobody").is_null());
    });
    assert_eq!(effects.len(), 2, "of the pushes and of the burial");

    let mut server = Server::with_aof(&[]);
    let mut c = server.client();
    c.push_many("q 2 x y IDS a b");
    c.pop_one("q LEASE 600000");
    c.multi(&["DQ.BURY q a ERROR first", "DQ.PUSH q x ID c DELAY 600000"]);
    c.script("DQ.BURY q c");
    let (digest, message) = (c.digest("q"), c.get("q", "a"));
    server.restart_from_aof();
    let mut c = server.client();
    assert_eq!((c.digest("q"), c.get("q", "a")), (digest.clone(), message.clone()));
    server.restart_from_rdb();
    let mut c = server.client();
    assert_eq!((c.digest("q"), c.get("q", "a")), (digest, message));
}

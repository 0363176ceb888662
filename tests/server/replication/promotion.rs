//! Promotion: a promoted replica delivers what it has, and ids and receipts do not repeat.

use crate::support::{eventually, every_state, sequence, Client, Reply, Server};

fn promote(replica: &Server) -> Client {
    let mut c = replica.client();
    c.ask("REPLICAOF NO ONE").ok();
    c
}

#[test]
fn a_promoted_replica_goes_on_where_its_master_was() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    let cast = every_state(&mut c, "q");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    drop(c);
    drop(master);
    cast.expect_alive(&mut promote(&replica), "q");
}

#[test]
fn a_promoted_replica_serves_blocked_clients_when_messages_are_due() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    c.push("q x ID m DELAY 800");
    c.push("other x ID leased");
    c.pop_one("other LEASE 600000");
    let deadline = c.extend("other leased LEASE 900");
    let due = c.get("q", "m").int("due");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    master.kill9();
    let mut c = promote(&replica);
    let (mut first, mut second) = (replica.client(), replica.client());
    first.wait_for_message("q");
    second.wait_for_message("other");
    assert_eq!(first.served().id, "m");
    assert_eq!(second.served().attempt, 2);
    c.expect_delivered_at("q", "m", due);
    c.expect_delivered_at("other", "leased", deadline);
}

#[test]
fn ids_and_receipts_go_on_rising_after_a_failover() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    let ids: Vec<_> = c.pipeline((0..2000).map(|_| "DQ.PUSH q x")).iter().map(Reply::text).collect();
    let receipts: Vec<_> = c.pop("q COUNT 2000").iter().map(|message| message.receipt().to_owned()).collect();
    // The last writes may be lost with the master: no `WAIT` confirms them.
    master.kill9();
    let mut c = promote(&replica);
    let next = c.push("q x ID named REPLACE PRIORITY 127");
    let message = c.pop_one("q");
    assert_eq!(message.id, next);
    let number = |receipt: &str| receipt.split_once('#').unwrap().1.parse::<u64>().unwrap();
    assert!(receipts.iter().map(|receipt| number(receipt)).max() < Some(number(message.receipt())));
    let generated = c.push("q x");
    assert!(ids.iter().map(|id| sequence(id)).max() < Some(sequence(&generated)));
}

#[test]
fn a_promoted_replica_drops_the_dead_that_are_too_many() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    c.configure("dq.default-deadlen", 1);
    for n in 0..3 {
        c.push(format!("q x ID m{n} RETRIES 0"));
    }
    c.pop("q COUNT 3 LEASE 600000");
    for n in 0..3 {
        c.extend(format!("q m{n} LEASE {}", 900 + n));
    }
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    master.kill9();
    let mut c = promote(&replica);
    eventually("one is left", || c.state("q", "m0") == "absent" && c.state("q", "m1") == "absent");
    assert_eq!(c.state("q", "m2"), "dead");
    eventually("and counted", || c.len("q dead") == 1);
}

#[test]
fn a_planned_failover_hands_over_while_messages_fall_due() {
    let mut first = Server::start();
    let second = Server::replica_of(&first, &[]);
    let mut c = first.client();
    let start = c.now() + 100;
    c.pipeline((0..200).map(|n| format!("DQ.PUSH q x ID m{n} AT {}", start + n * 5)));
    c.push("dead x RETRIES 0");
    c.pop_one("dead LEASE 50");
    let mut waiting = first.client();
    waiting.wait_for_message("nothing");
    c.until_blocked(1);
    c.ask("FAILOVER").ok();
    eventually("the roles have changed", || {
        c.info("replication", "role") == "slave" && second.client().info("replication", "role") == "master"
    });
    // Clients that are blocked on the old master are unblocked instead of waiting for ever.
    assert!(waiting.receive().error().starts_with("UNBLOCKED "));
    let mut c = second.client();
    c.until_after(start + 1000);
    let ids = c.pop_ids("q COUNT 500");
    assert_eq!(ids, (0..200).map(|n| format!("m{n}")).collect::<Vec<_>>());
    let mut old = first.client();
    eventually("the old master follows", || old.digest("q") == c.digest("q"));
    first.kill9();
}

#[test]
fn a_master_that_becomes_a_replica_stops_deciding() {
    let first = Server::start();
    let second = Server::start();
    let (mut one, mut two) = (first.client(), second.client());
    one.push("q x ID m RETRIES 0");
    one.pop_one("q LEASE 200");
    two.push("q x ID other DELAY 400");
    two.push("q x ID leased PRIORITY 1");
    two.pop_one("q LEASE 300");
    one.ask(format!("REPLICAOF 127.0.0.1 {}", second.port())).ok();
    eventually("it follows", || one.info("replication", "master_link_status") == "up");
    one.until_state("q", "other", "ready");
    one.until_state("q", "leased", "ready");
    eventually("counts move on both", || one.len("q ready") == 2 && two.len("q ready") == 2);
    assert_eq!(one.digest("q"), two.digest("q"));
    assert_eq!(two.pop_ids("q COUNT 5"), ["leased", "other"]);
    eventually("it still follows", || one.digest("q") == two.digest("q"));
}

#[test]
fn a_promoted_replica_drops_dead_that_its_master_kept() {
    let mut master = Server::with(&["--dq.default-deadlen", "0"]);
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    c.push("q x ID m RETRIES 0");
    // After the delivery the master may not write, so it cannot be the server that drops the message.
    c.pipeline(["DQ.POP q LEASE 50", "CLIENT PAUSE 600000 WRITE"]);
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    master.kill9();
    let mut reader = replica.client();
    // It died by time; a replica deletes nothing by itself.
    reader.until_state("q", "m", "dead");
    let mut c = promote(&replica);
    eventually("nobody needs to touch the queue", || c.len("q dead") == 0);
    assert_eq!(c.ask("DQ.GET q m"), c.null_array());
}

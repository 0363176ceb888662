//! Sentinel: after it replaces a dead master, clients that ask it for the master continue.

use crate::support::{eventually, Load, Reply, Sentinels, Server};

#[test]
fn everything_wait_confirmed_survives_a_failover_by_sentinels() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    let sentinels = Sentinels::watch(&master, 1_000);
    let mut c = master.client();
    c.push("later x ID m DELAY 3000");
    let due = c.get("later", "m").int("due");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    let mut load = Load::confirmed_on("busy", 1_000, || sentinels.roamer());
    let old = master.port();
    master.kill9();
    eventually("they chose the replica", || sentinels.master() == Some(replica.port()));
    assert!(old != replica.port());
    load.go_on();
    let mut next = replica.client();
    assert_eq!(next.info("replication", "role"), "master");
    next.wait_for_message("later");
    assert_eq!(next.served().id, "m");
    assert!(next.get("later", "m").int("deadline") >= due + 600_000, "not before its time");
    load.end().expect_confirmed_delivered();
}

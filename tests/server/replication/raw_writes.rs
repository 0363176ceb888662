//! Replicas and AOF hold effects only: any other write to a queue from there is refused, and replication continues.

use crate::support::{effects_of_every_state, encode, eventually, expect_line, writes, Cluster, Reply, Server};

/// Every command that is replicated as effects, in the client's form, which no master sends to its replicas.
fn raw() -> impl Iterator<Item = &'static str> {
    let more = ["DQ.PUSH new x", "DQ.CREATE new", "DQ.POP q", "DQ.POP nothing BLOCK 0", "DQ.MPOP 2 nothing q BLOCK 0"];
    writes().chain(more)
}

/// Long enough that no node is marked as failed, however slow the machine.
const PATIENT_MS: u32 = 60_000;

/// The setting with which an operator tells the server to ignore an error in such a stream.
pub const GOES_ON: [&str; 2] = ["--propagation-error-behavior", "ignore"];

#[test]
fn a_replica_refuses_raw_writes_and_keeps_following_its_master() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &GOES_ON);
    let (mut c, mut r) = (master.client(), replica.client());
    c.push("q x ID m");
    for line in raw() {
        c.ask(format!("DEBUG REPLICATE {line}")).ok();
    }
    c.push("q x");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1), "nothing blocked the link");
    assert_eq!(r.digest("q"), c.digest("q"));
    assert_eq!(r.ask("EXISTS new nothing"), Reply::Int(0));
    expect_line(&replica, "DQ.PUSH from this server's master was refused");
}

#[test]
fn an_aof_with_a_raw_write_loads_without_it() {
    let mut server = Server::with_aof(&GOES_ON);
    let mut c = server.client();
    c.push("q x ID m");
    let digest = c.digest("q");
    server.kill9();
    let dir = server.dir().join("appendonlydir");
    let mut files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.to_string_lossy().ends_with(".incr.aof")).expect("the AOF");
    let mut log = std::fs::read(&file).unwrap();
    for line in raw().chain(["SET after x"]) {
        log.extend(encode(&line.split(' ').collect::<Vec<_>>()));
    }
    std::fs::write(&file, log).unwrap();
    server.boot();
    let mut c = server.client();
    assert_eq!(c.digest("q"), digest);
    assert_eq!(c.ask("EXISTS after new nothing"), Reply::Int(1));
    expect_line(&server, "DQ.PUSH from the AOF was refused");
    c.push("q x");
}

#[test]
fn an_import_that_brings_raw_writes_fails_and_loses_nothing() {
    let server = Server::start();
    if server.client().ask("COMMAND INFO cluster|migrateslots").items()[0].is_null() {
        return eprintln!("skipped: this server has no CLUSTER MIGRATESLOTS");
    }
    let cluster = Cluster::with(2, PATIENT_MS, &[], &GOES_ON);
    let (tag, slot) = cluster.tag_of(0);
    let (effects, _) = effects_of_every_state();
    let (mut source, mut target) = (cluster.client(1), cluster.client(1));
    let name = "a".repeat(40);
    let source_id = cluster.id(0);
    source.ask(format!("CLUSTER SYNCSLOTS ESTABLISH SOURCE {source_id} NAME {name} SLOTSRANGE {slot} {slot}")).ok();
    let key = format!("{tag}q");
    source.send_raw(&encode(&[b"DQ.E", key.as_bytes(), &effects[0]])).expect("sent");
    eventually("an effect is carried out", || target.info("dq", "dq_queues") == "1");
    source.send(format!("DQ.PUSH {key} x"));
    source.send(format!("DQ.POP {key} BLOCK 0"));
    // The server aborts such an import and deletes what it received: the node that owns the slot still has everything.
    eventually("the import has failed", || target.info("dq", "dq_queues") == "0");
    let imports = target.ask("CLUSTER GETSLOTMIGRATIONS");
    assert_eq!(imports.items()[0].fields().text("state"), "failed");
    expect_line(&cluster.nodes[1], "DQ.PUSH from the node that a slot comes from was refused");
}

//! A replica or an AOF that begins to listen, in whatever way, receives effects only from then on.

use crate::support::{eventually, Client, Reply, Server};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A replica that asks for a synchronization is not served during a test, so no child process and no event follow.
const NEVER_SERVED: [&str; 4] = ["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "3600"];

/// Makes decisions of every kind; after the first one the server knows whether anybody listens.
fn decide(server: &Server) {
    let (mut c, mut waiting) = (server.client(), server.client());
    c.push("q x PRIORITY 9");
    c.push("q x DELAY 600000");
    let message = c.pop_one("q");
    assert_eq!(c.ack(format!("q {}", message.receipt())), 1);
    waiting.wait_for_message("served");
    c.until_blocked(1);
    c.push("served x");
    waiting.served();
    c.multi(&["DQ.PUSH q x", "DQ.POP q NOACK"]);
    let script = "redis.call('DQ.PUSH', KEYS[1], 'x') return redis.call('DQ.POP', KEYS[1])";
    assert_eq!(c.cmd(&["EVAL", script, "1", "q"]).items().len(), 1);
}

/// The number of effects of these commands.
const DECISIONS: usize = 10;

/// The offset at which the backlog begins.
fn begin(server: &Server) -> i64 {
    server.client().info("replication", "repl_backlog_first_byte_offset").parse().expect("an offset")
}

/// The offset at which a replica resumes that has loaded the file of a `SAVE`.
fn after_save(server: &Server) -> i64 {
    let mut c = server.client();
    c.ask("SAVE").ok();
    c.info("replication", "master_repl_offset").parse::<i64>().expect("an offset") + 1
}

/// The names of the commands that a replica receives if it resumes from `offset`.
fn told(server: &Server, offset: i64) -> Vec<String> {
    let mut c = server.client();
    static ENDS: AtomicUsize = AtomicUsize::new(0);
    let end = format!("end-{}", ENDS.fetch_add(1, Ordering::Relaxed));
    c.ask(format!("SET {end} x")).ok();
    let id = c.info("replication", "master_replid");
    let mut replica = server.client();
    let answer = replica.ask(format!("PSYNC {id} {offset}"));
    assert!(matches!(&answer, Reply::Simple(text) if text.starts_with("CONTINUE")), "{answer:?}");
    let mut names = Vec::new();
    loop {
        let command = replica.receive();
        if command.items().get(1).is_some_and(|word| word.text() == end) {
            return names;
        }
        names.push(command.items()[0].text());
    }
}

/// Checks that decisions reach a listener that resumes from `offset` as effects, all of them and nothing else. It looks
/// only afterwards, because this client is a listener too.
#[track_caller]
fn expect_effects(server: &Server, offset: i64) {
    decide(server);
    let before = effects(server, offset);
    assert!(before >= DECISIONS, "{before} effects");
    decide(server);
    assert_eq!(effects(server, offset) - before, DECISIONS);
}

/// Counts the effects after `offset`, and checks that there is no other command of a queue.
#[track_caller]
fn effects(server: &Server, offset: i64) -> usize {
    let mut names = told(server, offset);
    names.retain(|name| name.starts_with("DQ."));
    assert!(names.iter().all(|name| name == "DQ.E"), "{names:?}");
    names.len()
}

fn has_backlog(c: &mut Client) -> bool {
    c.info("replication", "repl_backlog_active") == "1"
}

/// A server that knows that it has no replica and no AOF.
fn unheard(args: &[&str]) -> Server {
    let server = Server::with(args);
    decide(&server);
    assert!(!has_backlog(&mut server.client()));
    server
}

/// A connection that has announced the capabilities of a replica: otherwise it would be served at once, by a child
/// process.
fn replica_to_be(server: &Server) -> Client {
    let mut replica = server.client();
    replica.ask("REPLCONF capa eof capa psync2").ok();
    replica
}

/// Asks for a synchronisation and disconnects before it is served.
fn ask_and_leave(server: &Server, line: &str) {
    let (mut c, mut replica) = (server.client(), replica_to_be(server));
    replica.send(line);
    eventually("there is a backlog", || has_backlog(&mut c));
    drop(replica);
    eventually("the replica has gone", || c.info("replication", "connected_slaves") == "0");
}

/// Waits until the replica has applied everything. `WAIT` is about the writes of its own client, so it needs one.
#[track_caller]
fn wait_for_replica(master: &Server) {
    let mut c = master.client();
    c.push("q last");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
}

#[test]
fn a_snapshot_after_a_replica_that_left_early_is_followed_by_effects() {
    for line in ["PSYNC ? -1", "psync ? -1 and more", "SYNC"] {
        let server = unheard(&NEVER_SERVED);
        ask_and_leave(&server, line);
        expect_effects(&server, after_save(&server));
    }
}

#[test]
fn a_never_served_replica_resumes_from_a_copied_file() {
    let master = unheard(&NEVER_SERVED);
    let port = master.port().to_string();
    let mut replica = Server::with(&["--replicaof", "127.0.0.1", &port]);
    let mut c = master.client();
    eventually("the replica has asked", || c.info("replication", "connected_slaves") == "1");
    replica.kill9();
    eventually("it has gone", || c.info("replication", "connected_slaves") == "0");
    c.ask("SAVE").ok();
    std::fs::copy(master.dir().join("dump.rdb"), replica.dir().join("dump.rdb")).expect("a copy");
    decide(&master);
    replica.boot();
    let mut r = replica.client();
    eventually("it resumes", || r.info("replication", "master_link_status") == "up");
    assert_eq!(c.info("stats", "sync_partial_ok"), "1");
    wait_for_replica(&master);
    for key in ["q", "served"] {
        assert_eq!(r.digest(key), c.digest(key));
    }
}

#[test]
fn a_snapshot_after_a_failed_fork_is_followed_by_effects() {
    for diskless in ["yes", "no"] {
        let server = Server::without_fork(&["--repl-diskless-sync", diskless]);
        decide(&server);
        let (mut c, mut replica) = (server.client(), server.client());
        replica.send("PSYNC ? -1");
        eventually("no child could be had", || has_backlog(&mut c) && c.info("replication", "connected_slaves") == "0");
        expect_effects(&server, after_save(&server));
    }
}

#[test]
fn a_snapshot_after_a_request_put_off_is_followed_by_effects() {
    let server = unheard(&NEVER_SERVED);
    let mut clients: Vec<_> = (0..20).map(|_| server.client()).collect();
    let mut replica = replica_to_be(&server);
    clients[0].ask("CLIENT PAUSE 1500 ALL").ok();
    // They are executed in this order when the pause is over.
    for client in &mut clients[..10] {
        client.send("DQ.PUSH q x");
    }
    replica.send("PSYNC ? -1");
    for client in &mut clients[10..] {
        client.send("DQ.PUSH q x");
    }
    for client in &mut clients {
        assert!(!client.receive().is_error());
    }
    assert!(has_backlog(&mut clients[0]));
    drop(replica);
    expect_effects(&server, after_save(&server));
}

#[test]
fn a_replica_that_asks_under_another_name_hears_effects() {
    let server = unheard(&[&NEVER_SERVED[..], &["--rename-command", "SYNC", "LISTEN"]].concat());
    ask_and_leave(&server, "LISTEN");
    expect_effects(&server, after_save(&server));
}

#[test]
fn a_promoted_replica_goes_on_with_effects() {
    let master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    decide(&master);
    wait_for_replica(&master);
    replica.client().ask("REPLICAOF NO ONE").ok();
    expect_effects(&replica, begin(&replica));
}

#[test]
fn a_master_that_was_briefly_a_replica_sends_effects() {
    let master = Server::start();
    let server = unheard(&[]);
    let mut c = server.client();
    c.ask(format!("REPLICAOF 127.0.0.1 {}", master.port())).ok();
    eventually("it follows", || c.info("replication", "master_link_status") == "up");
    c.ask("REPLICAOF NO ONE").ok();
    expect_effects(&server, begin(&server));
}

#[test]
fn a_master_restarted_with_its_replication_id_sends_effects() {
    let mut master = Server::start();
    let replica = Server::replica_of(&master, &[]);
    decide(&master);
    drop(replica);
    master.restart_from_rdb();
    assert!(has_backlog(&mut master.client()));
    expect_effects(&master, begin(&master));
}

#[test]
fn an_aof_delayed_by_another_child_misses_nothing() {
    let server = unheard(&[]);
    let mut c = server.client();
    c.configure("rdb-key-save-delay", 500_000);
    c.ask("BGSAVE");
    c.configure("appendonly", "yes");
    decide(&server);
    expect_same_after_load(&server);
}

#[test]
fn an_aof_switched_on_in_a_transaction_misses_nothing() {
    let server = unheard(&[]);
    server.client().multi(&["DQ.PUSH q x", "DQ.POP q COUNT 2", "CONFIG SET appendonly yes", "DQ.PUSH q y", "DQ.POP q"]);
    decide(&server);
    expect_same_after_load(&server);
}

/// Checks that the AOF holds the queues as they are, once its first file is there.
#[track_caller]
fn expect_same_after_load(server: &Server) {
    let mut c = server.client();
    c.until_rewritten();
    decide(server);
    let digests = |c: &mut Client| ["q", "served"].map(|key| c.digest(key));
    let before = digests(&mut c);
    c.ask("DEBUG LOADAOF").ok();
    assert_eq!(digests(&mut c), before);
}

#[test]
fn a_server_works_on_if_its_aof_cannot_start() {
    let server = Server::without_fork(&[]);
    decide(&server);
    let mut c = server.client();
    assert!(c.ask("CONFIG SET appendonly yes").is_error());
    decide(&server);
    ask_and_leave_without_child(&server);
    expect_effects(&server, after_save(&server));
}

fn ask_and_leave_without_child(server: &Server) {
    let (mut c, mut replica) = (server.client(), server.client());
    replica.send("SYNC");
    eventually("there is a backlog", || has_backlog(&mut c) && c.info("replication", "connected_slaves") == "0");
}

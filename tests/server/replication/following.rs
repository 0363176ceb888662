//! Replication: a replica has the same queue; it receives what clients do, and messages that become due send nothing.

use crate::support::{
    effects_of_every_state, eventually, every_command, every_state, known_of_every_command, writes, Client, Reply,
    Server,
};

/// A master that sends no pings to its replicas.
fn quiet_master() -> Server {
    Server::with(&["--repl-ping-replica-period", "3600"])
}

/// Waits until the replicas have everything that this client wrote.
#[track_caller]
fn replicate(c: &mut Client, replicas: i64) {
    assert!(c.ask(format!("WAIT {replicas} 20000")).int() >= replicas, "the replicas follow");
}

fn offset(c: &mut Client) -> String {
    c.info("replication", "master_repl_offset")
}

#[test]
fn a_replica_that_comes_later_gets_the_same_queue() {
    let master = quiet_master();
    let mut c = master.client();
    let cast = every_state(&mut c, "q");
    let replica = Server::replica_of(&master, &[]);
    let mut r = replica.client();
    assert_eq!(r.digest("q"), c.digest("q"));
    assert_eq!(cast.portraits(&mut r, "q"), cast.portraits(&mut c, "q"));
    eventually("the totals came too", || r.about_but_time("q") == c.about_but_time("q"));
}

#[test]
fn a_replica_follows_every_command() {
    let master = quiet_master();
    // Other defaults on the other side must not matter: a queue's settings are its own.
    let replica = Server::replica_of(&master, &["--dq.default-lease", "77", "--dq.default-retries", "0"]);
    let (mut c, mut r) = (master.client(), replica.client());
    let mut follow = |c: &mut Client, what: &str| {
        replicate(c, 1);
        assert_eq!(r.digest("q"), c.digest("q"), "after {what}");
    };
    for line in [
        "DQ.PUSH q x",
        "DQ.PUSH q x ID a PRIORITY 9 RETRIES 1 LEASE 5000 TTL 600000",
        "DQ.PUSH q x ID late DELAY 600000",
        "DQ.PUSH q x AT 8000000000000",
        "DQ.PUSH q y ID late DELAY 700000 REPLACE",
        "DQ.PUSH q z ID late",
        "DQ.POP q",
        "DQ.EXTEND q a",
        "DQ.EXTEND q a LEASE 600000",
        "DQ.NACK q a DELAY 0 ERROR boom",
        "DQ.POP q LEASE 600000 COUNT 2",
        "DQ.NACK q a",
        "DQ.MPUSH q 1 x IDS a",
        "DQ.PUSH q x ID a REPLACE PRIORITY 8",
        "DQ.POP q NOACK",
        "DQ.PUSH q x ID b PRIORITY 7",
        "DQ.POP q LEASE 600000",
        "DQ.NACK q b DEAD ERROR no",
        "DQ.PUSH q x ID c PRIORITY 6",
        "DQ.POP q LEASE 600000",
        "DQ.ACK q c nobody",
        "DQ.POP absent",
        "DQ.POP q COUNT 100 LEASE 1",
    ] {
        assert!(!matches!(c.ask(line), Reply::Error(_)), "{line}");
        follow(&mut c, line);
    }
    for line in [
        "DQ.MPUSH q 3 x y z IDS m n o PRIORITY 20 RETRIES 1",
        "DQ.MPUSH q 3 x y z IDS m m p REPLACE DELAY 600000",
        "DQ.RESCHEDULE q m DELAY 0",
        "DQ.MPOP 2 absent q COUNT 3 LEASE 600000",
        "DQ.NACK q n DEAD",
        "DQ.NACK q o DEAD ERROR no",
        "DQ.REDRIVE q COUNT 1",
        "DQ.REDRIVE q IDS 2 o n DELAY 600000",
        "DQ.CANCEL q n p nobody",
        "DQ.ALTER q LEASE 9000 DEADLEN 1 BACKOFF 5 50",
        "DQ.PAUSE q",
        "DQ.POP q",
        "DQ.RESUME q",
        "DQ.PURGE q delayed",
        "DQ.PURGE q dead",
        "DEL q",
        "DQ.CREATE q LEASE 600000 MAXLEN 9",
    ] {
        assert!(!matches!(c.ask(line), Reply::Error(_)), "{line}");
        if line != "DEL q" {
            follow(&mut c, line);
        }
    }
    c.multi(&["DQ.PUSH q x ID d", "DQ.POP q COUNT 5 LEASE 600000", "DQ.NACK q d", "DQ.PUSH q x ID e"]);
    follow(&mut c, "a transaction");
    let script = "redis.call('DQ.PUSH', KEYS[1], 'x') return redis.call('DQ.POP', KEYS[1], 'COUNT', 3)";
    c.cmd(&["EVAL", script, "1", "q"]);
    follow(&mut c, "a script");
}

#[test]
fn a_late_replica_equals_one_that_followed() {
    let master = quiet_master();
    let early = Server::replica_of(&master, &["--dq.default-lease", "77", "--dq.default-deadlen", "0"]);
    let mut c = master.client();
    let known = every_command(&mut c);
    replicate(&mut c, 1);
    assert_eq!(known_of_every_command(&mut early.client()), known);
    let late = Server::replica_of(&master, &["--dq.default-maxlen", "1"]);
    assert_eq!(known_of_every_command(&mut late.client()), known);
    assert_eq!(known_of_every_command(&mut c), known);
}

#[test]
fn a_replica_looks_and_writes_nothing() {
    let master = quiet_master();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.push("q x ID m");
    replicate(&mut c, 1);
    assert_eq!((r.peek_ids("q"), r.scan_ids("q", "")), (vec!["m".to_owned()], vec!["m".to_owned()]));
    for line in writes() {
        assert!(r.ask(line).error().starts_with("READONLY "), "{line}");
    }
}

#[test]
fn a_replica_follows_what_blocked_clients_were_served() {
    let master = quiet_master();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r, mut waiting) = (master.client(), replica.client(), master.client());
    for options in ["", "DELAY 50"] {
        waiting.wait_for_message("q");
        c.until_blocked(1);
        c.push(format!("q x {options}"));
        let message = waiting.served();
        replicate(&mut waiting, 1);
        assert_eq!(r.state("q", &message.id), "inflight");
        assert_eq!(r.digest("q"), c.digest("q"));
    }
}

#[test]
fn a_replica_follows_late_acks_and_what_dies_of_time() {
    let master = quiet_master();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    every_state(&mut c, "q");
    replicate(&mut c, 1);
    assert_eq!(r.digest("q"), c.digest("q"));
    assert_eq!(c.ack("q spent lapsed"), 2);
    c.push("q x ID expired REPLACE");
    replicate(&mut c, 1);
    assert_eq!(r.digest("q"), c.digest("q"));
    assert_eq!(r.state("q", "spent"), "absent");
}

#[test]
fn a_replica_drops_the_same_dead_as_its_master() {
    let master = quiet_master();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.configure("dq.default-deadlen", 2);
    for n in 0..4 {
        c.push(format!("q x ID nacked{n}"));
        c.pop_one("q");
        c.nack(format!("q nacked{n} DEAD"));
    }
    for n in 0..4 {
        c.push(format!("q x ID lapsed{n} RETRIES 0"));
    }
    c.pop("q COUNT 4 LEASE 1");
    eventually("two are left", || c.len("q dead") == 2 && c.state("q", "lapsed1") == "absent");
    eventually("of the same names", || r.digest("q") == c.digest("q"));
    assert_eq!(["lapsed2", "lapsed3"].map(|id| r.state("q", id)), ["dead", "dead"]);
}

#[test]
fn a_replica_sees_due_messages_without_traffic() {
    let master = quiet_master();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    let due = c.now() + 700;
    c.pipeline((0..1000).map(|n| format!("DQ.PUSH q x ID m{n} AT {due}")));
    c.push("q x ID expiring TTL 500 PRIORITY -1");
    c.push("q x ID lapsing PRIORITY 1");
    c.push("q x ID spending PRIORITY 1 RETRIES 0");
    assert_eq!(c.pop("q COUNT 2 LEASE 500").len(), 2);
    replicate(&mut c, 1);
    let before = offset(&mut c);
    let moved =
        |c: &mut Client| ["q delayed", "q ready", "q inflight", "q dead"].map(|line| c.len(line)) == [0, 1001, 0, 2];
    eventually("all has moved on the master", || moved(&mut c));
    eventually("all has moved on the replica", || moved(&mut r));
    assert_eq!(offset(&mut c), before, "not a byte was sent");
    assert_eq!(r.digest("q"), c.digest("q"));
}

#[test]
fn the_timer_of_a_replica_finds_fully_synchronised_queues() {
    let master = quiet_master();
    let mut c = master.client();
    c.push("q x ID m DELAY 2500");
    c.push("q x ID leased");
    c.pop_one("q LEASE 600000");
    c.extend("q leased LEASE 2500");
    let replica = Server::replica_of(&master, &[]);
    // No command names the key on the replica, and its counts still change.
    let mut r = replica.client();
    let counts = |c: &mut Client| ["dq_delayed", "dq_ready", "dq_inflight"].map(|field| c.info("dq", field));
    eventually("time goes on", || counts(&mut r) == ["0", "2", "0"]);
}

#[test]
fn looking_at_a_replica_tells_the_state_of_now() {
    let master = quiet_master();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.push("q x ID m DELAY 300");
    replicate(&mut c, 1);
    r.until_state("q", "m", "ready");
    for line in ["DQ.PUSH q x", "DQ.POP q", "DQ.ACK q m", "DQ.NACK q m", "DQ.EXTEND q m"] {
        assert!(r.ask(line).error().starts_with("READONLY "), "{line}");
    }
}

#[test]
fn a_chain_of_replicas_is_as_good() {
    let master = quiet_master();
    let middle = Server::replica_of(&master, &["--repl-ping-replica-period", "3600"]);
    let last = Server::replica_of(&middle, &[]);
    let (mut c, mut l) = (master.client(), last.client());
    let cast = every_state(&mut c, "q");
    eventually("the end of the chain has it all", || l.digest("q") == c.digest("q"));
    assert_eq!(cast.portraits(&mut l, "q"), cast.portraits(&mut c, "q"));
    c.push("q x ID falling-due DELAY 50");
    eventually("it is there", || l.state("q", "falling-due") == "ready");
}

#[test]
fn a_replica_with_its_own_aof_restarts_unchanged() {
    let master = quiet_master();
    let mut replica = Server::replica_of(&master, &["--appendonly", "yes", "--appendfsync", "always"]);
    let mut c = master.client();
    every_state(&mut c, "q");
    c.push("q x ID falls-due DELAY 30");
    c.push("q x ID lapses PRIORITY 90");
    c.pop_one("q LEASE 30");
    replicate(&mut c, 1);
    let digest = c.digest("q");
    let mut r = replica.client();
    r.until_state("q", "falls-due", "ready");
    r.until_state("q", "lapses", "ready");
    r.until_rewritten();
    drop(c);
    drop(master);
    replica.restart_from_aof();
    assert_eq!(replica.client().digest("q"), digest);
}

#[test]
fn effects_are_refused_to_ordinary_clients() {
    let server = Server::start();
    let mut c = server.client();
    every_state(&mut c, "q");
    let (digest, about) = (c.digest("q"), c.about_but_time("q"));
    for line in ["DQ.E q x", "DQ.E absent x"] {
        let reply = c.ask(line);
        assert!(reply.error().contains("dq.allow-effects"), "{reply:?}");
    }
    let script = "return redis.call('DQ.E', KEYS[1], 'x')";
    assert!(matches!(c.cmd(&["EVAL", script, "1", "q"]), Reply::Error(_)));
    assert!(c.multi(&["DQ.E q x"])[0].error().contains("dq.allow-effects"));
    assert_eq!((c.digest("q"), c.about_but_time("q")), (digest, about));
    assert_eq!(c.ask("EXISTS absent"), Reply::Int(0));
}

#[test]
fn a_forwarder_that_is_allowed_to_may_send_effects() {
    let (effects, digest) = effects_of_every_state();
    let master = Server::with_aof(&["--dq.allow-effects", "yes"]);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    for effect in effects {
        let reply = c.cmd(&[b"DQ.E", b"q".as_slice(), &effect]);
        assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
    }
    assert_eq!(c.digest("q"), digest);
    replicate(&mut c, 1);
    assert_eq!(r.digest("q"), digest, "they go on to the replica");
    c.ask("DEBUG LOADAOF").ok();
    assert_eq!(c.digest("q"), digest, "and into the AOF");
}

#[test]
fn paused_writes_hold_everything_back_and_lose_nothing() {
    let master = quiet_master();
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    let mut waiting = [master.client(), master.client()];
    // A queue that drops dead messages has something to replicate while it must not.
    c.configure("dq.default-deadlen", 0);
    c.push("dying x ID spent RETRIES 0");
    c.pop_one("dying LEASE 200");
    c.push("dying x ID expired TTL 200");
    let due = c.now() + 300;
    for (n, client) in waiting.iter_mut().enumerate() {
        client.wait_for_message("q");
        c.until_blocked(n + 1);
    }
    c.multi(&[
        &format!("DQ.PUSH q x ID a AT {due}"),
        &format!("DQ.PUSH q x ID b AT {due}"),
        "CLIENT PAUSE 600000 WRITE",
    ]);
    c.until_after(due + 100);
    assert_eq!(["a", "b"].map(|id| c.state("q", id)), ["ready", "ready"], "looking is not paused");
    assert_eq!(c.info("dq", "dq_blocked_clients"), "2");
    c.ask("CLIENT UNPAUSE").ok();
    assert_eq!(waiting.each_mut().map(|client| client.served().id), ["a", "b"]);
    for id in ["a", "b"] {
        c.expect_delivered_at("q", id, due);
    }
    eventually("the dead are dropped", || {
        c.state("dying", "spent") == "absent" && c.state("dying", "expired") == "absent"
    });
    let mut r = replica.client();
    eventually("the replica follows", || ["q", "dying"].into_iter().all(|key| r.digest(key) == c.digest(key)));
}

#[test]
fn a_push_during_a_write_pause_is_delivered_after_it() {
    let master = quiet_master();
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut waiting) = (master.client(), master.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.multi(&["DQ.PUSH q x ID m", "CLIENT PAUSE 600000 WRITE"]);
    assert_eq!(c.state("q", "m"), "ready");
    assert_eq!(c.info("dq", "dq_blocked_clients"), "1");
    c.ask("CLIENT UNPAUSE").ok();
    assert_eq!(waiting.served().id, "m");
    let mut r = replica.client();
    eventually("the replica follows", || r.digest("q") == c.digest("q"));
    assert_eq!(r.state("q", "m"), "inflight");
}

#[test]
fn a_replica_shows_when_the_last_delivery_was() {
    let server = Server::start();
    let replica = Server::replica_of(&server, &[]);
    let (mut c, mut r) = (server.client(), replica.client());
    c.push_many("q 3 x x x IDS a b c");
    for delivery in ["q LEASE 600000", "q NOACK"] {
        let before = c.now();
        c.pop_one(delivery);
        replicate(&mut c, 1);
        let ago = r.about("q").int("last-delivery");
        assert!(ago <= r.now() - before, "{ago} ms ago after DQ.POP {delivery}");
        let now = c.now();
        c.until_after(now + 10);
    }
    r.ask("REPLICAOF NO ONE").ok();
    assert!(r.about("q").int("last-delivery") >= 10, "it is known after the promotion too");
}

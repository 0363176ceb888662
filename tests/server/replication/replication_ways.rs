//! Replicas of every kind: they are equal however they got the data and whatever happened to their link.

use crate::support::{any_command, eventually, history, Client, Random, Reply, Server};

const KEYS: [&str; 3] = ["a", "b", "c"];

/// Servers that send no pings and have a large backlog for replicas that were away.
const QUIET: [&str; 4] = ["--repl-ping-replica-period", "3600", "--repl-backlog-size", "64mb"];

/// The digests of all queues.
fn digests(c: &mut Client) -> Reply {
    c.ask(format!("DEBUG DIGEST-VALUE {}", KEYS.join(" ")))
}

/// Waits until all replicas equal the master, which may still drop messages that died a moment ago.
#[track_caller]
fn expect_same(master: &Server, replicas: &[&Server], what: &str) {
    let mut c = master.client();
    for (n, replica) in replicas.iter().enumerate() {
        let mut r = replica.client();
        eventually(&format!("replica {n} is the same, {what}"), || digests(&mut r) == digests(&mut c));
    }
}

/// A random command on a queue or, sometimes, on its key.
fn line(random: &mut Random) -> String {
    match random.below(24) {
        0 => {
            random.one_of(&["DEL a", "DQ.CREATE a DEADLEN 1", "COPY b c REPLACE", "RENAME b a", "FLUSHDB"]).to_string()
        }
        _ => any_command(random, &KEYS),
    }
}

/// Sends this many commands.
fn go_on(c: &mut Client, random: &mut Random, commands: usize) {
    history::go_on(c, random, commands, line);
}

#[test]
fn replicas_of_every_kind_follow_a_random_history() {
    let with = |more: &[&'static str]| [&QUIET, more].concat();
    let master = Server::with(&with(&[]));
    let swapping = Server::replica_of(&master, &with(&["--repl-diskless-load", "swapdb"]));
    let chained = Server::replica_of(&swapping, &[]);
    let mut logging = Server::replica_of(&master, &["--appendonly", "yes", "--appendfsync", "always"]);
    let mut c = master.client();
    let mut random = Random::seeded(7);
    for round in 0..12 {
        go_on(&mut c, &mut random, 200);
        match round % 4 {
            0 => {}
            1 => {
                // They reconnect and receive what they missed.
                let told = c.info("stats", "sync_partial_ok");
                c.ask("CLIENT KILL TYPE replica");
                swapping.client().ask("CLIENT KILL TYPE replica");
                go_on(&mut c, &mut random, 50);
                eventually("they came back", || c.info("stats", "sync_partial_ok") != told);
            }
            2 => {
                // The master has a new replication id, so they synchronize in full, in turn from a stream and from a
                // file.
                let begun = c.info("stats", "sync_full");
                c.configure("repl-diskless-sync", if round == 2 { "no" } else { "yes" });
                c.ask("DEBUG CHANGE-REPL-ID").ok();
                c.ask("CLIENT KILL TYPE replica");
                go_on(&mut c, &mut random, 50);
                eventually("they begin again", || c.info("stats", "sync_full") != begun);
            }
            _ => {
                logging.client().until_rewritten();
                logging.restart_from_aof();
            }
        }
        go_on(&mut c, &mut random, 50);
        expect_same(&master, &[&swapping, &chained, &logging], &format!("round {round}"));
    }
    for total in ["pushed", "duplicates", "delivered", "acked", "nacked", "died", "expired", "redriven", "cancelled"] {
        assert_ne!(c.info("dq", &format!("dq_total_{total}")), "0", "a history without {total}");
    }
    // The AOF holds the same too, without a master to ask.
    logging.client().until_rewritten();
    let mut l = logging.client();
    l.ask("REPLICAOF NO ONE").ok();
    let kept = digests(&mut l);
    l.ask("DEBUG LOADAOF").ok();
    assert_eq!(digests(&mut l), kept);
}

#[test]
fn a_replica_loading_in_background_switches_to_the_new_data() {
    let master = Server::with(&["--repl-ping-replica-period", "3600", "--repl-backlog-size", "16kb"]);
    let replica = Server::replica_of(&master, &["--repl-diskless-load", "swapdb"]);
    let (mut c, mut r) = (master.client(), replica.client());
    c.push("a x ID old DELAY 600000");
    c.push("b x ID falls-due DELAY 1500");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    // It misses more than its master's backlog holds, so it has to synchronize in full with the same master.
    r.ask("REPLICAOF 127.0.0.1 1").ok();
    eventually("the link is cut", || c.info("replication", "connected_slaves") == "0");
    let payload = "p".repeat(1_000);
    c.pipeline((0..200).map(|_| format!("DQ.PUSH c {payload} DELAY 600000")));
    c.pipeline((0..50).map(|n| format!("DQ.PUSH other{n} {payload} DELAY 600000")));
    assert_eq!(c.cancel("a old"), ["delayed"]);
    c.push("a x ID new DELAY 600000");
    // The load is slow enough to be observed on any machine.
    r.configure("loading-process-events-interval-bytes", 1024);
    r.configure("key-load-delay", 200_000);
    r.ask(format!("REPLICAOF 127.0.0.1 {}", master.port())).ok();
    eventually("it loads in the background", || r.info("persistence", "async_loading") == "1");
    assert_eq!((r.state("a", "old"), r.ask("DQ.INFO c").is_null()), ("delayed".into(), true), "as it was");
    r.configure("key-load-delay", 0);
    eventually("it has it all", || r.info("replication", "master_link_status") == "up");
    expect_same(&master, &[&replica], "after the load");
    assert_eq!((r.state("a", "old"), r.state("a", "new")), ("absent".into(), "delayed".into()));
    // Its timer handles the loaded queues, although no command names the key.
    eventually("time goes on", || r.info("dq", "dq_ready") == "1");
    assert_eq!(r.state("b", "falls-due"), "ready");
}

#[test]
fn a_hundred_thousand_that_fall_due_at_once_send_nothing() {
    const BATCHES: usize = 100;
    const BATCH: usize = 1_000;
    let master = Server::with(&QUIET);
    let replica = Server::replica_of(&master, &[]);
    let (mut c, mut r) = (master.client(), replica.client());
    let total = (BATCHES * BATCH) as i64;
    // This is after the last push, except on a very slow machine, where the test proves less but still passes.
    let due = c.now() + 2_000;
    c.pipeline((0..BATCHES).map(|_| format!("DQ.MPUSH a {BATCH} {} AT {due}", "x ".repeat(BATCH))));
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    let offset = c.info("replication", "master_repl_offset");
    eventually("all are ready", || c.counts("a") == [0, total, 0, 0] && r.counts("a") == [0, total, 0, 0]);
    assert_eq!(c.info("replication", "master_repl_offset"), offset, "not a byte was sent");
    expect_same(&master, &[&replica], "all ready");
}

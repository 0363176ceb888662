//! A replica that connects or reconnects during work, or an AOF that is switched on, misses nothing.

use crate::support::{effects_of, eventually, Client, Reply, Server};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a worker rests after each round.
const PAUSE: Duration = Duration::from_micros(500);

/// Producers and consumers that run until they are stopped.
struct Work {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Work {
    /// Starts them and waits until they make progress.
    fn on(server: &Server) -> Work {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..3)
            .map(|worker| {
                let (mut c, stop) = (server.client(), stop.clone());
                std::thread::spawn(move || {
                    let mut n = 0;
                    while !stop.load(Ordering::Relaxed) {
                        n += 1;
                        work(&mut c, worker, n);
                        // Without a pause, three of these loops occupy two processors: on some kernels neither the
                        // children that save nor the threads that complete an fsync run for half a minute then.
                        std::thread::sleep(PAUSE);
                    }
                })
            })
            .collect();
        let mut c = server.client();
        eventually("work is going on", || c.ask("EXISTS q") == Reply::Int(1) && c.about("q").int("acked") > 100);
        Work { stop, threads }
    }

    /// Runs until this many more messages were completed, then stops.
    fn end(self, server: &Server) {
        let mut c = server.client();
        let goal = c.about("q").int("acked") + 100;
        eventually("work goes on", || c.about("q").int("acked") > goal);
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("no reply was wrong");
        }
    }
}

/// One round of pushes, deliveries, acks and nacks, some of them in a transaction.
fn work(c: &mut Client, worker: usize, n: usize) {
    c.push(format!("q payload-{n} ID w{worker}:{n} PRIORITY {}", n % 3));
    c.push(format!("q payload DELAY {}", n % 7));
    for message in c.pop("q COUNT 3 LEASE 600000") {
        match n % 4 {
            0 => drop(c.ask(format!("DQ.NACK q {} DELAY 3 ERROR no", message.receipt()))),
            1 => drop(c.multi(&[&format!("DQ.ACK q {}", message.receipt()), "DQ.POP q NOACK", "DQ.PUSH q x"])),
            _ => drop(c.ack(format!("q {}", message.receipt()))),
        }
    }
}

/// Checks that the replica equals the master after the work has stopped.
#[track_caller]
fn expect_same(master: &Server, replica: &Server) {
    let (mut c, mut r) = (master.client(), replica.client());
    c.push("q last");
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(r.digest("q"), c.digest("q"));
}

#[test]
fn a_replica_that_comes_while_work_goes_on_misses_nothing() {
    for diskless in ["yes", "no"] {
        let master = Server::with(&["--repl-diskless-sync", diskless]);
        let work = Work::on(&master);
        let replica = Server::replica_of(&master, &[]);
        work.end(&master);
        expect_same(&master, &replica);
    }
}

#[test]
fn a_replica_that_comes_during_a_save_misses_nothing() {
    let master = Server::start();
    let work = Work::on(&master);
    let mut c = master.client();
    c.configure("rdb-key-save-delay", 300_000);
    c.ask("BGSAVE");
    let replica = Server::replica_of(&master, &[]);
    work.end(&master);
    expect_same(&master, &replica);
}

#[test]
fn a_replica_that_comes_back_misses_nothing() {
    // The backlog has room for everything that is missed, however fast the machine.
    let master = Server::with(&["--repl-backlog-size", "256mb"]);
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    let work = Work::on(&master);
    for _ in 0..3 {
        eventually("the master counts on it", || c.info("replication", "slave0").contains("state=online"));
        let stats = c.info("stats", "sync_partial_ok");
        replica.signal("STOP");
        c.ask("CLIENT KILL TYPE replica");
        eventually("it is gone", || c.info("replication", "connected_slaves") == "0");
        replica.signal("CONT");
        eventually("it came back and was told what it missed", || c.info("stats", "sync_partial_ok") != stats);
    }
    work.end(&master);
    expect_same(&master, &replica);
    assert_eq!(c.info("stats", "sync_full"), "1", "it never had to begin again");
}

#[test]
fn a_second_replica_and_one_that_leaves_disturb_nobody() {
    let master = Server::start();
    let work = Work::on(&master);
    let leaving = Server::replica_of(&master, &[]);
    let staying = Server::replica_of(&master, &[]);
    leaving.client().ask("REPLICAOF NO ONE").ok();
    drop(leaving);
    work.end(&master);
    expect_same(&master, &staying);
}

#[test]
fn an_aof_switched_on_during_work_misses_nothing() {
    let server = Server::start();
    let mut c = server.client();
    for _ in 0..2 {
        let work = Work::on(&server);
        c.configure("appendonly", "yes");
        eventually("its first file is written", || {
            c.info("persistence", "aof_rewrite_in_progress") == "0"
                && c.info("persistence", "aof_rewrite_scheduled") == "0"
        });
        work.end(&server);
        let digest = c.digest("q");
        c.ask("DEBUG LOADAOF").ok();
        assert_eq!(c.digest("q"), digest);
        // The AOF is switched off, some work is not written, and it is switched on again.
        c.configure("appendonly", "no");
        c.ask("DEL q");
    }
}

#[test]
fn an_aof_rewrite_during_work_misses_nothing() {
    for preamble in ["yes", "no"] {
        let mut server = Server::with_aof(&["--appendfsync", "everysec", "--aof-use-rdb-preamble", preamble]);
        let mut c = server.client();
        let work = Work::on(&server);
        c.ask("BGREWRITEAOF");
        eventually("it is done", || c.info("persistence", "aof_rewrite_in_progress") == "0");
        assert_eq!(c.info("persistence", "aof_last_bgrewrite_status"), "ok");
        work.end(&server);
        let digest = c.digest("q");
        server.restart_from_aof();
        assert_eq!(server.client().digest("q"), digest);
    }
}

#[test]
fn an_old_effect_is_delivered_when_it_is_due() {
    let mut due = 0;
    let mut effect = effects_of(|c| {
        c.push("q x ID m DELAY 1500");
        due = c.get("q", "m").int("due");
    })
    .remove(0);
    // After the version and the letter it has the instant of the decision, in six bytes. The clock is set back by an
    // hour.
    assert_eq!((effect[0] & 7, effect[1]), (1, b'p'));
    let hour = 3_600_000u64;
    let stamp = effect[2..8].iter().fold(0, |stamp, byte| stamp << 8 | u64::from(*byte));
    effect[2..8].copy_from_slice(&(stamp - hour).to_be_bytes()[2..]);
    // The one message keeps its sequence, which is written as its distance from that instant.
    let image =
        effect.windows(3).position(|bytes| bytes == [0x91, 0x95, 0x00]).expect("a message pushed at that instant");
    let distance = [&[0xcf][..], &(hour << 20).to_be_bytes()].concat();
    effect.splice(image + 2..image + 3, distance);
    dq_queue::wire::seal(&mut effect);

    let server = Server::with(&["--dq.allow-effects", "yes"]);
    let (mut waiting, mut c) = (server.client(), server.client());
    waiting.wait_for_message("q");
    c.until_blocked(1);
    c.cmd(&[&b"DQ.E"[..], b"q", &effect]).ok();
    assert_eq!(waiting.served().id, "m");
    c.expect_delivered_at("q", "m", due);
}

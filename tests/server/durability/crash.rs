//! Crashes: a killed server has everything that it answered, and completed messages stay completed.

use crate::support::{Client, Clock, Server};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

const WRITERS: usize = 4;
const WORKERS: usize = 3;

/// What one connection knows for certain when the server is gone.
#[derive(Default)]
struct Known {
    /// Pushes whose reply had the id.
    pushed: Vec<String>,
    /// Acks that were sent; the server may have executed the last of them or not.
    ack_said: Vec<String>,
    /// Acks whose reply was 1.
    acked: Vec<String>,
}

/// Pushes until the server is gone.
fn write(mut c: Client, writer: usize, round: usize, done: &AtomicUsize) -> Known {
    let mut known = Known::default();
    for n in 0.. {
        let id = format!("w{writer}:{round}:{n}");
        let delay = n % 3 * 5;
        match c.try_ask(format!("DQ.PUSH q payload-{n} ID {id} DELAY {delay}")) {
            Ok(reply) => assert_eq!(reply.text(), id),
            Err(_) => break,
        }
        known.pushed.push(id);
        done.fetch_add(1, Ordering::Relaxed);
    }
    known
}

/// Consumes until the server is gone; every third delivery is given back.
fn work(mut c: Client, done: &AtomicUsize) -> Known {
    let mut known = Known::default();
    for n in 0.. {
        let Ok(reply) = c.try_ask("DQ.POP q BLOCK 20 LEASE 600000") else { break };
        if reply.is_null() {
            continue;
        }
        let message = reply.items()[0].items().to_vec();
        let (id, receipt) = (message[0].text(), message[3].text());
        if n % 3 == 0 {
            if c.try_ask(format!("DQ.NACK q {receipt} DELAY 10")).is_err() {
                break;
            }
            continue;
        }
        known.ack_said.push(id.clone());
        let Ok(reply) = c.try_ask(format!("DQ.ACK q {receipt}")) else { break };
        assert_eq!(reply.int(), 1);
        known.acked.push(id);
        done.fetch_add(1, Ordering::Relaxed);
    }
    known
}

#[test]
fn a_kill_loses_nothing_answered_and_returns_nothing_completed() {
    let mut server = Server::with_aof(&["--aof-use-rdb-preamble", "no"]);
    server.client().configure("dq.default-retries", -1);
    server.client().push("q x ID first");
    let (mut pushed, mut ack_said, mut acked) = (HashSet::new(), HashSet::new(), HashSet::new());
    for round in 0..3 {
        let done = Arc::new(AtomicUsize::new(0));
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let (c, done) = (server.client(), done.clone());
            threads.push(std::thread::spawn(move || write(c, writer, round, &done)));
        }
        for _ in 0..WORKERS {
            let (c, done) = (server.client(), done.clone());
            threads.push(std::thread::spawn(move || work(c, &done)));
        }
        crate::support::eventually("work is going on", || done.load(Ordering::Relaxed) > 600);
        if round == 1 {
            // The next crash comes close to a rewrite of the AOF.
            server.client().ask("BGREWRITEAOF");
        }
        server.kill9();
        for thread in threads {
            let known = thread.join().expect("no reply was wrong");
            pushed.extend(known.pushed);
            ack_said.extend(known.ack_said);
            acked.extend(known.acked);
        }
        server.boot();
        let mut c = server.client();
        for id in &acked {
            assert_eq!(c.state("q", id), "absent", "round {round}: {id} was completed");
        }
        for id in pushed.difference(&ack_said) {
            assert_ne!(c.state("q", id), "absent", "round {round}: {id} was acknowledged");
        }
    }
}

#[test]
fn ids_and_receipts_do_not_repeat_across_a_crash() {
    crash(Server::with_aof(&[]), 4);
}

#[test]
fn ids_and_receipts_do_not_repeat_across_a_crash_that_loses_writes_while_the_clock_is_behind() {
    let clock = Clock::new();
    clock.set(3_600_000);
    let server = Server::with_clock(&clock, &[]);
    server.client().push("q x");
    server.client().ask("SAVE").ok();
    clock.set(0);
    crash(server, 4);
}

fn crash(mut server: Server, crashes: usize) {
    let (mut ids, mut receipts) = (HashSet::new(), HashSet::new());
    for nth in 0..=crashes {
        if nth > 0 {
            server.kill9();
            server.boot();
        }
        let mut c = server.client();
        for _ in 0..20 {
            assert!(ids.insert(c.push("q x")));
            let receipt = c.pop_one("q").receipt().to_owned();
            assert!(receipts.insert(receipt.rsplit('#').next().expect("a number").to_owned()));
        }
    }
}

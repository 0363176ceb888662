//! Clocks that are set: due times and leases follow the server's time of day when it jumps or differs.

use crate::support::{eventually, Client, Clock, Server};

const HOUR: i64 = 3_600_000;

/// Waits until the server uses the clock that was set: some servers read the time of day only sometimes, and advance it
/// themselves in between.
fn until_set(c: &mut Client, before: i64, ms: i64) {
    eventually("the server has noticed", || {
        c.ask("DEL probe");
        c.push("probe x ID probe");
        (c.get("probe", "probe").int("due") - before - ms).abs() < HOUR / 2
    });
    c.ask("DEL probe");
}

#[test]
fn a_clock_set_ahead_delivers_due_messages_to_blocked_clients() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let (mut c, mut waiting) = (server.client(), server.client());
    c.push("q x ID later DELAY 1800000");
    waiting.wait_for_message("q");
    c.until_blocked(1);
    // As after a suspended machine or a manual change: no command arrives that would notice it.
    clock.set(HOUR);
    assert_eq!(waiting.served().id, "later");
}

#[test]
fn a_clock_set_ahead_does_not_delay_other_queues() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let (mut c, mut waiting) = (server.client(), server.client());
    // The timer is armed for a distant time, and then only the time of day reaches that time.
    c.push("far x DELAY 3000000");
    let started = c.now();
    clock.set(HOUR);
    until_set(&mut c, started, HOUR);
    c.push("q x ID soon DELAY 50");
    waiting.wait_for_message("q");
    assert_eq!(waiting.served().id, "soon");
    eventually("what was far is ready", || c.info("dq", "dq_ready") == "1");
}

#[test]
fn a_clock_set_back_delays_messages_and_ends_no_lease() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let (mut c, mut waiting) = (server.client(), server.client());
    c.push("q x ID held");
    let held = c.pop_one("q LEASE 600000");
    let started = c.now();
    clock.set(-HOUR);
    until_set(&mut c, started, -HOUR);
    // Time stands still within a queue until the clock has caught up …
    let id = c.push("q x ID next");
    assert_eq!(c.get("q", "held").text("state"), "inflight");
    // … and a message without delay is ready at once.
    waiting.wait_for_message("q");
    assert_eq!(waiting.served().id, id);
    assert_eq!(c.ack(format!("q {}", held.receipt())), 1);
    // Another queue follows the current clock.
    c.push("fresh x ID fresh DELAY 20");
    waiting.wait_for_message("fresh");
    assert_eq!(waiting.served().id, "fresh");
}

#[test]
fn a_replica_with_a_slow_clock_shows_no_wrong_state() {
    let (master, clock) = (Server::start(), Clock::new());
    clock.set(-10_000);
    let port = master.port().to_string();
    let replica = Server::with_clock(&clock, &["--replicaof", "127.0.0.1", &port]);
    let (mut c, mut r) = (master.client(), replica.client());
    eventually("the replica's link is up", || r.info("replication", "master_link_status") == "up");
    c.create("q RETRIES 0");
    c.push("q x ID dead LEASE 20");
    c.push("q x ID again RETRIES 5 LEASE 20");
    c.push("q x ID expired TTL 20 DELAY 5");
    c.pop("q COUNT 2");
    c.until_state("q", "dead", "dead");
    c.until_state("q", "expired", "dead");
    c.push("q x ID later DELAY 600000");
    eventually("the replica has it all", || r.digest("q") == c.digest("q"));
    for state in ["delayed", "ready", "inflight", "dead"] {
        for message in r.peek(format!("q {state} COUNT 9")) {
            assert_eq!(message.text("state"), state, "{}", message.text("id"));
        }
    }
}

#[test]
fn a_former_masters_fast_clock_ends_no_lease() {
    let clock = Clock::new();
    clock.set(HOUR);
    let ahead = Server::with_clock(&clock, &[]);
    ahead.client().push("q x ID a AT 1000000001000");
    let server = Server::replica_of(&ahead, &[]);
    let mut c = server.client();
    c.ask("REPLICAOF NO ONE").ok();
    c.pop_one("q LEASE 60000");
    c.ask("DEBUG RELOAD").ok();
    let about = c.about("q");
    assert_eq!((about.int("inflight"), about.int("lease-expired")), (1, 0));
}

#[test]
fn a_clock_set_back_does_not_undo_what_was_shown() {
    let clock = Clock::new();
    let server = Server::with_clock(&clock, &[]);
    let (mut c, mut other) = (server.client(), server.client());
    c.push("q x ID m DELAY 1800000");
    let started = c.now();
    // The timer is idle while writes are paused, so only the read advances the queue's clock.
    other.ask("CLIENT PAUSE 600000 WRITE").ok();
    clock.set(HOUR);
    eventually("the server has noticed", || c.now() - started > HOUR / 2);
    c.until_state("q", "m", "ready");
    clock.set(0);
    eventually("the server has noticed", || c.now() - started < HOUR / 2);
    assert_eq!(c.state("q", "m"), "ready");
    assert_eq!(c.len("q ready"), 1);
    other.ask("CLIENT UNPAUSE").ok();
    assert_eq!(c.pop_ids("q"), ["m"], "what was shown as ready is delivered");
}

#[test]
fn a_server_with_a_slow_clock_counts_no_lease_twice() {
    let clock = Clock::new();
    let mut server = Server::with_clock(&clock, &[]);
    let mut c = server.client();
    c.create("q RETRIES 5");
    c.push_many("q 2 x y IDS again dead RETRIES 0");
    c.push("q x ID again REPLACE RETRIES 5");
    c.push("q x ID expired TTL 1800000 PRIORITY -1");
    assert_eq!(c.pop_ids("q COUNT 2 LEASE 1800000").len(), 2);
    let totals = |c: &mut Client| {
        let about = c.about("q");
        ["inflight", "dead", "lease-expired", "died", "expired"].map(|field| about.int(field))
    };
    assert_eq!(totals(&mut c), [2, 0, 0, 0, 0]);
    clock.set(HOUR);
    eventually("time has ended them", || totals(&mut c) == [0, 2, 2, 2, 1]);
    // The server that loads the file has a correct clock.
    c.ask("SAVE").ok();
    clock.set(0);
    server.kill9();
    server.boot();
    let mut c = server.client();
    assert_eq!(totals(&mut c), [2, 0, 0, 0, 0], "they have not ended yet");
    clock.set(HOUR);
    eventually("time has ended them", || totals(&mut c) == [0, 2, 2, 2, 1]);
}

/// A server whose queue `q` forwards to the stream `s` and has seen a time that is an hour ahead of its clock.
fn forwarding_behind(clock: &Clock) -> (Server, Client) {
    clock.set(HOUR);
    let server = Server::with_clock(clock, &[]);
    let mut c = server.client();
    c.create("q FORWARD STREAM s");
    c.push("q x ID first");
    eventually("it is forwarded", || c.ask("XLEN s").int() == 1);
    let started = c.now();
    clock.set(0);
    until_set(&mut c, started, -HOUR);
    (server, c)
}

#[test]
fn a_clock_set_back_does_not_stop_forwarding() {
    let clock = Clock::new();
    let (_server, mut c) = forwarding_behind(&clock);
    c.push("q x ID second");
    eventually("it is forwarded", || c.ask("XLEN s").int() == 2);
}

#[test]
fn a_clock_set_back_does_not_delay_another_attempt() {
    let clock = Clock::new();
    let (_server, mut c) = forwarding_behind(&clock);
    c.ask("SET s text").ok();
    c.push("q x ID second");
    eventually("it cannot forward", || !c.about("q").get("forward-error").is_null());
    c.ask("DEL s");
    eventually("it is forwarded", || c.ask("XLEN s").int() == 1);
}

#[test]
fn a_lower_deadlen_keeps_messages_from_a_server_that_was_ahead() {
    let clock = Clock::new();
    clock.set(HOUR);
    let (ahead, server) = (Server::with_clock(&clock, &[]), Server::start());
    let (mut there, mut c) = (ahead.client(), server.client());
    for id in ["first", "second"] {
        there.push(format!("q x ID {id} DEAD"));
    }
    let dump = there.ask("DUMP q");
    c.cmd(&[b"RESTORE", &b"q"[..], b"0", dump.bytes()]).ok();
    c.push("q x ID waiting TTL 600000");
    c.push("q x ID held RETRIES 0 PRIORITY 1 BATCH b");
    let held = c.pop_one("q LEASE 600000");
    c.alter("q DEADLEN 1");
    assert_eq!(c.counts("q"), [0, 1, 1, 1]);
    c.alter("q DEADLEN 0");
    assert_eq!(c.ack(format!("q {}", held.receipt())), 1);
    assert_eq!(c.pop_ids("q"), ["waiting"]);
}

#[test]
fn a_batch_is_remembered_after_a_clock_was_days_ahead() {
    let clock = Clock::new();
    clock.set(72 * HOUR);
    let mut server = Server::with_clock(&clock, &["--appendonly", "yes", "--appendfsync", "always"]);
    let mut c = server.client();
    c.push("q x ID old BATCH b");
    assert_eq!(c.cancel("q old"), ["ready"]);
    // The server that loads the AOF has a correct clock.
    clock.set(0);
    server.kill9();
    server.boot();
    let mut c = server.client();
    let replica = Server::replica_of(&server, &[]);
    c.push("q x ID new BATCH other");
    c.cancel("q new");
    let counts = |c: &mut Client| c.ask("DQ.BATCHINFO q other").fields();
    assert_eq!(counts(&mut c).int("total"), 1);
    let mut r = replica.client();
    eventually("the replica has the same", || r.digest("q") == c.digest("q"));
    assert_eq!(counts(&mut r).int("total"), 1);
}

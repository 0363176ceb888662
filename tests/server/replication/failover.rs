//! Failover during work: the new master continues with what was replicated, and paused writes lose nothing.

use crate::support::{eventually, Client, Clock, Load, Reply, Roamer, Server};
use std::collections::HashSet;

/// A lease that outlives the test.
const LONG_MS: u64 = 600_000;

/// A client that tries both and stays with the one that accepts writes.
fn either(first: &Server, second: &Server) -> Roamer {
    Roamer::among(&[first.port(), second.port()])
}

#[track_caller]
fn until_replica_is_online(c: &mut Client) {
    eventually("the replica is online", || c.info("replication", "slave0").contains("state=online"));
}

#[test]
fn a_planned_failover_at_work_loses_nothing_and_repeats_nothing() {
    let first = Server::start();
    let second = Server::replica_of(&first, &[]);
    let mut load = Load::on("busy", LONG_MS, || either(&first, &second));
    for (old, new) in [(&first, &second), (&second, &first)] {
        let (mut c, mut next, mut waiting) = (old.client(), new.client(), old.client());
        waiting.wait_for_message("idle");
        eventually("it waits", || c.info("dq", "dq_blocked_clients") != "0");
        until_replica_is_online(&mut c);
        c.ask("FAILOVER").ok();
        eventually("the roles have changed", || {
            c.info("replication", "role") == "slave" && next.info("replication", "role") == "master"
        });
        assert!(waiting.receive().error().starts_with("UNBLOCKED "));
        load.go_on();
    }
    let outcome = load.end();
    outcome.expect_each_once();
    assert!(outcome.travels > 0, "consumers had to follow");
    let (mut one, mut two) = (first.client(), second.client());
    assert_eq!(one.ask("WAIT 1 20000"), Reply::Int(1));
    assert_eq!(two.digest("busy"), one.digest("busy"));
}

#[test]
fn everything_wait_confirmed_is_delivered_though_the_master_dies() {
    let mut first = Server::start();
    let second = Server::replica_of(&first, &[]);
    until_replica_is_online(&mut first.client());
    let mut load = Load::confirmed_on("busy", 1_000, || either(&first, &second));
    first.kill9();
    second.client().ask("REPLICAOF NO ONE").ok();
    load.go_on();
    load.end().expect_confirmed_delivered();
}

/// The ids and receipt numbers that a server issues now, in old and new queues.
fn given(c: &mut Client, seen: &mut HashSet<String>) {
    c.ask("DEL deleted");
    for key in ["q", "deleted", "made-later"] {
        let pushes = c.pipeline((0..500).map(|n| format!("DQ.PUSH {key} x PRIORITY {}", n % 2)));
        c.push(format!("{key} x ID named REPLACE"));
        let messages = c.pop(format!("{key} COUNT 10000 LEASE {LONG_MS}"));
        let receipts = messages.iter().map(|message| message.receipt().to_owned());
        for given in pushes.iter().map(Reply::text).chain(receipts) {
            let unique = given.rsplit('#').next().expect("a number");
            assert!(seen.insert(format!("{key} {unique}")), "{given} of {key} was given twice");
        }
    }
}

#[test]
fn ids_and_receipts_do_not_repeat_though_writes_were_lost() {
    lose_writes(0);
}

#[test]
fn ids_and_receipts_do_not_repeat_though_writes_were_lost_while_the_clock_was_behind() {
    lose_writes(3_600_000);
}

/// Lets a replica take over that lacks the last writes, after the clock of both servers was set back by these ms.
fn lose_writes(set_back: i64) {
    let clock = Clock::new();
    clock.set(set_back);
    let (first, second) = (Server::with_clock(&clock, &[]), Server::with_clock(&clock, &[]));
    let (mut c, mut next) = (first.client(), second.client());
    next.ask(format!("REPLICAOF 127.0.0.1 {}", first.port())).ok();
    until_replica_is_online(&mut c);
    let mut seen = HashSet::new();
    c.push("deleted x");
    given(&mut c, &mut seen);
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    clock.set(0);
    // From here on it receives nothing, because nobody listens on that port.
    next.ask("REPLICAOF 127.0.0.1 1").ok();
    eventually("the link is cut", || c.info("replication", "connected_slaves") == "0");
    given(&mut c, &mut seen);
    c.push("q x ID lost PRIORITY 9");
    let lost = c.pop_one("q").receipt().to_owned();
    next.ask("REPLICAOF NO ONE").ok();
    given(&mut next, &mut seen);
    assert_eq!(next.ack(format!("q {lost}")), 0, "nothing is known of it");
    next.push("q x ID lost PRIORITY 9");
    assert_eq!(next.pop_one("q").id, "lost");
    assert_eq!(next.ack(format!("q {lost}")), 0, "that was another delivery");
    // The old master returns and loses the writes that only it had.
    c.ask(format!("REPLICAOF 127.0.0.1 {}", second.port())).ok();
    eventually("it follows", || ["q", "deleted", "made-later"].iter().all(|key| c.digest(key) == next.digest(key)));
    assert!(c.get("q", "lost").text("receipt") != lost);
    c.ask("REPLICAOF NO ONE").ok();
    given(&mut c, &mut seen);
}

#[test]
fn a_receipt_of_a_separated_master_never_counts_on_the_new_one() {
    let old = Server::start();
    let new = Server::replica_of(&old, &[]);
    let (mut c, mut next) = (old.client(), new.client());
    let due = c.now() + 1_500;
    c.pipeline((0..200).map(|n| format!("DQ.PUSH q x ID m{n} AT {}", due + n / 2)));
    assert_eq!(c.ask("WAIT 1 20000"), Reply::Int(1));
    // Both are masters now, as on the two sides of a partition, and deliver each message at its due time.
    next.ask("REPLICAOF NO ONE").ok();
    let mut given = HashSet::new();
    let delivered = std::thread::scope(|scope| {
        let take = |server: &Server| {
            let mut consumer = server.client();
            move || (0..200).map(|_| consumer.pop_one("q BLOCK 20000").receipt().to_owned()).collect::<Vec<_>>()
        };
        let (one, two) = (scope.spawn(take(&old)), scope.spawn(take(&new)));
        [one.join().expect("delivered"), two.join().expect("delivered")].concat()
    });
    for receipt in delivered {
        assert!(given.insert(receipt.clone()), "both gave {receipt}");
    }
}

/// A master in which, by `due`, messages fall due for clients that wait, leases expire, and the dead messages exceed
/// their limit.
struct Pending {
    waiting: Vec<Client>,
    /// When the first lease expires.
    first: i64,
    due: i64,
}

impl Pending {
    fn on(master: &Server, ms: i64) -> Pending {
        let mut c = master.client();
        let mut waiting: Vec<Client> = (0..3).map(|_| master.client()).collect();
        for (n, client) in waiting.iter_mut().enumerate() {
            match n {
                0 => client.wait_for_message("q"),
                1 => client.wait_for_any(&["none", "q"]),
                _ => client.wait_for_message("lent"),
            }
            c.until_blocked(n + 1);
        }
        c.create("dying DEADLEN 1");
        c.push_many("dying 3 x x x IDS a b c RETRIES 0");
        c.pop("dying COUNT 3 LEASE 600000");
        c.push("lent x ID lent");
        waiting[2].served();
        waiting[2].wait_for_message("lent");
        c.until_blocked(3);
        let extend = |id: &str| format!("DQ.EXTEND dying {id} LEASE {ms}");
        let lent = format!("DQ.EXTEND lent lent LEASE {}", ms + 50);
        let ends = c.at_once([extend("a"), extend("b"), extend("c"), lent]);
        let (first, due) = (ends[0].int(), ends[2].int().max(ends[3].int() - 50));
        c.pipeline(["a", "b"].map(|id| format!("DQ.PUSH q x ID {id} AT {due}")));
        Pending { waiting, first, due }
    }

    /// The same master, held back by a pause that began in time.
    fn held_back(master: &Server, pause: impl Fn(&mut Client), go_on: impl Fn(&mut Client)) -> Pending {
        let mut c = master.client();
        let mut ms = 200;
        loop {
            let pending = Pending::on(master, ms);
            pause(&mut c);
            if c.now() < pending.first {
                return pending;
            }
            // The machine was too slow: try again with more time.
            go_on(&mut c);
            drop(pending);
            c.until_blocked(0);
            c.ask("FLUSHALL").ok();
            ms *= 4;
        }
    }

    /// Checks that nothing happens although the time has come; reads show the changes that time makes.
    #[track_caller]
    fn expect_held_back(&self, c: &mut Client) {
        c.until_after(self.due + 100);
        let offset = c.info("replication", "master_repl_offset");
        assert_eq!(["a", "b"].map(|id| c.state("q", id)), ["ready", "ready"]);
        c.until_after(self.due + 200);
        assert_eq!(["a", "b", "c"].map(|id| c.state("dying", id)), ["dead"; 3], "none is dropped");
        assert_eq!((c.info("dq", "dq_blocked_clients"), c.state("lent", "lent")), ("3".into(), "ready".into()));
        assert_eq!(c.info("replication", "master_repl_offset"), offset, "not a byte was sent");
    }

    /// Checks that everything that was held back happens, and not before `not_before`.
    #[track_caller]
    fn expect_to_happen(mut self, c: &mut Client, not_before: i64) {
        assert_eq!(self.waiting[0].served().id, "a");
        let (key, message) = self.waiting[1].served_from_any();
        assert_eq!((key.as_str(), message.id.as_str()), ("q", "b"));
        let again = self.waiting[2].served();
        assert_eq!((again.id.as_str(), again.attempt), ("lent", 2));
        for (key, id) in [("q", "a"), ("q", "b"), ("lent", "lent")] {
            c.expect_delivered_at(key, id, self.due.max(not_before));
        }
        eventually("the excess dead are dropped", || c.counts("dying") == [0, 0, 0, 1]);
    }
}

const QUIET: [&str; 2] = ["--repl-ping-replica-period", "3600"];

#[track_caller]
fn expect_same(c: &mut Client, replica: &Server) {
    let mut r = replica.client();
    eventually("the replica follows", || ["q", "dying", "lent"].iter().all(|key| r.digest(key) == c.digest(key)));
}

#[test]
fn paused_writes_deliver_nothing_until_the_pause_ends() {
    let master = Server::with(&QUIET);
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    let pause = |c: &mut Client| c.ask("CLIENT PAUSE 600000 WRITE").ok();
    let go_on = |c: &mut Client| c.ask("CLIENT UNPAUSE").ok();
    let pending = Pending::held_back(&master, pause, go_on);
    pending.expect_held_back(&mut c);
    let not_before = c.now();
    go_on(&mut c);
    pending.expect_to_happen(&mut c, not_before);
    expect_same(&mut c, &replica);
}

#[test]
fn a_write_pause_that_times_out_serves_blocked_clients() {
    let master = Server::with(&QUIET);
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    for kind in ["WRITE", "ALL"] {
        let not_before = std::cell::Cell::new(0);
        let pause = |c: &mut Client| {
            not_before.set(c.now() + 500);
            c.ask(format!("CLIENT PAUSE 500 {kind}")).ok();
        };
        let pending = Pending::held_back(&master, pause, |c| c.ask("CLIENT UNPAUSE").ok());
        pending.expect_to_happen(&mut c, not_before.get());
        expect_same(&mut c, &replica);
        c.ask("FLUSHALL").ok();
    }
}

#[test]
fn an_aborted_failover_loses_nothing() {
    let master = Server::with(&QUIET);
    let replica = Server::replica_of(&master, &[]);
    let mut c = master.client();
    until_replica_is_online(&mut c);
    // While the replica hangs it never has everything, so the failover does not complete.
    let pause = |c: &mut Client| {
        replica.signal("STOP");
        c.push("q x ID unseen DELAY 600000");
        c.ask("FAILOVER").ok();
        assert_eq!(c.info("replication", "master_failover_state"), "waiting-for-sync");
    };
    let go_on = |c: &mut Client| {
        c.ask("FAILOVER ABORT").ok();
        replica.signal("CONT");
    };
    let pending = Pending::held_back(&master, pause, go_on);
    pending.expect_held_back(&mut c);
    let not_before = c.now();
    c.ask("FAILOVER ABORT").ok();
    pending.expect_to_happen(&mut c, not_before);
    replica.signal("CONT");
    expect_same(&mut c, &replica);
}

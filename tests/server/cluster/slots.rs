//! Slot migration: a queue moves unchanged with its slot, and clients are redirected.

use crate::support::{
    any_command, eventually, every_state, Client, Clock, Cluster, Load, Random, Reply, Server, SAMPLES,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// A lease that outlives the test.
const LONG_MS: u64 = 600_000;
/// Long enough that no node is marked as failed, however slow the machine.
pub const PATIENT_MS: u32 = 60_000;

/// Hands a slot from one node to another, key by key, as resharding tools do.
pub fn move_slot(cluster: &Cluster, slot: usize, from: usize, to: usize) {
    let (mut source, mut target) = (cluster.client(from), cluster.client(to));
    target.ask(format!("CLUSTER SETSLOT {slot} IMPORTING {}", cluster.id(from))).ok();
    source.ask(format!("CLUSTER SETSLOT {slot} MIGRATING {}", cluster.id(to))).ok();
    loop {
        let keys = source.ask(format!("CLUSTER GETKEYSINSLOT {slot} 3"));
        let keys: Vec<String> = keys.items().iter().map(Reply::text).collect();
        if keys.is_empty() {
            break;
        }
        let port = cluster.nodes[to].port();
        source.ask(format!("MIGRATE 127.0.0.1 {port} \"\" 0 20000 KEYS {}", keys.join(" "))).ok();
    }
    let owner = cluster.id(to);
    target.ask(format!("CLUSTER SETSLOT {slot} NODE {owner}")).ok();
    source.ask(format!("CLUSTER SETSLOT {slot} NODE {owner}")).ok();
}

/// Hands a slot over in one go, as Valkey 9 does by itself.
pub fn move_slot_at_once(cluster: &Cluster, slot: usize, from: usize, to: usize) {
    let line = format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {}", cluster.id(to));
    cluster.client(from).ask(line).ok();
    let mut source = cluster.client(from);
    eventually("the slot has moved", || {
        let jobs = source.ask("CLUSTER GETSLOTMIGRATIONS");
        let newest = jobs.items()[0].fields();
        assert!(newest.text("state") != "failed", "{newest:?}");
        newest.text("state") == "success"
    });
}

/// Moves a slot from node to node while work goes on in it, and checks that it went on as if nothing had happened.
fn expect_to_follow(move_slot: impl Fn(&Cluster, usize, usize, usize)) {
    let cluster = Cluster::of(3, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let [busy, quiet, dying, idle, absent] =
        ["busy", "quiet", "dying", "idle", "absent"].map(|name| format!("{tag}{name}"));
    let mut owner = cluster.client(0);
    let cast = every_state(&mut owner, &quiet);
    // Its timer always has changes that it must replicate, or must not replicate.
    owner.create(format!("{dying} DEADLEN 0"));
    owner.push(format!("{idle} x DELAY 600000"));
    let digest = owner.digest(&quiet);
    let portraits = cast.portraits(&mut owner, &quiet);
    let mut load = Load::on(&busy, LONG_MS, || cluster.roamer());
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        let mut source = cluster.client(from);
        source.pipeline((0..200).map(|n| format!("DQ.PUSH {dying} x RETRIES 0 DELAY {n} TTL 1")));
        let mut waiting: [Client; 3] = std::array::from_fn(|_| cluster.client(from));
        waiting[0].wait_for_message(&idle);
        waiting[1].wait_for_message(&absent);
        waiting[2].wait_for_any(&[&absent, &idle]);
        eventually("they wait", || source.info("dq", "dq_blocked_clients").parse::<usize>().unwrap() >= 3);
        move_slot(&cluster, slot, from, to);
        for client in &mut waiting {
            cluster.expect_moved(&client.receive(), slot, to);
        }
        let mut target = cluster.client(to);
        assert_eq!(target.digest(&quiet), digest);
        assert_eq!(cast.portraits(&mut target, &quiet), portraits);
        load.go_on();
    }
    let outcome = load.end();
    outcome.expect_each_once();
    assert!(outcome.travels > 0, "consumers had to follow");
    eventually("all has died", || owner.counts(&dying)[..3] == [0; 3]);
    // The next write, at the latest, drops the surplus dead messages.
    owner.alter(format!("{dying} LEASE 5000"));
    eventually("they are dropped", || owner.counts(&dying) == [0; 4]);
    cast.expect_alive(&mut owner, &quiet);
}

#[test]
fn a_key_by_key_move_takes_queues_and_redirects_clients() {
    expect_to_follow(move_slot);
}

#[test]
fn an_atomic_move_takes_queues_along_and_redirects_clients() {
    if slots_can_move_at_once() {
        expect_to_follow(move_slot_at_once);
    }
}

pub fn slots_can_move_at_once() -> bool {
    let can = !Server::start().client().ask("COMMAND INFO cluster|migrateslots").items()[0].is_null();
    if !can {
        eprintln!("skipped: this server has no CLUSTER MIGRATESLOTS");
    }
    can
}

/// Moves a queue whose messages become dead by time on the new node, where no command names it.
fn expect_dead_dropped(move_slot: impl Fn(&Cluster, usize, usize, usize)) {
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let key = format!("{tag}q");
    let (mut source, mut target) = (cluster.client(0), cluster.client(1));
    source.create(format!("{key} DEADLEN 1"));
    source.pipeline((0..3).map(|n| format!("DQ.PUSH {key} x ID m{n} RETRIES 0")));
    source.pop(format!("{key} COUNT 3 LEASE 600000"));
    for n in 0..3 {
        source.extend(format!("{key} m{n} LEASE {}", 1_500 + n));
    }
    move_slot(&cluster, slot, 0, 1);
    eventually("two are dropped", || target.counts(&key) == [0, 0, 0, 1]);
    assert_eq!(target.state(&key, "m2"), "dead");
}

/// Moves queues whose messages fall due at every moment before, during and after the move.
fn expect_to_go_on_untouched(move_slot: impl Fn(&Cluster, usize, usize, usize)) {
    const QUEUES: usize = 300;
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let (mut source, mut target) = (cluster.client(0), cluster.client(1));
    let start = source.now();
    let payload = "p".repeat(2_000);
    source.pipeline((0..QUEUES).map(|n| format!("DQ.PUSH {tag}{n} {payload} AT {}", start + 4 * n as i64)));
    source.pipeline((0..QUEUES).map(|n| format!("DQ.MPUSH {tag}{n} 3 {payload} x y DELAY 600000")));
    move_slot(&cluster, slot, 0, 1);
    // No command names a key.
    let counts = |c: &mut Client| ["dq_queues", "dq_ready", "dq_delayed"].map(|field| c.info("dq", field));
    let expected = [QUEUES, QUEUES, 3 * QUEUES].map(|count| count.to_string());
    eventually("all that is due is ready on the new node", || counts(&mut target) == expected);
    eventually("nothing is left on the old one", || counts(&mut source) == ["0", "0", "0"]);
}

#[test]
fn times_continue_after_a_key_by_key_move_without_commands() {
    expect_to_go_on_untouched(move_slot);
}

#[test]
fn times_continue_after_an_atomic_move_without_any_command() {
    if slots_can_move_at_once() {
        expect_to_go_on_untouched(move_slot_at_once);
    }
}

/// Moves queues to a node that has a replica.
fn expect_on_replica(move_slot: impl Fn(&Cluster, usize, usize, usize)) {
    let mut cluster = Cluster::of(2, PATIENT_MS);
    let replica = cluster.add_replica(1);
    let (tag, slot) = cluster.tag_of(0);
    let (key, other) = (format!("{tag}q"), format!("{tag}settings"));
    let (mut source, mut target, mut r) = (cluster.client(0), cluster.client(1), cluster.client(replica));
    let cast = every_state(&mut source, &key);
    source.create(format!("{other} LEASE 5 RETRIES -1 BACKOFF 6 7 TTL 8 MAXLEN 9 MAXINFLIGHT 10 DEADLEN 11"));
    source.pause(&other);
    let known = |c: &mut Client| [&key, &other].map(|key| c.digest(key));
    let digests = known(&mut source);
    move_slot(&cluster, slot, 0, 1);
    assert_eq!(known(&mut target), digests);
    eventually("it is on the replica", || known(&mut r) == digests);
    r.ask("READONLY").ok();
    assert_eq!(r.len(&key), cast.delayed + cast.ready + cast.inflight);
    cast.expect_alive(&mut target, &key);
    eventually("the replica follows", || known(&mut r) == known(&mut target));
}

#[test]
fn a_key_by_key_move_reaches_the_new_replica() {
    expect_on_replica(move_slot);
}

#[test]
fn an_atomic_move_reaches_the_replica_of_the_new_node() {
    if slots_can_move_at_once() {
        expect_on_replica(move_slot_at_once);
    }
}

#[test]
fn during_a_move_each_queue_is_on_one_node() {
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let [here, there, made] = ["here", "there", "made"].map(|name| format!("{tag}{name}"));
    let (mut source, mut target, mut waiting) = (cluster.client(0), cluster.client(1), cluster.client(1));
    source.push(format!("{here} x ID a"));
    source.push(format!("{there} x ID b DELAY 600000"));
    let port = cluster.nodes[1].port();
    target.ask(format!("CLUSTER SETSLOT {slot} IMPORTING {}", cluster.id(0))).ok();
    source.ask(format!("CLUSTER SETSLOT {slot} MIGRATING {}", cluster.id(1))).ok();
    source.ask(format!("MIGRATE 127.0.0.1 {port} {there} 0 20000")).ok();

    let ask = format!("ASK {slot} 127.0.0.1:{port}");
    assert_eq!(source.pop_ids(&here), ["a"], "what has not moved is served");
    for line in [format!("DQ.POP {there} BLOCK 0"), format!("DQ.PUSH {made} x"), format!("DQ.MPOP 1 {made} BLOCK 0")] {
        assert_eq!(source.ask(&line).error(), ask, "{line}");
    }
    let both = format!("DQ.MPOP 2 {here} {there} BLOCK 0");
    assert!(source.ask(&both).error().starts_with("TRYAGAIN "), "not while they are parted");
    // The other node serves only clients that were redirected to it.
    cluster.expect_moved(&target.ask(format!("DQ.LEN {there}")), slot, 0);
    waiting.ask("ASKING").ok();
    waiting.wait_for_message(&there);
    target.until_blocked(1);
    target.ask("ASKING").ok();
    assert_eq!(target.reschedule(format!("{there} b DELAY 30")), 1);
    assert_eq!(waiting.served().id, "b");
    // A client that blocks there after the move stays blocked, because it is at the right node.
    waiting.ask("ASKING").ok();
    waiting.wait_for_message(&made);
    target.until_blocked(1);
    move_slot(&cluster, slot, 0, 1);
    target.push(format!("{made} x ID c DELAY 30"));
    assert_eq!(waiting.served().id, "c");
}

#[test]
fn no_command_makes_a_second_queue_where_one_has_moved_away() {
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let (mut source, mut target) = (cluster.client(0), cluster.client(1));
    target.ask(format!("CLUSTER SETSLOT {slot} IMPORTING {}", cluster.id(0))).ok();
    source.ask(format!("CLUSTER SETSLOT {slot} MIGRATING {}", cluster.id(1))).ok();
    let moved = format!("{tag}q");
    let lines = SAMPLES.iter().map(|sample| sample.line).chain(["DQ.ALTER q MKQUEUE LEASE 5"]);
    for line in lines.map(|line| line.replacen(" q", &format!(" {moved}"), 1)) {
        let refused = source.ask(&line);
        // Redis 8 takes commands that may name a channel for ones of a channel, which do not move.
        let starts = ["ASK ", "TRYAGAIN the slot of the queue is moving"];
        assert!(starts.iter().any(|start| refused.error().starts_with(start)), "{line}: {refused:?}");
    }
    target.ask("ASKING").ok();
    target.create(format!("{moved} LEASE 5"));
    assert_eq!(source.ask(format!("CLUSTER COUNTKEYSINSLOT {slot}")), Reply::Int(0));
}

#[test]
fn a_key_by_key_target_drops_surplus_dead_messages() {
    expect_dead_dropped(move_slot);
}

#[test]
fn an_atomic_target_drops_surplus_dead_messages() {
    if slots_can_move_at_once() {
        expect_dead_dropped(move_slot_at_once);
    }
}

/// A client that changes queues of its own in all ways, follows them to their new node, and compares their content with
/// that before the move. Returns the number of comparisons.
fn compare_on_the_way(nodes: &mut [Client], keys: [&str; 2], seed: u64, stop: &AtomicBool, compared: &AtomicUsize) {
    let (mut random, mut at) = (Random::seeded(seed), 0);
    let digests = format!("DEBUG DIGEST-VALUE {}", keys.join(" "));
    let mut last = nodes[at].ask(&digests);
    while !stop.load(Ordering::Relaxed) {
        let line = any_command(&mut random, &keys);
        if line.contains("DEADLEN") {
            // Dropping dead messages changes the digest at an unknown time.
            continue;
        }
        let c = &mut nodes[at];
        c.ask("MULTI").ok();
        c.ask(&line);
        c.ask(&digests);
        match c.ask("EXEC") {
            Reply::Array(replies) => last = replies[1].clone(),
            other => {
                assert!(["MOVED", "EXECABORT"].iter().any(|start| other.error().starts_with(start)), "{other:?}");
                at = (at + 1) % nodes.len();
                let here = format!("DQ.LEN {}", keys[0]);
                eventually("its new node serves it", || !matches!(nodes[at].ask(&here), Reply::Error(_)));
                assert_eq!(nodes[at].ask(&digests), last, "as it was");
                compared.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn an_atomic_move_under_every_command_keeps_each_queue() {
    const CLIENTS: usize = 3;
    if !slots_can_move_at_once() {
        return;
    }
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let (stop, compared) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|n| {
            let mut nodes = [cluster.client(0), cluster.client(1)];
            let keys = [format!("{tag}{n}"), format!("{tag}{n}b")];
            let (stop, compared) = (stop.clone(), compared.clone());
            std::thread::spawn(move || {
                compare_on_the_way(&mut nodes, [&keys[0], &keys[1]], n as u64 + 1, &stop, &compared);
            })
        })
        .collect();
    let mut all = cluster.client(0);
    eventually("work is going on", || all.info("dq", "dq_total_acked").parse::<usize>().unwrap() > 10);
    for hop in 0..4 {
        move_slot_at_once(&cluster, slot, hop % 2, (hop + 1) % 2);
        let expected = (hop + 1) * CLIENTS;
        eventually("all went after it", || {
            compared.load(Ordering::Relaxed) == expected || clients.iter().any(|client| client.is_finished())
        });
    }
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("all was as it should be");
    }
}

/// Begins to move a slot. The migration lasts until `PREVENT-PAUSE` no longer holds the source node.
fn begin_to_move(cluster: &Cluster, slot: usize, from: usize, to: usize) {
    let mut source = cluster.client(from);
    source.ask("DEBUG SLOTMIGRATION PREVENT-PAUSE 1").ok();
    source.ask(format!("CLUSTER MIGRATESLOTS SLOTSRANGE {slot} {slot} NODE {}", cluster.id(to))).ok();
    eventually("all was copied", || state_of_migration(&mut source).contains("pause"));
}

/// The state of the newest migration of a node.
fn state_of_migration(node: &mut Client) -> String {
    node.ask("CLUSTER GETSLOTMIGRATIONS").items()[0].fields().text("state")
}

/// Two nodes give a slot each to a third, which has a clock of its own.
struct TwoImports {
    cluster: Cluster,
    clock: Clock,
    /// The slot that is held on its way, and its queue.
    held: (usize, String),
    /// The other slot, and its queue.
    other: (usize, String),
}

const TARGET: usize = 0;
const HOLDING: usize = 1;
const OTHER: usize = 2;

const DAY_S: u32 = 86_400;

impl TwoImports {
    /// Begins both. Each queue has a message in flight with its last attempt.
    fn begin() -> TwoImports {
        let clocks = [Clock::new()];
        // A clock that jumps must not make a node mark others as failed.
        let args = ["--repl-timeout", "86400"];
        let cluster = Cluster::with(3, DAY_S * 1000, &clocks, &args);
        let [held, other] = [HOLDING, OTHER].map(|node| {
            let ((tag, slot), mut source) = (cluster.tag_of(node), cluster.client(node));
            let key = format!("{tag}q");
            source.create(format!("{key} DEADLEN 0"));
            source.push(format!("{key} x ID m RETRIES 0"));
            source.pop_one(format!("{key} LEASE {LONG_MS}"));
            begin_to_move(&cluster, slot, node, TARGET);
            (slot, key)
        });
        let mut target = cluster.client(TARGET);
        eventually("both are copied", || target.info("dq", "dq_queues") == "2");
        let [clock] = clocks;
        TwoImports { cluster, clock, held, other }
    }

    /// Lets the other import complete. Then, by the target's clock, the leases of both messages expire.
    fn complete_other(&self) {
        let (mut source, mut target) = (self.cluster.client(OTHER), self.cluster.client(TARGET));
        source.ask("DEBUG SLOTMIGRATION PREVENT-PAUSE 0").ok();
        eventually("one slot has moved", || state_of_migration(&mut source) == "success");
        assert_eq!(target.state(&self.other.1, "m"), "inflight");
        self.clock.set(2 * LONG_MS as i64);
        // The lease of the other queue's message came first, so its expiry was noticed first.
        eventually("the target drops what is its own", || target.counts(&self.other.1) == [0; 4]);
    }

    /// Lets the import that was held complete too, after a change that the source made meanwhile.
    fn expect_message_kept(&self) {
        let (mut source, mut target) = (self.cluster.client(HOLDING), self.cluster.client(TARGET));
        let key = &self.held.1;
        let deadline = source.extend(format!("{key} m LEASE {}", 10 * LONG_MS));
        source.ask("DEBUG SLOTMIGRATION PREVENT-PAUSE 0").ok();
        eventually("the other slot has moved", || state_of_migration(&mut source) == "success");
        assert_eq!(target.state(key, "m"), "inflight");
        assert_eq!(target.get(key, "m").int("deadline"), deadline);
        assert_eq!(target.ack(format!("{key} m")), 1);
    }
}

#[test]
fn a_completed_import_leaves_other_queues_alone() {
    if !slots_can_move_at_once() {
        return;
    }
    let imports = TwoImports::begin();
    imports.complete_other();
    imports.expect_message_kept();
}

#[test]
fn an_import_repeated_after_cancelling_leaves_other_queues_alone() {
    if !slots_can_move_at_once() {
        return;
    }
    let imports = TwoImports::begin();
    let (mut source, mut target) = (imports.cluster.client(OTHER), imports.cluster.client(TARGET));
    source.ask("CLUSTER CANCELSLOTMIGRATIONS").ok();
    eventually("its queue was deleted", || target.info("dq", "dq_queues") == "1");
    begin_to_move(&imports.cluster, imports.other.0, OTHER, TARGET);
    eventually("it is copied again", || target.info("dq", "dq_queues") == "2");
    imports.complete_other();
    imports.expect_message_kept();
}

#[test]
fn an_import_that_is_flushed_away_can_be_repeated() {
    if !slots_can_move_at_once() {
        return;
    }
    let imports = TwoImports::begin();
    let mut target = imports.cluster.client(TARGET);
    target.ask("FLUSHALL").ok();
    eventually("both have failed", || {
        [HOLDING, OTHER].iter().all(|node| state_of_migration(&mut imports.cluster.client(*node)) == "failed")
    });
    for (node, slot) in [(HOLDING, imports.held.0), (OTHER, imports.other.0)] {
        begin_to_move(&imports.cluster, slot, node, TARGET);
    }
    imports.complete_other();
    imports.expect_message_kept();
}

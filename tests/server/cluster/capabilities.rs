//! Slot migration of rate limits, deduplication windows, schedules, batches and the gates of groups: nothing is
//! forgotten, lost or repeated.

use super::slots::{move_slot, move_slot_at_once, slots_can_move_at_once, PATIENT_MS};
use crate::support::{eventually, Client, Cluster, Raised, Reply};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A way to move a slot from one node to another.
type Move = fn(&Cluster, usize, usize, usize);

const HOUR: i64 = 3_600_000;

/// The number of failed runs of a schedule `s`.
fn failed(c: &mut Client, key: &str) -> i64 {
    c.get(key, "s").int("failed-runs")
}

/// Moves queues with every capability, and checks that the new node goes on with them where the old one stopped.
fn expect_everything_to_move(move_slot: Move) {
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let [limited, series, failing] = ["limited", "series", "failing"].map(|name| format!("{tag}{name}"));
    let (mut source, mut target) = (cluster.client(0), cluster.client(1));
    source.create(format!("{limited} RATE 3 600000 DEDUPE 600000000"));
    source.push_many(format!("{limited} 6 1 2 3 4 5 6 IDS a b c d e f"));
    assert_eq!(source.pop_ids(format!("{limited} COUNT 2 LEASE 600000")), ["a", "b"]);
    assert_eq!(source.ack(format!("{limited} a")), 1);
    source.ask(format!("DQ.SCHEDULE {series} running x EVERY {HOUR} AT 100000000001"));
    let run = source.pop_one(format!("{series} LEASE 600000"));
    let waiting = format!("DQ.SCHEDULE {series} waiting x EVERY {HOUR} OFFSET 5 TIMES 5 PRIORITY 3 RETRIES 2");
    let cron = format!("DQ.SCHEDULE {series} cron x CRON @daily TZ Europe/Berlin UNTIL 8000000000000 LEASE 77 TTL 99");
    let deferred = format!("DQ.SCHEDULE {series} running later EVERY {}", 2 * HOUR);
    for line in [&waiting, &cron, &deferred] {
        assert_ne!(source.ask(line), Reply::bulk("unchanged"));
    }
    source.ask(format!("DQ.SCHEDULE {failing} s x EVERY 20 TTL 1"));
    eventually("its runs fail", || failed(&mut source, &failing) > 2);
    let known = |c: &mut Client| [&limited, &series].map(|key| (c.digest(key), c.about(key).int("known")));
    let before = known(&mut source);

    move_slot(&cluster, slot, 0, 1);

    assert_eq!(known(&mut target), before);
    let failures = failed(&mut target, &failing);
    eventually("the new node ends runs by itself", || failed(&mut target, &failing) > failures + 2);
    assert_eq!(target.scan_ids(&failing, "RECURRING"), ["s"]);
    assert!(target.ask(format!("DQ.PUSH {limited} x ID a")).is_null(), "the id is known");
    assert_eq!(target.pop_ids(format!("{limited} COUNT 9")), ["c"], "the rate leaves one");
    assert_eq!(target.ask(format!("DQ.POP {limited}")), target.null_array());
    for line in [&waiting, &cron, &deferred] {
        assert_eq!(target.ask(line), Reply::bulk("unchanged"), "{line}");
    }
    assert_eq!(target.ack(format!("{series} {}", run.receipt())), 1);
    let next = target.get(&series, "running");
    assert_eq!((next.text("payload").as_str(), next.int("runs")), ("later", 1));
    assert_eq!(next.int("due") % (2 * HOUR), 0);
}

#[test]
fn a_key_by_key_move_keeps_limits_windows_and_schedules() {
    expect_everything_to_move(move_slot);
}

#[test]
fn an_atomic_move_keeps_limits_windows_and_schedules() {
    if slots_can_move_at_once() {
        expect_everything_to_move(move_slot_at_once);
    }
}

/// Moves a schedule to and fro while a consumer works on its runs.
fn expect_each_run_once(move_slot: Move) {
    const EVERY: i64 = 20;
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let key = format!("{tag}series");
    cluster.client(0).ask(format!("DQ.SCHEDULE {key} s x EVERY {EVERY} RETRIES -1"));
    let (stop, runs) = (AtomicBool::new(false), AtomicUsize::new(0));
    let begun = std::thread::scope(|scope| {
        let stopping = Raised(&stop);
        let consumer = scope.spawn(|| {
            let (mut c, mut begun) = (cluster.roamer(), Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let reply = c.ask(&format!("DQ.POP {key} BLOCK 20 LEASE 600000"));
                if reply.is_null() {
                    continue;
                }
                let [_, _, attempt, receipt] = reply.items()[0].items() else { panic!("a run, not {reply:?}") };
                assert_eq!(attempt.int(), 1, "no run is delivered twice");
                let receipt = receipt.text();
                assert_eq!(c.ask(&format!("DQ.ACK {key} {receipt}")), Reply::Int(1));
                let number: i64 = receipt.rsplit('#').next().and_then(|number| number.parse().ok()).expect("a number");
                begun.push(number >> 20);
                runs.fetch_add(1, Ordering::Relaxed);
            }
            begun
        });
        let more = || {
            let goal = runs.load(Ordering::Relaxed) + 10;
            eventually("runs go on", || runs.load(Ordering::Relaxed) >= goal || consumer.is_finished());
        };
        for (from, to) in [(0, 1), (1, 0), (0, 1)] {
            more();
            move_slot(&cluster, slot, from, to);
        }
        more();
        drop(stopping);
        consumer.join().expect("every run came once")
    });
    let intervals: Vec<i64> = begun.iter().map(|at| at / EVERY).collect();
    assert!(intervals.windows(2).all(|pair| pair[0] < pair[1]), "one run in each interval: {begun:?}");
    let mut owner = cluster.client(1);
    assert_eq!(owner.get(&key, "s").int("runs"), begun.len() as i64, "no run is lost");
}

#[test]
fn a_key_by_key_move_makes_each_run_once() {
    expect_each_run_once(move_slot);
}

#[test]
fn an_atomic_move_makes_each_run_once() {
    if slots_can_move_at_once() {
        expect_each_run_once(move_slot_at_once);
    }
}

/// Moves a queue with done messages while a client waits for one that is not done yet.
fn expect_done_to_move(move_slot: Move) {
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let key = format!("{tag}done");
    let (mut source, mut target, mut waiting) = (cluster.client(0), cluster.client(1), cluster.client(0));
    source.create(format!("{key} RETAIN 600000000 DEDUPE 600000000"));
    source.push_many(format!("{key} 3 1 2 3 IDS a b open"));
    source.pop(format!("{key} COUNT 2 LEASE 600000"));
    assert_eq!(source.ack(format!("{key} a")), 1);
    assert_eq!(source.ask(format!("DQ.COMPLETE {key} b RESULT r")), Reply::Int(1));
    waiting.send(format!("DQ.AWAIT {key} open BLOCK 0"));
    source.until_blocked(1);
    let before = source.digest(&key);

    move_slot(&cluster, slot, 0, 1);

    assert!(matches!(waiting.receive(), Reply::Error(text) if text.starts_with("MOVED")), "it is redirected");
    assert_eq!(target.digest(&key), before);
    assert_eq!(target.ask(format!("DQ.AWAIT {key} b BLOCK 0")).fields().text("result"), "r");
    let mut waiting = cluster.client(1);
    waiting.send(format!("DQ.AWAIT {key} open BLOCK 0"));
    target.until_blocked(1);
    target.pop(format!("{key} NOACK"));
    assert_eq!(waiting.receive().fields().text("state"), "done");
    assert_eq!(target.peek_ids(format!("{key} done COUNT 9")).first().map(String::as_str), Some("open"));
}

#[test]
fn a_key_by_key_move_keeps_done_messages() {
    expect_done_to_move(move_slot);
}

#[test]
fn an_atomic_move_keeps_done_messages() {
    if slots_can_move_at_once() {
        expect_done_to_move(move_slot_at_once);
    }
}

/// Moves a batch of which one member was acked, one is in flight and one waits; groups of which one has reached its
/// rate and one is paused; and a queue at which a client gathers.
fn expect_batch_to_end_once(move_slot: Move) {
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let [batch, groups, gathered] = ["batch", "groups", "gathered"].map(|name| format!("{tag}{name}"));
    let (mut source, mut target, mut waiting) = (cluster.client(0), cluster.client(1), cluster.client(0));
    source.push_many(format!("{batch} 3 x y z IDS a b c BATCH pages"));
    assert_eq!(source.ask(format!("DQ.BATCH {batch} pages THEN bind ID f")), Reply::Int(3));
    let in_flight = source.pop(format!("{batch} COUNT 2 LEASE 600000")).pop().expect("two messages");
    assert_eq!(source.ack(format!("{batch} a")), 1);
    source.create(format!("{groups} GROUPRATE 1 {HOUR}"));
    for group in ["limited", "paused"] {
        source.push_many(format!("{groups} 2 x y IDS {group}-1 {group}-2 GROUP {group}"));
    }
    source.ask(format!("DQ.PAUSE {groups} GROUP paused")).ok();
    assert_eq!(source.pop_ids(format!("{groups} COUNT 9 NOACK")), ["limited-1"]);
    source.push(format!("{gathered} x ID first"));
    let gather = format!("DQ.POP {gathered} COUNT 9 MIN 2 LINGER {HOUR} LEASE 600000");
    waiting.send(format!("{gather} BLOCK 0"));
    source.until_blocked(1);
    let digests = |c: &mut Client| [&batch, &groups, &gathered].map(|key| c.digest(key));
    let before = digests(&mut source);

    move_slot(&cluster, slot, 0, 1);

    cluster.expect_moved(&waiting.receive(), slot, 1);
    assert_eq!(digests(&mut target), before);
    assert_eq!(target.pop_ids(format!("{batch} COUNT 9 NOACK")), ["c"]);
    assert_eq!(target.state(&batch, "f"), "absent", "a member is in flight");
    assert_eq!(target.ack(format!("{batch} {}", in_flight.receipt())), 1);
    assert_eq!(target.get(&batch, "f").get("headers").fields().text("dq-batch-acked"), "3");
    assert_eq!(target.pop_ids(format!("{batch} COUNT 9 NOACK")), ["f"], "it follows once");
    assert_eq!(target.ask(format!("DQ.POP {groups}")), target.null_array());
    target.ask(format!("DQ.RESUME {groups} GROUP paused")).ok();
    assert_eq!(target.pop_ids(format!("{groups} COUNT 9")), ["paused-1"]);
    assert_eq!(target.ask(&gather), target.null_array());
    target.push(format!("{gathered} y ID second"));
    assert_eq!(target.pop_ids(&gather["DQ.POP ".len()..]), ["first", "second"]);
}

#[test]
fn a_key_by_key_move_keeps_batches_gates_and_gathering() {
    expect_batch_to_end_once(move_slot);
}

#[test]
fn an_atomic_move_keeps_batches_gates_and_gathering() {
    if slots_can_move_at_once() {
        expect_batch_to_end_once(move_slot_at_once);
    }
}

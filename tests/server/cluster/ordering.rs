//! Slot migration of queues with groups and of queues that forward: the order within a group holds, and each message is
//! forwarded once.

use super::slots::{move_slot, move_slot_at_once, slots_can_move_at_once, PATIENT_MS};
use crate::support::{eventually, until_counted, Cluster, Reply};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A way to move a slot from one node to another.
type Move = fn(&Cluster, usize, usize, usize);

/// Moves a queue with groups to and fro while two consumers work on it and record the order in which they complete
/// messages.
fn expect_order_to_hold(move_slot: Move) {
    const GROUPS: usize = 4;
    const MESSAGES: usize = 400;
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let key = format!("{tag}grouped");
    let mut source = cluster.client(0);
    source.create(format!("{key} GROUPORDER turn"));
    for number in 0..MESSAGES {
        source.push(format!("{key} {number} GROUP g{}", number % GROUPS));
    }
    let done = AtomicUsize::new(0);
    let completed = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut c = cluster.roamer();
                until_counted(&done, MESSAGES, || {
                    let reply = c.ask(&format!("DQ.POP {key} COUNT 3 BLOCK 50 LEASE 600000"));
                    let messages = if reply.is_null() { &[] } else { reply.items() };
                    for message in messages {
                        let [_, payload, attempt, receipt] = message.items() else { panic!("a message: {message:?}") };
                        assert_eq!(attempt.int(), 1, "no message is delivered twice");
                        // This precedes the ack: the next one of the group cannot be delivered yet.
                        completed.lock().expect("a list").push(payload.text().parse::<usize>().expect("a number"));
                        assert_eq!(c.ask(&format!("DQ.ACK {key} {}", receipt.text())), Reply::Int(1));
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            });
        }
        for (nth, (from, to)) in [(0, 1), (1, 0), (0, 1)].into_iter().enumerate() {
            eventually("work goes on", || done.load(Ordering::Relaxed) > 60 * (nth + 1));
            move_slot(&cluster, slot, from, to);
        }
    });
    let mut of_groups: HashMap<usize, Vec<usize>> = HashMap::new();
    let completed = completed.into_inner().expect("a list");
    assert_eq!(completed.len(), MESSAGES, "none is lost");
    completed.into_iter().for_each(|number| of_groups.entry(number % GROUPS).or_default().push(number));
    for (group, numbers) in of_groups {
        assert!(numbers.is_sorted(), "group {group} in push order: {numbers:?}");
    }
}

#[test]
fn a_key_by_key_move_keeps_the_order_of_groups() {
    expect_order_to_hold(move_slot);
}

#[test]
fn an_atomic_move_keeps_the_order_of_groups() {
    if slots_can_move_at_once() {
        expect_order_to_hold(move_slot_at_once);
    }
}

/// Moves a queue that forwards together with its target while a rate holds most messages back.
fn expect_forwarding_to_go_on(move_slot: Move) {
    const MESSAGES: usize = 300;
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(0);
    let (key, stream) = (format!("{tag}forwards"), format!("{tag}stream"));
    let (mut source, mut target) = (cluster.client(0), cluster.client(1));
    source.create(format!("{key} RATE 20 20 FORWARD STREAM {stream}"));
    let ids: Vec<String> = (0..MESSAGES).map(|n| format!("m{n}")).collect();
    source.push_many(format!("{key} {MESSAGES} {} IDS {}", ids.join(" "), ids.join(" ")));
    eventually("some are forwarded", || source.about(&key).int("forwarded") > 50);
    move_slot(&cluster, slot, 0, 1);
    eventually("all are forwarded", || target.counts(&key) == [0; 4]);
    let entries = target.ask(format!("XRANGE {stream} - +"));
    let found: Vec<String> = entries.items().iter().map(|entry| entry.items()[1].fields().text("id")).collect();
    assert_eq!(found, ids, "each once, in delivery order");
}

#[test]
fn a_key_by_key_move_forwards_each_message_once() {
    expect_forwarding_to_go_on(move_slot);
}

#[test]
fn an_atomic_move_forwards_each_message_once() {
    if slots_can_move_at_once() {
        expect_forwarding_to_go_on(move_slot_at_once);
    }
}

//! While a slot moves key by key, a queue and its target are for a time on two nodes, and the messages wait.

use super::dead::until_moved;
use super::elements;
use crate::cluster::slots::{move_slot, PATIENT_MS};
use crate::support::{eventually, Client, Cluster};

const SOURCE: usize = 0;
const TARGET: usize = 1;

/// A kind of target, how a target is made with one message, and how many messages it holds.
type Kind = (&'static str, &'static str, fn(&mut Client, &str) -> usize);

const KINDS: [Kind; 3] = [
    ("QUEUE", "DQ.PUSH <key> x", |c, key| c.len(key) as usize),
    ("LIST", "RPUSH <key> x", |c, key| elements(c, key).len()),
    ("STREAM", "XADD <key> * payload x", |c, key| super::entries(c, key).len()),
];

/// Moves one key of a queue and its target, lets a message of the queue die at the node where the queue is then, and
/// completes the move. `moves` chooses the key of the two that moves first, and `holder` has the queue meanwhile.
fn expect_to_wait(moves: fn([&str; 2]) -> &str, holder: usize) {
    let cluster = Cluster::of(2, PATIENT_MS);
    let (tag, slot) = cluster.tag_of(SOURCE);
    let (mut source, mut target) = (cluster.client(SOURCE), cluster.client(TARGET));
    let keys = KINDS.map(|(kind, ..)| [format!("{tag}jobs-{kind}"), format!("{tag}dead-{kind}")]);
    for ((kind, made, _), [jobs, dead]) in KINDS.iter().zip(&keys) {
        source.create(format!("{jobs} DEADFORWARD {kind} {dead}"));
        source.push(format!("{jobs} x ID m DELAY 600000"));
        source.ask(made.replace("<key>", dead));
    }
    target.ask(format!("CLUSTER SETSLOT {slot} IMPORTING {}", cluster.id(SOURCE))).ok();
    source.ask(format!("CLUSTER SETSLOT {slot} MIGRATING {}", cluster.id(TARGET))).ok();
    for [jobs, dead] in &keys {
        let port = cluster.nodes[TARGET].port();
        source.ask(format!("MIGRATE 127.0.0.1 {port} {} 0 20000", moves([jobs, dead]))).ok();
    }
    let mut node = cluster.client(holder);
    for [jobs, _] in &keys {
        node.ask("ASKING").ok();
        assert_eq!(node.ask(format!("DQ.BURY {jobs} m")).text(), "delayed", "{jobs}");
        eventually("its target refuses it", || {
            node.ask("ASKING").ok();
            !node.about(jobs).get("deadforward-error").is_null()
        });
    }
    assert_eq!(source.ask(format!("CLUSTER COUNTKEYSINSLOT {slot}")).int(), 3, "no second target was made");
    move_slot(&cluster, slot, SOURCE, TARGET);
    for ((.., held), [jobs, dead]) in KINDS.iter().zip(&keys) {
        until_moved(&mut target, jobs, 1);
        assert_eq!(held(&mut target, dead), 2, "{dead}");
    }
}

#[test]
fn dead_messages_wait_while_their_target_has_moved_away() {
    expect_to_wait(|[_, dead]| dead, SOURCE);
}

#[test]
fn dead_messages_wait_for_a_target_that_moves_later() {
    expect_to_wait(|[jobs, _]| jobs, TARGET);
}

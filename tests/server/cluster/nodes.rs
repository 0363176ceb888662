//! Clusters: clients are redirected to the node that has the queue, and a queue survives the loss of its node.

use crate::support::{eventually, Cluster, Load, Message, Reply, SAMPLES};

/// A lease that outlives the test.
const LONG_MS: u64 = 600_000;
/// Long enough that no node is marked as failed, however slow the machine.
const PATIENT_MS: u32 = 60_000;

#[test]
fn a_node_redirects_to_the_owner_of_the_queue() {
    let cluster = Cluster::of(3, PATIENT_MS);
    let ((here, _), (there, slot)) = (cluster.tag_of(0), cluster.tag_of(1));
    let (mut c, mut other) = (cluster.client(0), cluster.client(1));
    // Without BLOCK, also on the node that has the queue.
    let others = ["DQ.POP q", "DQ.MPOP 2 q q2", "DQ.MPOP 2 q q2 BLOCK 0", "DQ.REDRIVE q", "DQ.PURGE q", "DQ.LEN q"];
    for line in SAMPLES.iter().map(|sample| sample.line).chain(others) {
        let tagged = |tag: &str| line.replace(" q2", &format!(" {tag}q2")).replacen(" q", &format!(" {tag}q"), 1);
        cluster.expect_moved(&c.ask(tagged(&there)), slot, 1);
        if !line.contains("BLOCK") {
            let reply = other.ask(tagged(&there));
            assert!(!matches!(&reply, Reply::Error(text) if text.starts_with("MOVED")), "{line}: {reply:?}");
        }
    }
    // Queues of one pop share a slot, be it this node's or another's.
    for line in [format!("DQ.MPOP 2 {here}q {there}q"), format!("DQ.MPOP 3 {here}q {here}r {there}q BLOCK 0")] {
        assert!(c.ask(&line).error().starts_with("CROSSSLOT "), "{line}");
    }
    let (mut waiting, any) = (cluster.client(0), [format!("{here}q"), format!("{here}r")]);
    waiting.wait_for_any(&[&any[0], &any[1]]);
    c.until_blocked(1);
    c.push(format!("{here}r x ID m DELAY 30"));
    let (key, message) = waiting.served_from_any();
    assert_eq!((key, message.id.as_str()), (any[1].clone(), "m"));
}

#[test]
fn a_planned_failover_in_a_cluster_loses_and_repeats_nothing() {
    let mut cluster = Cluster::of(3, PATIENT_MS);
    let replica = cluster.add_replica(0);
    let (tag, slot) = cluster.tag_of(0);
    let (busy, idle) = (format!("{tag}busy"), format!("{tag}idle"));
    let mut load = Load::on(&busy, LONG_MS, || cluster.roamer());
    let (mut c, mut waiting) = (cluster.client(0), cluster.client(0));
    waiting.wait_for_message(&idle);
    eventually("it waits", || c.info("dq", "dq_blocked_clients") != "0");
    let mut next = cluster.client(replica);
    next.ask("CLUSTER FAILOVER").ok();
    eventually("it is the master", || next.info("replication", "role") == "master");
    let reply = waiting.receive();
    let sent_on = ["UNBLOCKED ", "MOVED "].iter().any(|start| reply.error().starts_with(start));
    assert!(sent_on, "{reply:?}");
    eventually("the old one follows", || c.info("replication", "master_link_status") == "up");
    cluster.expect_moved(&c.ask(format!("DQ.LEN {idle}")), slot, replica);
    load.go_on();
    let outcome = load.end();
    outcome.expect_each_once();
    assert!(outcome.travels > 0, "consumers had to follow");
}

#[test]
fn everything_wait_confirmed_survives_the_death_of_a_cluster_master() {
    let mut cluster = Cluster::of(3, 2_000);
    let replica = cluster.add_replica(0);
    let (tag, _) = cluster.tag_of(0);
    let (busy, later) = (format!("{tag}busy"), format!("{tag}later"));
    let mut c = cluster.roamer();
    c.ask(&format!("DQ.PUSH {later} x ID m DELAY 4000"));
    let due = c.ask(&format!("DQ.GET {later} m")).fields().int("due");
    assert!(c.replicas_that_have_it(20_000) > 0, "the replica follows");
    let mut load = Load::confirmed_on(&busy, 1_000, || cluster.roamer());
    cluster.nodes[0].kill9();
    let mut next = cluster.client(replica);
    eventually("the replica took over", || next.info("replication", "role") == "master");
    load.go_on();
    // As long as a node cannot be reached, because it writes to a slow disk, the others refuse commands.
    let popped = Message::all(&c.ask(&format!("DQ.POP {later} BLOCK 0 LEASE {LONG_MS}")));
    assert_eq!(popped.iter().map(|message| message.id.as_str()).collect::<Vec<_>>(), ["m"]);
    let deadline = c.ask(&format!("DQ.GET {later} m")).fields().int("deadline");
    assert!(deadline >= due + LONG_MS as i64, "not before its time");
    load.end().expect_confirmed_delivered();
}

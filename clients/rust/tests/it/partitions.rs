//! Partitions on a cluster: a worker follows a resharding and a failover.

use crate::support::{eventually, Cluster};
use dq_client::blocking::{Client, Partitions, Worker};
use dq_client::{Context, Options, Pool, Settings};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const COUNT: u32 = 12;
const MESSAGES: u32 = 3000;

#[test]
fn a_partitioned_topic_survives_a_resharding_and_a_failover() {
    let mut cluster = Cluster::of(3);
    let replica = cluster.add_replica(0);
    let hosts: Vec<String> = cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let url = format!("redis+cluster://{}", hosts.join(","));
    let client = Client::with(Options::from_url(&url).unwrap().retry_for(Duration::from_secs(60))).unwrap();
    let topic: Partitions<u32> = Partitions::new(&client, "orders", COUNT);
    for queue in topic.queues() {
        queue.declare(&Settings { retries: Some(-1), ..Settings::default() }).unwrap();
    }
    // All three masters have partitions.
    let owner = |number: usize| Cluster::first_owner(3, cluster.slot_of(&topic.queues()[number].name().to_string()));
    let owners: Vec<usize> = (0..COUNT as usize).map(owner).collect();
    assert_eq!(owners.iter().collect::<HashSet<_>>().len(), 3, "{owners:?}");
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let handled = Arc::clone(&seen);
    let handler = move |number: u32, _: Context| {
        handled.lock().unwrap().insert(number);
        Ok(())
    };
    let pool = Pool::new(16).partitions(&topic).lease(Duration::from_secs(3));
    let running = Worker::new(client.clone()).on_event(|_| {}).pool(pool, handler).start().unwrap();
    let push = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            topic.push(number.to_le_bytes(), &number).send().unwrap();
        }
    };
    let until_handled = |count: u32| {
        eventually("all are handled", || seen.lock().unwrap().len() == count as usize);
    };
    push(0..MESSAGES / 3);
    until_handled(MESSAGES / 3);
    // A partition moves to another master while messages arrive.
    std::thread::scope(|scope| {
        scope.spawn(|| push(MESSAGES / 3..MESSAGES / 3 * 2));
        let moving = owners.iter().position(|owner| *owner == 1).unwrap();
        cluster.reshard(cluster.slot_of(&topic.queues()[moving].name().to_string()), 1, 2);
    });
    until_handled(MESSAGES / 3 * 2);
    // A master dies, once its replica has everything.
    eventually("the replica has everything", || {
        let offset = |node: usize, field: &str| cluster.nodes[node].info("replication", field);
        offset(0, "master_repl_offset") == offset(replica, "slave_repl_offset")
    });
    cluster.nodes[0].kill();
    push(MESSAGES / 3 * 2..MESSAGES);
    until_handled(MESSAGES);
    let left = || {
        topic.info().unwrap().into_iter().flatten().map(|info| info.ready + info.delayed + info.inflight).sum::<u64>()
    };
    eventually("all are acknowledged", || left() == 0);
    running.stop();
    assert_eq!(running.join().abandoned, 0);
}

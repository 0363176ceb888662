//! Concurrency: with many producers and consumers, each message is delivered to exactly one consumer.

use crate::support::{until_counted, Client, Server};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

const CONSUMERS: usize = 8;
const MESSAGES: usize = 10_000;

/// Starts consumers that run until they have completed `MESSAGES` in total.
fn consumers<T: Send + 'static>(
    server: &Server,
    consume: impl Fn(&mut Client, &AtomicUsize) -> T + Send + Clone + 'static,
) -> Vec<JoinHandle<Vec<T>>> {
    let completed = Arc::new(AtomicUsize::new(0));
    (0..CONSUMERS)
        .map(|_| {
            let (mut c, completed, consume) = (server.client(), completed.clone(), consume.clone());
            std::thread::spawn(move || {
                let mut seen = Vec::new();
                until_counted(&completed, MESSAGES, || seen.push(consume(&mut c, &completed)));
                seen
            })
        })
        .collect()
}

fn produce(server: &Server, delays: usize) {
    let producers: Vec<_> = (0..2)
        .map(|half| {
            let mut c = server.client();
            std::thread::spawn(move || {
                let own = (0..MESSAGES).filter(|n| n % 2 == half);
                c.pipeline(own.map(|n| format!("DQ.PUSH q x ID m{n} DELAY {} PRIORITY {}", n % delays, n % 3)));
            })
        })
        .collect();
    for producer in producers {
        producer.join().expect("all pushed");
    }
}

#[test]
fn every_message_is_delivered_to_exactly_one_consumer() {
    let server = Server::start();
    let consumers = consumers(&server, |c, completed| {
        let messages = c.pop("q COUNT 7 BLOCK 50 LEASE 600000");
        for message in &messages {
            assert_eq!(message.attempt, 1);
            assert_eq!(c.ack(format!("q {}", message.receipt())), 1);
            completed.fetch_add(1, Ordering::Relaxed);
        }
        messages.into_iter().map(|message| message.id).collect::<Vec<_>>()
    });
    produce(&server, 40);
    let mut seen = HashSet::new();
    for consumer in consumers {
        for id in consumer.join().expect("no reply was wrong").into_iter().flatten() {
            assert!(seen.insert(id.clone()), "{id} came twice");
        }
    }
    assert_eq!(seen.len(), MESSAGES);
    let about = server.client().about("q");
    let numbers = ["pushed", "delivered", "acked", "lease-expired"].map(|name| about.int(name));
    assert_eq!(numbers, [MESSAGES as i64, MESSAGES as i64, MESSAGES as i64, 0]);
    assert_eq!(["delayed", "ready", "inflight", "dead"].map(|name| about.int(name)), [0; 4]);
}

#[test]
fn without_acks_too() {
    let server = Server::start();
    let consumers = consumers(&server, |c, completed| {
        let ids = c.pop_ids("q COUNT 3 BLOCK 50 NOACK");
        completed.fetch_add(ids.len(), Ordering::Relaxed);
        ids
    });
    produce(&server, 1);
    let all: Vec<String> =
        consumers.into_iter().flat_map(|consumer| consumer.join().expect("done")).flatten().collect();
    assert_eq!(all.len(), MESSAGES);
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), MESSAGES);
}

#[test]
fn consumers_that_fail_lose_nothing() {
    let server = Server::start();
    server.client().configure("dq.default-retries", -1);
    let consumers = consumers(&server, |c, completed| {
        let mut done = Vec::new();
        for message in c.pop("q COUNT 20 BLOCK 20 LEASE 200") {
            let number: usize = message.id[1..].parse().expect("a number");
            match (message.attempt, number % 5) {
                (1, 0) => (), // It is abandoned: it must return when its lease expires.
                (1, 1) => drop(c.ask(format!("DQ.NACK q {} DELAY 5", message.receipt()))),
                _ => {
                    if c.ack(format!("q {}", message.receipt())) == 1 {
                        completed.fetch_add(1, Ordering::Relaxed);
                        done.push(message.id);
                    }
                }
            }
        }
        done
    });
    produce(&server, 20);
    let all: Vec<String> =
        consumers.into_iter().flat_map(|consumer| consumer.join().expect("done")).flatten().collect();
    assert_eq!(all.len(), MESSAGES, "each was completed once");
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), MESSAGES);
    assert_eq!(server.client().len("q"), 0);
}

#[test]
fn fifty_waiting_consumers_get_one_message_each() {
    let server = Server::start();
    let mut c = server.client();
    let mut waiting: Vec<Client> = (0..50).map(|_| server.client()).collect();
    for round in 0..4 {
        for client in &mut waiting {
            client.wait_for_message("q");
        }
        c.until_blocked(50);
        let delay = round % 2 * 30;
        c.pipeline((0..50).map(|n| format!("DQ.PUSH q x ID r{round}:{n} DELAY {delay}")));
        let ids: HashSet<String> = waiting.iter_mut().map(|client| client.served().id).collect();
        assert_eq!(ids.len(), 50);
    }
    c.until_blocked(0);
    assert_eq!((c.len("q inflight"), c.len("q ready")), (200, 0));
}

#[test]
fn many_queues_fall_due_together() {
    let server = Server::start();
    let mut c = server.client();
    let due = c.now() + 500;
    c.pipeline((0..3000).map(|n| format!("DQ.PUSH q{n} x ID m AT {due}")));
    let mut waiting: Vec<Client> = (0..20).map(|_| server.client()).collect();
    for (n, client) in waiting.iter_mut().enumerate() {
        client.wait_for_message(&format!("q{}", n * 150));
    }
    for (n, client) in waiting.iter_mut().enumerate() {
        assert_eq!(client.served().id, "m");
        c.expect_delivered_at(&format!("q{}", n * 150), "m", due);
    }
    crate::support::eventually("all have moved", || {
        (c.info("dq", "dq_delayed"), c.info("dq", "dq_ready")) == ("0".into(), "2980".into())
    });
}

//! Producers and consumers that work on one queue while something happens to its server.

use super::reply::Reply;
use super::roaming::Roamer;
use super::wait::eventually;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

const PRODUCERS: usize = 2;
const CONSUMERS: usize = 4;
/// Producers wait while this many messages are not completed, so that the final drain stays short.
const BACKLOG: i64 = 300;
/// How long a producer waits for a replica, in ms.
const CONFIRM_MS: u32 = 10_000;

/// Producers and consumers that work on a queue until they are stopped.
pub struct Load {
    key: String,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    producers: Vec<JoinHandle<Vec<Pushed>>>,
    consumers: Vec<JoinHandle<(Vec<Delivery>, usize)>>,
    own: Roamer,
}

/// A push that was answered, and what the client knows about it.
struct Pushed {
    id: String,
    confirmed: bool,
}

/// A message that a consumer received and tried to ack.
struct Delivery {
    id: String,
    attempt: i64,
    receipt: String,
    acked: bool,
}

/// The result of the work.
pub struct Outcome {
    pushed: Vec<Pushed>,
    deliveries: Vec<Delivery>,
    /// How often consumers had to connect to another server.
    pub travels: usize,
}

impl Load {
    /// Starts the load with clients that `roamer` makes, and waits until it is in progress. Leases last `lease_ms`.
    pub fn on(key: &str, lease_ms: u64, roamer: impl Fn() -> Roamer) -> Load {
        Load::start(key, lease_ms, false, roamer)
    }

    /// The same with producers that ask with `WAIT` whether a replica has their message, until the master is lost.
    pub fn confirmed_on(key: &str, lease_ms: u64, roamer: impl Fn() -> Roamer) -> Load {
        Load::start(key, lease_ms, true, roamer)
    }

    fn start(key: &str, lease_ms: u64, confirm: bool, roamer: impl Fn() -> Roamer) -> Load {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let producers = (0..PRODUCERS).map(|producer| {
            let (c, key, stop) = (roamer(), key.to_owned(), stop.clone());
            std::thread::spawn(move || produce(c, &key, producer, confirm, &stop))
        });
        let consumers = (0..CONSUMERS).map(|_| {
            let (c, key, done) = (roamer(), key.to_owned(), done.clone());
            std::thread::spawn(move || consume(c, &key, lease_ms, &done))
        });
        let (producers, consumers) = (producers.collect(), consumers.collect());
        let mut load = Load { key: key.to_owned(), stop, done, producers, consumers, own: roamer() };
        load.go_on();
        load
    }

    /// Waits until much more work was done, so that it is known to continue.
    #[track_caller]
    pub fn go_on(&mut self) {
        let goal = self.done.load(Ordering::Relaxed) + 200;
        eventually("work goes on", || self.done.load(Ordering::Relaxed) > goal);
    }

    /// Ends the load: stops the producers, and waits until everything that was pushed is delivered.
    #[track_caller]
    pub fn end(mut self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        let join = |producer: JoinHandle<Vec<Pushed>>| producer.join().expect("no reply was wrong");
        let pushed = self.producers.drain(..).flat_map(join).collect();
        let (key, own) = (&self.key, &mut self.own);
        eventually("all is done", || own.ask(&format!("DQ.LEN {key}")) == Reply::Int(0));
        eventually("the consumers have gone home", || {
            if self.consumers.iter().all(JoinHandle::is_finished) {
                return true;
            }
            if own.ask(&format!("DQ.LEN {key} ready")) == Reply::Int(0) {
                own.ask(&format!("DQ.PUSH {key} stop"));
            }
            false
        });
        own.ask(&format!("DQ.PURGE {key}"));
        let (mut deliveries, mut travels) = (Vec::new(), 0);
        for consumer in self.consumers {
            let (more, went) = consumer.join().expect("no reply was wrong");
            deliveries.extend(more);
            travels += went;
        }
        Outcome { pushed, deliveries, travels }
    }
}

impl Outcome {
    /// Checks that each message was delivered and acked exactly once, and that every delivered message was pushed.
    #[track_caller]
    pub fn expect_each_once(&self) {
        self.expect_no_repeats();
        for delivery in &self.deliveries {
            assert_eq!((delivery.attempt, delivery.acked), (1, true), "{}: {}", delivery.id, delivery.receipt);
        }
        assert_eq!(self.delivered().len(), self.deliveries.len(), "nothing was delivered twice");
        let pushed: HashSet<&str> = self.pushed.iter().map(|pushed| pushed.id.as_str()).collect();
        assert_eq!(self.delivered(), pushed, "what was pushed was delivered, and nothing else");
    }

    /// Checks that every message that a replica had was delivered, even if others were lost or delivered twice.
    #[track_caller]
    pub fn expect_confirmed_delivered(&self) {
        self.expect_no_repeats();
        let confirmed: Vec<&str> = self.pushed.iter().filter(|push| push.confirmed).map(|push| &*push.id).collect();
        assert!(confirmed.len() > 100, "WAIT confirmed {} of {}", confirmed.len(), self.pushed.len());
        let delivered = self.delivered();
        let lost: Vec<&&str> = confirmed.iter().filter(|id| !delivered.contains(**id)).collect();
        assert!(lost.is_empty(), "lost although WAIT confirmed them: {lost:?}");
    }

    /// Checks that no id and no receipt was issued twice.
    #[track_caller]
    fn expect_no_repeats(&self) {
        let mut seen = HashSet::new();
        for pushed in &self.pushed {
            assert!(seen.insert(pushed.id.as_str()), "the id {} was given twice", pushed.id);
        }
        for delivery in &self.deliveries {
            let number = delivery.receipt.rsplit('#').next().expect("a number");
            assert!(seen.insert(number), "the receipt {} was given twice", delivery.receipt);
        }
    }

    fn delivered(&self) -> HashSet<&str> {
        self.deliveries.iter().map(|delivery| delivery.id.as_str()).collect()
    }
}

fn produce(mut c: Roamer, key: &str, producer: usize, mut confirm: bool, stop: &AtomicBool) -> Vec<Pushed> {
    let mut all = Vec::new();
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if n % 32 == 0 {
            eventually("the backlog is small", || c.ask(&format!("DQ.LEN {key}")).int() < BACKLOG);
        }
        // Some messages are named by the producer, and some get a generated id.
        let id = if n % 2 == 0 { format!("ID p{producer}:{n}") } else { String::new() };
        let travels = c.travels;
        let reply = c.ask(&format!("DQ.PUSH {key} work {id} DELAY {}", n % 20));
        // Null: the message was pushed before, and the reply was lost with the connection.
        let id = if reply.is_null() { format!("p{producer}:{n}") } else { reply.text() };
        // `WAIT` must use the connection that pushed, or its reply means nothing.
        confirm = confirm && (n == 0 || travels == c.travels) && c.replicas_that_have_it(CONFIRM_MS) > 0;
        all.push(Pushed { id, confirmed: confirm && !reply.is_null() });
    }
    all
}

fn consume(mut c: Roamer, key: &str, lease_ms: u64, done: &AtomicUsize) -> (Vec<Delivery>, usize) {
    let mut all = Vec::new();
    loop {
        let reply = c.ask(&format!("DQ.POP {key} BLOCK 0 LEASE {lease_ms}"));
        let [id, payload, attempt, receipt] = reply.items()[0].items() else { panic!("a message, not {reply:?}") };
        let receipt = receipt.text();
        let acked = c.ask(&format!("DQ.ACK {key} {receipt}")) == Reply::Int(1);
        if payload.bytes() == b"stop" {
            return (all, c.travels);
        }
        all.push(Delivery { id: id.text(), attempt: attempt.int(), receipt, acked });
        done.fetch_add(1, Ordering::Relaxed);
    }
}

//! A worker in a storm: the server is killed and restarted, connections are cut, handlers fail, panic and run for
//! longer than their lease. Every message is handled at least once, none by two handlers at the same time, and none is
//! lost.

use crate::support::Server;
use dq_client::blocking::{Client, Queue, Worker};
use dq_client::{Context, Failure, Options, Pool, Settings};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MESSAGES: usize = 30_000;
const LEASE: Duration = Duration::from_secs(4);
/// Longer than any slow machine should need.
const LIMIT: Duration = Duration::from_secs(400);

/// What the handlers see.
struct Witness {
    done: Vec<AtomicU8>,
    /// The handlers that run, by message.
    running: Mutex<HashMap<usize, Context>>,
    overlaps: AtomicU64,
    told: AtomicU64,
    panics: AtomicU64,
}

impl Witness {
    fn handle(&self, message: usize, context: &Context) -> Result<(), Failure> {
        let before = self.running.lock().unwrap().insert(message, context.clone());
        // Another handler may get it only after this one was told that its lease is lost.
        if before.is_some_and(|other| !other.lease_lost()) {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        let _leave = Leave { witness: self, message, context };
        let first = context.attempt() == 1;
        match message % 1000 {
            1 if first => Err(Failure::retry("planned")),
            2 if first => self.panic(),
            3 if first => Err(Failure::retry_after(Duration::from_millis(100), "planned")),
            4 if message % 2000 == 4 => self.work_long(message, context),
            _ => self.finish(message),
        }
    }

    fn panic(&self) -> ! {
        self.panics.fetch_add(1, Ordering::SeqCst);
        panic!("planned")
    }

    /// Longer than the lease.
    fn work_long(&self, message: usize, context: &Context) -> Result<(), Failure> {
        let end = Instant::now() + LEASE + LEASE / 4;
        while Instant::now() < end {
            if context.lease_lost() {
                self.told.fetch_add(1, Ordering::SeqCst);
                return Err(Failure::retry("the lease was lost"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.finish(message)
    }

    fn finish(&self, message: usize) -> Result<(), Failure> {
        self.done[message].store(1, Ordering::SeqCst);
        Ok(())
    }

    fn done(&self) -> usize {
        self.done.iter().filter(|done| done.load(Ordering::SeqCst) > 0).count()
    }
}

/// Leaves the list of running handlers, also in a panic.
struct Leave<'a> {
    witness: &'a Witness,
    message: usize,
    context: &'a Context,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut running = self.witness.running.lock().unwrap();
        if running.get(&self.message).is_some_and(|other| other.receipt() == self.context.receipt()) {
            running.remove(&self.message);
        }
    }
}

#[test]
fn a_worker_loses_nothing_and_doubles_nothing_in_a_storm() {
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&"planned") {
            eprintln!("{info}");
        }
    }));
    let mut server = Server::with(&["--appendonly", "yes", "--appendfsync", "no"]);
    let client = Client::with(Options::from_url(&server.url()).unwrap().retry_for(LIMIT)).unwrap();
    let queues: Vec<Queue<usize>> = ["a", "b", "c"].iter().map(|name| client.queue(name)).collect();
    let settings = Settings {
        retries: Some(-1),
        backoff: Some((Duration::from_millis(10), Duration::from_millis(100))),
        ..Settings::default()
    };
    for (number, queue) in queues.iter().enumerate() {
        queue.declare(&settings).unwrap();
        let mine: Vec<usize> = (0..MESSAGES).filter(|message| message % 3 == number).collect();
        for part in mine.chunks(2000) {
            queue.push_all(part).send().unwrap();
        }
    }
    let witness = Arc::new(Witness {
        done: (0..MESSAGES).map(|_| AtomicU8::new(0)).collect(),
        running: Mutex::default(),
        overlaps: AtomicU64::new(0),
        told: AtomicU64::new(0),
        panics: AtomicU64::new(0),
    });
    let (one, other) = (Arc::clone(&witness), Arc::clone(&witness));
    let running = Worker::new(client)
        .on_event(|_| {})
        .pool(Pool::new(10).weighted("a", 3).weighted("b", 1).lease(LEASE), move |m, context: Context| {
            one.handle(m, &context)
        })
        .pool(Pool::new(6).queue("c").lease(LEASE), move |m, context: Context| other.handle(m, &context))
        .start()
        .unwrap();
    let begun = Instant::now();
    let mut round = 0;
    // Each round disturbs the worker; then it is left alone until all work is done.
    while witness.done() < MESSAGES * 9 / 10 && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(700));
        if round % 3 == 2 {
            server.kill();
            if round % 6 == 2 {
                // Long enough for leases to expire, and for handlers to be told.
                std::thread::sleep(LEASE + LEASE / 4);
            }
            server.boot();
        } else {
            server.cut();
        }
        round += 1;
    }
    let all_done = AtomicBool::new(false);
    while !all_done.load(Ordering::Relaxed) && begun.elapsed() < LIMIT {
        let left: u64 = queues.iter().map(|queue| queue.len(None).unwrap()).sum();
        all_done.store(left == 0, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(50));
    }
    running.stop();
    let metrics = running.metrics();
    assert_eq!(running.join().abandoned, 0);
    let counted = |read: fn(&dq_client::QueueMetrics) -> u64| metrics.queues().iter().map(read).sum::<u64>();
    eprintln!(
        "{MESSAGES} messages in {:?} and {round} rounds: {} deliveries, {} acked, {} late, {} extended, {} lost leases",
        begun.elapsed(),
        counted(|queue| queue.delivered),
        counted(|queue| queue.acked),
        counted(|queue| queue.late),
        counted(|queue| queue.extended),
        witness.told.load(Ordering::SeqCst),
    );
    assert!(round >= 3, "there was a storm");
    assert_eq!(witness.done(), MESSAGES, "every message was handled");
    assert_eq!(witness.overlaps.load(Ordering::SeqCst), 0, "no message by two handlers at the same time");
    for queue in &queues {
        let info = queue.info().unwrap().unwrap();
        assert_eq!((info.ready, info.delayed, info.inflight, info.dead), (0, 0, 0, 0), "{}", queue.name());
    }
    // Not every message that would panic does: a first delivery whose reply was cut off reaches no handler.
    let panics = witness.panics.load(Ordering::SeqCst);
    assert!(panics > 0, "handlers panicked");
    assert_eq!(counted(|queue| queue.panicked), panics, "every panic is counted");
}

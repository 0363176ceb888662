//! Promises that hold while servers fail, checked on a whole history: no answered message is lost, none appears that
//! was not pushed, and no message has two consumers at once. Jepsen tests queues in this way.
//!
//! Producers and consumers work on one queue while faults are drawn at random. The history has each request, its reply
//! and the times of both. At the end the queue is drained and the history is checked. If the connection broke before a
//! reply arrived, the check accepts both outcomes; everything else is exact.
//!
//! A failing run prints its seed. `DQ_SEED` repeats the random draws, but not the interleaving of the threads. `make
//! soak` runs with new seeds each time.

mod check;
mod consumer;
mod faults;
mod history;
mod leases;
mod messages;
mod numbers;
mod planted;
mod producer;
mod report;
mod soak;
mod stage;

use self::consumer::Consumer;
use self::faults::{follow, Fault, Nemesis, ALONE, PAIR};
use self::history::History;
use self::producer::Producer;
use self::report::Report;
use self::stage::{Link, Stage, QUEUE};
use crate::support::{Random, Server};

const PRODUCERS: usize = 3;
const CONSUMERS: usize = 4;

/// The seed of the ordinary runs.
const SEED: u64 = 1;

/// The servers of a run.
#[derive(Clone, Copy, Debug)]
enum Cast {
    /// One server that writes everything to its AOF before it replies, so it must not lose anything.
    Alone,
    /// A master and a replica that takes over. What no `WAIT` confirmed may be lost.
    Pair,
}

/// Carries out one run: its faults, `rounds` times, then the drain, then the check.
fn run(cast: Cast, seed: u64, rounds: usize) -> Report {
    let stage = Stage::new();
    let (master, replica, faults): (_, _, &[Fault]) = match cast {
        Cast::Alone => (Server::with_aof(&[]), None, &ALONE),
        Cast::Pair => (Server::start(), Some(Server::start()), &PAIR),
    };
    master.client().create(format!("{QUEUE} RETRIES -1"));
    if let Some(replica) = &replica {
        follow(replica, &master);
    }
    stage.enter(&master);
    let chance = |who: usize| Random::seeded(seed.wrapping_mul(64).wrapping_add(who as u64));
    let mut nemesis = Nemesis { stage: &stage, chance: chance(0), master, replica, losses: Vec::new() };
    let mut history = History::default();
    std::thread::scope(|scope| {
        let link = |who: usize| Link::new(&stage, chance(who));
        let confirms = matches!(cast, Cast::Pair);
        let mut workers = Vec::new();
        for n in 0..PRODUCERS {
            let producer = Producer::new(link(1 + n), n, confirms);
            workers.push(scope.spawn(move || producer.work()));
        }
        for n in 0..CONSUMERS {
            let consumer = Consumer::new(link(1 + PRODUCERS + n));
            workers.push(scope.spawn(move || consumer.work()));
        }
        // The clients must end even if something fails here.
        let raged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..rounds {
                nemesis.rage(faults);
            }
        }));
        stage.end();
        for worker in workers {
            history.ops.extend(worker.join().expect("no reply was wrong"));
        }
        raged.expect("the servers did as they were told");
        history.ops.extend(Consumer::new(link(63)).drain());
    });
    history.losses = std::mem::take(&mut nemesis.losses);
    check::check(&history)
}

/// Carries out a run, and fails unless its history is free of faults.
fn must_be_clean(cast: Cast, seed: u64, rounds: usize) {
    println!("{cast:?}, DQ_SEED={seed}");
    let report = run(cast, seed, rounds);
    println!("{report}");
    assert!(report.findings.is_empty(), "{cast:?}, DQ_SEED={seed}: {report}");
    let numbers = [report.acknowledged, report.delivered, report.duplicated];
    assert!(numbers.iter().all(|number| *number > 0), "the run shows something: {report}");
}

/// The seed that `DQ_SEED` sets, or `otherwise`.
fn seed(otherwise: u64) -> u64 {
    std::env::var("DQ_SEED").map_or(otherwise, |seed| seed.parse().expect("DQ_SEED is a number"))
}

#[test]
fn a_killed_and_restarted_server_with_aof_keeps_every_promise() {
    must_be_clean(Cast::Alone, seed(SEED), 1);
}

#[test]
fn a_promoted_replica_keeps_every_promise_that_wait_confirmed() {
    must_be_clean(Cast::Pair, seed(SEED), 1);
}

//! Promises that hold while servers fail, checked on a whole history: no answered message is lost, none appears that
//! was not pushed, and no message has two consumers at once. Jepsen tests queues in this way.
//!
//! Producers and consumers work on one queue while faults are drawn at random. The history has each request, its reply
//! and the times of both. At the end the queue is drained and the history is checked. If the connection broke before a
//! reply arrived, the check accepts both outcomes; everything else is exact.
//!
//! A failing run prints its seed. `DQ_SEED` repeats the random draws, but not the interleaving of the threads. `make
//! soak` runs with new seeds each time.

mod batches;
mod branches;
mod check;
mod consumer;
mod crew;
mod faults;
mod forwarding;
mod groups;
mod history;
mod leases;
mod limits;
mod looking;
mod messages;
mod numbers;
mod partitions;
mod planted;
mod producer;
mod report;
mod series;
mod slots;
mod soak;
mod stage;

use self::consumer::BACKOFF;
use self::crew::Crew;
use self::faults::{follow, Fault, Nemesis, Unrest, ALONE, CLOCKS, PAIR, SKEWED, STEPS, UPGRADED_ALONE, UPGRADED_PAIR};
use self::history::{History, Rate};
use self::looking::Target;
use self::producer::Confirms;
use self::report::Report;
use self::slots::Moves;
pub use self::soak::{new_seed, soak_seconds};
use self::stage::{Link, Stage};
use crate::support::{next_module, Clock, Random, Server};
use std::collections::BTreeSet;

/// The seed of the ordinary runs.
const SEED: u64 = 1;

/// The servers of a run.
#[derive(Clone, Copy, Debug)]
enum Cast {
    /// One server without faults.
    Calm,
    /// One server that writes everything to its AOF before it replies, so it must not lose anything.
    Alone,
    /// A master and a replica that takes over. What no `WAIT` confirmed may be lost.
    Pair,
    /// The same as `Alone`, with a clock that jumps.
    Clock,
    /// A master and a replica whose clocks differ, in planned failovers. Nothing may be lost.
    Skewed,
    /// Two masters of a cluster, between which a slot moves. Nothing may be lost.
    Cluster,
    /// The same, with clocks that differ by hours.
    SkewedCluster,
    /// The same as `Alone`, with a module that changes to the next format and back.
    Upgraded,
    /// A master and a replica with AOFs, which are upgraded one after the other and back, in planned failovers. Nothing
    /// may be lost.
    UpgradedPair,
}

/// The arguments of a server that is upgraded: an AOF of effects alone, which another version of the module reads.
const EFFECTS_ONLY: [&str; 2] = ["--aof-use-rdb-preamble", "no"];

/// The queue of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    /// Its settings are the defaults.
    Plain,
    /// It has a rate limit and a deduplication window, another queue has schedules, and a third one batches.
    Limited,
    /// Most of its messages have a group.
    Grouped,
    /// It forwards to a stream or to a list.
    Forwarding,
}

const QUEUES: [Queue; 4] = [Queue::Plain, Queue::Limited, Queue::Grouped, Queue::Forwarding];

/// The rate limit of a limited queue.
const RATE: Rate = Rate { most: 50, period: 60 };

/// A deduplication window that is longer than a run, in ms.
const WINDOW: u64 = 600_000_000;

/// The settings of the queue, some of which are drawn, their meaning for its history, and the target to which it
/// forwards.
fn settings(queue: Queue, chance: &mut Random) -> (String, History, Option<Target>) {
    let (mut history, mut target) = (History::default(), None);
    let more = match queue {
        Queue::Plain => String::new(),
        Queue::Limited => {
            (history.rate, history.dedupes) = (Some(RATE), true);
            format!("RATE {} {} DEDUPE {WINDOW}", RATE.most, RATE.period)
        }
        Queue::Grouped => {
            history.group_room = *chance.one_of(&[1, 1, 1, 2]);
            let order = *chance.one_of(&["DUE", "TURN"]);
            format!("GROUPINFLIGHT {} GROUPORDER {order}", history.group_room)
        }
        Queue::Forwarding => target.insert(Target::any(chance)).setting().to_owned(),
    };
    (format!("RETRIES -1 BACKOFF {BACKOFF} {} {more}", 4 * BACKOFF), history, target)
}

/// Starts the servers of a run, and makes clients use them.
fn start(cast: Cast, stage: &Stage, mut chance: Random) -> Box<dyn Unrest + '_> {
    let (clock, other) = (Clock::new(), Clock::new());
    let mut skew = 0;
    if matches!(cast, Cast::Upgraded | Cast::UpgradedPair) {
        // It may have to be built. That takes a minute, in which clients would do more than the checker can judge.
        next_module();
    }
    let (master, replica, faults): (_, _, &[Fault]) = match cast {
        Cast::Calm => (Server::start(), None, &[]),
        Cast::Alone => (Server::with_aof(&[]), None, &ALONE),
        Cast::Clock => (Server::with_clock(&clock, &["--appendonly", "yes", "--appendfsync", "always"]), None, &CLOCKS),
        Cast::Pair => (Server::start(), Some(Server::start()), &PAIR),
        Cast::Skewed => {
            skew = *chance.one_of(&STEPS);
            other.set(skew);
            (Server::with_clock(&clock, &[]), Some(Server::with_clock(&other, &[])), &SKEWED)
        }
        Cast::Cluster => return Box::new(Moves::start(stage, chance, Vec::new())),
        Cast::SkewedCluster => return Box::new(Moves::start(stage, chance, vec![clock, other])),
        Cast::Upgraded => (Server::with_aof(&EFFECTS_ONLY), None, &UPGRADED_ALONE),
        Cast::UpgradedPair => (Server::with_aof(&EFFECTS_ONLY), Some(Server::with_aof(&EFFECTS_ONLY)), &UPGRADED_PAIR),
    };
    if let Some(replica) = &replica {
        follow(replica, &master);
    }
    stage.enter(&master);
    Box::new(Nemesis { stage, chance, master, replica, clock, ahead: 0, skew, faults, losses: Vec::new() })
}

/// Carries out one run: its faults, `rounds` times, then the drain, then the check.
fn run(cast: Cast, queue: Queue, seed: u64, rounds: usize) -> Report {
    let stage = Stage::new();
    let chance = |who: usize| Random::seeded(seed.wrapping_mul(64).wrapping_add(who as u64));
    let (settings, history, target) = settings(queue, &mut chance(60 + cast as usize));
    let mut nemesis = start(cast, &stage, chance(0));
    let confirms = if matches!(cast, Cast::Pair) { Confirms::Wait(1) } else { Confirms::Nothing };
    let replicas = i64::from(matches!(cast, Cast::Pair | Cast::Skewed | Cast::UpgradedPair));
    let link = |who: usize| Link::new(&stage, chance(who));
    let crew = Crew { stage: &stage, link: &link, queue, settings, target, confirms, replicas };
    crew.work(&mut *nemesis, rounds, history)
}

/// The commands, each with the words in capital letters that followed, that clients have sent in a run of each queue.
pub fn drawn(seed: u64) -> BTreeSet<(String, String)> {
    let words = |queue: Queue| run(Cast::Calm, queue, seed, 2).said;
    QUEUES.into_iter().flat_map(words).collect()
}

/// Carries out a run, and fails unless its history is free of faults.
fn must_be_clean(cast: Cast, queue: Queue, seed: u64, rounds: usize) {
    println!("{cast:?}, {queue:?}, DQ_SEED={seed}");
    let report = run(cast, queue, seed, rounds);
    println!("{report}");
    assert!(report.findings.is_empty(), "{cast:?}, {queue:?}, DQ_SEED={seed}: {report}");
    let numbers = match queue {
        Queue::Forwarding => [report.acknowledged, report.forwarded, report.forwarded],
        _ => [report.acknowledged, report.delivered, report.duplicated],
    };
    assert!(numbers.iter().all(|number| *number > 0), "the run shows something: {report}");
    assert_eq!(report.runs > 0, queue == Queue::Limited, "{report}");
    assert_eq!(report.batches > 0, queue == Queue::Limited, "{report}");
    assert_eq!(report.grouped > 0, queue == Queue::Grouped, "{report}");
}

/// The seed that `DQ_SEED` sets, or `otherwise`.
fn seed(otherwise: u64) -> u64 {
    std::env::var("DQ_SEED").map_or(otherwise, |seed| seed.parse().expect("DQ_SEED is a number"))
}

#[test]
fn a_killed_and_restarted_server_with_aof_keeps_every_promise() {
    must_be_clean(Cast::Alone, Queue::Plain, seed(SEED), 1);
}

#[test]
fn a_promoted_replica_keeps_every_promise_that_wait_confirmed() {
    must_be_clean(Cast::Pair, Queue::Plain, seed(SEED), 1);
}

#[test]
fn a_killed_server_keeps_limits_and_schedules() {
    must_be_clean(Cast::Alone, Queue::Limited, seed(SEED), 1);
}

#[test]
fn a_promoted_replica_keeps_limits_and_schedules() {
    must_be_clean(Cast::Pair, Queue::Limited, seed(SEED), 1);
}

#[test]
fn a_killed_server_keeps_the_order_of_groups() {
    must_be_clean(Cast::Alone, Queue::Grouped, seed(SEED), 1);
}

#[test]
fn a_promoted_replica_keeps_the_order_of_groups() {
    must_be_clean(Cast::Pair, Queue::Grouped, seed(SEED), 1);
}

#[test]
fn a_killed_server_forwards_each_message_once() {
    must_be_clean(Cast::Alone, Queue::Forwarding, seed(SEED), 1);
}

#[test]
fn a_promoted_replica_forwards_each_message_once() {
    must_be_clean(Cast::Pair, Queue::Forwarding, seed(SEED), 1);
}

#[test]
fn a_moving_slot_keeps_every_promise() {
    must_be_clean(Cast::Cluster, Queue::Plain, seed(SEED), 1);
}

#[test]
fn a_moving_slot_keeps_limits_schedules_and_batches() {
    must_be_clean(Cast::Cluster, Queue::Limited, seed(SEED), 1);
}

#[test]
fn a_moving_slot_keeps_the_order_of_groups() {
    must_be_clean(Cast::Cluster, Queue::Grouped, seed(SEED), 1);
}

#[test]
fn a_moving_slot_forwards_each_message_once() {
    must_be_clean(Cast::Cluster, Queue::Forwarding, seed(SEED), 1);
}

#[test]
fn a_jumping_clock_keeps_every_promise() {
    must_be_clean(Cast::Clock, Queue::Plain, seed(SEED), 1);
}

#[test]
fn a_jumping_clock_keeps_limits_schedules_and_batches() {
    must_be_clean(Cast::Clock, Queue::Limited, seed(SEED), 1);
}

#[test]
fn a_jumping_clock_keeps_the_order_of_groups() {
    must_be_clean(Cast::Clock, Queue::Grouped, seed(SEED), 1);
}

#[test]
fn a_jumping_clock_forwards_each_message_once() {
    must_be_clean(Cast::Clock, Queue::Forwarding, seed(SEED), 1);
}

#[test]
fn servers_whose_clocks_differ_keep_every_promise() {
    must_be_clean(Cast::Skewed, Queue::Plain, seed(SEED), 1);
}

#[test]
fn servers_whose_clocks_differ_keep_limits_schedules_and_batches() {
    must_be_clean(Cast::Skewed, Queue::Limited, seed(SEED), 1);
}

#[test]
fn a_server_that_is_upgraded_loses_nothing() {
    must_be_clean(Cast::Upgraded, Queue::Plain, seed(SEED), 1);
}

#[test]
fn a_server_that_is_upgraded_keeps_limits_schedules_and_batches() {
    must_be_clean(Cast::Upgraded, Queue::Limited, seed(SEED), 1);
}

#[test]
fn a_server_that_is_upgraded_keeps_the_order_of_groups() {
    must_be_clean(Cast::Upgraded, Queue::Grouped, seed(SEED), 1);
}

#[test]
fn a_server_that_is_upgraded_forwards_each_message_once() {
    must_be_clean(Cast::Upgraded, Queue::Forwarding, seed(SEED), 1);
}

#[test]
fn a_pair_that_is_upgraded_loses_nothing() {
    must_be_clean(Cast::UpgradedPair, Queue::Plain, seed(SEED), 1);
}

#[test]
fn a_pair_that_is_upgraded_keeps_limits_schedules_and_batches() {
    must_be_clean(Cast::UpgradedPair, Queue::Limited, seed(SEED), 1);
}

#[test]
fn a_pair_that_is_upgraded_keeps_the_order_of_groups() {
    must_be_clean(Cast::UpgradedPair, Queue::Grouped, seed(SEED), 1);
}

#[test]
fn a_pair_that_is_upgraded_forwards_each_message_once() {
    must_be_clean(Cast::UpgradedPair, Queue::Forwarding, seed(SEED), 1);
}

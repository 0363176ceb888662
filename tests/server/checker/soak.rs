//! Runs the checker for a given time: `make soak`. `DQ_FAULTS` chooses the faults.

use super::{must_be_clean, partitions, seed, Cast, QUEUES};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The default duration in seconds, which `DQ_SOAK_SECONDS` overrides.
const SECONDS: u64 = 600;

/// How often a run goes through its faults. This is more often than in the ordinary runs, so that faults meet older
/// data.
const ROUNDS: usize = 4;

/// How long to run.
pub fn soak_seconds() -> u64 {
    std::env::var("DQ_SOAK_SECONDS").map_or(SECONDS, |text| text.parse().expect("a number of seconds"))
}

/// A seed that no run had before, or `DQ_SEED`.
pub fn new_seed() -> u64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").subsec_nanos();
    seed(u64::from(nanos))
}

#[test]
#[ignore = "ten minutes: make soak"]
fn servers_keep_their_promises_through_ever_new_faults() {
    let (seconds, first) = (soak_seconds(), new_seed());
    let start = Instant::now();
    let mut runs = 0;
    let faults = std::env::var("DQ_FAULTS").unwrap_or_default();
    while start.elapsed() < Duration::from_secs(seconds) {
        match faults.as_str() {
            "" => each_queue(&[Cast::Alone, Cast::Pair], first + runs),
            "clocks" => each_queue(&[Cast::Skewed, Cast::Clock, Cast::SkewedCluster], first + runs),
            "slots" => each_queue(&[Cast::Cluster], first + runs),
            "upgrades" => each_queue(&[Cast::Upgraded, Cast::UpgradedPair], first + runs),
            "partitions" => partitions::soak(first + runs),
            "cluster" => partitions::soak_of_cluster(first + runs),
            other => panic!("DQ_FAULTS is partitions, cluster, slots, upgrades, clocks or not set, and not {other}"),
        }
        runs += 1;
    }
    println!("{runs} runs of each kind in {} s", start.elapsed().as_secs());
}

/// A run of each queue on each of these servers.
fn each_queue(casts: &[Cast], seed: u64) {
    for cast in casts {
        for queue in QUEUES {
            must_be_clean(*cast, queue, seed, ROUNDS);
        }
    }
}

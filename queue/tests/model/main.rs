//! The queue compared with a simple model of it, in random histories.
//!
//! `reference` implements the contract with a vector and linear scans. `history` draws the events. `world` applies them
//! to the model, to two masters and to a replica, and compares all of them after each step. `damage` feeds the queue
//! input that no queue wrote. `DQ_HISTORIES` is the number of histories (default: 10,000),
//! and `DQ_SEED` chooses which (default: 1).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod ahead;
mod batches;
mod corpus;
mod costs;
mod cron;
mod damage;
mod declaring;
mod done;
mod endings;
#[path = "../../../fuzz/exercise.rs"]
mod exercise;
mod flips;
mod frozen;
mod gates;
mod golden;
mod groups;
mod history;
mod loading;
mod measured;
mod piles;
mod recurring;
mod reference;
mod replaced;
mod week;
mod window;
mod world;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// How many histories to draw.
pub fn histories() -> u32 {
    let asked = std::env::var("DQ_HISTORIES").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(if cfg!(miri) { 4 } else { 10_000 })
}

/// A configuration with this many histories, which keeps no file of old failures. Tests of different `part` draw
/// different histories.
pub fn config(cases: u32, part: u64) -> ProptestConfig {
    // A change is judged by the histories by which the one before it was judged; who wants new ones sets DQ_SEED.
    let seed: u64 = std::env::var("DQ_SEED").map_or(1, |seed| seed.parse().expect("DQ_SEED is a number"));
    let rng_seed = RngSeed::Fixed(seed.wrapping_add(part << 32));
    // A failure prints the shortest history that fails. Such a history becomes a test with a name, so no file is kept.
    ProptestConfig { cases, rng_seed, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

// Two halves, because a test uses one core.
proptest! {
    #![proptest_config(config(histories().div_ceil(2), 0))]

    #[test]
    fn every_history_goes_as_the_contract_says(history in history::history(1..80, 1)) {
        world::run(&history);
    }
}

proptest! {
    #![proptest_config(config(histories().div_ceil(2), 1))]

    #[test]
    fn every_other_history_goes_as_the_contract_says(history in history::history(1..80, 1)) {
        world::run(&history);
    }
}

proptest! {
    #![proptest_config(config(histories() / 100, 2))]

    #[test]
    fn a_history_of_thousands_of_messages_does_too(history in history::history(1..80, 200)) {
        world::run(&history);
    }
}

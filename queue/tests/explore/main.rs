//! Every history of a master and its replica, up to a bound: the real `Queue` and `apply` under the model checker
//! `stateright`.
//!
//! `acts` is what can happen: each operation of the queue with small arguments, time, an effect that arrives, a full
//! synchronisation, a restart, and a takeover that loses the effects on their way. `nodes` carries it out on two queues
//! that know each other only by the bytes of effects and of saved queues. `belief` is what a node must know after the
//! effects that it has applied, in the simplest form, and every state is compared with it.
//!
//! A state is the acts that lead to it, and these are carried out anew to reach the next ones, so queues are never
//! copied and keep what a save does not hold. Two states are the same if their saved queues, effects on their way,
//! beliefs and clocks are.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod acts;
mod belief;
mod faults;
mod nodes;

use acts::{Act, How, Menu};
use faults::Fault;
use nodes::Nodes;
use stateright::{Checker, Model, Property};
use std::hash::{Hash, Hasher};
use std::time::Instant;

/// What is explored.
#[derive(Clone, Copy, Debug)]
struct Explored {
    menu: Menu,
    /// The number of acts.
    depth: usize,
    fault: Option<Fault>,
}

/// A state that was reached.
#[derive(Clone, Debug)]
struct Reached {
    path: Vec<Act>,
    fingerprint: u64,
    broken: Option<String>,
}

impl Hash for Reached {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.fingerprint, acts::chosen_from(&self.path)).hash(hasher);
    }
}

impl PartialEq for Reached {
    fn eq(&self, other: &Reached) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Model for Explored {
    type State = Reached;
    type Action = Act;

    fn init_states(&self) -> Vec<Reached> {
        vec![Reached { path: Vec::new(), fingerprint: Nodes::new(self.fault).fingerprint(), broken: None }]
    }

    fn actions(&self, state: &Reached, acts: &mut Vec<Act>) {
        if state.path.len() < self.depth && state.broken.is_none() {
            acts.extend(self.menu.acts().filter(|act| act.may_follow(&state.path)));
        }
    }

    fn next_state(&self, last: &Reached, act: Act) -> Option<Reached> {
        let mut nodes = Nodes::new(self.fault);
        last.path.iter().for_each(|act| assert!(nodes.carry_out(*act)));
        let changed = nodes.carry_out(act);
        let broken = nodes.broken();
        let path = || last.path.iter().copied().chain([act]).collect();
        (changed || broken.is_some()).then(|| Reached { path: path(), fingerprint: nodes.fingerprint(), broken })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("every node knows what it must", |_, state: &Reached| state.broken.is_none())]
    }
}

/// Explores, prints what was covered, and returns the shortest history that breaks a promise.
fn explore(menu: Menu, depth: usize, fault: Option<Fault>) -> Option<(Vec<Act>, String)> {
    let began = Instant::now();
    let explored = Explored { menu, depth, fault };
    let checker = explored.checker().threads(2).spawn_bfs().join();
    let found = checker.discoveries().into_values().next().map(|path| {
        let last = path.last_state();
        (last.path.clone(), last.broken.clone().unwrap_or_default())
    });
    println!(
        "{menu:?}, {fault:?}: {} states, {} steps, {depth} acts deep, {:.1} s",
        checker.unique_state_count(),
        checker.state_count(),
        began.elapsed().as_secs_f64()
    );
    found
}

fn expect_none(menu: Menu, depth: usize) {
    if let Some((path, broken)) = explore(menu, depth, None) {
        panic!("{broken}\n{path:#?}");
    }
}

#[test]
fn no_short_history_of_deliveries_breaks_a_promise() {
    expect_none(Menu::Deliveries, 7);
}

#[test]
fn no_short_history_of_batches_breaks_a_promise() {
    expect_none(Menu::Batches, 7);
}

#[test]
fn no_short_history_of_clocks_that_go_back_breaks_a_promise() {
    expect_none(Menu::Clocks, 6);
}

#[test]
fn no_short_history_of_all_operations_breaks_a_promise() {
    expect_none(Menu::Everything, 4);
}

/// `make explore` runs this. `DQ_DEPTH` is added to both depths.
#[test]
#[ignore = "takes minutes"]
fn no_longer_history_breaks_a_promise() {
    let more = std::env::var("DQ_DEPTH").ok().and_then(|depth| depth.parse::<usize>().ok()).unwrap_or(0);
    expect_none(Menu::Everything, 5 + more);
    expect_none(Menu::Deliveries, 9 + more);
    expect_none(Menu::Batches, 9 + more);
    expect_none(Menu::Clocks, 8 + more);
}

/// `DQ_DEPTH=1 make explore` found the first and the last of these.
#[test]
fn a_replica_takes_back_what_it_counted_before_a_late_effect() {
    use Act::{Arrive, Extend, Pass, Pop, Purge, Push, ReplicaTimer};
    let late_delivery = [Push(0, How::Expiring), Pop, Pass, Arrive, ReplicaTimer, Arrive];
    let late_extension = [Push(0, How::Now), Pop, Arrive, Arrive, Pass, Extend(0), Pass, ReplicaTimer, Arrive];
    let late_purge = [Push(0, How::Expiring), Arrive, Purge, Pass, ReplicaTimer, Arrive];
    for path in [&late_delivery[..], &late_extension[..], &late_purge[..]] {
        let mut nodes = Nodes::new(None);
        for act in path {
            assert!(nodes.carry_out(*act), "{act:?} of {path:?} changes something");
            assert_eq!(nodes.broken(), None, "after {act:?} of {path:?}");
        }
    }
}

#[test]
fn planted_faults_are_found() {
    for fault in Fault::ALL {
        let (path, broken) =
            explore(Menu::Deliveries, 6, Some(fault)).unwrap_or_else(|| panic!("{fault:?} is not found"));
        println!("  {broken}: {path:?}");
    }
}

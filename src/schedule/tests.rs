//! A simulation of the schedule on a server of its own. Values move, databases are swapped, clocks step, and other
//! threads free values, in random histories that a seed replays. The event loop is woken at the right time, at wrong
//! times or never.
//!
//! Two properties must hold in every history. A value that has something to do is looked at when its time has come, or
//! soon after if the server moved it without notice. And once nothing is left to do, the timer stops, and nothing wakes
//! the event loop any more.

mod server;

use super::agenda::{Agenda, Armed, Grounds};
use super::timer::Timer;
use super::walk::{Cause, Walk, PAUSE};
use super::{Clockwork as _, Schedule};
use dq_queue::time::UnixMs;
use proptest::prelude::*;
use server::{Descriptor, Server};
use std::collections::BTreeMap;
use std::time::Duration;

/// A value: the time at which it has something to do, and its hint.
#[derive(Default)]
struct Value {
    wake: Option<UnixMs>,
    armed: Option<Armed>,
}

struct Simulation {
    server: Server,
    schedule: Schedule,
    /// The time of day, as Unix time in milliseconds.
    now: u64,
    values: BTreeMap<(i32, Vec<u8>), Value>,
    runs: usize,
    /// How often the event loop was woken.
    wakes: usize,
}

#[derive(Clone, Debug)]
enum Step {
    /// A command gives the value at a key something to do after `later` milliseconds. It creates the value if needed.
    Command {
        key: u8,
        later: u64,
    },
    /// The value moves to another name and replaces the value there.
    Rename {
        from: u8,
        to: u8,
    },
    SwapDatabases,
    /// The value is freed on another thread.
    Free {
        key: u8,
    },
    /// Time passes.
    Pass {
        ms: u64,
    },
    /// The time of day is set.
    SetClock {
        by: i64,
    },
    /// The event loop is woken for no reason.
    Wake,
}

fn key_of(key: u8) -> (i32, Vec<u8>) {
    (i32::from(key % 2), vec![b'a' + key / 2])
}

impl Simulation {
    fn on(server: Server) -> Simulation {
        let agenda = Agenda::with(Box::leak(Box::default()));
        let schedule = Schedule { agenda, walk: Walk::default(), timer: Timer::default() };
        Simulation { server, schedule, now: 1_760_000_000_000, values: BTreeMap::new(), runs: 0, wakes: 0 }
    }

    fn now(&self) -> UnixMs {
        UnixMs::new(self.now)
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Command { key, later } => {
                let wake = UnixMs::new(self.now + later);
                let value = self.values.entry(key_of(key)).or_default();
                value.wake = Some(value.wake.map_or(wake, |before| before.min(wake)));
                self.arm(&key_of(key));
            }
            Step::Rename { from, to } if key_of(from) != key_of(to) => {
                if let Some(value) = self.values.remove(&key_of(from)) {
                    self.values.insert(key_of(to), value);
                }
            }
            Step::Rename { .. } => {}
            Step::SwapDatabases => {
                let values = std::mem::take(&mut self.values);
                self.values = values.into_iter().map(|((db, name), value)| ((1 - db, name), value)).collect();
                self.schedule.start_walk(&self.server, UnixMs::new(self.now), Cause::Lost);
            }
            Step::Free { key } => {
                if let Some(value) = self.values.remove(&key_of(key)) {
                    std::thread::spawn(move || drop(value)).join().unwrap();
                }
            }
            Step::Pass { ms } => self.pass(ms),
            Step::SetClock { by } => {
                self.now = self.now.saturating_add_signed(by).max(1_000_000_000_000);
                if self.server.descriptor == Descriptor::Exact {
                    self.wake();
                }
            }
            Step::Wake => self.wake(),
        }
    }

    /// The event loop is woken.
    fn wake(&mut self) {
        self.wakes += 1;
        let now = self.now();
        self.schedule.wake(&self.server, now);
    }

    /// Ensures that the value has a hint not later than its time, as every command and every run of the timer does.
    fn arm(&mut self, key: &(i32, Vec<u8>)) {
        let Some(value) = self.values.get_mut(key) else { return };
        let Some(at) = value.wake else { return };
        let (db, name) = key;
        if value.armed.as_ref().is_some_and(|armed| armed.suffices(at, *db, name)) {
            return;
        }
        if self.schedule.agenda.arm(&mut value.armed, at, *db, name) {
            self.schedule.rearm(&self.server, UnixMs::new(self.now));
        }
    }

    /// Lets time pass. The descriptor and timers fire when they are due, and the server's cron event occurs ten times a
    /// second.
    fn pass(&mut self, ms: u64) {
        for passed in 0..ms {
            self.now += 1;
            self.server.ran.set(self.server.ran.get() + Duration::from_millis(1));
            if passed % 100 == 99 {
                self.schedule.rearm(&self.server, UnixMs::new(self.now));
            }
            if self.server.wakes(self.now) {
                self.wake();
            }
            let ran = self.server.ran.get();
            let due = self.server.timers.borrow().iter().find(|(_, fires)| **fires <= ran).map(|(id, _)| *id);
            if let Some(id) = due {
                self.server.timers.borrow_mut().remove(&id);
                self.run();
            }
        }
    }

    /// A run of the timer.
    fn run(&mut self) {
        self.runs += 1;
        let now = self.now();
        self.schedule.timer.begin_run();
        if self.schedule.walk.next_step(now).is_some_and(|next| next <= now) {
            for (db, name) in self.values.keys() {
                self.schedule.agenda.look_at_met(*db, name);
            }
            self.schedule.walk.end_step(now, None);
        }
        while let Some(taken) = self.schedule.agenda.take(now) {
            let key = (taken.hint.db, taken.hint.key.to_vec());
            let value = self.values.get_mut(&key);
            let is_its_own = value.as_ref().is_some_and(|value| value.armed.as_ref().is_some_and(|a| taken.was(a)));
            let is_lost = match taken.hint.grounds {
                Grounds::Armed => !is_its_own,
                Grounds::Met => value.is_none(),
                Grounds::Asked => false,
            };
            if is_lost {
                self.schedule.walk.request(now, Cause::Lost);
            }
            if let Some(value) = value {
                value.wake = value.wake.filter(|wake| *wake > now);
                self.arm(&key);
            }
        }
        self.schedule.timer.end_run();
        self.schedule.rearm(&self.server, now);
    }

    /// No value is forgotten, and nothing polls.
    fn check(&mut self, longest: u64) {
        // This is enough time for every wake-up, for a clock that was set back, and for a walk after each.
        self.pass(longest + 10 * PAUSE.as_ms());
        let forgotten: Vec<_> =
            self.values.iter().filter(|(_, value)| value.wake.is_some()).map(|(key, _)| key).collect();
        assert!(forgotten.is_empty(), "{forgotten:?} still have something to do");
        let before = (self.runs, self.wakes);
        self.pass(10_000);
        assert_eq!((self.runs, self.wakes), before, "the timer runs though there is nothing to do");
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u8..8, 0u64..400).prop_map(|(key, later)| Step::Command { key, later }),
        3 => (0u8..8, 0u8..8).prop_map(|(from, to)| Step::Rename { from, to }),
        1 => Just(Step::SwapDatabases),
        3 => (0u8..8).prop_map(|key| Step::Free { key }),
        6 => (0u64..150).prop_map(|ms| Step::Pass { ms }),
        1 => (-300i64..300).prop_map(|by| Step::SetClock { by }),
        1 => Just(Step::Wake),
    ]
}

fn server() -> impl Strategy<Value = Server> {
    let descriptor = prop_oneof![
        Just(Descriptor::Missing),
        Just(Descriptor::Exact),
        (-2_000i64..2_000).prop_map(Descriptor::Ahead),
    ];
    (descriptor, 0u64..3).prop_map(|(descriptor, late)| Server::new(descriptor, late))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn no_value_is_forgotten_and_nothing_polls(server in server(), steps in prop::collection::vec(step(), 1..60)) {
        let mut simulation = Simulation::on(server);
        steps.iter().for_each(|step| simulation.step(step));
        // The clock may have been set back by all of these together.
        let by = |step: &Step| if let Step::SetClock { by } = step { by.unsigned_abs() } else { 0 };
        let set_back: u64 = steps.iter().map(by).sum();
        // A descriptor whose clock is behind fires when its own clock has caught up, once and for nothing.
        simulation.check(1_000 + set_back + 2_000);
    }
}

/// A simulation in which one value has something to do in `later` milliseconds.
fn simulation(descriptor: Descriptor, late_ms: u64, later: u64) -> Simulation {
    let mut simulation = Simulation::on(Server::new(descriptor, late_ms));
    simulation.step(&Step::Command { key: 0, later });
    simulation
}

#[test]
fn a_value_is_looked_at_in_the_millisecond_in_which_its_time_comes() {
    let mut simulation = simulation(Descriptor::Missing, 0, 250);
    simulation.step(&Step::Command { key: 2, later: 40 });
    simulation.pass(39);
    assert_eq!(simulation.runs, 0, "never early");
    simulation.pass(2);
    assert_eq!(simulation.runs, 1);
    simulation.pass(210);
    assert_eq!(simulation.runs, 2);
    simulation.check(0);
}

#[test]
fn a_late_timer_is_punctual_with_a_descriptor() {
    let mut simulation = simulation(Descriptor::Exact, 2, 250);
    simulation.step(&Step::Command { key: 2, later: 40 });
    simulation.pass(39);
    assert_eq!((simulation.runs, simulation.wakes), (0, 0));
    simulation.pass(1);
    assert_eq!((simulation.runs, simulation.wakes), (1, 1));
    simulation.pass(210);
    assert_eq!((simulation.runs, simulation.wakes), (2, 2), "it is set again for what comes next");
    simulation.check(0);
}

#[test]
fn without_a_descriptor_the_timer_fires_alone() {
    // A descriptor whose clock is behind is as good as none.
    for descriptor in [Descriptor::Missing, Descriptor::Ahead(-3_600_000)] {
        let mut simulation = simulation(descriptor, 2, 40);
        simulation.pass(41);
        assert_eq!(simulation.runs, 0);
        simulation.pass(1);
        assert_eq!((simulation.runs, simulation.wakes), (1, 0));
    }
}

#[test]
fn a_descriptor_with_a_fast_clock_wakes_once_and_nothing_is_early() {
    let mut simulation = simulation(Descriptor::Ahead(3_600_000), 2, 5_000);
    simulation.pass(5_001);
    assert_eq!((simulation.runs, simulation.wakes), (0, 1));
    simulation.pass(1);
    assert_eq!(simulation.runs, 1);
}

#[test]
fn a_step_of_the_clock_is_noticed_at_once() {
    let mut simulation = simulation(Descriptor::Exact, 2, 3_600_000);
    simulation.step(&Step::SetClock { by: 3_600_000 });
    simulation.pass(1);
    assert_eq!(simulation.runs, 1, "before the cron event");
}

#[test]
fn a_value_is_punctual_after_the_clock_was_set() {
    for by in [-500, 500] {
        let mut simulation = simulation(Descriptor::Exact, 2, 1_000);
        simulation.step(&Step::SetClock { by });
        let due = 1_000u64.saturating_add_signed(-by);
        simulation.pass(due - 1);
        assert!(simulation.values.values().any(|value| value.wake.is_some()), "never early");
        simulation.pass(1);
        assert!(simulation.values.values().all(|value| value.wake.is_none()), "by {by}");
    }
}

#[test]
fn a_descriptor_does_not_shorten_a_rest() {
    let mut simulation = Simulation::on(Server::new(Descriptor::Exact, 0));
    let until = simulation.server.instant().checked_add(Duration::from_millis(10));
    simulation.schedule.timer.rest_until(until);
    simulation.step(&Step::Command { key: 0, later: 5 });
    simulation.step(&Step::Command { key: 2, later: 0 });
    simulation.pass(7);
    simulation.step(&Step::Wake);
    simulation.pass(2);
    assert_eq!(simulation.runs, 0);
    simulation.pass(1);
    assert_eq!((simulation.runs, simulation.wakes), (1, 2), "it is set to the end of the rest");
    simulation.check(0);
}

#[test]
fn a_rest_ends_on_time_though_timers_are_late() {
    let mut simulation = Simulation::on(Server::new(Descriptor::Exact, 2));
    simulation.schedule.timer.rest_until(simulation.server.instant().checked_add(Duration::from_millis(3)));
    simulation.step(&Step::Command { key: 0, later: 0 });
    simulation.pass(2);
    assert_eq!(simulation.runs, 0);
    simulation.pass(1);
    assert_eq!(simulation.runs, 1);
    simulation.check(0);
}

#[test]
fn a_timer_that_nobody_waits_for_rests_until_somebody_does() {
    for hurried in [false, true] {
        let mut simulation = Simulation::on(Server::new(Descriptor::Exact, 2));
        let until = simulation.server.instant().checked_add(Duration::from_millis(10));
        simulation.schedule.timer.rest_lazily_until(until);
        simulation.step(&Step::Command { key: 0, later: 4 });
        simulation.pass(2);
        if hurried {
            let now = simulation.now();
            simulation.schedule.hurry(&simulation.server, now);
        }
        simulation.pass(1);
        assert_eq!(simulation.runs, 0);
        simulation.pass(1);
        assert_eq!(simulation.runs, usize::from(hurried));
        simulation.pass(8);
        assert_eq!(simulation.runs, 1);
        simulation.check(0);
    }
}

#[test]
fn a_run_over_budget_rests_whatever_it_has_found() {
    let mut simulation = simulation(Descriptor::Exact, 0, 5_000);
    let (server, schedule) = (&simulation.server, &mut simulation.schedule);
    let now = UnixMs::new(simulation.now);
    schedule.timer.begin_run();
    // One queue finds that another is due as well, and then the budget is spent.
    schedule.look_at(server, now, 0, b"other");
    schedule.timer.rest_until(server.instant().checked_add(Duration::from_millis(10)));
    schedule.timer.end_run();
    schedule.rearm(server, now);
    simulation.pass(9);
    assert_eq!(simulation.runs, 0);
    simulation.pass(1);
    assert_eq!(simulation.runs, 1);
}

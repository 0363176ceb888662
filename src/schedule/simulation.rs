//! A simulation of the schedule on a server of its own. Values move, databases are swapped, clocks step, and other
//! threads free values, in random histories that a seed replays.
//!
//! Two properties must hold in every history. A value that has something to do is looked at when its time has come, or
//! soon after if the server moved it without notice. And once nothing is left to do, the timer stops.

use super::agenda::{Agenda, Armed, Grounds};
use super::timer::Timer;
use super::walk::{Walk, PAUSE};
use super::{Clockwork, Schedule};
use crate::module_api::ctx::TimerId;
use crate::queue::time::UnixMs;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A value: the time at which it has something to do, and its hint.
#[derive(Default)]
struct Value {
    wake: Option<UnixMs>,
    armed: Option<Armed>,
}

/// A simulated server, as far as the schedule uses one.
struct Server {
    started: Instant,
    /// The monotonic clock: how long the server has run.
    ran: Cell<Duration>,
    /// When each timer fires, by the monotonic clock.
    timers: RefCell<BTreeMap<u64, Duration>>,
    made: Cell<u64>,
}

impl Clockwork for Server {
    fn instant(&self) -> Instant {
        self.started + self.ran.get()
    }

    fn create_timer(&self, ms: u64) -> TimerId {
        let id = self.made.get();
        self.made.set(id + 1);
        self.timers.borrow_mut().insert(id, self.ran.get() + Duration::from_millis(ms));
        TimerId::simulated(id)
    }

    fn stop_timer(&self, timer: TimerId) {
        self.timers.borrow_mut().retain(|id, _| TimerId::simulated(*id) != timer);
    }
}

struct Simulation {
    server: Server,
    schedule: Schedule,
    /// The time of day, as Unix time in milliseconds.
    now: u64,
    values: BTreeMap<(i32, Vec<u8>), Value>,
    runs: usize,
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
}

fn key_of(key: u8) -> (i32, Vec<u8>) {
    (i32::from(key % 2), vec![b'a' + key / 2])
}

impl Simulation {
    fn new() -> Simulation {
        let server =
            Server { started: Instant::now(), ran: Cell::default(), timers: RefCell::default(), made: Cell::default() };
        let agenda = Agenda::with(Box::leak(Box::default()));
        let schedule = Schedule { agenda, walk: Walk::default(), timer: Timer::default() };
        Simulation { server, schedule, now: 1_760_000_000_000, values: BTreeMap::new(), runs: 0 }
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
                self.schedule.start_walk(&self.server, UnixMs::new(self.now));
            }
            Step::Free { key } => {
                if let Some(value) = self.values.remove(&key_of(key)) {
                    std::thread::spawn(move || drop(value)).join().unwrap();
                }
            }
            Step::Pass { ms } => self.pass(ms),
            Step::SetClock { by } => self.now = self.now.saturating_add_signed(by).max(1_000_000_000_000),
        }
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

    /// Lets time pass. Timers fire when they are due, and the server's cron event occurs ten times a second.
    fn pass(&mut self, ms: u64) {
        for passed in 0..ms {
            self.now += 1;
            self.server.ran.set(self.server.ran.get() + Duration::from_millis(1));
            if passed % 100 == 99 {
                self.schedule.rearm(&self.server, UnixMs::new(self.now));
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
        self.schedule.timer.fired();
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
                self.schedule.walk.request(now);
            }
            if let Some(value) = value {
                value.wake = value.wake.filter(|wake| *wake > now);
                self.arm(&key);
            }
        }
        self.schedule.rearm(&self.server, now);
    }

    /// No value is forgotten, and nothing polls.
    fn check(&mut self, longest: u64) {
        // This is enough time for every wake-up, for a clock that was set back, and for a walk after each.
        self.pass(longest + 10 * PAUSE.as_ms());
        let forgotten: Vec<_> =
            self.values.iter().filter(|(_, value)| value.wake.is_some()).map(|(key, _)| key).collect();
        assert!(forgotten.is_empty(), "{forgotten:?} still have something to do");
        let runs = self.runs;
        self.pass(10_000);
        assert_eq!(self.runs, runs, "the timer runs though there is nothing to do");
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
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn no_value_is_forgotten_and_nothing_polls(steps in prop::collection::vec(step(), 1..60)) {
        let mut simulation = Simulation::new();
        steps.iter().for_each(|step| simulation.step(step));
        // The clock may have been set back by all of these together.
        let set_back: u64 = steps.iter().map(|step| if let Step::SetClock { by } = step { by.unsigned_abs() } else { 0 }).sum();
        simulation.check(1_000 + set_back);
    }
}

#[test]
fn a_value_is_looked_at_in_the_millisecond_in_which_its_time_comes() {
    let mut simulation = Simulation::new();
    simulation.step(&Step::Command { key: 0, later: 250 });
    simulation.step(&Step::Command { key: 2, later: 40 });
    simulation.pass(39);
    assert_eq!(simulation.runs, 0, "never early");
    simulation.pass(2);
    assert_eq!(simulation.runs, 1);
    simulation.pass(210);
    assert_eq!(simulation.runs, 2);
    simulation.check(0);
}

//! The clients of a run: the producers and consumers of its queue, and those that work with schedules and batches or
//! look at what is forwarded.

use super::consumer::{Consumer, LEASES, SHORT_LEASES};
use super::faults::{until_replicas_have_it, Unrest};
use super::history::History;
use super::looking::Target;
use super::producer::{Confirms, Habits, Producer};
use super::report::Report;
use super::stage::{Link, Stage, QUEUE, SERIES};
use super::{batches, check, looking, series, Queue};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Barrier;

const PRODUCERS: usize = 3;
const CONSUMERS: usize = 4;

/// The number of processes that declare the schedules at once, and of those that go on declaring them.
const DECLARERS: usize = 20;
const DECLARING: usize = 3;
const SERIES_CONSUMERS: usize = 2;

/// The number of processes that push batches and work on them.
const BATCHERS: usize = 2;

/// The number of processes that look at the target of a queue that forwards.
const WATCHERS: usize = 2;

/// Each client has one call under way at most, and there are no more clients than this once all are declared.
pub const MOST_CLIENTS: usize = PRODUCERS + CONSUMERS + DECLARING + SERIES_CONSUMERS + BATCHERS;

/// What the clients of a run work on, and how.
pub struct Crew<'a> {
    pub stage: &'a Stage,
    /// Connects a client, given its number.
    pub link: &'a (dyn Fn(usize) -> Link<'a> + Sync),
    pub queue: Queue,
    /// The settings of the queue, and where it forwards.
    pub settings: String,
    pub target: Option<Target>,
    pub confirms: Confirms,
    /// The number of replicas that must know the queue before the clients begin.
    pub replicas: i64,
}

impl Crew<'_> {
    /// Lets the clients work while the servers have their faults, `rounds` times, then drains the queues, and checks
    /// the history.
    pub fn work(&self, nemesis: &mut dyn Unrest, rounds: usize, mut history: History) -> Report {
        let Crew { stage, link, target, .. } = *self;
        let limited = self.queue == Queue::Limited;
        self.create(nemesis);
        let (boot, mut created) = (Barrier::new(DECLARERS), 0);
        std::thread::scope(|scope| {
            let grouped = self.queue == Queue::Grouped;
            let habits = Habits { confirms: self.confirms, repeats: limited, groups: grouped };
            let leases = if grouped { SHORT_LEASES } else { LEASES };
            let mut workers = Vec::new();
            for n in 0..PRODUCERS {
                let producer = Producer::new(link(1 + n), n, habits);
                workers.push(scope.spawn(move || producer.work()));
            }
            let consumers = if target.is_some() { 0 } else { CONSUMERS };
            for n in 0..consumers {
                let consumer = Consumer::new(link(1 + PRODUCERS + n), leases);
                workers.push(scope.spawn(move || consumer.work()));
            }
            let mut processes = Vec::new();
            let mut batchers = Vec::new();
            if limited {
                for n in 0..DECLARERS {
                    let (link, boot) = (link(20 + n), &boot);
                    processes.push(scope.spawn(move || series::declare(link, boot, n < DECLARING)));
                }
                for n in 0..SERIES_CONSUMERS {
                    let link = link(10 + n);
                    processes.push(scope.spawn(move || series::work(link)));
                }
                for n in 0..BATCHERS {
                    let link = link(50 + n);
                    batchers.push(scope.spawn(move || batches::work(link, n)));
                }
            }
            let mut watchers = Vec::new();
            for (n, target) in target.iter().flat_map(|target| [target; WATCHERS]).enumerate() {
                let link = link(40 + n);
                watchers.push(scope.spawn(move || looking::watch(link, *target)));
            }
            // The clients must end even if something fails here.
            let raged = catch_unwind(AssertUnwindSafe(|| (0..rounds).for_each(|_| nemesis.rage())));
            stage.end();
            for worker in workers {
                history.ops.extend(worker.join().expect("no reply was wrong"));
            }
            for process in processes {
                let mut done = process.join().expect("no reply was wrong");
                created += done.created;
                history.series.append(&mut done.turns);
                history.hidden.append(&mut done.hidden);
            }
            for batcher in batchers {
                let mut done = batcher.join().expect("no reply was wrong");
                history.batches.append(&mut done.batches);
                history.followed.append(&mut done.followed);
            }
            for watcher in watchers {
                history.looks.extend(watcher.join().expect("no reply was wrong"));
            }
            raged.expect("the servers did as they were told");
            nemesis.settle(&mut history);
            match target {
                None => history.ops.extend(Consumer::new(link(63), leases).drain()),
                Some(target) => history.looks.push(looking::finish(link(63), target)),
            }
            history.rewinds = stage.rewinds();
            if limited {
                series::finish(link(62), &mut history, created);
                batches::finish(link(61), &mut history);
            }
        });
        Report { said: stage.said(), ..check::check(&history) }
    }

    fn create(&self, nemesis: &dyn Unrest) {
        println!("{}", self.settings);
        let mut c = nemesis.client();
        self.stage.say(&format!("DQ.CREATE {QUEUE} {}", self.settings));
        c.create(format!("{QUEUE} {}", self.settings));
        if self.queue == Queue::Limited {
            c.create(SERIES);
        }
        if self.replicas > 0 {
            until_replicas_have_it(&mut c, self.replicas);
        }
    }
}

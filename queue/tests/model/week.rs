//! A week of virtual time with schedules, while consumers are slow, queues are paused, every deploy declares its
//! schedules again, servers restart, and replicas whose clocks differ take over.
//!
//! A time of a rule is covered if a run began for it, or if it passed while an earlier run had not ended. No time is
//! missed otherwise, and no time has two runs.

use crate::exercise::reload;
use dq_queue::id::{Floor, Target};
use dq_queue::rule::Rule;
use dq_queue::settings::Settings;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Lease, Nack, Pop, Queue, Schedule, Scheduled, Series, Stamped, Verdict};
use proptest::prelude::*;
use std::collections::BTreeMap;

const START: u64 = 1_774_483_200_000;
const MINUTE: u64 = 60_000;
const WEEK: u64 = 7 * 24 * 60 * MINUTE;

/// What happens in one turn.
#[derive(Clone, Debug)]
enum Turn {
    /// Every process declares its schedules.
    Deploy,
    /// A server restarts.
    Restart,
    /// A replica whose clock differs by this much takes over.
    Failover(i64),
    Pause(u64),
    Resume,
    /// A consumer pops a message with a lease of this many minutes.
    Pop(u64),
    /// It waits until the next message is due, and pops it at that instant.
    Wait(u64),
    /// It completes what it holds, or gives it back.
    Finish(Verdict),
    Complete,
    /// The timer runs.
    Tick,
}

fn turn() -> impl Strategy<Value = (u64, Turn)> {
    let what = prop_oneof![
        2 => Just(Turn::Deploy),
        1 => Just(Turn::Restart),
        4 => (-5_000i64..5_000).prop_map(Turn::Failover),
        1 => (1u64..300).prop_map(Turn::Pause),
        2 => Just(Turn::Resume),
        8 => (1u64..90).prop_map(Turn::Pop),
        8 => (1u64..90).prop_map(Turn::Wait),
        2 => prop_oneof![Just(Verdict::Failed), Just(Verdict::NotCounted), Just(Verdict::Rejected)]
            .prop_map(Turn::Finish),
        12 => Just(Turn::Complete),
        12 => Just(Turn::Tick),
    ];
    (prop_oneof![6 => 0u64..2_000, 4 => 0..5 * MINUTE, 1 => 0..120 * MINUTE], what)
}

fn rules() -> [(&'static [u8], Rule); 4] {
    let every = |minutes: u64, offset| Rule::Every {
        every: DurationMs::new(minutes * MINUTE),
        offset: DurationMs::new(offset),
    };
    let cron = |expression: &str, zone: &str| Rule::Cron { expression: expression.into(), zone: zone.into() };
    [
        (b"minutes", every(7, 0)),
        (b"hours", every(60, 1_234)),
        (b"nightly", cron("30 2 * * *", "Europe/Berlin")),
        (b"quarters", cron("*/15 8-18 * * *", "America/New_York")),
    ]
}

struct Week {
    queue: Queue,
    replica: Option<Queue>,
    floor: Floor,
    now: u64,
    ahead: i64,
    /// The due time of each run that began, and when it ended.
    runs: BTreeMap<(usize, u64), Option<u64>>,
}

impl Week {
    fn clock(&self) -> UnixMs {
        UnixMs::new(self.now.saturating_add_signed(self.ahead))
    }

    fn declare(&mut self) {
        for (name, rule) in rules() {
            let schedule = Schedule {
                name,
                payload: name,
                series: Series { rule, until: None, times: None },
                first: None,
                priority: 0,
                retries: None,
                lease: None,
                ttl: None,
                group: None,
                headers: None,
            };
            match self.queue.schedule(self.clock(), &mut self.floor, &schedule) {
                Scheduled::Unchanged => {}
                Scheduled::Created(image) => self.send(dq_queue::Effect::Schedule(Some(*self.queue.settings()), image)),
                other => panic!("{other:?}"),
            }
        }
    }

    fn send(&mut self, effect: dq_queue::Effect<'_>) {
        let ends = self.queue.take_ends();
        let (first, second) = if ends.is_empty() { (effect, None) } else { effect.with_ends(ends) };
        for effect in [Some(first), second].into_iter().flatten() {
            let stamped = Stamped { now: self.queue.own_time(self.clock()), effect };
            if self.replica.is_none() {
                self.replica = Queue::made_by(&stamped.effect);
            }
            self.replica.as_mut().unwrap().apply(&stamped).unwrap();
        }
    }

    /// Notes which runs have ended, from what the queue shows.
    fn note(&mut self) {
        let now = self.clock();
        for (nth, (name, _)) in rules().iter().enumerate() {
            let found = self.queue.get(now, &dq_queue::id::Id::parse(name).unwrap()).unwrap();
            let runs = found.recurring.unwrap().runs;
            let began = self.runs.range_mut((nth, 0)..(nth + 1, 0));
            for (ended, run) in began.map(|(_, ended)| ended).enumerate() {
                if (ended as u64) < runs && run.is_none() {
                    *run = Some(now.as_ms());
                }
            }
        }
    }

    fn tick(&mut self) {
        self.queue.advance(self.clock(), usize::MAX);
        self.queue.end_failed_runs(self.clock(), usize::MAX);
        let ends = self.queue.take_ends();
        if !ends.is_empty() {
            let effect = dq_queue::Effect::EndRuns { how: dq_queue::Ended::ByTime, others: Vec::new(), ends };
            self.send(effect);
        }
    }

    fn pop(&mut self, minutes: u64) {
        let before: Vec<u64> = self.dues();
        let pop = Pop { count: 1, lease: Lease::For(DurationMs::new(minutes * MINUTE)) };
        let (mut grants, mut first) = (Vec::new(), None);
        let now = self.clock();
        self.queue.pop(now, &mut self.floor, &pop, &mut grants, |message| {
            first = (message.grant.attempt == 1).then(|| message.name.unwrap().to_vec());
        });
        if grants.is_empty() {
            return;
        }
        self.send(dq_queue::Effect::Deliver { grants, acked: Vec::new(), consumer: None });
        if let Some(name) = first {
            let nth = rules().iter().position(|(other, _)| *other == name).unwrap();
            let due = before[nth];
            // A delivery that was given back without blame begins the same run again.
            let again = self.runs.insert((nth, due), None);
            assert!(again.is_none_or(|ended| ended.is_none()), "two runs for {due}");
        }
    }

    fn dues(&self) -> Vec<u64> {
        let due = |name: &[u8]| {
            let found = self.queue.get(self.clock(), &dq_queue::id::Id::parse(name).unwrap());
            found.unwrap().record.due.as_ms()
        };
        rules().iter().map(|(name, _)| due(name)).collect()
    }

    fn finish(&mut self, verdict: Option<Verdict>) {
        let now = self.clock();
        for (name, _) in rules() {
            let target = Target::parse(name).unwrap();
            let effect = match verdict {
                None => self.queue.ack(now, &target).map(|acked| dq_queue::Effect::Ack(vec![acked.sequence])),
                // A retry is due at once, so that the due time of a run is always one of its rule or already past.
                Some(verdict) => self.queue.nack(now, &target, &Nack { verdict, ..Nack::default() }).map(|nacked| {
                    dq_queue::Effect::Nack {
                        sequence: nacked.sequence,
                        fate: nacked.fate,
                        attempts: nacked.attempts,
                        error: nacked.error,
                        checkpoint: None,
                    }
                }),
            };
            if let Some(effect) = effect {
                return self.send(effect);
            }
        }
    }

    fn turn(&mut self, turn: &Turn) {
        match turn {
            Turn::Deploy => self.declare(),
            Turn::Restart => self.queue = reload(&self.queue),
            Turn::Failover(ahead) => {
                let replica = self.replica.take().unwrap();
                self.replica = Some(reload(&replica));
                self.queue = replica;
                self.ahead = *ahead;
            }
            Turn::Pause(minutes) => {
                let length = Some(DurationMs::new(minutes * MINUTE));
                if let Some((pause, flow)) = self.queue.suspend(self.clock(), dq_queue::Flow::Out, length) {
                    self.send(dq_queue::Effect::Pause { pause, flow, group: None });
                }
            }
            Turn::Resume => {
                if let Some(flow) = self.queue.resume(self.clock(), dq_queue::Flow::Both) {
                    self.send(dq_queue::Effect::Pause { pause: dq_queue::Pause::Off, flow, group: None });
                }
            }
            Turn::Pop(minutes) => self.pop(*minutes),
            Turn::Wait(minutes) => {
                if let Some(due) = self.queue.next_due(self.clock()) {
                    self.now = self.now.max(due.as_ms().saturating_add_signed(-self.ahead));
                }
                self.pop(*minutes);
            }
            Turn::Finish(verdict) => self.finish(Some(*verdict)),
            Turn::Complete => self.finish(None),
            Turn::Tick => self.tick(),
        }
    }

    /// No time of a rule is missed but those that passed during a run, by the clocks that there were.
    fn check(&self, slack: u64) {
        for (nth, (name, rule)) in rules().iter().enumerate() {
            let runs: Vec<(u64, Option<u64>)> =
                self.runs.range((nth, 0)..(nth + 1, 0)).map(|((_, due), ended)| (*due, *ended)).collect();
            let mut expected = rule.next_after(UnixMs::new(START)).unwrap().as_ms();
            for (due, ended) in &runs {
                assert_eq!(*due, expected, "{}: a time is missed, or is no time of the rule", name.escape_ascii());
                let Some(ended) = ended else { break };
                // The next run is the first one after this one ended.
                let next = rule.next_after(UnixMs::new(*ended.max(due))).unwrap().as_ms();
                let earlier = rule.next_after(UnixMs::new((*ended.max(due)).saturating_sub(slack).max(*due))).unwrap();
                let position = runs.iter().position(|run| run.0 == *due).unwrap();
                expected = runs.get(position + 1).map_or(next, |run| run.0);
                assert!((earlier.as_ms()..=next).contains(&expected), "{}: {expected}", name.escape_ascii());
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::config((crate::histories() / 50).max(2), 3))]

    #[test]
    fn a_week_of_runs_misses_none_and_repeats_none(turns in prop::collection::vec(turn(), 50..2_500)) {
        let settings = Settings { backoff: dq_queue::backoff::Backoff {
            base: DurationMs::ZERO, max: DurationMs::ZERO, ..Settings::DEFAULT.backoff
        }, ..Settings::DEFAULT };
        let mut week = Week {
            queue: Queue::new(settings), replica: None, floor: Floor::default(), now: START, ahead: 0,
            runs: BTreeMap::new(),
        };
        week.declare();
        for (passed, turn) in &turns {
            week.now += passed;
            if week.now > START + WEEK {
                break;
            }
            week.turn(turn);
            week.queue.check().unwrap();
            week.note();
        }
        week.check(20_000);
    }
}

#[test]
fn a_clock_that_is_behind_after_a_failover_repeats_no_run() {
    let mut week = Week {
        queue: Queue::new(Settings::default()),
        replica: None,
        floor: Floor::default(),
        now: START,
        ahead: 3_000,
        runs: BTreeMap::new(),
    };
    week.declare();
    week.turn(&Turn::Wait(60));
    let due = week.dues();
    week.turn(&Turn::Failover(0));
    week.turn(&Turn::Complete);
    let next = week.dues();
    let ended: Vec<_> = due.iter().zip(&next).filter(|(due, next)| due != next).collect();
    assert!(matches!(ended[..], [(due, next)] if next > due), "{due:?} and then {next:?}");
}

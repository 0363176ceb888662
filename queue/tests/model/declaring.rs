//! Declarations of schedules, and the work that ending their runs takes.

use dq_queue::id::{Floor, Target};
use dq_queue::rule::Rule;
use dq_queue::settings::{Retries, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Lease, Pop, Queue, Schedule, Scheduled, Series};

const START: UnixMs = UnixMs::new(1_760_000_000_000);

fn at(ms: u64) -> UnixMs {
    START.after(DurationMs::new(ms))
}

fn every(ms: u64) -> Rule {
    Rule::Every { every: DurationMs::new(ms), offset: DurationMs::ZERO }
}

fn cron(expression: &str) -> Rule {
    Rule::Cron { expression: expression.into(), zone: "Europe/Berlin".into() }
}

/// A schedule whose runs fail one millisecond after they are due.
fn schedule<'a>(name: &'a [u8], payload: &'a [u8], rule: Rule, first: Option<UnixMs>) -> Schedule<'a> {
    Schedule {
        name,
        payload,
        series: Series { rule, until: None, times: None },
        first,
        priority: 0,
        retries: Some(Retries::UNLIMITED),
        lease: None,
        ttl: Some(DurationMs::new(1)),
        group: None,
        headers: None,
    }
}

#[test]
fn a_declared_first_time_stays_until_its_run_is_next() {
    let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
    let lasting = |payload: &'static [u8], ms, first| Schedule {
        ttl: Some(DurationMs::ZERO),
        ..schedule(b"s", payload, every(ms), first)
    };
    queue.schedule(at(0), &mut floor, &lasting(b"a", 1_000, Some(at(0))));
    queue.pop(at(0), &mut floor, &Pop { count: 1, lease: Lease::Default }, &mut Vec::new(), |_| ());
    // The rule changes while a run is in progress, and then only the payload.
    let first = |declared: Scheduled<'_>| match declared {
        Scheduled::Deferred(_, Some(declared)) => declared.first,
        other => panic!("{other:?}"),
    };
    assert_eq!(first(queue.schedule(at(1), &mut floor, &lasting(b"b", 7_000, Some(at(90_000))))), Some(at(90_000)));
    assert_eq!(first(queue.schedule(at(2), &mut floor, &lasting(b"c", 7_000, None))), Some(at(90_000)));
    assert_eq!(first(queue.schedule(at(3), &mut floor, &lasting(b"d", 7_000, Some(at(50_000))))), Some(at(90_000)));
    assert!(queue.ack(at(4), &Target::parse(b"s").unwrap()).is_some());
    let image = queue.images().next().unwrap();
    assert_eq!((image.record.due, image.payload), (at(90_000), b"d".as_slice()));
}

#[test]
fn ending_runs_of_cron_schedules_takes_bounded_steps() {
    for (rule, most) in [(every(60_000), 64), (cron("7 3 29 2 *"), 1)] {
        let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
        let names: Vec<String> = (0..200).map(|nth| format!("s{nth}")).collect();
        for name in &names {
            queue.schedule(at(0), &mut floor, &schedule(name.as_bytes(), b"x", rule.clone(), Some(at(1))));
        }
        queue.advance(at(10), usize::MAX);
        queue.end_failed_runs(at(10), 64);
        assert_eq!(queue.take_ends().len(), most, "{rule:?}");
        while queue.first_failed_run().is_some() {
            queue.end_failed_runs(at(10), 64);
        }
        assert_eq!(queue.take_ends().len(), 200 - most);
    }
}

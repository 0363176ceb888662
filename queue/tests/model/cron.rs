//! Cron expressions compared with an independent implementation: `tests/cron/2026.txt` holds when each fires in 2026,
//! in many time zones, and `tests/cron/generate.py` computes it with other libraries.

use dq_queue::cron::Cron;
use dq_queue::rule::Rule;
use dq_queue::time::UnixMs;

const TABLE: &str = include_str!("../cron/2026.txt");
const START: u64 = 1_767_225_600_000;
const END: u64 = 1_798_761_600_000;

/// The instants of a line, in Unix ms.
fn expected(first: &str, steps: &str) -> Vec<u64> {
    let Ok(first) = first.parse::<u64>() else { return Vec::new() };
    let mut instants = vec![first * 1000];
    for run in steps.split_whitespace() {
        let (step, count) = run.split_once('x').unwrap();
        for _ in 0..count.parse().unwrap() {
            instants.push(instants.last().unwrap() + 1000 * step.parse::<u64>().unwrap());
        }
    }
    instants
}

#[test]
fn a_year_of_times_in_many_zones_is_as_computed_elsewhere() {
    let mut compared = 0;
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let [zone, expression, first, steps] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let times = Cron::parse(expression.as_bytes()).unwrap().in_zone(zone).unwrap();
        let rule = Rule::Cron { expression: expression.into(), zone: zone.into() };
        let mut now = START;
        for due in expected(first, steps) {
            let next = times.next_after(UnixMs::new(now)).map(UnixMs::as_ms);
            assert_eq!(next, Some(due), "{expression} in {zone} after {now}");
            if compared % 64 == 0 {
                // Whatever the instant within the interval, the next one is the same, also by a rule, which reads the
                // zone each time.
                let between = rule.next_after(UnixMs::new(now + (due - now) / 2));
                assert_eq!(between.map(UnixMs::as_ms), Some(due), "{expression} in {zone}");
            }
            (now, compared) = (due, compared + 1);
        }
        let next = rule.next_after(UnixMs::new(now)).map(UnixMs::as_ms);
        assert!(next.is_none_or(|next| next > END), "{expression} in {zone} fires at {next:?}");
    }
    assert!(compared > 500_000, "{compared} instants");
}

use super::*;
use crate::gate::Lease;
use crate::id::Floor;
use crate::settings::Settings;
use crate::time::DurationMs;
use crate::wire::Loader;
use crate::{NewMessage, Pop, Queue};

const PERIOD: u64 = 100;

fn at(ms: u64) -> UnixMs {
    UnixMs::new(ms)
}

fn rate(most: u64) -> Rate {
    Rate { most, period: DurationMs::new(PERIOD) }
}

fn names(gates: &GroupGates) -> Vec<&[u8]> {
    gates.all().into_iter().map(|gate| gate.name).collect()
}

#[test]
fn a_gate_is_forgotten_by_the_first_change_after_its_end() {
    let mut gates = GroupGates::new(rate(1));
    gates.record(b"a", at(1_000));
    gates.set_pause(b"p", Pause::Until(at(1_050)), at(1_000));
    gates.set_pause(b"e", Pause::Endless, at(1_000));
    gates.record(b"b", at(1_099));
    assert_eq!(names(&gates), [&b"a"[..], b"b", b"e"]);
    gates.record(b"b", at(1_100));
    assert_eq!(names(&gates), [&b"b"[..], b"e"]);
    assert!(!gates.is_swept() && gates.check().is_ok());
    gates.sweep(1);
    assert!(!gates.is_swept());
    gates.sweep(1);
    assert!(gates.is_swept() && gates.entries.used() == 2 && gates.check().is_ok());
    gates.set_pause(b"e", Pause::Off, at(1_300));
    gates.sweep(9);
    assert!(gates.is_empty(), "nothing is left");
}

#[test]
fn a_clock_that_was_set_back_forgets_nothing_new() {
    let mut gates = GroupGates::new(rate(1));
    gates.record(b"a", at(1_000));
    gates.record(b"b", at(5_000));
    gates.record(b"c", at(100));
    assert_eq!(names(&gates), [&b"b"[..], b"c"]);
    assert_eq!(gates.room(b"c", at(100)).map(|room| room.count), Some(0));
    assert!(gates.is_ahead_of(at(100)) && gates.check().is_ok());
    gates.pull_back_to(at(110));
    assert_eq!(gates.next_delivery(b"b", at(110)), Some(at(110 + PERIOD)));
    assert!(!gates.is_ahead_of(at(110)) && gates.check().is_ok());
}

#[test]
fn another_rate_counts_what_is_known() {
    let mut gates = GroupGates::new(rate(2));
    gates.record(b"a", at(1_000));
    gates.record(b"b", at(1_080));
    gates.alter(Rate { most: 1, period: DurationMs::new(50) }, at(1_090));
    assert_eq!((names(&gates), gates.next_delivery(b"b", at(1_090))), (vec![&b"b"[..]], Some(at(1_130))));
    gates.alter(Rate::OFF, at(1_091));
    assert!(names(&gates).is_empty() && gates.check().is_ok());
}

/// A queue in which each of many groups has two messages, and one of each has just been delivered.
fn many_groups(count: u32) -> (Queue, Floor) {
    let settings = Settings { grouprate: rate(1), ..Settings::default() };
    let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
    for number in (0..count).chain(0..count) {
        let group = number.to_be_bytes();
        queue.push(at(1_000), &mut floor, &NewMessage { group: Some(&group), ..NewMessage::default() });
    }
    assert_eq!(popped(&mut queue, &mut floor, 1_000), count as usize);
    (queue, floor)
}

fn popped(queue: &mut Queue, floor: &mut Floor, now: u64) -> usize {
    let mut grants = Vec::new();
    queue.pop(at(now), floor, &Pop { count: usize::MAX, lease: Lease::NoAck }, &mut grants, |_| ());
    grants.len()
}

#[test]
fn groups_at_their_rate_cost_nothing_until_one_may_go_on() {
    let (mut queue, mut floor) = many_groups(1_000);
    assert!(queue.has_nothing_open(), "a pop passes over no message, since none stands in its way");
    assert_eq!(queue.next_wake(), Some(at(1_000 + PERIOD)), "nothing is done before");
    queue.push(at(1_001), &mut floor, &NewMessage::default());
    assert_eq!((queue.view.open(), popped(&mut queue, &mut floor, 1_001)), (1, 1));
    let advanced = queue.advance(at(1_000 + PERIOD - 1), 1);
    assert_eq!((advanced.done, advanced.next), (true, Some(at(1_000 + PERIOD))));
    assert_eq!(queue.check(), Ok(()));
    let advanced = queue.advance(at(1_000 + PERIOD), 10);
    assert_eq!((advanced.done, queue.view.open()), (false, 10), "in bounded steps");
    assert_eq!(popped(&mut queue, &mut floor, 1_000 + PERIOD), 1_000);
}

#[test]
fn deliveries_of_a_clock_that_was_ahead_hold_a_group_back_for_one_period() {
    let (queue, mut floor) = many_groups(2);
    let mut loader = Loader::default();
    queue.save(|piece| loader.take(piece)).unwrap();
    let mut queue = loader.finish(at(500)).unwrap();
    assert_eq!(queue.correct_clock(at(500)), Some(at(500)));
    assert_eq!(queue.correct_clock(at(500)), None);
    assert_eq!((queue.view.open(), queue.check()), (0, Ok(())));
    // The messages are due at 1,000.
    queue.promote(at(501), usize::MAX, None);
    assert_eq!(popped(&mut queue, &mut floor, 500 + PERIOD - 1), 0);
    assert_eq!(popped(&mut queue, &mut floor, 500 + PERIOD), 2);
}

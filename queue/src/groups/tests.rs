//! Groups through the operations of a queue.

use super::slab::Slab;
use super::Pops;
use crate::forward::Targets;
use crate::id::{Floor, Id, Target};
use crate::ops::purge::ToPurge;
use crate::record::{StateKind, States};
use crate::settings::{GroupOrder, Settings};
use crate::time::{DurationMs, UnixMs};
use crate::wire::Loader;
use crate::{Due, Effect, Lease, Nack, NewMessage, OnDuplicate, Pop, Queue, Reschedule, Stamped, Verdict};
use proptest::prelude::*;

fn at(ms: u64) -> UnixMs {
    UnixMs::new(1_760_000_000_000 + ms)
}

/// The queue as a server has it after loading it at `now`.
fn reloaded(queue: &Queue, now: u64) -> Queue {
    let mut loader = Loader::default();
    queue.save(|piece| loader.take(piece)).unwrap();
    loader.finish(at(now)).unwrap()
}

struct Pair {
    queue: Queue,
    replica: Queue,
    floor: Floor,
}

impl Pair {
    fn new(groupinflight: u64, grouporder: GroupOrder) -> Pair {
        let settings = Settings { groupinflight, grouporder, ..Settings::default() };
        Pair { queue: Queue::new(settings), replica: Queue::new(settings), floor: Floor::default() }
    }

    fn push(&mut self, now: u64, group: &str, name: &str) {
        self.push_with(
            now,
            name,
            NewMessage { group: Some(group.as_bytes()).filter(|group| !group.is_empty()), ..NewMessage::default() },
        );
    }

    fn push_with(&mut self, now: u64, name: &str, message: NewMessage<'_>) {
        let message = NewMessage { name: Some(name.as_bytes()), ..message };
        let pushed = self.queue.push(at(now), &mut self.floor, &message);
        let super::super::Pushed::Added { image, .. } = pushed else { panic!("{pushed:?}") };
        self.queue.stamp(at(now));
        self.replica.apply(&Stamped { now: at(now), effect: Effect::Push(None, vec![image]) }).unwrap();
    }

    /// Pops one message from the queue alone. Returns its name.
    fn pop_alone(&mut self, now: u64) -> String {
        let mut name = String::new();
        let pop = Pop { count: 1, lease: Lease::For(DurationMs::new(1_000)) };
        self.queue.pop(at(now), &mut self.floor, &pop, &mut Vec::new(), |message| {
            name = String::from_utf8(message.name.unwrap().to_vec()).unwrap();
        });
        name
    }

    /// Pops, and applies the effect to the replica. Returns the names.
    fn pop(&mut self, now: u64, count: usize, lease: Lease) -> String {
        let (mut names, mut grants) = (Vec::new(), Vec::new());
        if let Some(now) = self.queue.correct_clock(at(now)) {
            self.replica.apply(&Stamped { now, effect: Effect::PullBack }).unwrap();
        }
        let pop = Pop { count, lease };
        let expected: Vec<_> = {
            let count = self.queue.deliverable(at(now), &pop);
            let upcoming = self.queue.view.upcoming(&self.queue.messages, at(now), Pops::One);
            upcoming.map(|upcoming| upcoming.take(count).collect()).unwrap_or_default()
        };
        self.queue.pop(at(now), &mut self.floor, &pop, &mut grants, |message| {
            names.push(String::from_utf8(message.name.unwrap().to_vec()).unwrap());
        });
        let sequences: Vec<_> = grants.iter().map(|grant| grant.sequence).collect();
        assert!(expected.is_empty() || expected == sequences);
        let effect = if lease == Lease::NoAck {
            Effect::Take(sequences)
        } else {
            Effect::Deliver { grants, acked: Vec::new(), consumer: None }
        };
        if !names.is_empty() {
            self.queue.stamp(at(now));
            self.replica.apply(&Stamped { now: at(now), effect }).unwrap();
        }
        self.assert_same();
        names.join(" ")
    }

    fn ack(&mut self, now: u64, name: &str) {
        let sequence = self.queue.ack(at(now), &Target::parse(name.as_bytes()).unwrap()).unwrap().sequence;
        self.queue.stamp(at(now));
        self.replica.apply(&Stamped { now: at(now), effect: Effect::Ack(vec![sequence]) }).unwrap();
        self.assert_same();
    }

    fn alter(&mut self, now: u64, groupinflight: u64, grouporder: GroupOrder) {
        let settings = Settings { groupinflight, grouporder, ..*self.queue.settings() };
        self.queue.alter(at(now), settings);
        self.replica.apply(&Stamped { now: at(now), effect: Effect::Alter(settings, Targets::default()) }).unwrap();
        self.assert_same();
    }

    fn assert_same(&self) {
        assert_eq!((self.queue.check(), self.replica.check()), (Ok(()), Ok(())));
        let digest = |queue: &Queue| {
            let mut bytes = Vec::new();
            queue.digest(|piece| bytes.extend_from_slice(piece)).unwrap();
            bytes
        };
        assert_eq!(digest(&self.queue), digest(&self.replica));
        assert_eq!(digest(&self.queue), digest(&self.queue.duplicate().unwrap()));
    }
}

const LEASED: Lease = Lease::For(DurationMs::new(1_000));

#[test]
fn one_message_of_a_group_is_out_at_a_time() {
    let mut pair = Pair::new(1, GroupOrder::Due);
    for name in ["a1", "a2", "a3", "b1", "b2"] {
        pair.push(0, &name[..1], name);
    }
    pair.push(0, "", "none");
    assert_eq!(pair.pop(1, 9, LEASED), "a1 b1 none");
    assert_eq!((pair.queue.blocked(at(1)), pair.queue.groups(), pair.pop(1, 9, LEASED)), (3, 2, String::new()));
    pair.ack(2, "a1");
    assert_eq!(pair.pop(2, 9, LEASED), "a2");
    // The lease of the first message of b ends: it comes again, and before the second one.
    assert_eq!(pair.pop(1_001, 9, LEASED), "b1 none");
}

#[test]
fn a_retry_with_backoff_keeps_its_place_in_the_group() {
    let mut pair = Pair::new(1, GroupOrder::Due);
    ["a1", "a2"].into_iter().for_each(|name| pair.push(0, "a", name));
    pair.pop(0, 1, LEASED);
    let nack = |verdict, delay| Nack { verdict, delay: Some(DurationMs::new(delay)), ..Nack::default() };
    let target = Target::parse(b"a1").unwrap();
    pair.queue.nack(at(1), &target, &nack(Verdict::Failed, 500)).unwrap();
    let mut popped = Vec::new();
    let pop = Pop { count: 9, lease: LEASED };
    pair.queue.pop(at(400), &mut pair.floor, &pop, &mut popped, |_| ());
    assert!(popped.is_empty(), "the retry occupies the group");
    pair.queue.pop(at(501), &mut pair.floor, &pop, &mut popped, |message| assert_eq!(message.name, Some(&b"a1"[..])));
    assert_eq!(popped.len(), 1);
    pair.queue.nack(at(502), &target, &nack(Verdict::NotCounted, 9_000)).unwrap();
    // It was delivered once before, and counted.
    pair.queue.pop(at(503), &mut pair.floor, &pop, &mut popped, |_| ());
    assert_eq!((popped.len(), pair.queue.check()), (1, Ok(())));
}

#[test]
fn a_delivery_that_does_not_count_lets_the_next_message_go() {
    let mut pair = Pair::new(1, GroupOrder::Due);
    ["a1", "a2"].into_iter().for_each(|name| pair.push(0, "a", name));
    pair.pop(0, 1, LEASED);
    let nack = Nack { verdict: Verdict::NotCounted, delay: Some(DurationMs::new(500)), ..Nack::default() };
    pair.queue.nack(at(1), &Target::parse(b"a1").unwrap(), &nack).unwrap();
    let mut names = Vec::new();
    pair.queue.pop(at(2), &mut pair.floor, &Pop { count: 9, lease: LEASED }, &mut Vec::new(), |message| {
        names.push(message.name.unwrap().to_vec());
    });
    assert_eq!(names, [b"a2"]);
}

#[test]
fn a_priority_never_passes_an_earlier_message_of_the_group() {
    let mut pair = Pair::new(0, GroupOrder::Due);
    pair.push(0, "a", "a1");
    let urgent = NewMessage { priority: 9, group: Some(b"a"), ..NewMessage::default() };
    pair.push_with(1, "a2", urgent);
    pair.push_with(1, "b1", NewMessage { priority: 1, group: Some(b"b"), ..NewMessage::default() });
    assert_eq!(pair.pop(2, 9, Lease::NoAck), "b1 a1 a2");
}

#[test]
fn a_pop_without_leases_takes_no_more_of_a_group_than_its_limit() {
    let mut pair = Pair::new(2, GroupOrder::Due);
    ["a1", "a2", "a3"].into_iter().for_each(|name| pair.push(0, "a", name));
    assert_eq!([0; 2].map(|_| pair.pop(0, 9, Lease::NoAck)), ["a1 a2", "a3"]);
    assert_eq!(pair.queue.groups(), 0);
}

#[test]
fn a_group_that_never_lacked_work_keeps_its_turn() {
    type Away = fn(&mut Pair, Id<'_>);
    let ways: [Away; 5] = [
        |pair, id| assert!(pair.queue.cancel(at(30), &id).is_some()),
        |pair, id| assert!(pair.queue.bury(at(30), &id, None).is_some()),
        |pair, id| {
            let to = Reschedule { due: Some(Due::After(DurationMs::new(500))), priority: None };
            assert!(pair.queue.reschedule(at(30), &id, &to).is_some());
        },
        |pair, _| {
            pair.push_with(
                30,
                "a1",
                NewMessage { on_duplicate: OnDuplicate::Replace, group: Some(b"other"), ..NewMessage::default() },
            )
        },
        |pair, _| {
            assert_eq!(pair.queue.purge(at(30), &ToPurge { count: Some(1), ..ToPurge::all(States::ALL) }).count, 1)
        },
    ];
    for (nth, away) in ways.into_iter().enumerate() {
        for group in ["a", ""] {
            let mut pair = Pair::new(1, GroupOrder::Turn);
            for (name, now, group) in [("a1", 0, group), ("b1", 10, "b"), ("a2", 20, group)] {
                pair.push(now, group, name);
            }
            away(&mut pair, Id::Named(b"a1"));
            pair.push(40, "c", "c1");
            let order: Vec<String> = (0..2).map(|_| pair.pop_alone(50)).collect();
            assert_eq!(order, ["a2", "b1"], "way {nth} in group {group:?}");
        }
    }
    // A group that had no work for a time is owed nothing.
    let mut pair = Pair::new(1, GroupOrder::Turn);
    for (name, now, group) in [("a1", 0, "a"), ("b1", 10, "b")] {
        pair.push(now, group, name);
    }
    pair.queue.cancel(at(15), &Id::Named(b"a1"));
    pair.push(20, "a", "a2");
    assert_eq!([pair.pop_alone(50), pair.pop_alone(50)], ["b1", "a2"]);
    // One that is blocked has work.
    pair.push(60, "a", "a3");
    pair.push(70, "c", "c1");
    assert!(pair.queue.ack(at(80), &Target::parse(b"a2").unwrap()).is_some());
    assert_eq!([pair.pop_alone(90), pair.pop_alone(90)], ["a3", "c1"]);
}

#[test]
fn a_claim_of_a_clock_that_was_ahead_delivers_nothing_early() {
    let mut pair = Pair::new(1, GroupOrder::Turn);
    pair.push(1_000, "a", "a1");
    let later = Some(Due::At(at(9_000)));
    pair.push_with(1_000, "a9", NewMessage { group: Some(b"a"), due: later, ..NewMessage::default() });
    pair.queue.cancel(at(2_000), &Id::Named(b"a1"));
    // The next server is behind.
    let mut pair = Pair { queue: reloaded(&pair.queue, 1_100), ..pair };
    let due = Some(Due::At(at(1_900)));
    pair.push_with(1_100, "a2", NewMessage { group: Some(b"a"), due, ..NewMessage::default() });
    assert!(pair.queue.correct_clock(at(1_100)).is_some());
    assert_eq!(pair.pop_alone(1_100), "");
}

#[test]
fn groups_take_turns_whoever_has_more_messages() {
    let mut pair = Pair::new(0, GroupOrder::Turn);
    for nth in 0..4 {
        pair.push(0, "a", &format!("a{nth}"));
        pair.push(0, "", &format!("n{nth}"));
    }
    pair.push(1, "b", "b0");
    assert_eq!(pair.pop(2, 3, Lease::NoAck), "a0 n0 b0");
    pair.push(3, "c", "c0");
    // Those that were served at 2 come before a group that appears at 3.
    let one_by_one: Vec<String> = (0..7).map(|_| pair.pop(4, 1, Lease::NoAck)).collect();
    assert_eq!(one_by_one, ["a1", "n1", "c0", "a2", "n2", "a3", "n3"]);
}

#[test]
fn a_turn_in_the_future_blocks_no_group_and_keeps_the_order() {
    let mut pair = Pair::new(0, GroupOrder::Turn);
    for nth in 0..3 {
        ["a", "b", "c"].into_iter().for_each(|group| pair.push(0, group, &format!("{group}{nth}")));
    }
    assert_eq!(pair.pop(3_600_000, 1, Lease::NoAck), "a0");
    assert_eq!(pair.pop(3_600_000, 1, Lease::NoAck), "b0");
    // A server whose clock is an hour behind takes over.
    let copy = || pair.replica.duplicate().unwrap();
    let mut late = Pair { queue: copy(), replica: copy(), floor: Floor::default() };
    late.queue.clock = UnixMs::EPOCH;
    let order: Vec<String> = (0..7).map(|_| late.pop(1_000, 1, Lease::NoAck)).collect();
    assert_eq!(order, ["c0", "a1", "b1", "c1", "a2", "b2", "c2"]);
}

#[test]
fn many_expired_messages_do_not_let_a_dead_one_be_delivered() {
    let mut pair = Pair::new(1, GroupOrder::Due);
    let ttl = Some(DurationMs::new(10));
    for nth in 0..5_000 {
        pair.push_with(0, &format!("dying-{nth}"), NewMessage { group: Some(b"a"), ttl, ..NewMessage::default() });
    }
    pair.push(0, "a", "alive");
    let mut tries = 0;
    let popped = loop {
        let popped = pair.pop(20, 1, LEASED);
        tries += 1;
        if !popped.is_empty() || tries == 10 {
            break popped;
        }
    };
    assert_eq!((popped.as_str(), tries), ("alive", 2), "a pop does a bounded part of the work");
}

#[test]
fn other_limits_apply_to_groups_at_once() {
    let mut pair = Pair::new(1, GroupOrder::Due);
    (0..5).for_each(|nth| pair.push(0, "a", &format!("a{nth}")));
    assert_eq!(pair.pop(0, 9, LEASED), "a0");
    pair.alter(1, 3, GroupOrder::Turn);
    assert_eq!(pair.pop(1, 9, LEASED), "a1 a2");
    pair.alter(1, 1, GroupOrder::Due);
    // All three are in flight, and each keeps its place.
    pair.ack(2, "a0");
    assert_eq!(pair.pop(2, 9, LEASED), "");
    assert_eq!(pair.pop(1_001, 9, LEASED), "a1 a2");
    pair.alter(1, 0, GroupOrder::Turn);
    assert_eq!(pair.pop(1_002, 9, LEASED), "a3 a4");
    assert!(pair.queue.cancel(at(1_003), &Id::parse(b"a3").unwrap()).is_some());
    assert_eq!(pair.queue.check(), Ok(()));
}

#[test]
fn limits_altered_while_no_group_is_left_hold_for_the_next_one() {
    let mut pair = Pair::new(1, GroupOrder::Due);
    pair.push(0, "a", "a1");
    (0..10).for_each(|nth| pair.push(0, "", &format!("n{nth}")));
    pair.pop(0, 11, LEASED);
    pair.push(0, "", "kept");
    // In bulk: the orders of the groups are rebuilt, and no message has a group.
    let purged = pair.queue.purge(at(1), &ToPurge::all(States::only(StateKind::InFlight)));
    assert_eq!(purged.count, 11);
    pair.queue.stamp(at(1));
    pair.replica
        .apply(&Stamped { now: at(1), effect: Effect::Purge { messages: purged.messages, done: purged.done } })
        .unwrap();
    pair.alter(1, 0, GroupOrder::Due);
    ["b1", "b2", "b3"].into_iter().for_each(|name| pair.push(1, "b", name));
    assert_eq!(pair.pop(1, 9, LEASED), "kept b1 b2 b3");
}

#[test]
fn a_slab_frees_the_parts_that_are_not_used() {
    let mut slab: Slab<Box<[u8]>> = Slab::default();
    (0..2_000).for_each(|number| *slab.occupy(number).unwrap() = vec![number as u8].into());
    let all = slab.heap_bytes();
    assert_eq!((slab.used(), slab.get(1_999).map(|entry| entry.len()), slab.get(5_000)), (2_000, Some(1), None));
    (0..1_990).for_each(|number| slab.vacate(number));
    assert!(slab.heap_bytes() < all / 4 && slab.used() == 10);
    assert_eq!(slab.iter().filter(|(_, entry)| !entry.is_empty()).count(), 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    /// Groups with one message at a time deliver in (due, push) order, whatever else happens, on the master and on
    /// the server that takes over from it.
    #[test]
    fn the_order_within_a_group_survives_all_that_time_and_clients_do(
        steps in prop::collection::vec((0u8..10, 0u64..40, 0usize..6), 1..200),
        by_turn in any::<bool>(),
    ) {
        let mut pair = Pair::new(1, if by_turn { GroupOrder::Turn } else { GroupOrder::Due });
        let (mut now, mut pushed, mut seen) = (0u64, 0u64, [0u64; 3]);
        let mut out: Vec<String> = Vec::new();
        for (act, passed, which) in steps {
            now += passed;
            match act {
                0..4 => {
                    let group = which % 3;
                    pushed += 1;
                    pair.push(now, &group.to_string(), &format!("{group}-{pushed}"));
                }
                4..7 => {
                    let names = pair.pop(now, 1 + which, Lease::For(DurationMs::new(1 + which as u64 * 20)));
                    for name in names.split(' ').filter(|name| !name.is_empty()) {
                        let (group, nth) = name.split_once('-').unwrap();
                        let (group, nth): (usize, u64) = (group.parse().unwrap(), nth.parse().unwrap());
                        prop_assert!(nth >= seen[group], "{name} comes after {}", seen[group]);
                        seen[group] = nth;
                        out.retain(|held| held != name);
                        out.push(name.to_owned());
                    }
                }
                7 if !out.is_empty() => {
                    let name = out.remove(which % out.len());
                    if pair.queue.get(at(now), &Id::parse(name.as_bytes()).unwrap()).is_some() {
                        pair.ack(now, &name);
                    }
                }
                8 if !out.is_empty() => {
                    let name = out.remove(which % out.len());
                    let target = Target::parse(name.as_bytes()).unwrap();
                    let delay = Some(DurationMs::new(passed * 3));
                    let nacked = pair.queue.nack(at(now), &target, &Nack { delay, ..Nack::default() });
                    if let Some(nacked) = nacked {
                        let (sequence, fate, attempts) = (nacked.sequence, nacked.fate, nacked.attempts);
                        let effect = Effect::Nack { sequence, fate, attempts, error: None, checkpoint: None };
                        pair.replica.apply(&Stamped { now: at(now), effect }).unwrap();
                    }
                }
                9 => {
                    // The replica takes over, with a clock that is behind.
                    pair.queue = pair.replica.duplicate().unwrap();
                    now = now.saturating_sub(passed);
                    pair.queue.clock = UnixMs::EPOCH;
                }
                _ => {}
            }
        }
    }
}

//! What is forwarded, in which order, and what an error of the target changes.

use super::*;
use crate::id::{Floor, Id, Target};
use crate::rate::Rate;
use crate::settings::{GroupOrder, Settings};
use crate::{Due, Flow, NewMessage};

fn at(ms: u64) -> UnixMs {
    UnixMs::new(1_760_000_000_000 + ms)
}

fn to_stream() -> Option<Forward> {
    Some(Forward::Stream { key: b"s"[..].into(), trim: None })
}

/// A queue that forwards, with messages that are due at 0, 1, 2 and so on.
fn queue(settings: Settings, messages: u64) -> Queue {
    let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
    queue.forward_to(at(0), Source::Due, to_stream());
    for nth in 0..messages {
        queue.push(at(0), &mut floor, &NewMessage { due: Some(Due::At(at(nth))), ..NewMessage::default() });
    }
    queue
}

fn next(queue: &mut Queue, now: u64, count: usize) -> Vec<Sequence> {
    let mut next = Vec::new();
    queue.next_to_forward(at(now), Source::Due, count, |message| {
        next.push(message.sequence);
        true
    });
    next
}

#[test]
fn messages_are_forwarded_in_delivery_order_and_removed_once_written() {
    let mut queue = queue(Settings::default(), 4);
    let first = next(&mut queue, 2, 9);
    assert_eq!(first.len(), 3, "the fourth is not due");
    assert_eq!(next(&mut queue, 2, 9), first, "nothing was removed");
    assert_eq!(queue.forwarded(at(2), &first[..2], |_| ()), first[..2]);
    assert_eq!(next(&mut queue, 2, 9), first[2..]);
    assert_eq!(queue.forwarded(at(2), &first[..2], |_| ()), [], "each once");
    let totals = queue.totals();
    assert_eq!((totals.delivered, totals.forwarded, totals.acked), (2, 2, 0));
}

#[test]
fn groups_are_forwarded_in_the_order_of_single_pops() {
    for by_turn in [GroupOrder::Due, GroupOrder::Turn] {
        let settings = Settings { grouporder: by_turn, ..Settings::default() };
        let filled = || {
            let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
            for (payload, due, group) in
                [("a1", 0, "a"), ("a2", 1, "a"), ("a3", 2, "a"), ("z", 9, "z"), ("b1", 1, "b"), ("b2", 10, "b")]
            {
                let (payload, group, due) = (payload.as_bytes(), Some(group.as_bytes()), Some(Due::At(at(due))));
                queue.push(at(0), &mut floor, &NewMessage { payload, due, group, ..NewMessage::default() });
            }
            queue
        };
        let mut popped = Vec::new();
        let mut singly = filled();
        for _ in 0..6 {
            let pop = Pop { count: 1, lease: Lease::NoAck };
            let sink = |message: super::super::pop::Delivered<'_>| popped.push(message.payload.to_vec());
            singly.pop(at(20), &mut Floor::default(), &pop, &mut Vec::new(), sink);
        }
        for (batch, taken) in [(6, 6), (6, 1), (3, 2), (2, 2)] {
            let (mut queue, mut forwarded) = (filled(), Vec::new());
            while forwarded.len() < 6 {
                let (mut payloads, mut sequences) = (Vec::new(), Vec::new());
                queue.next_to_forward(at(20), Source::Due, batch, |next| {
                    payloads.push(next.payload.to_vec());
                    sequences.push(next.sequence);
                    true
                });
                let taken = taken.min(sequences.len());
                queue.forwarded(at(20), &sequences[..taken], |_| ());
                forwarded.extend_from_slice(&payloads[..taken]);
            }
            assert_eq!(forwarded, popped, "in batches of {batch}, of which {taken} are accepted");
        }
    }
}

#[test]
fn a_queue_that_forwards_asks_for_the_timer_while_it_may_deliver() {
    let mut queue = queue(Settings { maxinflight: 1, ..Settings::default() }, 2);
    assert!(queue.next_forward(Source::Due).is_some(), "one is due");
    queue.advance(at(1), usize::MAX);
    assert_eq!(queue.next_forward(Source::Due), Some(at(1)));
    let mut receipt = Vec::new();
    let pop = Pop { count: 1, lease: Lease::For(DurationMs::new(50)) };
    queue.pop(at(1), &mut Floor::default(), &pop, &mut receipt, |_| ());
    assert_eq!(queue.next_forward(Source::Due), None, "MAXINFLIGHT holds it back");
    let id = receipt[0].sequence.to_string();
    queue.ack(at(2), &Target::parse(id.as_bytes()).unwrap());
    assert!(queue.next_forward(Source::Due).is_some());
    queue.suspend(at(3), Flow::Out, None);
    assert_eq!(queue.next_forward(Source::Due), None, "paused");
    queue.resume(at(4), Flow::Out);
    queue.forward_to(at(5), Source::Due, None);
    assert_eq!(queue.next_forward(Source::Due), None, "it does not forward");
}

#[test]
fn a_rate_holds_forwarding_back_until_it_allows_more() {
    let rate = Rate { most: 2, period: DurationMs::new(10) };
    let mut queue = queue(Settings { rate, ..Settings::default() }, 5);
    let first = next(&mut queue, 9, 9);
    assert_eq!(first.len(), 2);
    queue.forwarded(at(9), &first, |_| ());
    assert_eq!((queue.next_forward(Source::Due), queue.next_wake()), (None, Some(at(19))));
    assert_eq!(next(&mut queue, 19, 9).len(), 2);
}

#[test]
fn a_failure_is_retried_a_second_later_and_not_before() {
    let mut queue = queue(Settings::default(), 1);
    queue.advance(at(5), usize::MAX);
    assert_eq!(queue.forwarding_failed(at(5), Source::Due, "OOM"), Health::NewError);
    assert!(!queue.may_forward(at(1_004), Source::Due) && queue.may_forward(at(1_005), Source::Due));
    assert_eq!(queue.next_forward(Source::Due), Some(at(1_005)));
    assert_eq!(queue.forwarding_failed(at(1_005), Source::Due, "OOM"), Health::Same);
    assert_eq!(queue.forwarding_failed(at(2_005), Source::Due, "MISCONF"), Health::NewError);
    let failing = queue.failing(Source::Due).unwrap();
    assert_eq!((failing.since, failing.retry), (at(5), at(3_005)));
    assert_eq!(queue.forwarding_works(Source::Due), Health::Recovered);
    assert_eq!(queue.forwarding_works(Source::Due), Health::Same);
    queue.forwarding_failed(at(4_000), Source::Due, "OOM");
    queue.forward_to(at(4_000), Source::Due, Some(Forward::Channel { name: Box::default() }));
    assert_eq!(queue.failing(Source::Due), None, "another target");
    assert_eq!(queue.duplicate().unwrap().forward(), queue.forward());
}

/// A queue with dead messages, which died at 1, 2, 3 and so on.
fn with_dead(settings: Settings, messages: u64) -> Queue {
    let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
    for nth in 0..messages {
        let name = nth.to_string();
        let message = NewMessage { name: Some(name.as_bytes()), payload: b"x", ..NewMessage::default() };
        queue.push(at(0), &mut floor, &message);
        queue.bury(at(nth + 1), &Id::parse(name.as_bytes()).unwrap(), Some(b"why"));
    }
    queue
}

fn next_dead(queue: &mut Queue, now: u64, count: usize) -> Vec<Sequence> {
    let mut next = Vec::new();
    queue.next_to_forward(at(now), Source::Dead, count, |message| {
        assert_eq!(message.death.unwrap().died, at(next.len() as u64 + 1));
        assert_eq!(message.death.unwrap().error, Some(&b"why"[..]));
        assert_eq!(message.death.unwrap().reason, Reason::Rejected);
        next.push(message.sequence);
        true
    });
    next
}

#[test]
fn the_oldest_dead_messages_are_forwarded_also_while_the_queue_is_paused() {
    let mut queue = with_dead(Settings::default(), 3);
    assert_eq!(queue.next_forward(Source::Dead), None, "they stay");
    queue.suspend(at(3), Flow::Out, None);
    queue.forward_to(at(3), Source::Dead, to_stream());
    assert!(queue.next_forward(Source::Dead).is_some() && queue.forward().is_none() && queue.forwards());
    let first = next_dead(&mut queue, 3, 9);
    assert_eq!((first.len(), queue.counts().dead), (3, 3));
    let removed = queue.forwarded_dead(at(3), &first[..2]);
    assert!(removed.contain(first[0]) && removed.contain(first[1]) && !removed.contain(first[2]));
    assert_eq!((queue.counts().dead, queue.totals().deadforwarded, queue.totals().delivered), (1, 2, 0));
    queue.forwarded_dead(at(3), &first);
    assert_eq!((queue.totals().deadforwarded, queue.next_forward(Source::Dead)), (3, None), "each once");
}

#[test]
fn dead_messages_are_dropped_only_while_their_target_refuses_them() {
    let settings = Settings { deadlen: Some(1), deadttl: DurationMs::new(5), ..Settings::default() };
    let mut queue = with_dead(settings, 3);
    queue.forward_to(at(3), Source::Dead, to_stream());
    queue.advance(at(100), usize::MAX);
    assert_eq!((queue.has_excess(), queue.next_drop()), (false, None));
    assert_eq!(queue.drop_excess(at(100), b"0"), None);
    queue.forwarding_failed(at(100), Source::Dead, "OOM");
    assert!(queue.has_excess() && queue.next_drop().is_some());
    assert_eq!(queue.next_forward(Source::Dead), Some(at(1_100)));
    assert_eq!(queue.next_forward(Source::Due), None);
    queue.forwarding_works(Source::Dead);
    assert!(!queue.has_excess());
    queue.forward_to(at(100), Source::Dead, None);
    assert!(queue.has_excess());
}

#[test]
fn a_queue_may_forward_both_to_targets_of_their_own() {
    let mut queue = with_dead(Settings::default(), 1);
    queue.push(at(2), &mut Floor::default(), &NewMessage::default());
    let list = Forward::List { key: b"l"[..].into(), end: Default::default(), register: None };
    queue.forward_to(at(2), Source::Due, to_stream());
    queue.forward_to(at(2), Source::Dead, Some(list.clone()));
    assert_eq!(queue.targets(), Targets { due: to_stream().map(Box::new), dead: Some(Box::new(list)) });
    queue.forwarding_failed(at(2), Source::Dead, "OOM");
    assert!(queue.failing(Source::Due).is_none() && queue.may_forward(at(2), Source::Due));
    assert!(!queue.may_forward(at(2), Source::Dead));
}

//! What a call takes does not grow with the square of what it is given, nor with what it does not concern. Each test
//! compares two calls on the same machine, by the shortest of a few runs: a busy machine makes a run longer, never
//! shorter.

use dq_queue::id::{Floor, Sequence};
use dq_queue::settings::{GroupOrder, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Effect, Ended, NewMessage, Next, OnDuplicate, Queue, RunEnd, Stamped, TurnState};
use std::time::{Duration, Instant};

const NOW: UnixMs = UnixMs::new(1_760_000_000_000);
const MANY: usize = 20_000;

fn time_of<R>(act: impl FnOnce() -> R) -> Duration {
    let began = Instant::now();
    act();
    began.elapsed()
}

/// How often a call is measured.
const RUNS: usize = 5;

fn shortest_of(measured: impl Fn() -> Duration) -> Duration {
    (0..RUNS).map(|_| measured()).min().expect("more than no runs")
}

/// Pushes many messages, each in a group and a batch of its own.
fn push_many(queue: &mut Queue) {
    let names: Vec<String> = (0..MANY).map(|nth| format!("message-{nth}")).collect();
    let messages: Vec<NewMessage<'_>> = names
        .iter()
        .map(|name| NewMessage {
            name: Some(name.as_bytes()),
            group: Some(name.as_bytes()),
            batch: Some(name.as_bytes()),
            on_duplicate: OnDuplicate::Replace,
            ..NewMessage::default()
        })
        .collect();
    queue.push_all(NOW, &mut Floor::default(), &messages, |_| ()).unwrap();
    queue.stamp(NOW);
}

#[test]
#[cfg_attr(miri, ignore)]
fn replacing_many_members_of_batches_takes_as_long_as_pushing_them() {
    let pushing = shortest_of(|| time_of(|| push_many(&mut Queue::new(Settings::default()))));
    let replacing = shortest_of(|| {
        let mut queue = Queue::new(Settings::default());
        push_many(&mut queue);
        time_of(|| push_many(&mut queue))
    });
    assert!(replacing < pushing * 8, "{replacing:?} and {pushing:?}");
}

#[test]
#[cfg_attr(miri, ignore)]
fn a_page_of_groups_does_not_walk_through_all_that_are_paused() {
    let mut queue = Queue::new(Settings::default());
    push_many(&mut queue);
    for nth in 0..MANY {
        queue.suspend_group(NOW, format!("message-{nth}").as_bytes(), None);
    }
    let all = shortest_of(|| time_of(|| queue.scan_groups(NOW, None, usize::MAX)));
    let pages = shortest_of(|| time_of(|| (0..100).for_each(|_| drop(queue.scan_groups(NOW, None, 10)))));
    assert!(pages < all * 8, "{pages:?} for 100 pages and {all:?} for all groups");
}

#[test]
#[cfg_attr(miri, ignore)]
fn turns_that_arrive_in_many_pieces_take_as_long_as_in_one() {
    let mut queue = Queue::new(Settings { grouporder: GroupOrder::Turn, ..Settings::default() });
    push_many(&mut queue);
    let names: Vec<String> = (0..MANY).map(|nth| format!("message-{nth}")).collect();
    let groups: Vec<_> = names.iter().map(|name| (name.as_bytes(), 1, None)).collect();
    let mut applied = |size: usize| {
        let pieces = groups.chunks(size).map(|groups| TurnState { last: 1, groups: groups.to_vec(), ..<_>::default() });
        let effects: Vec<_> = pieces.map(|turns| Stamped { now: NOW, effect: Effect::Turns(turns) }).collect();
        let times = (0..RUNS).map(|_| time_of(|| effects.iter().for_each(|effect| _ = queue.apply(effect).unwrap())));
        times.min().expect("more than no runs")
    };
    let (one, many) = (applied(MANY), applied(MANY / 1_000));
    assert!(many < one * 8, "{many:?} in many pieces and {one:?} in one");
}

#[test]
#[cfg_attr(miri, ignore)]
fn an_effect_that_ends_runs_and_forwards_takes_the_sum_of_both() {
    let applied = |ends: usize| {
        let mut queue = Queue::new(Settings::default());
        push_many(&mut queue);
        let others: Vec<Sequence> = queue.images().map(|image| image.record.sequence).collect();
        let end = |nth: usize| RunEnd { sequence: Sequence(1 + nth as u64), next: Next::Over, failure: None };
        let ends = (0..ends).map(end).collect();
        let effect = Effect::EndRuns { how: Ended::Forwarded, others, ends };
        let now = NOW.after(DurationMs::new(1));
        time_of(|| queue.apply(&Stamped { now, effect }).unwrap())
    };
    let (few, many) = (shortest_of(|| applied(1)), shortest_of(|| applied(MANY)));
    assert!(many < few * 8, "{many:?} and {few:?}");
}

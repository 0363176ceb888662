//! A batch that replaces thousands of messages gives what as many single pushes give.

use crate::exercise::digest;
use dq_queue::id::Floor;
use dq_queue::settings::Settings;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Due, Effect, Lease, NewMessage, OnDuplicate, Pop, Pushed, Queue, Stamped};

const HELD: usize = 3_000;

fn at(ms: u64) -> UnixMs {
    UnixMs::new(1_760_000_000_000 + ms)
}

/// A queue with named messages of three priorities that are due at different times, some of which were delivered.
fn filled() -> (Queue, Floor) {
    let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
    for nth in 0..HELD {
        let name = format!("m{nth}");
        let due = Some(Due::After(DurationMs::new((nth * 7_919 % 1_000) as u64)));
        let message =
            NewMessage { name: Some(name.as_bytes()), due, priority: (nth % 3) as i8, ..NewMessage::default() };
        queue.push(at(nth as u64 / 100), &mut floor, &message);
    }
    let pop = Pop { count: 300, lease: Lease::For(DurationMs::new(10_000)) };
    queue.pop(at(500), &mut floor, &pop, &mut Vec::new(), |_| ());
    (queue, floor)
}

#[test]
fn a_batch_replaces_as_single_pushes_do() {
    let now = at(600);
    // Every third name is new, and the last hundred occur twice.
    let names: Vec<String> = (0..2_000)
        .map(|nth| nth * 1_237 % HELD)
        .chain(0..100)
        .map(|nth| if nth % 3 == 0 { format!("new{nth}") } else { format!("m{nth}") })
        .collect();
    let message = |nth: usize, name: &'static str| NewMessage {
        payload: b"replacement",
        name: Some(name.as_bytes()),
        due: Some(Due::After(DurationMs::new((nth % 700) as u64))),
        priority: (nth % 5) as i8,
        on_duplicate: OnDuplicate::Replace,
        ..NewMessage::default()
    };
    let messages: Vec<NewMessage<'_>> =
        names.iter().enumerate().map(|(nth, name)| message(nth, String::leak(name.clone()))).collect();

    let (mut singly, mut floor) = filled();
    for message in &messages {
        assert!(matches!(singly.push(now, &mut floor, message), Pushed::Added { .. }));
    }
    let (mut batch, mut floor) = filled();
    let (mut replica, _) = filled();
    let mut images = Vec::new();
    let pushed = batch.push_all(now, &mut floor, &messages, |outcome| {
        let Pushed::Added { image, .. } = outcome else { panic!("{outcome:?}") };
        images.push(image);
    });
    pushed.unwrap();
    let mut bytes = Vec::new();
    Stamped { now, effect: Effect::Push(None, images) }.encode(&mut bytes).unwrap();
    replica.apply(&Stamped::decode(&bytes).unwrap()).unwrap();
    for queue in [&singly, &batch, &replica] {
        queue.check().unwrap();
        assert_eq!(digest(queue), digest(&singly));
        assert_eq!(queue.counts(), singly.counts());
    }
}

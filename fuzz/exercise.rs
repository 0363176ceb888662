//! What the fuzzer's targets do with their input: it is refused, or it leads to a queue that works. The tests call the
//! same functions with the inputs that the fuzzer found.

use dq_queue::forward::{Forward, ListEnd, Register, Source};
use dq_queue::id::{Floor, Id, Sequence, Target};
use dq_queue::rate::Rate;
use dq_queue::rule::Rule;
use dq_queue::settings::{GroupOrder, Retries, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::wire::Loader;
use dq_queue::{
    Completion, Due, FollowUp, HeaderBlock, Lease, Nack, NewMessage, Oldest, OnDuplicate, Pause, Pop, Queue, Reason,
    Refused, Reschedule, ScanFilter, Schedule, Scheduled, Series, Spare, Stamped, StateKind, States, ToPurge, Verdict,
    Which,
};

pub const NOW: u64 = 1_760_000_000_000;

pub fn at(ms: u64) -> UnixMs {
    UnixMs::new(ms)
}

pub fn digest(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.digest(|piece| bytes.extend_from_slice(piece)).unwrap();
    bytes
}

/// Returns a queue with messages in every state, which together have everything that a message can have, and a known
/// id.
pub fn lively() -> Queue {
    let settings = Settings {
        deadlen: Some(5),
        maxlen: 100,
        dedupe: DurationMs::new(60),
        rate: Rate { most: 1_000, period: DurationMs::new(60) },
        grouporder: GroupOrder::Turn,
        ..Settings::default()
    };
    let (mut queue, mut floor) = (Queue::new(settings), Floor::default());
    let known = NewMessage { name: Some(b"known"), batch: Some(b"empty"), ..NewMessage::default() };
    queue.push(at(NOW), &mut floor, &known);
    pop(&mut queue, NOW, &mut floor, 1, Lease::NoAck);
    queue.stamp(at(NOW));
    let headers = HeaderBlock::new(vec![(b"type", b"text"), (b"trace", b"1f")]).unwrap();
    for nth in 0..12u64 {
        let name = format!("name-{nth}");
        let message = NewMessage {
            payload: &vec![nth as u8; if nth == 7 { 9_000 } else { 10 * nth as usize }],
            name: (nth % 3 == 0).then_some(name.as_bytes()),
            due: (nth % 4 == 3).then_some(Due::After(DurationMs::new(nth))),
            priority: nth as i8 % 3 - 1,
            retries: (nth % 2 == 0).then_some(Retries::new(1).unwrap()),
            lease: (nth % 5 == 0).then_some(DurationMs::new(50)),
            ttl: (nth % 4 == 1).then_some(DurationMs::new(100)),
            on_duplicate: OnDuplicate::Refuse,
            maxwait: None,
            retain: (nth % 5 == 1).then_some(DurationMs::new(90 * nth)),
            group: (nth > 8).then_some(b"group"),
            headers: (nth == 7 || nth == 8).then_some(headers.headers()),
            batch: (nth % 3 == 1).then_some(b"batch"),
            past: None,
        };
        queue.push(at(NOW), &mut floor, &message);
    }
    let targets: Vec<u64> = pop(&mut queue, NOW, &mut floor, 6, Lease::Default);
    let nack = |queue: &mut Queue, nth: usize, nack| {
        let name = sequence_target(queue, targets[nth]);
        let target = Target::parse(&name).unwrap();
        queue.nack(at(NOW + 1), &target, &nack).unwrap();
    };
    nack(&mut queue, 0, Nack { verdict: Verdict::Rejected, error: Some(b"rejected"), ..Nack::default() });
    nack(&mut queue, 1, Nack { error: Some(b"later"), checkpoint: Some(b"half"), ..Nack::default() });
    queue.hold_as(targets[3..5].iter().copied().map(Sequence), b"worker-1");
    done(&mut queue, &mut floor, targets[2]);
    let name = Some(b"after"[..].into());
    queue.close_batch(at(NOW + 1), &floor, b"batch", &FollowUp { name, priority: 3, ..follow_up(b"then") }).unwrap();
    schedules(&mut queue, &mut floor);
    replaced_later(&mut queue, &mut floor);
    let register = Some(Register { set: b"set"[..].into(), member: b"member"[..].into() });
    let list = |end, register| Some(Forward::List { key: b"list"[..].into(), end, register });
    queue.forward_to(at(NOW + 1), Source::Due, list(ListEnd::Left, register));
    queue.forward_to(at(NOW + 1), Source::Dead, list(ListEnd::Right, None));
    queue
}

/// Adds two messages in flight: a message is kept to replace one of them, and a schedule to replace the other.
fn replaced_later(queue: &mut Queue, floor: &mut Floor) {
    for name in [&b"flying-1"[..], b"flying-2"] {
        let flying = NewMessage { payload: b"flying", name: Some(name), priority: 127, ..NewMessage::default() };
        queue.push(at(NOW + 1), floor, &flying);
        let popped = pop(queue, NOW + 1, floor, 1, Lease::Default);
        queue.hold_as(popped.into_iter().map(Sequence), name);
        let ttl = Some(DurationMs::new(45));
        queue.push(
            at(NOW + 1),
            floor,
            &NewMessage { payload: b"kept", on_duplicate: OnDuplicate::ReplaceLater, ttl, ..flying },
        );
    }
    let every = Rule::Every { every: DurationMs::new(60), offset: DurationMs::ZERO };
    let kept = Schedule {
        name: b"flying-2",
        payload: b"kept",
        series: Series { rule: every, until: None, times: Some(2) },
        first: None,
        priority: 1,
        retries: None,
        lease: None,
        ttl: None,
        group: None,
        headers: None,
    };
    assert!(matches!(queue.schedule(at(NOW + 1), floor, &kept), Scheduled::Changed(_)));
}

/// Completes a delivered message with a result, and adds two messages that are kept after they were delivered without a
/// lease.
fn done(queue: &mut Queue, floor: &mut Floor, delivered: u64) {
    let name = sequence_target(queue, delivered);
    let how = Completion { result: Some(b"result"), retain: Some(DurationMs::new(500)) };
    queue.complete(at(NOW + 1), &Target::parse(&name).unwrap(), &how).unwrap();
    for name in [None, Some(&b"done"[..])] {
        let retain = Some(DurationMs::new(40));
        let message = NewMessage { name, priority: 127, retain, ..NewMessage::default() };
        queue.push(at(NOW + 1), floor, &message);
        pop(queue, NOW + 1, floor, 1, Lease::NoAck);
    }
}

/// Adds a recurring message that waits for a run, and one whose run has begun before another form was declared.
fn schedules(queue: &mut Queue, floor: &mut Floor) {
    let every = |ms| Rule::Every { every: DurationMs::new(ms), offset: DurationMs::new(ms / 3) };
    let headers = HeaderBlock::new(vec![(b"of", b"schedule")]).unwrap();
    let waiting = Schedule {
        name: b"every-50",
        payload: b"waiting",
        series: Series { rule: every(50), until: Some(at(NOW + 1_000)), times: Some(9) },
        first: None,
        priority: 3,
        retries: None,
        lease: None,
        ttl: Some(DurationMs::new(20)),
        group: Some(b"scheduled"),
        headers: Some(headers.headers()),
    };
    queue.schedule(at(NOW + 1), floor, &waiting);
    let running = Schedule {
        name: b"every-70",
        payload: b"running",
        series: Series { rule: every(70), until: None, times: None },
        first: Some(at(NOW)),
        priority: 100,
        retries: Some(Retries::new(0).unwrap()),
        ..waiting.clone()
    };
    queue.schedule(at(NOW + 1), floor, &running);
    pop(queue, NOW + 1, floor, 1, Lease::For(DurationMs::new(30)));
    let next = Series { rule: every(7), ..waiting.series.clone() };
    queue.schedule(at(NOW + 1), floor, &Schedule { payload: b"next", series: next, ..running });
}

/// Returns the id of the message with this sequence.
pub fn sequence_target(queue: &Queue, sequence: u64) -> Vec<u8> {
    let image = queue.images().find(|image| image.record.sequence.0 == sequence).unwrap();
    image.name.map_or_else(|| Sequence(sequence).to_string().into_bytes(), |name| name.to_vec())
}

pub fn pop(queue: &mut Queue, now: u64, floor: &mut Floor, count: usize, lease: Lease) -> Vec<u64> {
    let mut popped = Vec::new();
    let pop = Pop { count, lease };
    let promised = queue.deliverable(at(now), &pop);
    queue.pop(at(now), floor, &pop, &mut Vec::new(), |message| popped.push(message.grant.sequence.0));
    assert_eq!(popped.len(), promised);
    popped
}

/// Uses every operation on a queue, until only dead messages are left.
pub fn survive(mut queue: Queue) {
    let mut floor = Floor::default();
    assert_eq!(digest(&reload(&queue)), digest(&queue));
    queue.advance(at(NOW + 40), 2);
    assert_eq!(digest(&reload(&queue)), digest(&queue));
    let names: Vec<Vec<u8>> = queue
        .images()
        .map(|image| image.record.sequence.0)
        .collect::<Vec<_>>()
        .into_iter()
        .map(|sequence| sequence_target(&queue, sequence))
        .collect();
    pop(&mut queue, NOW + 41, &mut floor, 3, Lease::Default);
    forward(&mut queue, NOW + 41, 2);
    for (nth, name) in names.iter().enumerate() {
        if queue.get(at(NOW), &Id::parse(name).unwrap()).is_none() {
            // It was forwarded.
            continue;
        }
        let target = Target::parse(name).unwrap();
        match nth % 4 {
            0 if nth % 8 == 4 => {
                queue.complete(at(NOW + 42), &target, &Completion::default());
            }
            0 => {
                queue.ack(at(NOW + 42), &target);
            }
            1 => drop(queue.nack(at(NOW + 42), &target, &Nack { error: Some(b"e"), ..Nack::default() })),
            2 => drop(queue.extend(at(NOW + 42), &target, None, (nth % 8 == 2).then_some(b"most"))),
            _ => {}
        }
    }
    let message = NewMessage {
        payload: b"fresh",
        name: Some(b"fresh"),
        on_duplicate: OnDuplicate::Replace,
        ..NewMessage::default()
    };
    queue.push(at(NOW + 43), &mut floor, &message);
    for id in names.iter().step_by(2).filter_map(|name| Id::parse(name)) {
        if let Id::Named(name) = id {
            queue.push(
                at(NOW + 43),
                &mut floor,
                &NewMessage { name: Some(name), on_duplicate: OnDuplicate::ReplaceLater, ..message },
            );
        }
    }
    release(&mut queue, &mut floor);
    let _ = queue.close_batch(at(NOW + 43), &floor, b"empty", &follow_up(b"at once"));
    queue.settle(at(NOW + 43));
    queue.trim(1);
    queue.end_failed_runs(at(NOW + 43), 2);
    queue.take_ends();
    change_and_remove(&mut queue, &names, &mut floor);
    assert_eq!(digest(&queue.duplicate().unwrap()), digest(&queue));
    for now in [NOW + 50, NOW + 5_000, UnixMs::MAX_AT, UnixMs::MAX.as_ms()] {
        let mut steps = 0;
        while !queue.advance(at(now), 3).done {
            steps += 1;
            assert!(steps < 10_000, "an advance that never ends");
        }
        assert!(queue.next_wake().is_none_or(|wake| wake > at(now)));
        pop(&mut queue, now, &mut floor, 2, Lease::For(DurationMs::new(1)));
    }
    let end = UnixMs::MAX;
    queue.advance(end, usize::MAX);
    // Nothing but a pause may hold messages back.
    queue.alter(end, Settings { rate: Rate::OFF, ..*queue.settings() });
    if queue.pause_at(end) == Pause::Off {
        while !pop(&mut queue, end.as_ms(), &mut floor, usize::MAX, Lease::NoAck).is_empty() {}
        let counts = queue.counts();
        assert_eq!((counts.delayed, counts.ready, counts.inflight), (0, 0, 0), "all was delivered");
        assert_eq!(queue.images().count() as u64, counts.dead);
        assert_eq!(queue.images().map(|image| image.payload.len() as u64).sum::<u64>(), counts.payload_bytes);
    }
    // What follows a batch whose last member is dropped may itself be too old at the end of time.
    while queue.has_excess() {
        queue.trim(usize::MAX);
    }
    assert_eq!(digest(&reload(&queue)), digest(&queue));
}

/// What follows a batch.
pub fn follow_up(payload: &[u8]) -> FollowUp {
    FollowUp { payload: payload.into(), ..FollowUp::default() }
}

/// Lets two consumers take messages, which are then taken from them.
fn release(queue: &mut Queue, floor: &mut Floor) {
    let now = at(NOW + 43);
    for name in [&b"worker-1"[..], b"worker-3"] {
        let popped = pop(queue, NOW + 43, floor, 2, Lease::Default);
        queue.hold_as(popped.into_iter().map(Sequence), name);
    }
    assert_eq!(digest(&reload(queue)), digest(queue));
    for (name, verdict) in [(&b"worker-1"[..], Verdict::Failed), (b"worker-3", Verdict::NotCounted)] {
        queue.release(now, name, None, verdict);
        assert!(queue.scan_consumers(now, None, usize::MAX).0.iter().all(|consumer| consumer.name != name));
    }
}

/// Forwards the next messages.
pub fn forward(queue: &mut Queue, now: u64, count: usize) {
    let mut next = Vec::new();
    queue.next_to_forward(at(now), Source::Due, count, |message| {
        next.push(message.sequence);
        true
    });
    assert_eq!(queue.forwarded(at(now), &next, |_| ()), next);
    queue.take_ends();
    next.clear();
    queue.next_to_forward(at(now), Source::Dead, 1, |message| {
        assert!(message.death.is_some());
        next.push(message.sequence);
        true
    });
    let removed = queue.forwarded_dead(at(now), &next);
    assert!(next.iter().all(|sequence| removed.contain(*sequence)));
}

/// Uses the operations that change or remove existing messages, one at a time and many at once.
pub fn change_and_remove(queue: &mut Queue, names: &[Vec<u8>], floor: &mut Floor) {
    let now = at(NOW + 44);
    let ids: Vec<_> = names.iter().map(|name| Id::parse(name)).collect();
    for (nth, id) in ids.iter().flatten().enumerate() {
        match nth % 4 {
            0 => drop(queue.cancel(now, id)),
            1 => drop(queue.reschedule(now, id, &Reschedule { due: Some(Due::At(UnixMs::MAX)), priority: Some(7) })),
            2 => drop(queue.reschedule(
                now,
                id,
                &Reschedule { due: Some(Due::After(DurationMs::new(1))), priority: None },
            )),
            _ => {}
        }
    }
    queue.redrive(now, &Which::Named(&ids[..ids.len() / 2]), Due::Now);
    let expired = Oldest { reason: Some(Reason::Expired), ..Oldest::first(2) };
    queue.redrive(now, &Which::Oldest(expired), Due::Now);
    queue.redrive(now, &Which::Oldest(Oldest::first(2)), Due::After(DurationMs::new(3)));
    let messages = [b"one", b"two"].map(|payload| NewMessage { payload, ..NewMessage::default() });
    let _ = queue.push_all(now, floor, &messages, |_| ());
    queue.catch_up(now);
    for kind in StateKind::ALL {
        assert_eq!(queue.peek(now, kind, usize::MAX).len() as u64, queue.counts_at(now).count(kind));
    }
    let (all, rest) = queue.scan(now, None, usize::MAX, ScanFilter::default());
    let held = queue.images().count() + queue.counts_at(now).done as usize;
    assert_eq!((all.len(), rest), (held, None));
    let delayed = ToPurge { spare: Spare::Nothing, ..ToPurge::all(States::only(StateKind::Delayed)) };
    queue.purge(now, &ToPurge { older: Some(DurationMs::new(7)), ..delayed });
    queue.purge(now, &delayed);
    assert!(queue.peek(now, StateKind::Delayed, 1).is_empty());
    assert_eq!(digest(&reload(queue)), digest(queue));
}

/// Applies an effect from any bytes. If it is refused, the queue must be unchanged.
pub fn apply(queue: &mut Queue, bytes: &[u8]) {
    let Ok(stamped) = Stamped::decode(bytes) else { return };
    let before = digest(queue);
    if queue.apply(&stamped).is_err() {
        assert_eq!(digest(queue), before, "a refused effect changed something");
    }
    if let Some(mut made) = Queue::made_by(&stamped.effect) {
        if made.apply(&stamped).is_ok() {
            survive(made);
        }
    }
}

/// Saves a queue and loads it again.
pub fn reload(queue: &Queue) -> Queue {
    let mut loader = Loader::default();
    let taken: Result<(), Refused> = queue.save(|piece| loader.take(piece));
    taken.expect("what was saved can be loaded");
    loader.finish(UnixMs::MAX).unwrap()
}

/// Reads bytes as the pieces of a snapshot, each preceded by its length in two bytes.
pub fn snapshot(mut bytes: &[u8]) {
    let mut loader = Loader::default();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (piece, rest) = rest.split_at(length);
        if loader.take(piece).is_err() {
            return;
        }
        bytes = rest;
    }
    if let Ok(queue) = loader.finish(UnixMs::MAX) {
        survive(queue);
    }
}

/// Applies bytes as effects to the queue of [`lively`]. Each effect is preceded by its length in two bytes.
pub fn effects(mut bytes: &[u8]) {
    let mut queue = lively();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (effect, rest) = rest.split_at(length);
        apply(&mut queue, effect);
        bytes = rest;
    }
    survive(queue);
}

/// Reads bytes as an id or a receipt. If they can be parsed, they are printed in the same way.
pub fn ids(bytes: &[u8]) {
    if let Some(sequence) = Sequence::parse(bytes) {
        assert_eq!(sequence.to_string().as_bytes(), bytes);
        assert!(!Id::is_name(bytes));
    }
    let Some(target) = Target::parse(bytes) else { return };
    let mut printed = dq_queue::id::IdBuffer::new();
    let id = match target.id {
        Id::Generated(sequence) => printed.id(sequence, None),
        Id::Named(name) => printed.id(Sequence::ZERO, Some(name)),
    };
    let length = target.receipt.map_or(id, |receipt| printed.receipt(id, receipt));
    assert_eq!(printed.text(length), bytes);
}

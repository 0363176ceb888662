//! Loading a saved queue on a server whose clock is behind that of the server that saved it.

use dq_queue::id::{Floor, Id};
use dq_queue::settings::{Retries, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::wire::Loader;
use dq_queue::{Lease, NewMessage, Pop, Queue, StateKind};

const START: UnixMs = UnixMs::new(1_700_000_000_000);
const HOUR: DurationMs = DurationMs::new(3_600_000);

/// A queue with a message that expires in an hour and two deliveries whose leases end in an hour; one of them has no
/// retries left.
fn queue() -> Queue {
    let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
    let named = |name: &'static [u8], retries| NewMessage {
        name: Some(name),
        retries: Retries::new(retries),
        priority: 1,
        ..NewMessage::default()
    };
    queue.push(START, &mut floor, &named(b"again", 5));
    queue.push(START, &mut floor, &named(b"spent", 0));
    queue.push(START, &mut floor, &NewMessage { name: Some(b"expired"), ttl: Some(HOUR), ..NewMessage::default() });
    queue.pop(START, &mut floor, &Pop { count: 2, lease: Lease::For(HOUR) }, &mut Vec::new(), |_| ());
    queue
}

fn load(queue: &Queue, now: UnixMs) -> Queue {
    let mut loader = Loader::default();
    queue.save(|piece| loader.take(piece)).unwrap();
    loader.finish(now).unwrap()
}

/// The numbers that depend on time: messages in flight, ready and dead; leases that ended; deaths, and those of them by
/// TTL.
fn history(queue: &Queue, now: UnixMs) -> [u64; 6] {
    let (counts, totals) = (queue.counts_at(now), queue.totals());
    [counts.inflight, counts.ready, counts.dead, totals.lease_expired, totals.died, totals.expired]
}

#[test]
fn expirations_are_counted_once_though_the_clock_goes_back() {
    let (mut queue, later) = (queue(), START.after(HOUR));
    assert_eq!(history(&queue, START), [2, 1, 0, 0, 0, 0]);
    queue.advance(later, usize::MAX);
    let ended = [0, 1, 2, 2, 2, 1];
    assert_eq!(history(&queue, later), ended);

    let mut loaded = load(&queue, later);
    assert_eq!(history(&loaded, later), ended, "a clock that goes on finds it as it was saved");
    loaded.advance(later.after(HOUR), usize::MAX);
    assert_eq!(history(&loaded, later.after(HOUR)), ended);

    let mut behind = load(&queue, START);
    assert_eq!(history(&behind, START), [2, 1, 0, 0, 0, 0], "by this clock nothing has ended yet");
    let state = |queue: &Queue| queue.get(START, &Id::Named(b"spent")).unwrap().state.kind();
    assert_eq!(state(&behind), StateKind::InFlight);
    behind.advance(later, usize::MAX);
    assert_eq!(history(&behind, later), ended);
}

#[test]
fn a_death_by_command_stays_counted_after_a_clock_step() {
    let mut queue = queue();
    queue.bury(START, &Id::Named(b"again"), None).unwrap();
    queue.advance(START.after(HOUR), usize::MAX);
    assert_eq!(history(&queue, START.after(HOUR)), [0, 0, 3, 1, 3, 1]);
    assert_eq!(history(&load(&queue, START), START), [1, 1, 1, 0, 1, 0]);
}

//! The deduplication window: an id is refused until its window ends, by the time alone, on every server alike.

use crate::exercise::{digest, reload};
use dq_queue::forward::Targets;
use dq_queue::id::{Floor, Id, Target};
use dq_queue::settings::Settings;
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::wire::Loader;
use dq_queue::{Effect, Lease, NewMessage, OnDuplicate, Pop, Pushed, Queue, Refused, Stamped};

const START: UnixMs = UnixMs::new(1_760_000_000_000);
const WINDOW: u64 = 1_000;

fn at(ms: u64) -> UnixMs {
    START.after(DurationMs::new(ms))
}

fn settings(window: u64) -> Settings {
    Settings { dedupe: DurationMs::new(window), ..Settings::default() }
}

/// A master and a replica that never advances by itself.
struct Pair {
    master: Queue,
    replica: Queue,
    floor: Floor,
}

impl Pair {
    fn new(window: u64) -> Pair {
        let queue = || Queue::new(settings(window));
        Pair { master: queue(), replica: queue(), floor: Floor::default() }
    }

    fn send(&mut self, now: UnixMs, effect: Effect<'_>) {
        let mut bytes = Vec::new();
        let now = self.master.stamp(now);
        Stamped { now, effect }.encode(&mut bytes).unwrap();
        self.replica.apply(&Stamped::decode(&bytes).unwrap()).unwrap();
        // A digest of everything for each of thousands of pushes takes long.
        if self.master.counts().total() + (self.master.known(now) as u64) < 100 {
            assert_eq!(digest(&self.master), digest(&self.replica));
        }
    }

    /// Pushes a message, and returns whether it was accepted.
    fn push(&mut self, now: UnixMs, name: &[u8]) -> bool {
        let message = NewMessage { name: Some(name), ..NewMessage::default() };
        let Pushed::Added { image, .. } = self.master.push(now, &mut self.floor, &message) else { return false };
        self.send(now, Effect::Push(None, vec![image]));
        true
    }

    /// Delivers and removes everything, so that only ids are left.
    fn take_all(&mut self, now: UnixMs) {
        let mut grants = Vec::new();
        let pop = Pop { count: usize::MAX, lease: Lease::NoAck };
        self.master.pop(now, &mut self.floor, &pop, &mut grants, |_| ());
        self.send(now, Effect::Take(grants.iter().map(|grant| grant.sequence).collect()));
    }

    fn alter(&mut self, now: UnixMs, window: u64) {
        self.master.alter(now, settings(window));
        self.send(now, Effect::Alter(settings(window), Targets::default()));
    }

    fn is_known(&mut self, now: UnixMs, name: &[u8]) -> bool {
        let message = NewMessage { name: Some(name), payload: &[0; 2], ..NewMessage::default() };
        // The payload is too large, so that nothing is pushed; a duplicate is recognised first.
        let limited = Settings { maxpayload: 1, ..*self.master.settings() };
        let mut copy = self.master.duplicate().unwrap();
        copy.alter(now, limited);
        copy.push(now, &mut Floor::default(), &message) == Pushed::Duplicate
    }
}

fn names(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|nth| format!("order-{nth}").into_bytes()).collect()
}

#[test]
fn an_id_is_refused_until_its_window_ends_and_no_longer() {
    let mut pair = Pair::new(WINDOW);
    assert!(pair.push(at(0), b"a"));
    pair.take_all(at(10));
    assert!(!pair.push(at(WINDOW - 1), b"a"));
    assert_eq!((pair.master.known(at(WINDOW - 1)), pair.master.known(at(WINDOW))), (1, 0));
    assert_eq!(pair.master.totals().duplicates, 1, "and a refused push does not extend it");
    assert!(pair.push(at(WINDOW), b"a"));
    pair.take_all(at(WINDOW));
    assert!(!pair.push(at(2 * WINDOW - 1), b"a"), "an accepted push starts it again");
}

#[test]
fn the_end_of_a_window_is_no_decision() {
    let mut pair = Pair::new(WINDOW);
    names(100).iter().for_each(|name| assert!(pair.push(at(0), name)));
    pair.take_all(at(0));
    let before = digest(&pair.master);
    pair.master.advance(at(5 * WINDOW), usize::MAX);
    assert_eq!((pair.master.known(at(5 * WINDOW)), digest(&pair.master)), (0, before));
    assert_eq!(digest(&reload(&pair.master)), digest(&pair.replica));
    // The next effect forgets them, wherever it is applied.
    pair.push(at(5 * WINDOW), b"other");
    assert_ne!(digest(&pair.master), digest(&Pair::new(WINDOW).master));
    pair.take_all(at(5 * WINDOW));
    assert_eq!(pair.master.known(at(5 * WINDOW)), 1);
}

#[test]
fn a_longer_window_brings_no_forgotten_id_back() {
    let mut pair = Pair::new(WINDOW);
    let names = names(10_000);
    names.iter().for_each(|name| assert!(pair.push(at(0), name)));
    assert!(pair.push(at(0), b"held"));
    let held = NewMessage {
        name: Some(b"held"),
        due: Some(dq_queue::Due::After(DurationMs::new(9_000))),
        ..NewMessage::default()
    };
    let replaced = pair.master.push(at(0), &mut pair.floor, &NewMessage { on_duplicate: OnDuplicate::Replace, ..held });
    let Pushed::Added { image, .. } = replaced else { panic!("{replaced:?}") };
    pair.send(at(0), Effect::Push(None, vec![image]));
    pair.take_all(at(1));
    assert_eq!(pair.master.known(at(WINDOW - 1)), 10_000);
    pair.alter(at(3 * WINDOW), 100 * WINDOW);
    assert_eq!(pair.master.known(at(3 * WINDOW)), 0);
    assert!(!pair.is_known(at(3 * WINDOW), &names[7]));
    assert_eq!(reload(&pair.master).known(at(3 * WINDOW)), 0);
    // Ids that are still held count.
    let (sequence, _) = pair.master.cancel(at(3 * WINDOW), &Id::Named(b"held")).unwrap();
    pair.send(at(3 * WINDOW), Effect::Cancel(vec![sequence], Vec::new()));
    assert!(pair.push(at(3 * WINDOW), b"held") && pair.push(at(3 * WINDOW), b"order-8"));
    pair.take_all(at(4 * WINDOW));
    assert!(pair.is_known(at(103 * WINDOW - 1), b"order-8") && !pair.is_known(at(103 * WINDOW), b"order-8"));
    // The timer frees the memory of the others in bounded steps.
    let (taken, mut steps) = (pair.master.heap_bytes(), 0);
    while !pair.master.advance(at(4 * WINDOW), 64).done {
        assert!(pair.master.next_wake().is_some_and(|wake| wake <= at(4 * WINDOW)));
        steps += 1;
    }
    assert!(steps > 100 && pair.master.heap_bytes() < taken / 10, "{steps} steps");
    assert_eq!(pair.master.check(), Ok(()));
    assert_eq!(digest(&pair.master), digest(&pair.replica), "however much memory each has freed");
}

#[test]
fn an_id_whose_message_was_held_for_long_counts_under_a_longer_window() {
    let mut pair = Pair::new(WINDOW);
    names(5_000).iter().for_each(|name| assert!(pair.push(at(5), name)));
    pair.take_all(at(5));
    assert!(pair.push(at(6), b"held"));
    pair.alter(at(2 * WINDOW), 50 * WINDOW);
    pair.take_all(at(2 * WINDOW));
    assert!(pair.is_known(at(6 + 50 * WINDOW - 1), b"held") && !pair.is_known(at(6 + 50 * WINDOW), b"held"));
    assert_eq!(pair.master.known(at(3 * WINDOW)), 1);
    pair.master.advance(at(3 * WINDOW), usize::MAX);
    assert_eq!(pair.master.known(at(3 * WINDOW)), 1);
}

#[test]
fn a_shorter_window_applies_at_once_and_none_forgets_all() {
    let mut pair = Pair::new(50 * WINDOW);
    assert!(pair.push(at(0), b"old") && pair.push(at(2_000), b"young"));
    pair.take_all(at(2_000));
    pair.alter(at(2_500), WINDOW);
    assert!(!pair.is_known(at(2_500), b"old") && pair.is_known(at(2_500), b"young"));
    pair.alter(at(2_500), 50 * WINDOW);
    assert!(!pair.is_known(at(2_500), b"old"), "what was forgotten stays forgotten");
    pair.alter(at(2_500), 0);
    pair.alter(at(2_500), 50 * WINDOW);
    assert_eq!(pair.master.known(at(2_500)), 0);
    assert!(pair.push(at(2_500), b"young"));
}

#[test]
fn a_window_is_exact_although_the_clock_was_set_back() {
    let mut ahead = Pair::new(WINDOW);
    assert!(ahead.push(at(3_600_000), b"ahead"));
    // A restart, with a clock that was set right. Ids go on from the wrong time.
    let mut loader = Loader::default();
    let saved: Result<(), Refused> = ahead.master.save(|piece| loader.take(piece));
    saved.unwrap();
    let loaded = || reload(&ahead.master);
    let mut pair = Pair { master: loader.finish(at(0)).unwrap(), replica: loaded(), floor: ahead.floor };
    assert!(pair.push(at(0), b"a"));
    let created = pair.master.images().last().unwrap().record.sequence.created();
    assert_eq!(created, at(3_600_000), "ids never step back");
    pair.master = reload(&pair.master);
    let id = Target::parse(b"a").unwrap();
    let mut grants = Vec::new();
    pair.master.pop(at(5), &mut pair.floor, &Pop { count: 9, lease: Lease::Default }, &mut grants, |_| ());
    pair.send(at(5), Effect::Deliver { grants, acked: Vec::new(), consumer: None });
    let acked = pair.master.ack(at(6), &id).unwrap();
    pair.send(at(6), Effect::Ack(vec![acked.sequence]));
    assert!(!pair.push(at(WINDOW - 1), b"a"));
    assert!(pair.push(at(WINDOW), b"a"));
}

#[test]
fn a_window_that_ended_by_a_wrong_clock_is_over() {
    let mut pair = Pair::new(WINDOW);
    names(2_000).iter().for_each(|name| assert!(pair.push(at(0), name)));
    pair.take_all(at(0));
    // A clock that is an hour ahead decides something, and another server takes over.
    assert!(pair.push(at(3_600_000), b"ahead"));
    pair.master = reload(&pair.replica);
    assert_eq!(pair.master.known(at(10)), 0, "what an effect has forgotten stays forgotten");
    assert!(pair.push(at(10), b"order-1") && pair.push(at(10), b"new"));
    pair.take_all(at(11));
    assert!(pair.is_known(at(12), b"new") && pair.is_known(at(12), b"order-1") && !pair.is_known(at(12), b"order-2"));
    assert_eq!(pair.replica.check(), Ok(()));
}

/// Pushes a message in place of another, and returns its due time.
fn debounced(pair: &mut Pair, now: u64, delay: u64, maxwait: Option<u64>) -> UnixMs {
    let message = NewMessage {
        name: Some(b"m"),
        due: Some(dq_queue::Due::After(DurationMs::new(delay))),
        on_duplicate: OnDuplicate::Replace,
        maxwait: maxwait.map(DurationMs::new),
        ..NewMessage::default()
    };
    let pushed = pair.master.push(at(now), &mut pair.floor, &message);
    let Pushed::Added { image, .. } = pushed else { panic!("{pushed:?}") };
    let due = image.record.due;
    pair.send(at(now), Effect::Push(None, vec![image]));
    due
}

#[test]
fn a_chain_of_replacements_is_due_after_its_longest_wait() {
    let mut pair = Pair::new(0);
    assert_eq!(debounced(&mut pair, 0, 50, Some(100)), at(50));
    assert_eq!(debounced(&mut pair, 40, 50, Some(100)), at(90));
    assert_eq!(debounced(&mut pair, 80, 50, Some(100)), at(100));
    assert_eq!(debounced(&mut pair, 90, 500, None), at(590), "a plain replacement belongs to the chain");
    pair.master = reload(&pair.master);
    assert_eq!(debounced(&mut pair, 200, 50, Some(100)), at(100), "ready at once");
    assert_eq!(debounced(&mut pair, 200, 50, Some(1_000)), at(250));
}

#[test]
fn a_delivery_or_death_ends_a_chain_of_replacements() {
    type End = fn(&mut Pair, UnixMs);
    let deliver: End = |pair, now| {
        let (pop, mut grants) = (Pop { count: 1, lease: Lease::Default }, Vec::new());
        pair.master.pop(now, &mut pair.floor, &pop, &mut grants, |_| ());
        pair.send(now, Effect::Deliver { grants, acked: Vec::new(), consumer: None });
    };
    let give_back: End = |pair, now| {
        let nack = dq_queue::Nack { verdict: dq_queue::Verdict::NotCounted, ..Default::default() };
        let nacked = pair.master.nack(now, &Target::parse(b"m").unwrap(), &nack).unwrap();
        assert_eq!(nacked.attempts, 0);
        pair.send(
            now,
            Effect::Nack { sequence: nacked.sequence, fate: nacked.fate, attempts: 0, error: None, checkpoint: None },
        );
    };
    let bury: End = |pair, now| {
        let buried = pair.master.bury(now, &Id::Named(b"m"), None).unwrap();
        pair.send(now, Effect::Bury(buried.sequence, None));
    };
    let redrive: End = |pair, now| {
        let redriven =
            pair.master.redrive(now, &dq_queue::Which::Oldest(dq_queue::Oldest::first(1)), dq_queue::Due::Now);
        pair.send(now, Effect::Redrive(redriven.spans, redriven.due));
    };
    for ends in [&[deliver][..], &[deliver, give_back], &[bury], &[bury, redrive]] {
        let mut pair = Pair::new(0);
        debounced(&mut pair, 0, 0, Some(100));
        assert_eq!(debounced(&mut pair, 90, 0, Some(100)), at(90));
        ends.iter().for_each(|end| end(&mut pair, at(95)));
        pair.master = reload(&pair.master);
        assert_eq!(debounced(&mut pair, 200, 500, Some(100)), at(300), "the chain begins with this push");
        assert_eq!(debounced(&mut pair, 250, 500, Some(100)), at(300));
    }
}

//! More leases and TTLs end at once than one call may process: answers stay exact for single messages, every server
//! ends with the same messages, and the rest is processed step by step.

use crate::exercise::digest;
use dq_queue::forward::Targets;
use dq_queue::id::{Floor, Id, Sequence, Target};
use dq_queue::settings::{Retries, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{
    Due, Effect, Grant, Lease, Message, Nack, NewMessage, Oldest, Pop, Purged, Queue, Redriven, Shown, Spans, Stamped,
    StateKind, States, ToPurge, Which,
};

const MESSAGES: usize = 10_000;
const START: UnixMs = UnixMs::new(1_760_000_000_000);

fn at(ms: u64) -> UnixMs {
    START.after(DurationMs::new(ms))
}

/// A master and a replica that receives its effects as bytes. They have no timer; a test advances them itself.
struct Pair {
    master: Queue,
    replica: Queue,
    floor: Floor,
}

impl Pair {
    fn new(settings: Settings) -> Pair {
        let queue = || Queue::new(settings);
        Pair { master: queue(), replica: queue(), floor: Floor::default() }
    }

    fn send(&mut self, now: UnixMs, effect: Effect<'_>) {
        let mut bytes = Vec::new();
        Stamped { now, effect }.encode(&mut bytes).unwrap();
        self.replica.apply(&Stamped::decode(&bytes).unwrap()).unwrap();
    }

    /// Pushes messages with three priorities. Those with an even number get the TTL `ttl`.
    fn push(&mut self, now: UnixMs, count: usize, ttl: Option<DurationMs>) {
        let names: Vec<String> = (0..count).map(|nth| format!("{}-{nth}", now.as_ms() % 1_000_000)).collect();
        for (nth, name) in names.iter().enumerate() {
            let message = NewMessage {
                name: Some(name.as_bytes()),
                priority: (nth % 3) as i8,
                ttl: ttl.filter(|_| nth % 2 == 0),
                ..NewMessage::default()
            };
            let pushed = self.master.push(now, &mut self.floor, &message);
            let dq_queue::Pushed::Added { image, .. } = pushed else { panic!("{pushed:?}") };
            let mut bytes = Vec::new();
            Stamped { now, effect: Effect::Push(None, vec![image]) }.encode(&mut bytes).unwrap();
            self.replica.apply(&Stamped::decode(&bytes).unwrap()).unwrap();
        }
    }

    /// A message that is not done.
    fn held(&self, now: UnixMs, sequence: Sequence) -> Message<'_> {
        match self.master.show(now, sequence) {
            Some(Shown::Message(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    fn pop(&mut self, now: UnixMs, count: usize, lease: u64) -> Vec<Grant> {
        let pop = Pop { count, lease: Lease::For(DurationMs::new(lease)) };
        let mut grants = Vec::new();
        self.master.pop(now, &mut self.floor, &pop, &mut grants, |_| ());
        self.send(now, Effect::Deliver { grants: grants.clone(), acked: Vec::new(), consumer: None });
        grants
    }

    /// Checks that both hold the same messages and, after both have processed the time, the same counts and totals.
    fn assert_same(&mut self, now: UnixMs) {
        assert_eq!((self.master.check(), self.replica.check()), (Ok(()), Ok(())));
        assert_eq!(digest(&self.master), digest(&self.replica));
        assert!(self.master.advance(now, usize::MAX).done);
        assert!(self.replica.advance_view(now, usize::MAX).done);
        assert_eq!(self.master.counts(), self.replica.counts());
        assert_eq!(self.master.totals(), self.replica.totals());
    }
}

/// All messages are in flight, and all leases end at the same instant, 1,000.
fn all_leases_ended(settings: Settings) -> (Pair, Vec<Grant>) {
    let mut pair = Pair::new(settings);
    pair.push(at(0), MESSAGES, None);
    let grants = pair.pop(at(0), usize::MAX, 1_000);
    assert_eq!(grants.len(), MESSAGES);
    (pair, grants)
}

#[test]
fn a_pop_gets_what_was_processed_and_the_timer_the_rest() {
    let (mut pair, _) = all_leases_ended(Settings::default());
    let first = pair.pop(at(1_000), usize::MAX, 500);
    assert!(!first.is_empty() && first.len() < MESSAGES, "{}", first.len());
    let mut delivered = first.len();
    while delivered < MESSAGES {
        assert!(!pair.master.advance(at(1_001), 100).done || delivered + 100 >= MESSAGES);
        delivered += pair.pop(at(1_001), usize::MAX, 500).len();
    }
    pair.assert_same(at(1_001));
    assert_eq!(pair.master.counts().inflight, MESSAGES as u64);
    assert_eq!(pair.master.totals().lease_expired, MESSAGES as u64);
}

#[test]
fn a_blocked_clients_turn_processes_nothing() {
    let (mut pair, _) = all_leases_ended(Settings::default());
    let pop = Pop { count: 10, lease: Lease::Default };
    assert_eq!(pair.master.deliverable_as_viewed(at(1_000), &pop), 0);
    assert_eq!(pair.master.totals().lease_expired, 0);
    pair.master.advance(at(1_000), 4);
    assert_eq!(pair.master.deliverable_as_viewed(at(1_000), &pop), 4);
}

#[test]
fn what_is_said_of_one_message_is_exact() {
    let (mut pair, grants) = all_leases_ended(Settings { retries: Retries::new(0).unwrap(), ..Settings::default() });
    let last = grants.last().unwrap();
    let name = pair.held(at(999), last.sequence).name.unwrap().to_vec();
    let id = Id::parse(&name).unwrap();
    assert_eq!(pair.master.get(at(999), &id).unwrap().state.kind(), StateKind::InFlight);
    assert_eq!(pair.master.get(at(1_000), &id).unwrap().state.kind(), StateKind::Dead);
    assert!(pair.master.nack(at(1_000), &Target::parse(&name).unwrap(), &Nack::default()).is_none());
    assert_eq!(pair.master.cancel(at(1_000), &id), Some((last.sequence, StateKind::Dead)));
    pair.send(at(1_000), Effect::Cancel(vec![last.sequence], Vec::new()));
    pair.assert_same(at(1_000));
}

#[test]
fn an_expired_message_is_never_delivered() {
    let mut pair = Pair::new(Settings::default());
    pair.push(at(0), MESSAGES, Some(DurationMs::new(1_000)));
    let mut delivered = 0;
    for _ in 0..MESSAGES {
        let grants = pair.pop(at(1_000), 7, 500);
        for grant in &grants {
            assert!(pair.held(at(1_000), grant.sequence).record.ttl.is_none());
        }
        delivered += grants.len();
        pair.master.advance(at(1_000), 5);
    }
    assert_eq!(delivered, MESSAGES / 2);
    pair.assert_same(at(1_000));
    assert_eq!(pair.master.totals().expired, MESSAGES as u64 / 2);
}

#[test]
fn replicas_take_what_their_master_took() {
    let no_retries = Settings { retries: Retries::new(0).unwrap(), ..Settings::default() };
    for settings in [Settings::default(), no_retries] {
        for (nth, states) in [
            States::only(StateKind::Ready),
            States::only(StateKind::Dead),
            States::only(StateKind::InFlight),
            States::only(StateKind::Dead).and(States::only(StateKind::Ready)),
            States::ALL,
        ]
        .into_iter()
        .enumerate()
        {
            for count in [None, Some(300), Some(5_000)] {
                let (mut pair, _) = all_leases_ended(settings);
                // The replica has processed more or less than its master.
                pair.replica.advance_view(at(1_000), nth * 2_500);
                let purged = pair.master.purge(at(1_000), &ToPurge { count, ..ToPurge::all(states) });
                let Purged { count: purged, messages, done } = purged;
                let left = pair.master.images().count();
                assert_eq!(left + purged, MESSAGES);
                pair.send(at(1_000), Effect::Purge { messages, done });
                pair.assert_same(at(1_000));
            }
        }
        let (mut pair, _) = all_leases_ended(settings);
        let Redriven { count, spans, due } =
            pair.master.redrive(at(1_000), &Which::Oldest(Oldest::first(usize::MAX)), Due::Now);
        assert_eq!(count > 0, settings.retries == no_retries.retries);
        pair.send(at(1_000), Effect::Redrive(spans, due));
        pair.assert_same(at(1_000));
    }
}

#[test]
fn dead_messages_over_the_limit_are_dropped_step_by_step() {
    let settings = Settings { retries: Retries::new(0).unwrap(), ..Settings::default() };
    let (mut pair, grants) = all_leases_ended(settings);
    let kept = Settings { deadlen: Some(10), ..settings };
    pair.master.alter(at(1_000), kept);
    pair.send(at(1_000), Effect::Alter(kept, Targets::default()));
    let dropped = pair.master.trim_now(at(1_000)).dead;
    assert!(pair.master.images().count() > MESSAGES / 2, "a bounded number at once");
    pair.send(at(1_000), Effect::Trim(dropped));
    let mut steps = 0;
    while !pair.master.advance(at(1_001), 64).done || pair.master.has_excess() {
        let dropped = pair.master.trim(64).dead;
        pair.send(at(1_001), Effect::Trim(dropped));
        steps += 1;
    }
    assert!(steps > 50, "{steps}");
    let newest: Vec<Sequence> = grants
        .iter()
        .map(|grant| grant.sequence)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .rev()
        .take(10)
        .collect();
    assert_eq!(pair.master.peek(at(1_001), StateKind::Dead, 100), newest);
    pair.assert_same(at(1_001));
}

#[test]
fn large_payloads_are_dropped_a_few_at_a_time() {
    let mut queue = Queue::new(Settings { deadlen: Some(0), ttl: DurationMs::new(5), ..Settings::default() });
    let payload = vec![7; 1 << 20];
    let mut floor = Floor::default();
    for _ in 0..20 {
        queue.push(at(0), &mut floor, &NewMessage { payload: &payload, ..NewMessage::default() });
    }
    queue.advance(at(5), usize::MAX);
    queue.trim(64);
    assert_eq!(queue.images().count(), 19, "a mebibyte is more than 64 steps");
    queue.trim(300);
    assert_eq!(queue.images().count(), 16);
}

#[test]
fn a_dead_message_over_the_limit_does_not_hold_its_id() {
    let settings = Settings { retries: Retries::new(0).unwrap(), ..Settings::default() };
    let (mut pair, _) = all_leases_ended(settings);
    pair.master.advance(at(1_000), usize::MAX);
    pair.master.alter(at(1_000), Settings { deadlen: Some(10), ..settings });
    let name =
        |pair: &Pair, nth: usize| pair.master.images().nth(nth).map(|image| image.name.unwrap().to_vec()).unwrap();
    let (excess, kept) = (name(&pair, MESSAGES / 2), name(&pair, MESSAGES - 1));
    assert!(pair.master.drop_excess(at(1_000), &kept).is_none());
    let dropped = pair.master.drop_excess(at(1_000), &excess).unwrap().dead;
    assert_eq!(dropped.iter().count(), 1);
    assert_ne!(dropped, Spans::default());
    assert!(pair.master.get(at(1_000), &Id::parse(&excess).unwrap()).is_none());
    assert_eq!(pair.master.images().count(), MESSAGES - 1);
}

#[test]
fn done_messages_end_at_their_time_and_are_dropped_in_steps() {
    let retain = DurationMs::new(500);
    let mut pair = Pair::new(Settings { retain, dedupe: DurationMs::new(9_000), ..Settings::default() });
    pair.push(at(0), MESSAGES, None);
    let mut grants = Vec::new();
    let everything = Pop { count: usize::MAX, lease: Lease::NoAck };
    pair.master.pop(at(10), &mut pair.floor, &everything, &mut grants, |_| ());
    pair.send(at(10), Effect::Take(grants.iter().map(|grant| grant.sequence).collect()));
    pair.assert_same(at(10));
    let name = pair.master.done().last().unwrap().name.unwrap().to_vec();
    let id = Id::parse(&name).unwrap();
    assert_eq!((pair.master.counts_at(at(509)).done, pair.master.known(at(509))), (MESSAGES as u64, 0));
    assert!(pair.master.get_done(at(509), &id).is_some() && pair.replica.get_done(at(509), &id).is_some());
    // All of them are gone at once, although none was dropped yet.
    assert!(pair.master.get_done(at(510), &id).is_none() && pair.replica.get_done(at(510), &id).is_none());
    assert_eq!(pair.master.counts_at(at(510)).done, 0);
    assert_eq!(pair.master.peek(at(510), StateKind::Done, 9), []);
    let again = NewMessage { name: Some(&name), ..NewMessage::default() };
    let mut copy = pair.master.duplicate().unwrap();
    let pushed = copy.push(at(510), &mut pair.floor, &again);
    assert_eq!(pushed, dq_queue::Pushed::Duplicate, "the window outlasts the message");
    let mut steps = 0;
    pair.master.notice(at(510));
    while pair.master.has_excess() {
        let dropped = pair.master.trim(64).done;
        assert!(dropped.iter().count() <= 64);
        pair.send(at(510), Effect::TrimDone(dropped));
        steps += 1;
    }
    assert_eq!((steps, pair.master.known(at(510))), (MESSAGES.div_ceil(64), MESSAGES));
    pair.assert_same(at(510));
}

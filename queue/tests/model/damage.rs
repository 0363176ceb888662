//! Input that no queue wrote: damaged bytes, and forged effects that are well-formed.
//!
//! Refused input changes nothing. Accepted input results in a queue that works: it can be saved and loaded, survives
//! every operation, and can be drained. Nothing panics (the debug build also checks sums) or hangs.

use crate::exercise::{apply, at, digest, follow_up, lively, pop, reload, survive, NOW};
use crate::history::{headers, targets, HEADERS};
use dq_queue::backoff::{Backoff, Percent};
use dq_queue::forward::{Forward, Targets};
use dq_queue::id::{Floor, Receipt, Sequence};
use dq_queue::rate::{Rate, RateLog};
use dq_queue::rule::Rule;
use dq_queue::settings::{GroupOrder, Retries, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::wire::{Loader, VERSION};
use dq_queue::{
    Claim, Declaration, DoneMessage, Effect, Ended, Errors, Failure, Fate, Flow, FollowUp, Grant, GroupGate, Image,
    KnownId, Lease, NewMessage, Next, Origin, Pause, Phase, Queue, QueueHeader, Reason, Record, Recurring, Refused,
    RunEnd, Series, Span, Spans, Stamped, Totals, Ttl, TurnState,
};
use proptest::prelude::*;
use proptest::sample::Index;

fn encoded(effect: Effect<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Stamped { now: at(NOW), effect }.encode(&mut bytes).unwrap();
    bytes
}

/// A change to some bytes.
#[derive(Clone, Debug)]
enum Damage {
    Set(usize, u8),
    Flip(usize, u8),
    Cut(usize),
    Insert(usize, u8),
    Remove(usize),
    /// Overwrites bytes with a number of the largest size.
    Enlarge(usize),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let where_ = any::<prop::sample::Index>().prop_map(|index| index.index(1 << 20));
    let one = (where_, any::<u8>(), 0..12).prop_map(|(place, byte, kind)| match kind {
        0..=3 => Damage::Set(place, byte),
        4..=7 => Damage::Flip(place, byte % 8),
        8 => Damage::Cut(place),
        9 => Damage::Insert(place, byte),
        10 => Damage::Remove(place),
        _ => Damage::Enlarge(place),
    });
    prop::collection::vec(one, 1..4)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        let len = bytes.len().max(1);
        match *damage {
            Damage::Set(place, byte) => bytes.iter_mut().skip(place % len).take(1).for_each(|held| *held = byte),
            Damage::Flip(place, bit) => bytes.iter_mut().skip(place % len).take(1).for_each(|held| *held ^= 1 << bit),
            Damage::Cut(place) => bytes.truncate(place % len),
            Damage::Insert(place, byte) => bytes.insert(place % len % (bytes.len() + 1), byte),
            Damage::Remove(place) if !bytes.is_empty() => drop(bytes.remove(place % len)),
            Damage::Remove(_) => {}
            Damage::Enlarge(place) => {
                let place = place % len % (bytes.len() + 1);
                bytes.splice(place..(place + 1).min(bytes.len()), [0xcf].into_iter().chain([0xff; 8]));
            }
        }
    }
    bytes
}

/// One effect of every kind.
pub fn every_effect(queue: &Queue) -> Vec<Vec<u8>> {
    let sequences: Vec<Sequence> = queue.images().map(|image| image.record.sequence).collect();
    let (last, receipt) = queue.last_given();
    let next = Sequence(last.0 + 1);
    let record = Record { sequence: next, attempts: 0, phase: Phase::Waiting, ..queue.images().next().unwrap().record };
    let image = Image {
        record,
        name: Some(b"new"),
        payload: b"payload",
        errors: None,
        group: Some(b"another"),
        origin: Some(Origin { accepted: at(NOW - 1), chain: Some(at(NOW - 2)) }),
        retain: Some(DurationMs::new(70)),
        recurring: None,
        headers: Some(headers(1)),
        checkpoint: None,
        consumer: None,
        batch: Some(b"batch"),
    };
    let kept =
        queue.images().find(|image| matches!(image.record.phase, Phase::Successor { .. })).unwrap().record.sequence;
    let phase = Phase::Leased { deadline: at(NOW + 8), receipt: Receipt(receipt.0 - 1) };
    let leaving = Image {
        record: Record { attempts: 1, phase, ..record },
        name: None,
        origin: None,
        batch: None,
        ..image.clone()
    };
    let later = Phase::Successor { deadline: at(NOW + 9), receipt };
    let later = Image { record: Record { phase: later, ..record }, name: Some(b"every-70"), ..image.clone() };
    let died = Phase::Dead { died: at(NOW), reason: Reason::Retries };
    let dead = Image {
        record: Record { attempts: 3, phase: died, ..record },
        errors: Errors::parse(&ERRORS),
        checkpoint: Some(b"half"),
        ..image.clone()
    };
    let grant = |sequence| Grant { sequence, attempt: 2, deadline: at(NOW + 9), receipt: Receipt(receipt.0 + 1) };
    let images: Vec<Image<'_>> = queue.images().collect();
    let span = |(first, last): &(usize, usize)| Span { first: sequences[*first], last: sequences[*last] };
    let spans = |ends: &[(usize, usize)]| Spans::new(ends.iter().map(span).collect()).unwrap();
    let named = |name: &[u8]| images.iter().find(|image| image.name == Some(name)).unwrap();
    let (waiting, running) = (named(b"every-50").record.sequence, named(b"every-70").record.sequence);
    let scheduled =
        Image { record: Record { sequence: next, ..named(b"every-50").record }, ..named(b"every-50").clone() };
    let failure = Failure { died: at(NOW), reason: Reason::Rejected, attempts: 1, copy: Some(next) };
    let end = |sequence, failure| RunEnd { sequence, failure, next: Next::At(at(NOW + 50)) };
    let failed = RunEnd { next: Next::Renewed(at(NOW + 7), Sequence(next.0 + 1)), ..end(running, Some(failure)) };
    let done = queue.done().next().unwrap();
    let flying = images.iter().find(|image| image.consumer.is_some()).unwrap().record.sequence;
    vec![
        encoded(Effect::Push(Some(*queue.settings()), vec![image])),
        encoded(Effect::Push(None, vec![later])),
        encoded(Effect::Push(None, vec![dead])),
        encoded(Effect::Deliver { grants: vec![grant(sequences[0])], acked: Vec::new(), consumer: None }),
        encoded(Effect::Deliver { grants: vec![grant(sequences[0])], acked: vec![sequences[7]], consumer: None }),
        encoded(Effect::Deliver { grants: vec![grant(sequences[2])], acked: Vec::new(), consumer: Some(b"worker-2") }),
        encoded(Effect::Deliver {
            grants: sequences.iter().copied().map(grant).collect(),
            acked: Vec::new(),
            consumer: None,
        }),
        encoded(Effect::Deliver {
            grants: sequences.iter().copied().map(grant).collect(),
            acked: sequences.clone(),
            consumer: None,
        }),
        encoded(Effect::Take(sequences.clone())),
        encoded(Effect::Ack(vec![sequences[7]])),
        encoded(Effect::Ack(sequences.clone())),
        encoded(Effect::Nack {
            sequence: sequences[2],
            fate: Fate::Due(at(NOW + 7)),
            attempts: 1,
            error: Some(b"why"),
            checkpoint: Some(b"half"),
        }),
        encoded(Effect::Nack {
            sequence: sequences[3],
            fate: Fate::Dead { died: at(NOW), reason: Reason::Rejected },
            attempts: 1,
            error: None,
            checkpoint: None,
        }),
        encoded(Effect::Extend {
            those: vec![(sequences[4], at(NOW + 77)), (sequences[5], at(NOW))].into(),
            checkpoint: Some(b"80 %"),
        }),
        encoded(Effect::Trim(Spans::up_to(sequences[3]))),
        encoded(Effect::Batch {
            settings: None,
            name: b"batch",
            last,
            then: Some(Box::new(FollowUp {
                name: Some(b"then"[..].into()),
                delay: Some(DurationMs::new(5)),
                retries: Retries::new(2),
                lease: Some(DurationMs::new(9)),
                group: Some(b"group"[..].into()),
                headers: Some(headers(1).into()),
                ..follow_up(b"payload")
            })),
        }),
        encoded(Effect::Batch { settings: None, name: b"batch", last, then: None }),
        encoded(Effect::Release { ended: vec![running, kept], given_back: vec![flying] }),
        encoded(Effect::Cancel(sequences.clone(), vec![b"gone"])),
        encoded(Effect::Reschedule { sequence: sequences[5], due: Some(at(NOW + 5)), priority: Some(-3) }),
        encoded(Effect::Promote(at(NOW + 5), spans(&[(1, 3), (5, 5)]))),
        encoded(Effect::Bury(sequences[1], Some(b"why"))),
        encoded(Effect::Pause { pause: Pause::Until(at(NOW + 8)), flow: Flow::Out, group: None }),
        encoded(Effect::Pause { pause: Pause::Until(at(NOW + 9)), flow: Flow::Both, group: None }),
        encoded(Effect::Redrive(Spans::up_to(last), at(NOW + 6))),
        encoded(Effect::Purge { messages: spans(&[(0, 2), (4, 5)]), done: Spans::up_to(last) }),
        encoded(Effect::Complete { sequence: sequences[4], until: Some(at(NOW + 70)), result: Some(b"result") }),
        encoded(Effect::TrimDone(Spans::up_to(last))),
        encoded(Effect::Done(vec![DoneMessage { name: None, sequence: Sequence(last.0 - 1), ..done }])),
        encoded(Effect::Create(*queue.settings(), Targets::default())),
        encoded(Effect::Alter(*queue.settings(), Targets::default())),
        encoded(Effect::PullBack),
        encoded(Effect::Begin(queue.header())),
        encoded(Effect::Continue(images)),
        encoded(Effect::Leaving(vec![(kept, leaving)])),
        encoded(Effect::Recall(vec![KnownId { name: b"recalled", accepted: at(NOW) }])),
        encoded(Effect::Turns(TurnState {
            last: NOW << 21,
            ungrouped: (NOW << 20, None),
            groups: vec![(b"group", NOW << 20 | 7, Some(Claim { since: at(NOW - 9), until: at(NOW) }))],
        })),
        encoded(Effect::Pause { pause: Pause::Until(at(NOW + 9)), flow: Flow::Out, group: Some(b"group") }),
        encoded(Effect::Gates(vec![GroupGate {
            name: b"group",
            pause: Pause::Until(at(NOW + 9)),
            log: RateLog::default(),
        }])),
        encoded(Effect::Schedule(None, scheduled)),
        encoded(Effect::Declare(waiting, Some(Box::new(declaration(50))))),
        encoded(Effect::Declare(running, None)),
        encoded(Effect::EndRuns {
            how: Ended::Acked,
            others: sequences[2..4].to_vec(),
            ends: vec![end(waiting, None)],
        }),
        encoded(Effect::EndRuns { how: Ended::Completed, others: Vec::new(), ends: vec![end(waiting, None)] }),
        encoded(Effect::EndRuns { how: Ended::Taken, others: vec![sequences[2]], ends: vec![end(waiting, None)] }),
        encoded(Effect::EndRuns {
            how: Ended::Nacked { error: Some(b"why"), checkpoint: None },
            others: Vec::new(),
            ends: vec![failed],
        }),
        encoded(Effect::EndRuns {
            how: Ended::Buried(None),
            others: Vec::new(),
            ends: vec![end(waiting, Some(failure))],
        }),
        encoded(Effect::EndRuns {
            how: Ended::ByTime,
            others: Vec::new(),
            ends: vec![RunEnd { next: Next::Over, ..failed }],
        }),
        encoded(Effect::EndRuns { how: Ended::Forwarded, others: vec![sequences[2]], ends: vec![end(waiting, None)] }),
        encoded(Effect::DeadForward(spans(&[(1, 2), (4, 4)]))),
        encoded(Effect::Forward(sequences)),
        encoded(Effect::Create(*queue.settings(), forward(0, None))),
        encoded(Effect::Alter(*queue.settings(), forward(3, Some(6)))),
        encoded(Effect::Alter(*queue.settings(), forward(4, Some(2)))),
        encoded(Effect::Alter(*queue.settings(), forward(5, None))),
    ]
}

fn forward(due: usize, dead: Option<usize>) -> Targets {
    let of = |nth: usize| targets().into_iter().nth(nth).map(Box::new);
    Targets { due: of(due), dead: dead.and_then(of) }
}

fn declaration(every: u64) -> Declaration {
    Declaration {
        series: Series {
            rule: Rule::Every { every: DurationMs::new(every), offset: DurationMs::new(3) },
            until: Some(at(NOW.saturating_add(every))),
            times: Some(every),
        },
        first: Some(at(NOW + 1)),
        payload: b"declared".as_slice().into(),
        priority: 1,
        retries: Retries::UNLIMITED,
        lease: Some(DurationMs::new(every)),
        ttl: DurationMs::ZERO,
        group: (every % 2 == 0).then(|| b"declared".as_slice().into()),
        headers: (every % 3 == 0).then(|| headers(0).into()),
    }
}

/// Numbers at the limits of types and ranges.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..3,
        NOW - 100..NOW + 100,
        Just(UnixMs::MAX_AT),
        Just(UnixMs::MAX.as_ms() - 1),
        Just(UnixMs::MAX.as_ms()),
        Just(1 << 53),
        Just(u64::MAX - 1),
        Just(u64::MAX),
        any::<u64>(),
    ]
}

fn sequence() -> impl Strategy<Value = Named> {
    prop_oneof![
        4 => (0usize..20).prop_map(Named::Held),
        3 => (1u64..4).prop_map(Named::Next),
        1 => number().prop_map(Named::Any),
    ]
}

/// The sequence or receipt that a forged effect names.
#[derive(Clone, Copy, Debug)]
enum Named {
    Held(usize),
    Next(u64),
    Any(u64),
}

impl Named {
    fn sequence(self, queue: &Queue) -> Sequence {
        match self {
            Named::Held(nth) => queue.images().map(|image| image.record.sequence).nth(nth).unwrap_or(Sequence::ZERO),
            Named::Next(more) => Sequence(queue.last_given().0 .0.saturating_add(more)),
            Named::Any(number) => Sequence(number),
        }
    }

    fn receipt(self, queue: &Queue) -> Receipt {
        match self {
            Named::Held(_) => queue.last_given().1,
            Named::Next(more) => Receipt(queue.last_given().1 .0.saturating_add(more)),
            Named::Any(number) => Receipt(number),
        }
    }
}

#[derive(Clone, Debug)]
struct ForgedImage {
    sequence: Named,
    due: u64,
    priority: i8,
    retries: i32,
    lease: Option<u64>,
    ttl: Option<(u64, u64)>,
    attempts: u32,
    phase: (u8, u64, Named),
    name: Option<u8>,
    error: bool,
    accepted: Option<u64>,
    group: Option<u8>,
    size: usize,
    headers: Option<usize>,
}

/// The message, when it failed and its copy, when it is due next and its new sequence.
type ForgedEnd = (Named, Option<(u64, Option<Named>)>, Option<(u64, Option<Named>)>);

#[derive(Clone, Debug)]
enum Forged {
    Push(Vec<ForgedImage>),
    Continue(Vec<ForgedImage>),
    Deliver(Vec<(Named, u32, u64, Named)>, Vec<Named>),
    Take(Vec<Named>),
    Forward(Vec<Named>),
    DeadForward(Vec<Named>),
    Ack(Vec<Named>),
    Complete(Named, Option<u64>, bool),
    TrimDone(Vec<Named>),
    Keep(Vec<(Named, u64, u64, Option<u8>)>),
    Nack(Named, Option<u64>, u64),
    Release(Vec<Named>, Vec<Named>),
    Batch(usize, u64, Option<u64>),
    Extend(Named, u64),
    Trim(Vec<Named>),
    Cancel(Vec<Named>),
    Recall(Vec<(usize, u64)>),
    Turns(u64, u64, u64),
    Gates(u64, u64, u64),
    Reschedule(Named, u64),
    Redrive(Vec<Named>, u64),
    Purge(Vec<Named>),
    Alter([u64; 7], Option<u64>),
    Pause(u64),
    Promote(u64, Vec<Named>),
    Bury(Named),
    Begin {
        settings: [u64; 7],
        paused: bool,
        last: [u64; 2],
        totals: u64,
        viewed: u64,
    },
    Schedule(ForgedImage, u64),
    Declare(Named, Option<u64>),
    EndRuns(u8, Vec<Named>, Vec<ForgedEnd>),
    /// An ordinary call between forged effects.
    Advance(usize),
    Pop(usize),
    Reload,
}

fn image() -> impl Strategy<Value = ForgedImage> {
    let phase = (prop_oneof![3 => Just(0u8), 1 => 1u8..6], number(), sequence());
    (
        (sequence(), number(), any::<i8>(), prop_oneof![-1i32..2, Just(i32::MAX)]),
        prop::option::of(number()),
        prop::option::of((number(), number())),
        prop_oneof![4 => Just(0u32), 1 => Just(1), 1 => Just(u32::MAX)],
        phase,
        prop::option::weighted(0.3, 0u8..4),
        any::<bool>(),
        (
            prop_oneof![9 => 0usize..20, 1 => Just(9_000)],
            prop::option::weighted(0.2, number()),
            prop::option::weighted(0.5, 0u8..3),
            prop::option::weighted(0.3, 0..HEADERS.len()),
        ),
    )
        .prop_map(
            |(
                (sequence, due, priority, retries),
                lease,
                ttl,
                attempts,
                phase,
                name,
                error,
                (size, accepted, group, headers),
            )| {
                ForgedImage {
                    sequence,
                    due,
                    priority,
                    retries,
                    lease,
                    ttl,
                    attempts,
                    phase,
                    name,
                    error,
                    accepted,
                    group,
                    size,
                    headers,
                }
            },
        )
}

fn forged() -> impl Strategy<Value = Forged> {
    let few = || prop::collection::vec(sequence(), 0..4);
    let part = || prop::option::of((number(), prop::option::of(sequence())));
    let run_end = (sequence(), part(), part());
    prop_oneof![
        4 => prop::collection::vec(image(), 1..4).prop_map(Forged::Push),
        3 => prop::collection::vec(image(), 1..4).prop_map(Forged::Continue),
        3 => (
                prop::collection::vec((sequence(), 0u32..3, number(), sequence()), 1..4),
                prop::collection::vec(sequence(), 0..3),
            )
            .prop_map(|(grants, acked)| Forged::Deliver(grants, acked)),
        1 => few().prop_map(Forged::Take),
        1 => few().prop_map(Forged::Forward),
        1 => few().prop_map(Forged::DeadForward),
        1 => few().prop_map(Forged::Ack),
        2 => (sequence(), prop::option::of(number()), any::<bool>())
            .prop_map(|(of, until, result)| Forged::Complete(of, until, result)),
        1 => few().prop_map(Forged::TrimDone),
        3 => prop::collection::vec((sequence(), number(), number(), prop::option::of(0u8..4)), 1..4)
            .prop_map(Forged::Keep),
        3 => (sequence(), prop::option::of(number()), number()).prop_map(|(of, due, died)| Forged::Nack(of, due, died)),
        2 => (sequence(), number()).prop_map(|(of, deadline)| Forged::Extend(of, deadline)),
        1 => few().prop_map(Forged::Trim),
        1 => few().prop_map(Forged::Cancel),
        2 => prop::collection::vec((0..FORGED_NAMES.len(), number()), 1..3).prop_map(Forged::Recall),
        2 => (number(), number(), number()).prop_map(|(last, none, turn)| Forged::Turns(last, none, turn)),
        2 => (number(), number(), number()).prop_map(|(end, begun, count)| Forged::Gates(end, begun, count)),
        2 => (sequence(), number()).prop_map(|(of, due)| Forged::Reschedule(of, due)),
        1 => (few(), number()).prop_map(|(of, due)| Forged::Redrive(of, due)),
        1 => few().prop_map(Forged::Purge),
        1 => (prop::array::uniform7(number()), prop::option::of(number()))
            .prop_map(|(of, limit)| Forged::Alter(of, limit)),
        1 => number().prop_map(Forged::Pause),
        1 => (number(), prop::collection::vec(sequence(), 0..4)).prop_map(|(due, of)| Forged::Promote(due, of)),
        1 => sequence().prop_map(Forged::Bury),
        1 => (prop::array::uniform7(number()), any::<bool>(), prop::array::uniform2(number()), number(), number())
            .prop_map(|(settings, paused, last, totals, viewed)| {
                Forged::Begin { settings, paused, last, totals, viewed }
            }),
        3 => (image(), number()).prop_map(|(image, every)| Forged::Schedule(image, every)),
        3 => (sequence(), prop::option::of(number())).prop_map(|(of, every)| Forged::Declare(of, every)),
        4 => (0u8..7, few(), prop::collection::vec(run_end, 1..3))
            .prop_map(|(how, of, ends)| Forged::EndRuns(how, of, ends)),
        2 => (few(), few()).prop_map(|(ended, given_back)| Forged::Release(ended, given_back)),
        3 => (0usize..3, number(), prop::option::of(number()))
            .prop_map(|(name, last, then)| Forged::Batch(name, last, then)),
        2 => (0usize..5).prop_map(Forged::Advance),
        2 => (1usize..5).prop_map(Forged::Pop),
        1 => Just(Forged::Reload),
    ]
}

const PAYLOAD: [u8; 9_000] = [7; 9_000];
/// One error, of attempt 1.
const ERRORS: [u8; 14] = *b"\x01\0\0\0\0\0\0\0\0\0\x02\0no";
const FORGED_GROUPS: [&[u8]; 3] = [b"group", b"another", b""];
const FORGED_NAMES: [&[u8]; 4] = [b"name-0", b"name-3", b"x", b"100000000000-1"];

impl ForgedImage {
    fn image(&self, queue: &Queue) -> Image<'static> {
        let (kind, moment, receipt) = self.phase;
        let record = Record {
            sequence: self.sequence.sequence(queue),
            due: at(self.due),
            priority: self.priority,
            retries: Retries::new(self.retries).unwrap(),
            lease: self.lease.map(DurationMs::new),
            ttl: self.ttl.map(|(duration, end)| Ttl { duration: DurationMs::new(duration), end: at(end) }),
            attempts: self.attempts,
            phase: match kind {
                0 => Phase::Waiting,
                1 => Phase::Leased { deadline: at(moment), receipt: receipt.receipt(queue) },
                2 => Phase::Dead { died: at(moment), reason: Reason::Rejected },
                3 => Phase::Dead { died: at(moment), reason: Reason::Expired },
                4 => Phase::Dead { died: at(moment), reason: Reason::Retries },
                _ => Phase::Successor { deadline: at(moment), receipt: receipt.receipt(queue) },
            },
            recurring: false,
        };
        Image {
            record,
            name: self.name.map(|nth| FORGED_NAMES[usize::from(nth)]),
            payload: &PAYLOAD[..self.size],
            errors: self.error.then_some(Errors::parse(&ERRORS).unwrap()),
            group: self.group.map(|nth| FORGED_GROUPS[usize::from(nth)]),
            origin: self.accepted.map(|accepted| Origin {
                accepted: at(accepted),
                chain: (accepted % 2 == 0).then(|| at(accepted / 2)),
            }),
            retain: self.accepted.map(DurationMs::new),
            recurring: None,
            headers: self.headers.map(headers),
            checkpoint: self.error.then_some(b"half"),
            consumer: self.lease.filter(|lease| lease % 2 == 0).map(|_| &b"forged"[..]),
            batch: self.group.map(|nth| [&b"batch"[..], b"another", b""][usize::from(nth)]),
        }
    }
}

/// Settings with any numbers.
#[allow(clippy::needless_update, reason = "a setting that is not forged has its default")]
fn settings(of: &[u64; 7]) -> Settings {
    let [lease, base, max, ttl, maxlen, maxinflight, deadlen] = *of;
    Settings {
        lease: DurationMs::new(lease),
        retries: Retries::UNLIMITED,
        backoff: Backoff { base: DurationMs::new(base), max: DurationMs::new(max), jitter: Percent::ZERO },
        ttl: DurationMs::new(ttl),
        maxlen,
        maxinflight,
        rate: Rate { most: maxinflight, period: DurationMs::new(maxlen) },
        deadlen: Some(deadlen),
        deadttl: DurationMs::new(deadlen),
        maxpayload: maxlen,
        dedupe: DurationMs::new(lease % 1_000),
        retain: DurationMs::new(ttl % 1_000),
        donelen: Some(deadlen),
        groupinflight: ttl % 4,
        grouprate: Rate { most: base % 4, period: DurationMs::new(base % 4 * 50) },
        grouporder: if max % 3 == 0 { GroupOrder::Due } else { GroupOrder::Turn },
        ..Settings::DEFAULT
    }
}

/// A header with any numbers.
fn header(settings: &[u64; 7], paused: bool, last: [u64; 2], totals: u64, viewed: u64) -> QueueHeader {
    QueueHeader {
        settings: self::settings(settings),
        pause: if paused { Pause::Endless } else { Pause::Off },
        closed: if paused { Pause::Until(at(viewed)) } else { Pause::Off },
        last_sequence: Sequence(last[0]),
        last_receipt: Receipt(last[1]),
        totals: Totals { pushed: totals, died: totals, lease_expired: totals, ..Totals::default() },
        viewed: at(viewed),
        log: RateLog::from_pairs([(at(viewed), totals.clamp(1, 9))]).unwrap(),
        targets: Targets::default(),
    }
}

/// Does what was drawn to a queue. Returns the bytes of the effect if it was one.
fn forge(queue: &mut Queue, forged: &Forged) -> Option<Vec<u8>> {
    let sequences = |of: &[Named]| of.iter().map(|named| named.sequence(queue)).collect::<Vec<_>>();
    // Two neighbours of the list are the ends of a span.
    let spans = |of: &[Named]| {
        let mut ends = sequences(of);
        ends.sort_unstable();
        ends.dedup();
        let span = |pair: &[Sequence]| Span { first: pair[0], last: pair[pair.len() - 1] };
        Spans::new(ends.chunks(2).map(span).collect()).unwrap()
    };
    let effect = match forged {
        Forged::Push(images) => Effect::Push(None, images.iter().map(|image| image.image(queue)).collect()),
        Forged::Continue(images) => Effect::Continue(images.iter().map(|image| image.image(queue)).collect()),
        Forged::Deliver(grants, acked) => Effect::Deliver {
            grants: grants
                .iter()
                .map(|(of, attempt, deadline, receipt)| Grant {
                    sequence: of.sequence(queue),
                    attempt: *attempt,
                    deadline: at(*deadline),
                    receipt: receipt.receipt(queue),
                })
                .collect(),
            acked: sequences(acked),
            consumer: acked.first().map(|_| &b"forged"[..]),
        },
        Forged::Release(ended, given_back) => {
            Effect::Release { ended: sequences(ended), given_back: sequences(given_back) }
        }
        Forged::Batch(name, last, then) => Effect::Batch {
            settings: None,
            name: [&b"batch"[..], b"another", b""][*name],
            last: Sequence(*last),
            then: then.map(|delay| Box::new(FollowUp { delay: Some(DurationMs::new(delay)), ..follow_up(b"forged") })),
        },
        Forged::Take(of) => Effect::Take(sequences(of)),
        Forged::Forward(of) => Effect::Forward(sequences(of)),
        Forged::DeadForward(of) => Effect::DeadForward(spans(of)),
        Forged::Ack(of) => Effect::Ack(sequences(of)),
        Forged::Complete(of, until, result) => Effect::Complete {
            sequence: of.sequence(queue),
            until: until.map(at),
            result: result.then_some(&b"result"[..]),
        },
        Forged::TrimDone(of) => Effect::TrimDone(spans(of)),
        Forged::Keep(of) => {
            let done = |(of, done, until, name): &(Named, u64, u64, Option<u8>)| DoneMessage {
                sequence: of.sequence(queue),
                name: name.map(|nth| FORGED_NAMES[usize::from(nth)]),
                due: at(*until),
                attempts: 1,
                done: at(*done),
                until: at(*until),
                result: None,
                accepted: at(*done),
            };
            Effect::Done(of.iter().map(done).collect())
        }
        Forged::Nack(of, due, died) => {
            let dead = Fate::Dead { died: at(*died), reason: Reason::Expired };
            Effect::Nack {
                sequence: of.sequence(queue),
                fate: due.map_or(dead, |due| Fate::Due(at(due))),
                attempts: 0,
                error: None,
                checkpoint: (*died % 3 == 0).then_some(b"checkpoint"),
            }
        }
        Forged::Extend(of, deadline) => Effect::Extend {
            those: vec![(of.sequence(queue), at(*deadline))].into(),
            checkpoint: (deadline % 3 == 0).then_some(&PAYLOAD[..(deadline % 2) as usize]),
        },
        Forged::Trim(of) => Effect::Trim(spans(of)),
        Forged::Cancel(of) => Effect::Cancel(sequences(of), FORGED_NAMES[..of.len().min(2)].to_vec()),
        Forged::Recall(of) => Effect::Recall(
            of.iter().map(|(nth, accepted)| KnownId { name: FORGED_NAMES[*nth], accepted: at(*accepted) }).collect(),
        ),
        Forged::Turns(last, ungrouped, turn) => Effect::Turns(TurnState {
            last: last << 20,
            ungrouped: (ungrouped << 20, None),
            groups: vec![(b"group", turn << 20, Some(Claim { since: at(*turn), until: at(*last) }))],
        }),
        Forged::Gates(end, begun, count) => Effect::Gates(vec![GroupGate {
            name: b"group",
            pause: Pause::Until(at(*end)),
            log: RateLog::from_pairs([(at(*begun), *count % 4)]).unwrap_or_default(),
        }]),
        Forged::Reschedule(of, due) => {
            Effect::Reschedule { sequence: of.sequence(queue), due: Some(at(*due)), priority: None }
        }
        Forged::Redrive(of, due) => Effect::Redrive(spans(of), at(*due)),
        Forged::Purge(of) => Effect::Purge { messages: spans(of), done: spans(of) },
        Forged::Alter(of, limit) => {
            let limited = limit.map(|limit| Box::new(Forward::Stream { key: Box::default(), trim: Some(limit) }));
            // A channel cannot be the target of dead messages.
            let channel =
                limit.filter(|limit| limit % 2 == 0).map(|_| Box::new(Forward::Channel { name: Box::default() }));
            Effect::Alter(settings(of), Targets { due: limited, dead: channel })
        }
        Forged::Pause(end) => {
            let group = (end % 2 == 0).then_some(&b"group"[..]);
            let flow = if end % 3 == 0 { Flow::Both } else { Flow::Out };
            Effect::Pause { pause: Pause::Until(at(*end)), flow, group }
        }
        Forged::Promote(due, of) => Effect::Promote(at(*due), spans(of)),
        Forged::Bury(of) => Effect::Bury(of.sequence(queue), None),
        Forged::Begin { settings, paused, last, totals, viewed } => {
            Effect::Begin(header(settings, *paused, *last, *totals, *viewed))
        }
        Forged::Schedule(image, every) => {
            let mut image = image.image(queue);
            image.record.recurring = true;
            image.recurring = Some(Box::new(Recurring::new(declaration(*every).series, image.record.priority)));
            Effect::Schedule(None, image)
        }
        Forged::Declare(of, every) => {
            Effect::Declare(of.sequence(queue), every.map(|every| Box::new(declaration(every))))
        }
        Forged::EndRuns(how, others, ends) => {
            let how = match how {
                0 => Ended::Acked,
                1 => Ended::Taken,
                2 => Ended::Nacked { error: Some(b"error"), checkpoint: Some(b"checkpoint") },
                3 => Ended::Buried(None),
                4 => Ended::Forwarded,
                5 => Ended::Completed,
                _ => Ended::ByTime,
            };
            let end = |(of, failure, next): &ForgedEnd| RunEnd {
                sequence: of.sequence(queue),
                failure: failure.map(|(died, copy)| Failure {
                    died: at(died),
                    reason: Reason::Expired,
                    attempts: 0,
                    copy: copy.map(|copy| copy.sequence(queue)),
                }),
                next: match next {
                    None => Next::Over,
                    Some((due, None)) => Next::At(at(*due)),
                    Some((due, Some(sequence))) => Next::Renewed(at(*due), sequence.sequence(queue)),
                },
            };
            Effect::EndRuns { how, others: sequences(others), ends: ends.iter().map(end).collect() }
        }
        Forged::Advance(budget) => {
            queue.advance(at(NOW + 10), *budget);
            return None;
        }
        Forged::Pop(count) => {
            pop(queue, NOW + 20, &mut Floor::default(), *count, Lease::Default);
            return None;
        }
        Forged::Reload => {
            *queue = reload(queue);
            return None;
        }
    };
    let bytes = encoded(effect);
    apply(queue, &bytes);
    Some(bytes)
}

/// The messages in the order in which single pops deliver them, each with the instant of its pop.
fn drained(queue: &mut Queue) -> Vec<(u64, u64)> {
    let (mut floor, mut drained) = (Floor::default(), Vec::new());
    for now in [NOW + 40, NOW + 5_000, UnixMs::MAX_AT, UnixMs::MAX.as_ms()] {
        while let Some(sequence) = pop(queue, now, &mut floor, 1, Lease::NoAck).pop() {
            drained.push((now, sequence));
        }
    }
    drained
}

proptest! {
    #![proptest_config(crate::config(crate::histories() / 4, 4))]

    #[test]
    fn a_damaged_effect_is_refused_or_survived(which in any::<Index>(), damages in damage()) {
        let mut queue = lively();
        let mut effects = every_effect(&queue);
        let bytes = effects.swap_remove(which.index(effects.len()));
        apply(&mut queue, &bytes.clone());
        apply(&mut queue, &damaged(bytes, &damages));
        survive(queue);
    }

    #[test]
    fn a_damaged_file_is_refused_or_survived(which in any::<bool>(), damages in damage()) {
        let mut pieces = Vec::new();
        let saved: Result<(), Refused> = lively().save(|piece| { pieces.push(piece.to_vec()); Ok(()) });
        prop_assert!(saved.is_ok());
        let nth = usize::from(which) % pieces.len();
        pieces[nth] = damaged(std::mem::take(&mut pieces[nth]), &damages);
        let mut loader = Loader::default();
        if pieces.iter().all(|piece| loader.take(piece).is_ok()) {
            if let Ok(queue) = loader.finish(UnixMs::MAX) {
                survive(queue);
            }
        }
    }

    #[test]
    fn forged_effects_are_refused_or_survived(forgeries in prop::collection::vec(forged(), 1..12)) {
        let mut queue = lively();
        forgeries.iter().for_each(|forged| drop(forge(&mut queue, forged)));
        survive(queue);
    }

    #[test]
    fn a_copy_delivers_in_the_same_order_after_forged_effects(forgeries in prop::collection::vec(forged(), 1..12)) {
        let mut queue = lively();
        forgeries.iter().for_each(|forged| drop(forge(&mut queue, forged)));
        let mut copy = queue.duplicate().unwrap();
        prop_assert_eq!(drained(&mut queue), drained(&mut copy));
    }
}

proptest! {
    #![proptest_config(crate::config(crate::histories() / 4, 5))]

    /// Each server has a clock and a timer of its own; only effects are common.
    #[test]
    fn forged_effects_lead_every_server_to_the_same_queue(
        forgeries in prop::collection::vec((forged(), 0u64..200, 0u64..200), 1..12),
    ) {
        let (mut master, mut replica) = (lively(), lively());
        for (forged, stamp, ahead) in &forgeries {
            // A delivery is a decision of one of them, and a server that reloads a queue sees another time.
            if matches!(forged, Forged::Pop(_) | Forged::Reload) {
                continue;
            }
            replica.notice(at(NOW + ahead));
            replica.advance_view(at(NOW + ahead), usize::MAX);
            let Some(bytes) = forge(&mut master, forged) else { continue };
            apply(&mut replica, &bytes);
            prop_assert_eq!(digest(&master), digest(&replica), "after {:?}", forged);
            let Ok(mut later) = Stamped::decode(&bytes) else { continue };
            later.now = at(NOW + stamp);
            prop_assert_eq!(master.apply(&later).is_ok(), replica.apply(&later).is_ok(), "{:?}", later);
            prop_assert_eq!(digest(&master), digest(&replica), "after {:?}", later);
        }
    }
}

/// A piece of a saved queue is carried out at the instant with which it is stamped, whatever each server has moved or
/// freed by its own clock.
#[test]
fn a_piece_on_its_own_leads_every_server_to_the_same_queue() {
    let grouprate = Rate { most: 1, period: DurationMs::new(50) };
    let (mut master, mut floor) = (Queue::new(Settings { grouprate, ..Settings::default() }), Floor::default());
    for group in [b"group", b"other"] {
        master.push(at(NOW), &mut floor, &NewMessage { group: Some(group), ..NewMessage::default() });
    }
    let free = master.images().map(|image| image.record).collect::<Vec<_>>();
    pop(&mut master, NOW, &mut floor, 1, Lease::NoAck);
    let mut replica = master.duplicate().unwrap();
    // The rate of the first group is forgotten with the next delivery.
    pop(&mut master, NOW + 100, &mut floor, 1, Lease::NoAck);
    apply_at(&mut replica, NOW + 100, Effect::Take(vec![free[1].sequence]));
    replica.advance_view(at(NOW + 100), usize::MAX);

    let (name, pause) = (&b"group"[..], Pause::Until(at(NOW + 500)));
    let gate = Effect::Gates(vec![GroupGate { name, pause, log: RateLog::default() }]);
    let image = Image { batch: Some(b"begun"), ..plain(free[1]) };
    replica.advance_view(at(NOW + 300), usize::MAX);
    for effect in [gate, Effect::Continue(vec![image])] {
        [&mut master, &mut replica].into_iter().for_each(|queue| apply_at(queue, NOW + 200, effect.clone()));
        assert_eq!(digest(&master), digest(&replica), "after {effect:?}");
    }
    assert_eq!(master.batch(at(NOW + 300), b"begun").map(|batch| batch.created), Some(at(NOW + 200)));
}

/// A dead message ends in its batch with the effect of its push, so none is saved as a member.
#[test]
fn only_a_push_brings_a_dead_member() {
    let mut queue = Queue::new(Settings::default());
    queue.push(at(NOW), &mut Floor::default(), &NewMessage::default());
    let record = queue.images().next().unwrap().record;
    let all = Spans::new(vec![Span { first: record.sequence, last: record.sequence }]).unwrap();
    apply_at(&mut queue, NOW, Effect::Purge { messages: all, done: Spans::default() });
    let dead = plain(Record { phase: Phase::Dead { died: at(NOW), reason: Reason::Expired }, ..record });
    let member = Image { batch: Some(b"b"), ..dead.clone() };
    let saved = |image| Stamped { now: at(NOW), effect: Effect::Continue(vec![image]) };
    assert_eq!(queue.apply(&saved(member.clone())), Err(Refused::Impossible));
    assert!(queue.apply(&saved(dead)).is_ok());

    let next = |nth| Record { sequence: Sequence(record.sequence.0 + nth), ..member.record };
    apply_at(&mut queue, NOW, Effect::Push(None, vec![Image { record: next(1), ..member.clone() }]));
    let batch = queue.batch(at(NOW), b"b").map(|batch| (batch.total, batch.left, batch.dead));
    assert_eq!((batch, queue.totals().died, queue.totals().expired), (Some((1, 0, 1)), 1, 1));
    let twice = [ERRORS, ERRORS].concat();
    for (nth, errors) in [(2, &ERRORS[..]), (3, &twice)] {
        let image = Image { record: next(nth), errors: Errors::parse(errors), ..member.clone() };
        let pushed = queue.apply(&Stamped { now: at(NOW), effect: Effect::Push(None, vec![image]) });
        assert_eq!(pushed.is_ok(), errors.len() == ERRORS.len(), "a push has one error");
    }
}

fn apply_at(queue: &mut Queue, now: u64, effect: Effect<'_>) {
    queue.apply(&Stamped { now: at(now), effect }).unwrap();
}

/// A message without anything that is optional.
fn plain(record: Record) -> Image<'static> {
    Image {
        record,
        name: None,
        payload: b"",
        errors: None,
        group: None,
        origin: None,
        retain: None,
        recurring: None,
        headers: None,
        checkpoint: None,
        consumer: None,
        batch: None,
    }
}

#[test]
fn nothing_but_the_whole_is_read() {
    let queue = lively();
    for bytes in every_effect(&queue) {
        for end in 0..bytes.len() {
            assert!(Stamped::decode(&bytes[..end]).is_err());
        }
        for more in 0..=u8::MAX {
            assert!(Stamped::decode(&[&bytes[..], &[more]].concat()).is_err(), "{more:#x} behind the end");
        }
    }
}

#[test]
fn a_claim_of_many_messages_is_not_believed() {
    // The header of an array of four billion messages, without a single message.
    let head = [&[VERSION, b'c'][..], &[0; 6]].concat();
    let stamped = [&head[..], &[0xdd], &[0xff; 4]].concat();
    assert_eq!(Stamped::decode(&stamped), Err(Refused::Malformed));
    let nested = [&head[..], &[0x91; 100_000]].concat();
    assert_eq!(Stamped::decode(&nested), Err(Refused::Malformed));
}

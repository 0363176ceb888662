//! Random histories: the clock advances, then a client does something.

use dq_queue::backoff::{Backoff, Percent};
use dq_queue::forward::{Forward, ListEnd, Register};
use dq_queue::rate::Rate;
use dq_queue::settings::{GroupOrder, Retries, Settings, MAX_LENGTH};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Flow, HeaderBlock, Headers, Reason, Spare, Verdict};
use proptest::prelude::*;
use std::cell::RefCell;
use std::sync::LazyLock;

/// A random history: the settings, the clocks, and the steps.
#[derive(Clone, Debug)]
pub struct History {
    pub settings: Settings,
    pub start: u64,
    /// The difference between the replica's clock and the master's, in ms.
    pub skew: i64,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub struct Step {
    /// By how many ms the clock moves before the act. A negative number moves it back.
    pub passed: i64,
    pub act: Act,
}

#[derive(Clone, Debug)]
pub enum Act {
    Push(Push),
    Pop {
        count: usize,
        lease: Lease,
    },
    Ack(Vec<Aim>),
    /// Completes a message with a result of this size.
    Complete {
        aim: Aim,
        result: Option<usize>,
        retain: Option<u64>,
    },
    Nack {
        aim: Aim,
        delay: Option<u64>,
        error: Option<usize>,
        verdict: Verdict,
        checkpoint: Option<usize>,
    },
    Bury {
        aim: Aim,
        error: Option<usize>,
    },
    Promote {
        count: usize,
        /// Only those that are due by then, a distance from now.
        until: Option<i64>,
    },
    Extend {
        aims: Vec<Aim>,
        lease: Option<u64>,
        checkpoint: Option<usize>,
    },
    /// A batch. The first name may occur several times.
    PushAll {
        of: Push,
        names: Option<Vec<usize>>,
    },
    Cancel(Vec<Aim>),
    /// Sets a new due time, a new priority, or both.
    Reschedule {
        aim: Aim,
        due: Option<Due>,
        priority: Option<i8>,
    },
    Redrive {
        which: Redriven,
        delay: u64,
    },
    /// Purges messages of a group.
    PurgeGroup {
        group: usize,
        of: Purge,
    },
    Purge(Purge),
    Alter {
        settings: Settings,
        by: Who,
    },
    /// Sets the target of forwarding, by its number.
    ForwardTo(Option<usize>),
    /// Forwards messages; the target accepts only the first ones.
    Forward {
        count: usize,
        taken: usize,
    },
    /// Sets the target of dead messages, by its number.
    ForwardDeadTo(Option<usize>),
    /// Forwards dead messages; the target accepts only the first ones.
    ForwardDead {
        count: usize,
        taken: usize,
    },
    /// Pauses for a time in ms, or without an end.
    Suspend(Flow, Option<u64>),
    Resume(Flow),
    /// Pauses a group for a time in ms, or without an end.
    SuspendGroup(usize, Option<u64>),
    ResumeGroup(usize),
    Advance {
        budget: usize,
    },
    AdvanceReplica {
        ahead: i64,
        budget: usize,
        /// Whether a client reads the queue there, which then remembers the time.
        reads: bool,
    },
    Trim {
        budget: usize,
        by: Who,
    },
    Schedule(Every),
    /// A push with `REPLACE LATER`, or a declaration, of the name of a message in flight.
    Beside {
        which: usize,
        of: Beside,
    },
    /// Ends runs that time has made fail.
    EndRuns {
        budget: usize,
        by: Who,
    },
    Reload(Way),
    Failover,
    /// A server whose clock is ahead holds the queue for one act.
    Ahead {
        by: u64,
        act: Box<Act>,
    },
    Remake,
    /// Acks messages, and pops in the same command.
    AckPop {
        aims: Vec<Aim>,
        count: usize,
        lease: Option<u64>,
    },
    /// From now on, consumers pop under this name, or under none.
    WorkAs(Option<usize>),
    /// Says what follows a batch.
    CloseBatch {
        batch: usize,
        then: FollowUp,
    },
    CancelBatch(usize),
    /// Takes from a consumer what it holds.
    Release {
        consumer: usize,
        count: Option<usize>,
        verdict: Verdict,
    },
}

/// What follows a batch.
#[derive(Clone, Debug)]
pub struct FollowUp {
    pub name: Option<usize>,
    pub size: usize,
    pub delay: Option<u64>,
    pub priority: i8,
    pub retries: Option<i32>,
    pub lease: Option<u64>,
    pub group: Option<usize>,
    pub headers: Option<usize>,
}

#[derive(Clone, Debug)]
pub enum Beside {
    Push(Push),
    Schedule(Every),
}

/// A schedule; the instants are distances from now.
#[derive(Clone, Debug)]
pub struct Every {
    pub name: usize,
    pub size: usize,
    pub every: u64,
    pub offset: u64,
    pub at: Option<i64>,
    pub until: Option<i64>,
    pub times: Option<u64>,
    pub priority: i8,
    pub retries: Option<i32>,
    pub lease: Option<u64>,
    pub ttl: Option<u64>,
    pub group: Option<usize>,
    pub headers: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Push {
    /// The number of messages in one command. All but one are unnamed.
    pub copies: usize,
    pub name: Option<usize>,
    pub size: usize,
    pub due: Due,
    pub priority: i8,
    pub retries: Option<i32>,
    pub lease: Option<u64>,
    pub ttl: Option<u64>,
    pub replace: bool,
    pub maxwait: Option<u64>,
    pub later: bool,
    pub retain: Option<u64>,
    pub group: Option<usize>,
    pub headers: Option<usize>,
    pub batch: Option<usize>,
    pub past: Option<Past>,
}

/// What a message went through before its push.
#[derive(Clone, Copy, Debug)]
pub struct Past {
    pub attempts: u32,
    pub error: Option<usize>,
    /// Never the checkpoint that removes one.
    pub checkpoint: Option<usize>,
    pub dead: Option<Reason>,
}

#[derive(Clone, Copy, Debug)]
pub enum Due {
    Now,
    /// As the settings say, if it is a push.
    Default,
    After(u64),
    /// At this distance from now, in ms.
    At(i64),
    AtTheEnd,
}

#[derive(Clone, Copy, Debug)]
pub enum Lease {
    Default,
    For(u64),
    NoAck,
}

/// How a client refers to a message.
#[derive(Clone, Debug)]
pub enum Aim {
    /// By the id of a message.
    Id(usize),
    /// By the current receipt of a message that has one.
    Receipt(usize),
    /// By a receipt that was issued at some time.
    OldReceipt(usize),
    /// By the sequence of a message, even if the message has a name.
    Sequence(usize),
    /// By an id whose message is gone, which may still be known.
    Known(usize),
    /// By the id of a done message.
    Done(usize),
    /// By an id that no message ever had.
    Nothing,
}

/// Messages in these states, given by their numbers.
#[derive(Clone, Debug)]
pub struct Purge {
    pub states: Vec<usize>,
    pub count: Option<usize>,
    pub older: Option<u64>,
    pub spare: Spare,
}

/// Which dead messages to redrive.
#[derive(Clone, Debug)]
pub enum Redriven {
    /// At most this many, of those that have been dead for so long, and for this reason.
    Oldest(usize, Option<u64>, Option<Reason>),
    Named(Vec<Aim>),
}

/// One of the two masters, which hold the same queue.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// The master that is advanced to the current time at each step.
    Eager,
    /// The master that is advanced only when the history says so.
    Lazy,
}

/// How a queue is restored.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    /// From the pieces of a saved queue.
    Save,
    /// From the effects of a rewritten AOF.
    Rewrite,
    /// From all effects since the queue was created.
    Replay,
    /// As a copy in memory.
    Copy,
}

pub const NAMES: [&[u8]; 4] = [b"a", b"order-1001", &[b'n'; 255], &[0, 255, b' ']];
pub const GROUPS: [&[u8]; 3] = [b"g", &[b'g'; 255], &[255, 0]];
/// Checkpoints; the first one removes what was stored.
pub const CHECKPOINTS: [&[u8]; 4] = [b"", b"50", &[0, 255], &[b'c'; 300]];
/// Headers in the order of their names. The last ones do not fit into a segment with a payload of a few KiB.
pub const HEADERS: [&[(&[u8], &[u8])]; 4] = [
    &[(b"a", b"")],
    &[(b"content-type", b"text/plain"), (b"trace", &[b't'; 55])],
    &[(&[0], &[0, 255]), (&[b'n'; 255], b" "), (&[255; 255], b"1")],
    &[(b"1", &[b'v'; 4096]), (b"2", &[b'v'; 2000])],
];
/// Their order is not that of their numbers.
pub const BATCHES: [&[u8]; 3] = [b"m", &[b'b'; 255], &[0, 255]];
pub const CONSUMERS: [&[u8]; 3] = [b"w", &[b'w'; 128], &[0, 255]];
pub const ERRORS: [&[u8]; 4] = [b"", b"timeout", &[b'e'; 1024], &[b'f'; 3000]];

/// The headers with a number, as a client gives them.
pub fn headers(nth: usize) -> Headers<'static> {
    static BLOCKS: LazyLock<Vec<HeaderBlock>> =
        LazyLock::new(|| HEADERS.iter().map(|headers| HeaderBlock::new(headers.to_vec()).unwrap()).collect());
    let own = BLOCKS.get(nth).map(HeaderBlock::headers);
    own.unwrap_or_else(|| OTHERS.with_borrow(|others| others[nth - BLOCKS.len()].headers()))
}

thread_local! {
    /// Headers that the queue has made of those of a client. They live as long as the test.
    static OTHERS: RefCell<Vec<&'static HeaderBlock>> = const { RefCell::new(Vec::new()) };
}

/// The number of headers that are none of [`HEADERS`].
pub fn other_headers(block: HeaderBlock) -> usize {
    OTHERS.with_borrow_mut(|others| {
        others.push(Box::leak(Box::new(block)));
        HEADERS.len() + others.len() - 1
    })
}

/// Targets of every kind.
pub fn targets() -> Vec<Forward> {
    let list = |end, register| Forward::List { key: b"list"[..].into(), end, register };
    let register = Register { set: b"set"[..].into(), member: [0, 255, b' '][..].into() };
    vec![
        Forward::Stream { key: b"stream"[..].into(), trim: None },
        Forward::Stream { key: Box::default(), trim: Some(MAX_LENGTH) },
        list(ListEnd::Default, None),
        list(ListEnd::Left, Some(register.clone())),
        list(ListEnd::Right, Some(register)),
        Forward::Channel { name: b"channel"[..].into() },
        Forward::Queue { key: b"queue"[..].into() },
    ]
}

/// Those of messages that are due, and those of dead messages.
pub const DUE_TARGETS: [usize; 6] = [0, 1, 2, 3, 4, 5];
pub const DEAD_TARGETS: [usize; 4] = [0, 1, 2, 6];

fn passed() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => Just(0),
        8 => 1i64..20,
        3 => 20i64..2_000,
        1 => Just(100_000),
        1 => -50i64..0,
    ]
}

fn span() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(1), 4 => 2u64..30, 3 => Just(100), 2 => Just(1_000), 1 => Just(DurationMs::MAX.as_ms())]
}

fn due() -> impl Strategy<Value = Due> {
    prop_oneof![
        2 => Just(Due::Now),
        3 => Just(Due::Default),
        4 => prop_oneof![Just(0), span()].prop_map(Due::After),
        2 => (-100i64..100).prop_map(Due::At),
        1 => Just(Due::AtTheEnd),
    ]
}

/// How long a message is kept after its completion, if it says so itself.
fn retain() -> impl Strategy<Value = Option<u64>> {
    prop::option::weighted(0.3, prop_oneof![1 => Just(0), 3 => span()])
}

fn size(large: bool) -> impl Strategy<Value = usize> {
    let rare = if large { 3 } else { 1 };
    prop_oneof![40 => 0usize..40, rare => 1_000usize..4_000, rare => 8_190usize..8_200]
}

fn push(copies: usize) -> impl Strategy<Value = Push> {
    let priority = prop_oneof![6 => Just(0), 3 => -1i8..=1, 1 => Just(i8::MIN), 1 => Just(i8::MAX)];
    let ttl = prop_oneof![1 => Just(0), 3 => span()];
    (
        1..=copies,
        prop::option::weighted(0.4, 0..NAMES.len()),
        size(copies > 1),
        due(),
        priority,
        prop::option::weighted(0.3, -1i32..3),
        prop::option::weighted(0.3, span()),
        prop::option::weighted(0.3, ttl),
        (any::<bool>(), prop::option::weighted(0.4, prop_oneof![Just(0), span()]), any::<bool>(), retain(), group()),
        (header_set(), prop::option::weighted(0.4, 0..BATCHES.len()), prop::option::weighted(0.2, past())),
    )
        .prop_map(|(copies, name, size, due, priority, retries, lease, ttl, with, (headers, batch, past))| {
            let (replace, maxwait, later, retain, group) = with;
            Push {
                copies,
                name,
                size,
                due,
                priority,
                retries,
                lease,
                ttl,
                replace,
                maxwait,
                later: later && past.is_none(),
                retain,
                group,
                headers,
                batch,
                past,
            }
        })
}

fn past() -> impl Strategy<Value = Past> {
    (
        prop_oneof![4 => 0u32..4, 1 => Just(i32::MAX as u32)],
        prop::option::of(0..ERRORS.len()),
        prop::option::of(1..CHECKPOINTS.len()),
        prop::option::of(reason()),
    )
        .prop_map(|(attempts, error, checkpoint, dead)| Past { attempts, error, checkpoint, dead })
}

fn reason() -> impl Strategy<Value = Reason> {
    prop::sample::select(vec![Reason::Retries, Reason::Rejected, Reason::Expired])
}

fn follow_up() -> impl Strategy<Value = FollowUp> {
    (
        prop::option::weighted(0.4, 0..NAMES.len()),
        size(false),
        prop::option::of(prop_oneof![Just(0), span()]),
        -1i8..=1,
        prop::option::weighted(0.3, -1i32..3),
        prop::option::weighted(0.3, span()),
        group(),
        header_set(),
    )
        .prop_map(|(name, size, delay, priority, retries, lease, group, headers)| FollowUp {
            name,
            size,
            delay,
            priority,
            retries,
            lease,
            group,
            headers,
        })
}

fn header_set() -> impl Strategy<Value = Option<usize>> {
    prop::option::weighted(0.3, prop_oneof![8 => 0..HEADERS.len() - 1, 1 => Just(HEADERS.len() - 1)])
}

fn group() -> impl Strategy<Value = Option<usize>> {
    prop::option::weighted(0.5, 0..GROUPS.len())
}

fn every() -> impl Strategy<Value = Every> {
    // Few different values, so that the same schedule is often declared again.
    let every = prop::sample::select(vec![1u64, 7, 7, 50, 1_000, 100_000, DurationMs::MAX.as_ms()]);
    (
        (0..2usize, prop::sample::select(vec![3usize, 3, 5, 9_000])),
        (every, prop::sample::select(vec![0u64, 0, 3])),
        prop::option::weighted(0.2, -20i64..200),
        prop::option::weighted(0.2, 0i64..2_000),
        prop::option::weighted(0.3, 1u64..4),
        prop::sample::select(vec![0i8, 0, 0, 1]),
        prop::option::weighted(0.4, -1i32..2),
        prop::option::weighted(0.2, Just(20)),
        (
            prop::option::weighted(0.3, prop::sample::select(vec![0u64, 1, 20, 500])),
            prop::option::weighted(0.5, 0..2usize),
            prop::sample::select(vec![None, None, Some(0), Some(3)]),
        ),
    )
        .prop_map(
            |((name, size), (every, offset), at, until, times, priority, retries, lease, (ttl, group, headers))| {
                Every { name, size, every, offset, at, until, times, priority, retries, lease, ttl, group, headers }
            },
        )
}

fn aim() -> impl Strategy<Value = Aim> {
    prop_oneof![
        3 => any::<usize>().prop_map(Aim::Id),
        6 => any::<usize>().prop_map(Aim::Receipt),
        2 => any::<usize>().prop_map(Aim::OldReceipt),
        1 => any::<usize>().prop_map(Aim::Sequence),
        1 => any::<usize>().prop_map(Aim::Known),
        1 => any::<usize>().prop_map(Aim::Done),
        1 => Just(Aim::Nothing),
    ]
}

fn checkpoint() -> impl Strategy<Value = Option<usize>> {
    prop::option::of(0..CHECKPOINTS.len())
}

fn budget() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..4, Just(usize::MAX)]
}

fn act(copies: usize) -> impl Strategy<Value = Act> {
    let ahead = prop_oneof![4 => span(), 2 => Just(10_000), 1 => Just(2 * 86_400_000)];
    let ahead = ahead.prop_map(|by| by.min(2 * 86_400_000));
    prop_oneof![
        300 => decision(copies),
        8 => budget().prop_map(|budget| Act::Advance { budget }),
        4 => (prop_oneof![Just(0), -500i64..500], budget(), any::<bool>())
            .prop_map(|(ahead, budget, reads)| Act::AdvanceReplica { ahead, budget, reads }),
        4 => way().prop_map(Act::Reload),
        1 => Just(Act::Failover),
        1 => Just(Act::Remake),
        6 => (ahead, decision(copies)).prop_map(|(by, act)| Act::Ahead { by, act: Box::new(act) }),
    ]
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![4 => Just(Way::Save), 2 => Just(Way::Rewrite), 1 => Just(Way::Replay), 1 => Just(Way::Copy)]
}

/// What a client decides, or the server that decides about the queue.
fn decision(copies: usize) -> impl Strategy<Value = Act> {
    let lease = prop_oneof![3 => Just(Lease::Default), 3 => span().prop_map(Lease::For), 1 => Just(Lease::NoAck)];
    let who = prop_oneof![Just(Who::Eager), Just(Who::Lazy)];
    let (pops, acks) = if copies > 1 { (copies, copies) } else { (5, 3) };
    let names = prop::option::weighted(0.6, prop::collection::vec(0..NAMES.len(), copies.max(4)));
    let older = prop::option::weighted(0.4, prop_oneof![Just(0), span()]);
    let oldest = (prop_oneof![Just(usize::MAX), 1..=pops], older.clone(), prop::option::weighted(0.4, reason()));
    let which = prop_oneof![
        4 => oldest.prop_map(|(count, older, reason)| Redriven::Oldest(count, older, reason)),
        3 => prop::collection::vec(aim(), 1..4).prop_map(Redriven::Named),
    ];
    let states = prop::sample::subsequence((0..5).collect::<Vec<usize>>(), 1..=5);
    let spare = prop_oneof![2 => Just(Spare::Schedules), 1 => Just(Spare::Nothing)];
    let purge = (states, prop::option::weighted(0.5, 1..=pops), older, spare)
        .prop_map(|(states, count, older, spare)| Purge { states, count, older, spare });
    let flow = prop_oneof![4 => Just(Flow::Out), 2 => Just(Flow::In), 3 => Just(Flow::Both)];
    let changes = prop_oneof![
        8 => prop::collection::vec(aim(), 1..=acks.min(8)).prop_map(Act::Cancel),
        8 => (aim(), prop::option::weighted(0.8, due()), prop::option::weighted(0.5, -1i8..=1))
            .prop_map(|(aim, due, priority)| Act::Reschedule { aim, due, priority }),
        6 => (aim(), prop::option::of(0..ERRORS.len())).prop_map(|(aim, error)| Act::Bury { aim, error }),
        3 => (prop_oneof![Just(usize::MAX), 1..=pops], prop::option::of(-5i64..200))
            .prop_map(|(count, until)| Act::Promote { count, until }),
        6 => (which, prop_oneof![Just(0), span()]).prop_map(|(which, delay)| Act::Redrive { which, delay }),
        2 => (0..GROUPS.len(), purge.clone()).prop_map(|(group, of)| Act::PurgeGroup { group, of }),
        2 => purge.prop_map(Act::Purge),
        5 => (limited(copies), who.clone()).prop_map(|(settings, by)| Act::Alter { settings, by }),
        2 => (flow.clone(), prop::option::weighted(0.7, span())).prop_map(|(flow, length)| Act::Suspend(flow, length)),
        3 => flow.prop_map(Act::Resume),
        4 => (0..GROUPS.len(), prop::option::weighted(0.8, span()))
            .prop_map(|(group, length)| Act::SuspendGroup(group, length)),
        3 => (0..GROUPS.len()).prop_map(Act::ResumeGroup),
    ];
    let beside = prop_oneof![3 => push(1).prop_map(Beside::Push), 1 => every().prop_map(Beside::Schedule)];
    prop_oneof![
        30 => push(copies).prop_map(Act::Push),
        15 => (any::<usize>(), beside).prop_map(|(which, of)| Act::Beside { which, of }),
        10 => (push(copies.max(4)), names).prop_map(|(of, names)| Act::PushAll { of, names }),
        30 => changes,
        25 => (1..=pops, lease).prop_map(|(count, lease)| Act::Pop { count, lease }),
        12 => prop::collection::vec(aim(), 1..=acks).prop_map(Act::Ack),
        8 => (aim(), prop::option::of(size(false)), retain())
            .prop_map(|(aim, result, retain)| Act::Complete { aim, result, retain }),
        12 => (
            aim(),
            prop::option::of(prop_oneof![Just(0), span()]),
            prop::option::of(0..ERRORS.len()),
            prop_oneof![5 => Just(Verdict::Failed), 3 => Just(Verdict::NotCounted), 2 => Just(Verdict::Rejected)],
            checkpoint(),
        )
            .prop_map(|(aim, delay, error, verdict, checkpoint)| Act::Nack { aim, delay, error, verdict, checkpoint }),
        6 => (prop::collection::vec(aim(), 1..=acks.min(4)), prop::option::of(span()), checkpoint())
            .prop_map(|(aims, lease, checkpoint)| Act::Extend { aims, lease, checkpoint }),
        3 => prop::option::of(prop::sample::select(&DUE_TARGETS)).prop_map(Act::ForwardTo),
        8 => (0usize..5, 0usize..5).prop_map(|(count, taken)| Act::Forward { count, taken }),
        2 => prop::option::of(prop::sample::select(&DEAD_TARGETS)).prop_map(Act::ForwardDeadTo),
        4 => (0usize..5, 0usize..5).prop_map(|(count, taken)| Act::ForwardDead { count, taken }),
        16 => (budget(), who.clone()).prop_map(|(budget, by)| Act::Trim { budget, by }),
        12 => every().prop_map(Act::Schedule),
        8 => (budget(), who).prop_map(|(budget, by)| Act::EndRuns { budget, by }),
        10 => (prop::collection::vec(aim(), 1..=acks), 1..=pops, prop::option::of(span()))
            .prop_map(|(aims, count, lease)| Act::AckPop { aims, count, lease }),
        12 => (0..BATCHES.len(), follow_up()).prop_map(|(batch, then)| Act::CloseBatch { batch, then }),
        3 => (0..BATCHES.len()).prop_map(Act::CancelBatch),
        12 => prop::option::weighted(0.9, 0..CONSUMERS.len()).prop_map(Act::WorkAs),
        8 => (
            0..CONSUMERS.len(),
            prop::option::weighted(0.5, 1..=pops),
            prop_oneof![Just(Verdict::Failed), Just(Verdict::NotCounted)],
        )
            .prop_map(|(consumer, count, verdict)| Act::Release { consumer, count, verdict }),
    ]
}

#[allow(clippy::needless_update, reason = "a setting that is not drawn has its default")]
fn settings() -> impl Strategy<Value = Settings> {
    let backoff = prop::sample::select(vec![(0, 0), (10, 100), (1, 1_000), (7, 7), (1, DurationMs::MAX.as_ms())]);
    let jitter = prop::sample::select(vec![0u8, 0, 30, 100]);
    let rate = prop::sample::select(vec![(0u64, 0u64), (0, 0), (0, 0), (1, 30), (2, 1), (3, 200)]);
    let group_rate = prop::sample::select(vec![(0u64, 0u64), (0, 0), (0, 0), (1, 30), (2, 5), (3, 200)]);
    let later = (
        prop::sample::select(vec![0u64, 0, 0, 0, 5, 300]),
        prop::sample::select(vec![0u64, 0, 0, 0, 20, 5_000]),
        rate,
        prop::sample::select(vec![0u64, 0, 0, 10, 200, 100_000]),
        prop::sample::select(vec![0u64, 0, 0, 5, 150, 50_000]),
        prop::sample::select(vec![None, None, None, Some(0), Some(1), Some(3)]),
        (prop::sample::select(vec![1u64, 1, 1, 0, 2, 3]), any::<bool>(), group_rate),
        (prop::sample::select(vec![1u64, 1, 0, 2, 64]), prop::sample::select(vec![0u64, 0, 0, 25, 1_000])),
    );
    (
        (prop::sample::select(vec![1u64, 5, 50, 1_000]), prop::sample::select(vec![0u64, 0, 0, 20, 300])),
        -1i32..3,
        (backoff, jitter),
        prop::sample::select(vec![0u64, 0, 0, 20, 500]),
        prop::sample::select(vec![0u64, 0, 0, 3, 8]),
        prop::sample::select(vec![0u64, 0, 0, 1, 3]),
        prop::sample::select(vec![None, None, Some(0), Some(1), Some(3)]),
        later,
    )
        .prop_map(
            |(
                (lease, maxlease),
                retries,
                ((base, max), jitter),
                ttl,
                maxlen,
                maxinflight,
                deadlen,
                (
                    deadttl,
                    maxpayload,
                    (most, period),
                    dedupe,
                    retain,
                    donelen,
                    (groupinflight, by_turn, (group_most, group_period)),
                    (errors, delay),
                ),
            )| {
                Settings {
                    lease: DurationMs::new(lease),
                    maxlease: DurationMs::new(maxlease),
                    retries: Retries::new(retries).unwrap(),
                    backoff: Backoff {
                        base: DurationMs::new(base),
                        max: DurationMs::new(max),
                        jitter: Percent::new(jitter).unwrap(),
                    },
                    ttl: DurationMs::new(ttl),
                    maxlen,
                    maxinflight,
                    deadlen,
                    deadttl: DurationMs::new(deadttl),
                    maxpayload,
                    rate: Rate { most, period: DurationMs::new(period) },
                    dedupe: DurationMs::new(dedupe),
                    retain: DurationMs::new(retain),
                    donelen,
                    groupinflight,
                    grouprate: Rate { most: group_most, period: DurationMs::new(group_period) },
                    grouporder: if by_turn { GroupOrder::Turn } else { GroupOrder::Due },
                    errors,
                    delay: DurationMs::new(delay),
                    ..Settings::DEFAULT
                }
            },
        )
}

/// Settings for histories in which a command may concern up to `copies` messages.
fn limited(copies: usize) -> impl Strategy<Value = Settings> {
    settings().prop_map(move |settings| {
        // Low limits would refuse nearly every push of a large history.
        let wide = |limit: u64| if copies > 1 { limit * 200 } else { limit };
        Settings { maxlen: wide(settings.maxlen), maxinflight: wide(settings.maxinflight), ..settings }
    })
}

/// A history with this many steps. A command may concern up to `copies` messages.
pub fn history(steps: std::ops::Range<usize>, copies: usize) -> impl Strategy<Value = History> {
    let start = prop_oneof![
        10 => Just(1_760_000_000_000),
        2 => Just(UnixMs::MIN_AT),
        1 => Just(UnixMs::MAX_AT - 100_000_000),
    ];
    let skew = prop_oneof![Just(0), -3_000i64..3_000, Just(1_000_000)];
    let step = (passed(), act(copies)).prop_map(|(passed, act)| Step { passed, act });
    (limited(copies), start, skew, prop::collection::vec(step, steps))
        .prop_map(|(settings, start, skew, steps)| History { settings, start, skew, steps })
}

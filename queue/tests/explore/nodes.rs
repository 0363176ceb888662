//! A master, its replica and the effects between them.

mod commands;
mod deliveries;
mod pushes;

use crate::acts::{Act, How, Name, Which, LOOSE, NAMES};
use crate::belief::{Belief, Is, Known, Phase, RETRIES};
use crate::faults::Fault;
use dq_queue::forward::{Forward, Source, Targets};
use dq_queue::id::{Floor, Id, Receipt, Sequence, Target};
use dq_queue::rule::Rule;
use dq_queue::settings::{Retries, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::wire::Loader;
use dq_queue::{
    Completion, Due, Effect, Ended, Fate, Flow, FollowUp, Grant, Lease, Nack, NewMessage, Oldest, OnDuplicate, Pause,
    Pop, Pushed, Queue, Refused, Reschedule, Schedule, Scheduled, Series, Stamped, States, ToPurge, Totals, Trimmed,
    Verdict, Which as ToRedrive,
};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

const START: u64 = 1_760_000_000_000;

/// The length of each lease and of each lease that is extended, in ms.
const LEASE: u64 = 2;
/// Each other delay, and each TTL.
const DELAY: u64 = 1;
/// How long completed messages are retained.
const RETAINED: u64 = 2;

/// How far a clock steps forward: further than batches without a member are remembered.
const STEP: u64 = 2 * 86_400_000;

const CONSUMER: &[u8] = b"w";
const BATCH: &[u8] = b"batch";
/// How far the clock of the replica is ahead, for those who read there: longer than anything is retained.
const AHEAD: u64 = 5;

struct Node {
    queue: Queue,
    floor: Floor,
    belief: Belief,
}

pub struct Nodes {
    fault: Option<Fault>,
    now: u64,
    master: Node,
    replica: Node,
    /// The effects on their way to the replica, each with what it lets the replica know.
    link: VecDeque<(Vec<u8>, Belief)>,
    /// The AOF of the master.
    log: Vec<Vec<u8>>,
    /// The last sequence and the last receipt that any node gave.
    last: (u64, u64),
    /// The first and the last receipt that were given for each message.
    given: [Option<(Receipt, Receipt)>; NAMES.len()],
    broken: Option<String>,
}

fn ms(ms: u64) -> UnixMs {
    UnixMs::new(ms)
}

fn settings() -> Settings {
    let retries = Retries::new(RETRIES as i32).unwrap();
    Settings { retries, lease: DurationMs::new(LEASE), ..Settings::default() }
}

fn saved(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    let done: Result<(), Refused> = queue.save(|piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    done.unwrap();
    bytes
}

fn loaded(queue: &Queue, now: u64) -> Queue {
    let mut loader = Loader::default();
    let taken: Result<(), Refused> = queue.save(|piece| loader.take(piece));
    taken.unwrap();
    loader.finish(ms(now)).unwrap()
}

fn digest(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.digest(|piece| bytes.extend_from_slice(piece)).unwrap();
    bytes
}

fn encoded(now: u64, effect: Effect<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    (Stamped { now: ms(now), effect }).encode(&mut bytes).unwrap();
    bytes
}

fn replayed(log: &[Vec<u8>]) -> Result<Queue, Refused> {
    let mut queue: Option<Queue> = None;
    for bytes in log {
        let stamped = Stamped::decode(bytes)?;
        queue = queue.or_else(|| Queue::made_by(&stamped.effect));
        queue.as_mut().ok_or(Refused::Impossible)?.apply(&stamped)?;
    }
    queue.ok_or(Refused::Impossible)
}

fn id(name: Name) -> Id<'static> {
    Id::Named(NAMES[name])
}

impl Nodes {
    pub fn new(fault: Option<Fault>) -> Nodes {
        let node = || Node { queue: Queue::new(settings()), floor: Floor::default(), belief: Belief::default() };
        let log = vec![encoded(START, Effect::Create(settings(), Targets::default()))];
        let (master, replica) = (node(), node());
        let (link, given) = (VecDeque::new(), [None; NAMES.len()]);
        Nodes { fault, now: START, master, replica, link, log, last: (0, 0), given, broken: None }
    }

    /// What distinguishes this state from every other.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for node in [&self.master, &self.replica] {
            saved(&node.queue).hash(&mut hasher);
            (node.floor.sequence, node.floor.receipt, node.belief).hash(&mut hasher);
            node.queue.own_time(UnixMs::EPOCH).hash(&mut hasher);
        }
        // The AOF is not part of it: every step to this state replays its own.
        (self.now, &self.link, self.last, &self.given).hash(&mut hasher);
        hasher.finish()
    }

    /// The promise that does not hold, if there is one.
    pub fn broken(&self) -> Option<String> {
        self.broken.clone().or_else(|| self.check().err())
    }

    fn check(&self) -> Result<(), String> {
        let Nodes { master, replica, now, .. } = self;
        master.belief.compare(&master.queue, *now).map_err(|wrong| format!("on the master, {wrong}"))?;
        // Who reads there sees the time that somebody has seen before, or that of a master whose clock was ahead.
        let seen = replica.queue.own_time(ms(*now)).max(replica.queue.viewed()).as_ms();
        replica.belief.compare(&replica.queue, seen).map_err(|wrong| format!("on the replica, {wrong}"))?;
        let forgotten = usize::from(self.fault == Some(Fault::AofForgets) && self.log.len() > 1);
        let restarted = replayed(&self.log[..self.log.len() - forgotten]).map_err(|refused| refused.to_string())?;
        if digest(&restarted) != digest(&master.queue) {
            return Err("a restart from the AOF changes the queue".to_owned());
        }
        if !self.link.is_empty() {
            return Ok(());
        }
        if digest(&master.queue) != digest(&replica.queue) {
            return Err("the replica has applied everything and has another digest".to_owned());
        }
        let counted = [master, replica].map(|node| {
            let mut copy = node.queue.duplicate().unwrap();
            copy.advance_view(ms(seen), usize::MAX);
            (Totals { duplicates: 0, rejected_full: 0, ..copy.totals() }, copy.counts())
        });
        (counted[0] == counted[1]).then_some(()).ok_or(format!("master and replica count {counted:?}"))
    }

    fn expect(&mut self, holds: bool, promise: &str) {
        if !holds && self.broken.is_none() {
            self.broken = Some(promise.to_owned());
        }
    }

    /// Writes an effect to the AOF and sends it to the replica.
    fn send(&mut self, effect: Effect<'_>) {
        let stamp = self.master.queue.stamp(ms(self.now)).as_ms();
        let ends = self.master.queue.take_ends();
        let (first, second) = if ends.is_empty() { (effect, None) } else { effect.with_ends(ends) };
        for effect in std::iter::once(first).chain(second) {
            let bytes = encoded(stamp, effect);
            self.log.push(bytes.clone());
            self.link.push_back((bytes, self.master.belief));
        }
        self.master.floor.raise(self.master.queue.last_given().0, self.master.queue.last_given().1);
    }

    /// Carries an act out. Returns whether it did anything.
    pub fn carry_out(&mut self, act: Act) -> bool {
        match act {
            Act::Pass => self.now += 1,
            Act::Timer => return self.run_timer(),
            Act::ReplicaTimer => {
                return self.replica.queue.advance_view(ms(self.now), usize::MAX).moved() > 0;
            }
            Act::ReplicaReads => {
                let (queue, ahead) = (&mut self.replica.queue, ms(self.now + AHEAD));
                let is_new = queue.own_time(UnixMs::EPOCH) < ahead;
                queue.notice(ahead);
                return is_new;
            }
            Act::Arrive => return self.arrive(),
            Act::Synchronise => {
                let is_equal = self.link.is_empty();
                self.synchronise();
                return !is_equal;
            }
            Act::Restart => self.restart(),
            Act::StepForward => self.now += STEP,
            Act::RestartEarlier if self.now == START => return false,
            Act::RestartEarlier => {
                self.now = START;
                self.restart();
            }
            Act::TakeOver => self.take_over(),
            act => return self.command(act),
        }
        true
    }

    fn restart(&mut self) {
        self.master.queue = loaded(&self.master.queue, self.now);
        self.master.floor = Floor::default();
        let (sequence, receipt) = self.master.queue.last_given();
        self.master.floor.raise(sequence, receipt);
    }

    fn arrive(&mut self) -> bool {
        if self.fault == Some(Fault::EffectLost) && self.link.len() > 1 {
            self.link.pop_front();
        }
        let Some((bytes, belief)) = self.link.pop_front() else { return false };
        for _ in 0..if self.fault == Some(Fault::EffectTwice) { 2 } else { 1 } {
            let applied = Stamped::decode(&bytes).and_then(|stamped| self.replica.queue.apply(&stamped));
            self.expect(applied.is_ok(), "the replica refuses an effect of its master");
        }
        let (sequence, receipt) = self.replica.queue.last_given();
        self.replica.floor.raise(sequence, receipt);
        self.replica.belief = belief;
        true
    }

    fn synchronise(&mut self) {
        self.replica.queue = loaded(&self.master.queue, self.now);
        let (sequence, receipt) = self.replica.queue.last_given();
        self.replica.floor.raise(sequence, receipt);
        self.replica.belief = self.master.belief;
        if self.fault != Some(Fault::SyncKeepsEffects) {
            self.link.clear();
        }
    }

    fn take_over(&mut self) {
        // A takeover takes a millisecond at least: that is what makes receipts unique although some were lost.
        self.now += u64::from(self.fault != Some(Fault::TakeoverInNoTime));
        std::mem::swap(&mut self.master, &mut self.replica);
        self.link.clear();
        self.log = self.master.queue.pieces().map(|effect| encoded(self.now, effect)).collect();
        self.synchronise();
    }

    fn run_timer(&mut self) -> bool {
        let moved = self.master.queue.advance(ms(self.now), usize::MAX).moved();
        let trimmed = self.master.queue.trim(usize::MAX);
        let dropped = self.note_trimmed(trimmed);
        let failed = self.master.queue.first_failed_run().is_some();
        let others = self.master.queue.end_failed_runs(ms(self.now), usize::MAX);
        let ends = self.master.queue.take_ends();
        let ended = !ends.is_empty() || !others.is_empty();
        if ended {
            self.send(Effect::EndRuns { how: Ended::ByTime, others, ends });
        }
        moved > 0 || dropped || failed || ended
    }

    fn note_trimmed(&mut self, trimmed: Trimmed) -> bool {
        let mut dropped = false;
        for effect in trimmed.effects() {
            dropped = true;
            if let Effect::Trim(spans) = &effect {
                for name in 0..NAMES.len() {
                    let is_dropped = |known: &Known| spans.contain(Sequence(known.sequence));
                    if let Some(known) = self.master.belief.held[name].filter(is_dropped) {
                        let dead = name == LOOSE || matches!(known.at(self.now), Is::Dead(_));
                        self.expect(dead, "a message that is not dead is dropped");
                        self.master.belief.held[name] = None;
                    }
                }
            }
            self.send(effect);
        }
        dropped
    }
}

//! A history carried out: on the reference model, on two masters that are equal but for when they are advanced, and
//! on a replica that knows only the bytes of their effects and a clock of its own.

use crate::history::{Act, Aim, Due, History, Lease, Push, Way, Who, ERRORS, NAMES};
use crate::reference::{self, after, Model, NackedTo, Name, State};
use dq::queue::id::{Floor, Id, IdBuffer, Receipt, Sequence, Target};
use dq::queue::snapshot::Loader;
use dq::queue::time::{DurationMs, UnixMs};
use dq::queue::{self as dq_queue, Effect, Fate, Nack, NewMessage, Pop, Queue, Refused, Stamped, Totals};
use serde_bytes::Bytes;

/// One of two masters.
struct Master {
    queue: Queue,
    floor: Floor,
}

pub struct World {
    model: Model,
    /// Brought up to now before each act.
    eager: Master,
    /// Advanced when the history says so, and no further than its commands need.
    lazy: Master,
    /// Whether the totals of `lazy` are those of a master since its creation.
    lazy_counts: bool,
    /// None until the first effect makes it.
    replica: Option<Queue>,
    replica_seen: u64,
    /// Whether the replica was never ahead of its master, and never told of a time before its master's.
    replica_counts: bool,
    /// The encoded effects since the queue was made, or rewritten.
    log: Vec<Vec<u8>>,
    /// What the clock shows: it may step back, but not to before the server was started.
    clock: u64,
    started: u64,
    skew: i64,
    /// The highest sequence and receipt ever given.
    given: (u64, u64),
    /// Receipts that were given, with the id of their message.
    receipts: Vec<(Vec<u8>, u64)>,
    steps: usize,
}

pub fn run(history: &History) {
    let mut world = World::new(history);
    let last = history.steps.len();
    for (nth, step) in history.steps.iter().enumerate() {
        world.pass(step.passed);
        world.act(&step.act);
        world.check_state(nth + 1 == last || world.model.messages.len() < 50 || nth % 8 == 0);
    }
    world.drain();
}

fn ms(ms: u64) -> UnixMs {
    UnixMs::new(ms)
}

fn digest(queue: &Queue) -> Vec<u8> {
    let mut bytes = Vec::new();
    queue.digest(|piece| bytes.extend_from_slice(piece)).unwrap();
    bytes
}

pub fn reload(queue: &Queue) -> Queue {
    let mut loader = Loader::default();
    let taken: Result<(), Refused> = queue.save(|piece| loader.take(piece));
    taken.expect("what was saved can be loaded");
    loader.finish(UnixMs::MAX).unwrap()
}

/// The effects of a rewritten AOF.
fn rewritten(queue: &Queue) -> Vec<Vec<u8>> {
    let now = queue.viewed();
    let begin = Effect::Begin(queue.header());
    let parts = std::iter::once(begin).chain(queue.chunks().map(Effect::Continue));
    parts.map(|effect| encoded(&Stamped { now, effect })).collect()
}

fn encoded(stamped: &Stamped<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    stamped.encode(&mut bytes).unwrap();
    bytes
}

/// Applies an effect as a server does: to the queue there is, or to the one that it makes.
fn apply(queue: &mut Option<Queue>, bytes: &[u8]) {
    let stamped = Stamped::decode(bytes).unwrap();
    if queue.is_none() {
        *queue = Queue::made_by(&stamped.effect);
    }
    queue.as_mut().expect("the first effect makes a queue").apply(&stamped).unwrap();
}

fn replayed(log: &[Vec<u8>]) -> Option<Queue> {
    let mut queue = None;
    log.iter().for_each(|bytes| apply(&mut queue, bytes));
    queue
}

impl World {
    fn new(history: &History) -> World {
        let master = || Master { queue: Queue::new(history.settings), floor: Floor::default() };
        World {
            model: Model::new(history.settings, history.start),
            eager: master(),
            lazy: master(),
            lazy_counts: true,
            replica: None,
            replica_seen: 0,
            replica_counts: true,
            log: Vec::new(),
            clock: history.start,
            started: history.start,
            skew: history.skew,
            given: (0, 0),
            receipts: Vec::new(),
            steps: 0,
        }
    }

    /// The clock moves; the model and the eager master follow.
    fn pass(&mut self, passed: i64) {
        self.steps += 1;
        if passed < 0 {
            // Who does not know that it was later already has nothing to hold on to.
            self.lazy.queue.advance(ms(self.clock), 0);
        }
        self.clock = self.clock.saturating_add_signed(passed).clamp(self.started, UnixMs::MAX.as_ms());
        self.advance_eager();
    }

    fn advance_eager(&mut self) {
        let wake = self.eager.queue.next_wake();
        let moved = self.model.advance(self.clock);
        let advanced = self.eager.queue.advance(ms(self.clock), usize::MAX);
        assert!(advanced.done);
        assert_eq!(advanced.died, moved.died);
        assert!(advanced.ready >= moved.newly_ready, "{advanced:?} of {}", moved.newly_ready);
        assert!(moved.events > 0 || advanced.moved() == 0, "{advanced:?}");
        if moved.events > 0 {
            // Never late.
            assert!(wake.is_some_and(|wake| wake <= ms(self.model.now)), "{wake:?}");
        }
        assert_eq!(advanced.next, self.eager.queue.next_wake());
        assert_eq!(advanced.next, self.next_event(), "never late, never idle");
    }

    fn next_event(&self) -> Option<UnixMs> {
        self.model.next_event().map(ms)
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Push(push) => self.push(push),
            Act::Pop { count, lease } => self.pop(*count, *lease),
            Act::Ack(aims) => self.ack(aims),
            Act::Nack { aim, delay, error, reject } => self.nack(aim, *delay, error.map(|nth| ERRORS[nth]), *reject),
            Act::Extend { aim, lease } => self.extend(aim, *lease),
            Act::Advance { budget } => self.advance_lazy(*budget),
            Act::AdvanceReplica { ahead, budget } => self.advance_replica(*ahead, *budget),
            Act::Trim { budget, by } => self.trim(*budget, *by),
            Act::Reload(way) => self.reload(*way),
            Act::Failover => self.fail_over(),
            Act::Remake => self.remake(),
        }
    }

    /// Sends an effect that both masters agree on.
    fn send(&mut self, effect: Effect<'_>) {
        let bytes = encoded(&Stamped { now: ms(self.clock), effect });
        self.replica_counts &= self.clock == self.model.now;
        apply(&mut self.replica, &bytes);
        self.log.push(bytes);
    }

    fn push(&mut self, push: &Push) {
        let now = self.model.now;
        let mut images = Vec::new();
        let payloads: Vec<Vec<u8>> =
            (0..push.copies).map(|copy| vec![(self.steps + copy) as u8; push.size + copy % 7]).collect();
        for (copy, payload) in payloads.iter().enumerate() {
            let due = match push.due {
                Due::Now => dq_queue::Due::Now,
                Due::After(delay) => dq_queue::Due::After(DurationMs::new(delay + copy as u64 % 5)),
                Due::At(from_now) => dq_queue::Due::At(ms(now.saturating_add_signed(from_now))),
                Due::AtTheEnd => dq_queue::Due::At(ms(UnixMs::MAX_AT)),
            };
            let name = push.name.filter(|_| copy == 0).map(|nth| NAMES[nth]);
            let message = NewMessage {
                payload,
                name,
                due,
                priority: push.priority,
                retries: push.retries.map(|count| dq_queue::settings::Retries::new(count).unwrap()),
                lease: push.lease.map(DurationMs::new),
                ttl: push.ttl.map(DurationMs::new),
                replace: push.replace,
            };
            let pushed = self.eager.push(self.clock, &message);
            assert_eq!(self.lazy.push(self.clock, &message), pushed);

            let sequence = match pushed {
                dq_queue::Pushed::Added { image, .. } => Some(image.record.sequence.0),
                _ => None,
            };
            let request = reference::Push {
                payload,
                name,
                due: match push.due {
                    Due::Now => now,
                    Due::After(delay) => after(now, (delay + copy as u64 % 5).min(DurationMs::MAX.as_ms())),
                    Due::At(from_now) => now.saturating_add_signed(from_now).min(UnixMs::MAX.as_ms()),
                    Due::AtTheEnd => UnixMs::MAX_AT,
                },
                priority: push.priority,
                retries: push.retries,
                lease: push.lease,
                ttl: push.ttl,
                replace: push.replace,
            };
            let expected = self.model.push(&request, sequence);
            match (pushed, expected) {
                (dq_queue::Pushed::Added { image, replaced }, reference::Pushed::Added { replaced: expected }) => {
                    assert_eq!(replaced, expected);
                    self.give_sequence(image.record.sequence);
                    images.push(image);
                }
                (dq_queue::Pushed::Duplicate, reference::Pushed::Duplicate) => {}
                (dq_queue::Pushed::Full { held }, reference::Pushed::Full(expected)) => assert_eq!(held, expected),
                (pushed, expected) => panic!("{pushed:?} and not {expected:?}"),
            }
        }
        if !images.is_empty() {
            let settings = self.replica.is_none().then_some(self.model.settings);
            self.send(Effect::Push(settings, images));
        }
    }

    /// Sequences only rise, and tell the time unless that stepped back.
    fn give_sequence(&mut self, sequence: Sequence) {
        let expected = (self.model.now << 20).max(self.given.0 + 1);
        assert_eq!(sequence.0, expected, "{sequence}");
        self.given.0 = sequence.0;
    }

    fn pop(&mut self, count: usize, lease: Lease) {
        let pop = Pop {
            count,
            lease: match lease {
                Lease::Default => dq_queue::Lease::Default,
                Lease::For(lease) => dq_queue::Lease::For(DurationMs::new(lease)),
                Lease::NoAck => dq_queue::Lease::NoAck,
            },
        };
        let expected = self.model.deliverable(count, matches!(lease, Lease::NoAck));
        if self.eager.queue.has_ready(ms(self.clock)) != (expected > 0) {
            panic!("has_ready where {expected} can be delivered");
        }
        assert!(self.lazy.queue.has_ready(ms(self.clock)) || expected == 0);
        assert_eq!(self.lazy.queue.deliverable(ms(self.clock), &pop), expected);
        let (delivered, grants) = self.eager.pop(self.clock, &pop);
        assert_eq!(self.lazy.pop(self.clock, &pop), (delivered.clone(), grants.clone()));

        let lent = match lease {
            Lease::Default => Some(None),
            Lease::For(lease) => Some(Some(lease)),
            Lease::NoAck => None,
        };
        let receipts: Vec<u64> = delivered.iter().filter_map(|popped| popped.receipt).collect();
        let expected = self.model.pop(count, lent, &receipts);
        assert_eq!(delivered.len(), expected.len());
        assert_eq!(grants.len(), expected.len());
        for (popped, message) in delivered.iter().zip(&expected) {
            assert_eq!(popped.sequence, message.sequence);
            assert_eq!(popped.name, message.name);
            assert_eq!(popped.payload, message.payload);
            assert_eq!(popped.attempt, message.attempts + 1);
            assert_eq!(popped.receipt.is_some(), lent.is_some());
            if let Some(receipt) = popped.receipt {
                assert!(receipt > self.given.1, "receipts never repeat");
                self.given.1 = receipt;
                self.receipts.push((id_of(message), receipt));
            }
        }
        if !grants.is_empty() {
            self.send(match lease {
                Lease::NoAck => Effect::Take(grants.iter().map(|grant| grant.sequence).collect()),
                Lease::Default | Lease::For(_) => Effect::Deliver(grants),
            });
        }
    }

    /// What a consumer would say, as bytes.
    fn text(&self, aim: &Aim) -> Vec<u8> {
        let messages = &self.model.messages;
        let nth = |nth: usize, len: usize| if len == 0 { None } else { Some(nth % len) };
        let receipt = |id: &[u8], receipt: u64| [id, format!("#{receipt}").as_bytes()].concat();
        let nothing = || b"0-99".to_vec();
        match aim {
            Aim::Id(which) => nth(*which, messages.len()).map_or_else(nothing, |at| id_of(&messages[at])),
            Aim::Receipt(which) => {
                let having: Vec<_> = messages.iter().filter(|message| message.receipt.is_some()).collect();
                nth(*which, having.len()).map_or_else(nothing, |at| {
                    let message = having[at];
                    receipt(&id_of(message), message.receipt.unwrap())
                })
            }
            Aim::OldReceipt(which) => nth(*which, self.receipts.len())
                .map_or_else(nothing, |at| receipt(&self.receipts[at].0, self.receipts[at].1)),
            Aim::Sequence(which) => nth(*which, messages.len())
                .map_or_else(nothing, |at| Sequence(messages[at].sequence).to_string().into_bytes()),
            Aim::Nothing => b"nothing".to_vec(),
        }
    }

    fn ack(&mut self, aims: &[Aim]) {
        let mut acked = Vec::new();
        for aim in aims {
            let text = self.text(aim);
            let (target, name, receipt) = parsed(&text);
            let sequence = self.eager.queue.ack(ms(self.clock), &target);
            assert_eq!(self.lazy.queue.ack(ms(self.clock), &target), sequence);
            assert_eq!(sequence.map(|sequence| sequence.0), self.model.ack(&name, receipt));
            acked.extend(sequence);
        }
        if !acked.is_empty() {
            self.send(Effect::Ack(acked));
        }
    }

    fn nack(&mut self, aim: &Aim, delay: Option<u64>, error: Option<&[u8]>, reject: bool) {
        let text = self.text(aim);
        let (target, name, receipt) = parsed(&text);
        let nack = Nack { delay: delay.map(DurationMs::new), error, reject };
        let nacked = self.eager.queue.nack(ms(self.clock), &target, &nack);
        assert_eq!(self.lazy.queue.nack(ms(self.clock), &target, &nack), nacked);
        let expected = self.model.nack(&name, receipt, delay, error, reject);
        let Some(nacked) = nacked else { return assert_eq!(expected, None) };
        let (sequence, to, state) = expected.expect("it is not in flight");
        assert_eq!(nacked.sequence.0, sequence);
        assert_eq!(state_of(nacked.state, 0), state);
        match (nacked.fate, to) {
            (Fate::Due(due), NackedTo::Due(expected)) => assert_eq!(due.as_ms(), expected),
            (Fate::Dead { died, reason }, NackedTo::Dead(expected)) => {
                assert_eq!((died.as_ms(), reason), (self.model.now, expected));
            }
            (fate, to) => panic!("{fate:?} and not {to:?}"),
        }
        self.send(Effect::Nack(nacked.sequence, nacked.fate, nacked.error.map(Bytes::new)));
    }

    fn extend(&mut self, aim: &Aim, lease: Option<u64>) {
        let text = self.text(aim);
        let (target, name, receipt) = parsed(&text);
        let lease_ms = lease.map(DurationMs::new);
        let extended = self.eager.queue.extend(ms(self.clock), &target, lease_ms);
        assert_eq!(self.lazy.queue.extend(ms(self.clock), &target, lease_ms), extended);
        let expected = self.model.extend(&name, receipt, lease);
        assert_eq!(extended.map(|(sequence, deadline)| (sequence.0, deadline.as_ms())), expected);
        if let Some((sequence, deadline)) = extended {
            self.send(Effect::Extend(sequence, deadline));
        }
    }

    fn advance_lazy(&mut self, budget: usize) {
        let before = digest(&self.lazy.queue);
        let moved = |queue: &Queue| queue.totals().died + queue.totals().lease_expired;
        let moved_before = moved(&self.lazy.queue);
        let advanced = self.lazy.queue.advance(ms(self.clock), budget);
        let moved = (moved(&self.lazy.queue) - moved_before) as usize;
        assert!(moved <= 2 * budget.min(usize::MAX / 2), "a step ends one lease and may kill its message");
        if advanced.done {
            assert_eq!(self.lazy.queue.counts(), self.model.counts());
            assert_eq!(advanced.next, self.next_event());
        } else {
            assert_eq!(advanced.next, Some(ms(self.model.now)));
        }
        assert!(advanced.done || budget < usize::MAX);
        assert_eq!(digest(&self.lazy.queue), before, "time is no decision");
    }

    fn advance_replica(&mut self, ahead: i64, budget: usize) {
        let now = self.clock.saturating_add_signed(self.skew + ahead).min(UnixMs::MAX.as_ms());
        if let Some(replica) = &mut self.replica {
            self.replica_seen = self.replica_seen.max(now);
            self.replica_counts &= now <= self.model.now;
            replica.advance_view(ms(now), budget);
        }
    }

    /// One master drops what is over `deadlen`, the other is told.
    fn trim(&mut self, budget: usize, by: Who) {
        let excess = self.model.excess_dead();
        let (trimmer, other) = match by {
            Who::Eager => (&mut self.eager.queue, &mut self.lazy.queue),
            Who::Lazy => (&mut self.lazy.queue, &mut self.eager.queue),
        };
        let had_excess = trimmer.has_excess_dead();
        let trimmed = trimmer.trim_dead(budget);
        let finished = !trimmer.has_excess_dead();
        let dropped = match trimmed {
            None => 0,
            Some((died, sequence)) => {
                let before = self.model.messages.len();
                while self.model.oldest_dead().is_some_and(|oldest| oldest <= (died.as_ms(), sequence.0)) {
                    self.model.drop_oldest_dead();
                }
                let effect = Effect::TrimDead(died, sequence);
                other.apply(&Stamped { now: ms(self.model.now), effect: effect.clone() }).unwrap();
                self.send(effect);
                before - self.model.messages.len()
            }
        };
        assert!(dropped <= budget.min(excess));
        match by {
            Who::Eager => assert_eq!(dropped, budget.min(excess)),
            // It drops no less of what it knows to be dead.
            Who::Lazy => assert!(dropped > 0 || !had_excess || budget < usize::MAX),
        }
        assert!(finished || budget < usize::MAX);
    }

    fn reload(&mut self, way: Way) {
        if self.replica.is_none() {
            return;
        }
        for master in [&mut self.eager, &mut self.lazy] {
            let before = digest(&master.queue);
            let copy = match way {
                Way::Save => reload(&master.queue),
                Way::Rewrite => replayed(&rewritten(&master.queue)).unwrap(),
                Way::Copy => master.queue.duplicate().unwrap(),
                Way::Replay => replayed(&self.log).unwrap(),
            };
            assert_eq!(digest(&copy), before);
            assert_eq!(copy.settings(), master.queue.settings());
            assert_eq!(copy.last_given(), master.queue.last_given());
            // What refused pushes counted leaves no trace in the AOF: only the others go on with the copy.
            if !matches!(way, Way::Replay) {
                assert_eq!(copy.header(), master.queue.header(), "what is saved is saved again");
                master.queue = copy;
            }
        }
        if matches!(way, Way::Rewrite) {
            self.log = rewritten(&self.lazy.queue);
        }
        self.restart_at(self.model.now);
    }

    /// The replica becomes a master, and a new replica is made of it.
    fn fail_over(&mut self) {
        let Some(replica) = self.replica.take() else { return };
        self.replica = Some(reload(&replica));
        self.lazy.queue = replica;
        self.lazy_counts = false;
        self.restart_at(self.model.now.max(self.replica_seen));
    }

    /// A server starts that knows nothing of the time so far.
    fn restart_at(&mut self, now: u64) {
        self.started = now;
        self.clock = now;
        self.advance_eager();
    }

    /// The queue is deleted, and the next push makes another.
    fn remake(&mut self) {
        let settings = self.model.settings;
        self.model = Model::new(settings, self.model.now);
        self.eager.queue = Queue::new(settings);
        self.lazy.queue = Queue::new(settings);
        self.lazy_counts = true;
        self.replica = None;
        self.replica_counts = true;
        self.replica_seen = 0;
        self.log.clear();
        self.restart_at(self.model.now);
    }

    /// All that can be seen from outside is what the model says.
    fn check_state(&mut self, thorough: bool) {
        let now = ms(self.clock);
        let eager = &self.eager.queue;
        assert_eq!(eager.counts(), self.model.counts());
        assert_eq!(eager.counts_at(now), self.model.counts());
        assert_eq!(eager.totals(), &self.model.totals);
        assert_eq!(self.lazy.queue.counts().payload_bytes, self.model.counts().payload_bytes);
        let lazy = self.lazy.queue.counts_at(now);
        assert_eq!(lazy.delayed + lazy.ready + lazy.inflight + lazy.dead, self.model.messages.len() as u64);
        let wake = self.lazy.queue.next_wake();
        assert!(self.next_event().is_none_or(|event| wake.is_some_and(|wake| wake <= event)), "{wake:?} is late");
        let due = self.model.messages.iter().filter(|message| message.state == State::Delayed);
        assert_eq!(eager.next_due(now).map(UnixMs::as_ms), due.map(|message| message.due).min());
        let ready = self.model.messages.iter().filter(|message| message.state == State::Ready);
        let oldest = ready.map(|message| self.model.now - message.due).max();
        assert_eq!(eager.oldest_ready(now).map(DurationMs::as_ms), oldest);
        if !thorough {
            return;
        }
        let expected = digest(&self.eager.queue);
        assert!(digest(&self.lazy.queue) == expected, "the masters differ");
        if let Some(replica) = &self.replica {
            assert!(digest(replica) == expected, "the replica differs");
        }
        assert!(self
            .eager
            .queue
            .images()
            .map(|image| image.record.sequence)
            .map(|sequence| sequence.0)
            .eq(self.sorted_sequences()));
        for message in &self.model.messages {
            for queue in [&self.eager.queue, &self.lazy.queue] {
                check_message(queue, now, message);
            }
        }
        self.check_totals();
    }

    fn sorted_sequences(&self) -> Vec<u64> {
        let mut sequences: Vec<u64> = self.model.messages.iter().map(|message| message.sequence).collect();
        sequences.sort_unstable();
        sequences
    }

    /// One big advance counts what many small ones do.
    fn check_totals(&self) {
        if self.steps % 4 != 0 {
            return;
        }
        let mut copy = self.lazy.queue.duplicate().unwrap();
        copy.advance(ms(self.clock), usize::MAX);
        assert_eq!(copy.counts(), self.model.counts());
        if self.lazy_counts {
            assert_eq!(copy.totals(), &self.model.totals);
        }
        let Some(replica) = self.replica.as_ref().filter(|_| self.replica_counts) else { return };
        let mut copy = replica.duplicate().unwrap();
        copy.advance_view(ms(self.model.now), usize::MAX);
        // Refused pushes leave no trace.
        let told = Totals { duplicates: 0, rejected_full: 0, ..self.model.totals };
        assert_eq!(Totals { duplicates: 0, rejected_full: 0, ..*copy.totals() }, told);
    }

    /// Everything that will ever be delivered is, in the same order, by the masters and by the replica.
    fn drain(&mut self) {
        let everything = Pop { count: usize::MAX, lease: dq_queue::Lease::NoAck };
        let mut others: Vec<Master> = [
            Some(self.lazy.queue.duplicate().unwrap()),
            Some(reload(&self.eager.queue)),
            replayed(&rewritten(&self.lazy.queue)),
            replayed(&self.log).filter(|_| self.replica.is_some()),
            self.replica.take(),
        ]
        .into_iter()
        .flatten()
        .map(|queue| Master { queue, floor: Floor::default() })
        .collect();
        // The replica may have seen later times than its master.
        self.clock = self.model.now.max(self.replica_seen);
        self.advance_eager();
        loop {
            let (delivered, _) = self.eager.pop(self.clock, &everything);
            let expected = self.model.pop(usize::MAX, None, &[]);
            assert!(delivered.iter().map(|popped| popped.sequence).eq(expected.iter().map(|popped| popped.sequence)));
            assert_eq!(self.lazy.pop(self.clock, &everything).0, delivered);
            for other in &mut others {
                assert_eq!(other.pop(self.clock, &everything).0, delivered);
            }
            let Some(next) = self.model.next_event() else { break };
            self.clock = next;
            self.advance_eager();
        }
        let dead = self.model.counts().dead;
        for queue in others.iter().map(|other| &other.queue).chain([&self.eager.queue, &self.lazy.queue]) {
            assert!(digest(queue).ends_with(&digest(&self.eager.queue)[digest_head(queue)..]));
            assert_eq!(queue.counts_at(ms(self.clock)).dead, dead);
        }
    }
}

/// How long the part of a digest is that is not of messages.
fn digest_head(queue: &Queue) -> usize {
    let mut head = None;
    queue
        .digest(|piece| {
            head.get_or_insert(piece.len());
        })
        .unwrap();
    head.unwrap()
}

/// A delivery, owned.
#[derive(Clone, Debug, PartialEq)]
pub struct Popped {
    pub sequence: u64,
    pub name: Option<Vec<u8>>,
    pub payload: Vec<u8>,
    pub attempt: u32,
    pub receipt: Option<u64>,
}

impl Master {
    fn push<'a>(&mut self, clock: u64, message: &NewMessage<'a>) -> dq_queue::Pushed<'a> {
        self.queue.push(ms(clock), &mut self.floor, message)
    }

    fn pop(&mut self, clock: u64, pop: &Pop) -> (Vec<Popped>, Vec<dq_queue::Grant>) {
        let (mut delivered, mut grants) = (Vec::new(), Vec::new());
        self.queue.pop(ms(clock), &mut self.floor, pop, &mut grants, |message| {
            delivered.push(Popped {
                sequence: message.grant.sequence.0,
                name: message.name.map(<[u8]>::to_vec),
                payload: message.payload.to_vec(),
                attempt: message.grant.attempt,
                receipt: message.lent.then_some(message.grant.receipt.0),
            });
        });
        (delivered, grants)
    }
}

fn id_of(message: &reference::Message) -> Vec<u8> {
    message.name.clone().unwrap_or_else(|| Sequence(message.sequence).to_string().into_bytes())
}

/// What a client says, as the queue and as the model understand it.
fn parsed(text: &[u8]) -> (Target<'_>, Name, Option<u64>) {
    let target = Target::parse(text).unwrap();
    let receipt = target.receipt.map(|receipt| receipt.0);
    let name = match target.id {
        Id::Generated(sequence) => Name::Sequence(sequence.0),
        Id::Named(name) => Name::Text(name.to_vec()),
    };
    (target, name, receipt)
}

fn state_of(state: dq_queue::State, deadline: u64) -> State {
    match state {
        dq_queue::State::Delayed => State::Delayed,
        dq_queue::State::Ready => State::Ready,
        dq_queue::State::InFlight => State::InFlight { deadline },
        dq_queue::State::Dead { died, reason } => State::Dead { died: died.as_ms(), reason },
    }
}

fn check_message(queue: &Queue, now: UnixMs, expected: &reference::Message) {
    let text = id_of(expected);
    let found = queue.get(now, &Id::parse(&text).unwrap()).expect("it is there");
    let record = found.record;
    let deadline = match record.phase {
        dq_queue::Phase::Leased { deadline, .. } => deadline.as_ms(),
        dq_queue::Phase::Waiting | dq_queue::Phase::Dead { .. } => 0,
    };
    assert_eq!(state_of(found.state, deadline), expected.state, "{expected:?} is {found:?}");
    assert_eq!(record.sequence.0, expected.sequence);
    assert_eq!(found.name, expected.name.as_deref());
    assert_eq!(found.payload, expected.payload);
    assert_eq!(found.error, expected.error.as_deref());
    assert_eq!(record.priority, expected.priority);
    assert_eq!(record.due.as_ms(), expected.due);
    assert_eq!(record.retries.count(), expected.retries);
    assert_eq!(record.lease.map(DurationMs::as_ms), expected.lease);
    assert_eq!(record.attempts, expected.attempts);
    assert_eq!(record.receipt().map(|receipt| receipt.0), expected.receipt);
    let ttl = record.ttl.map_or((0, reference::NEVER), |ttl| (ttl.duration.as_ms(), ttl.end.as_ms()));
    assert_eq!(ttl, (expected.ttl, expected.expires));
    let lease = expected.lease.unwrap_or(queue.settings().lease.as_ms());
    assert_eq!(found.lease.as_ms(), lease);
    if let Some(receipt) = expected.receipt {
        let mut buffer = IdBuffer::new();
        let id = buffer.id(record.sequence, found.name);
        let printed = buffer.receipt(id, Receipt(receipt));
        assert_eq!(Target::parse(buffer.text(printed)).unwrap().receipt, Some(Receipt(receipt)));
    }
}

//! Carries out a history on the reference model, on two masters that differ only in when they are advanced, and on a
//! replica that receives only the bytes of their effects and has its own clock.

mod acts;
mod ahead;
mod awaits;
mod batches;
mod checks;
mod completing;
mod consumers;
mod schedules;
mod statistics;
mod words;

use crate::exercise::{digest, reload};
use crate::history::{Act, History, Way, Who, CHECKPOINTS, ERRORS, GROUPS};
use crate::recurring::End;
use crate::reference::{Model, NEVER};
use awaits::{AllClients, Awaits};
use dq_queue::forward::{Source, Targets};
use dq_queue::id::Floor;
use dq_queue::time::UnixMs;
use dq_queue::{Effect, NewMessage, Pop, Queue, Stamped, Trimmed};
use statistics::Since;

/// A master and the floor of its ids.
struct Master {
    queue: Queue,
    floor: Floor,
    since: Since,
}

pub struct World {
    model: Model,
    /// The master that is advanced to the current time before each act.
    eager: Master,
    /// The master that is advanced only when the history says so; otherwise its commands process what they need.
    lazy: Master,
    /// Whether `lazy` has counted its totals as a master since it was created.
    lazy_counts: bool,
    /// The replica; `None` until the first effect creates it.
    replica: Option<Queue>,
    replica_since: Since,
    replica_seen: u64,
    /// Whether the replica has never been ahead of its master and has never received an earlier time than its master's.
    replica_counts: bool,
    /// Where the queue forwards to.
    targets: Targets,
    /// The encoded effects since the queue was created or its AOF was rewritten.
    log: Vec<Vec<u8>>,
    /// The time of the clock, in ms. It may step back, but not to before the start of the server.
    clock: u64,
    started: u64,
    skew: i64,
    /// The highest sequence and the highest receipt that were issued.
    given: (u64, u64),
    /// The receipts that were issued, each with the id of its message.
    receipts: Vec<(Vec<u8>, u64)>,
    /// The ends of runs that the model has seen and the masters have not told of yet.
    expected_ends: Vec<End>,
    /// The clients that wait for the end of a message.
    clients: AllClients,
    steps: usize,
    /// The name under which messages are popped at present.
    consumer: Option<usize>,
}

pub fn run(history: &History) {
    let mut world = World::new(history);
    let last = history.steps.len();
    for (nth, step) in history.steps.iter().enumerate() {
        world.pass(step.passed);
        let dead = world.dead_ids();
        let held = world.held();
        world.act(&step.act);
        world.check_lost(&step.act, &held);
        world.check_awaits(&dead);
        world.check_state(nth + 1 == last || world.model.messages.len() < 50 || nth % 8 == 0);
    }
    world.drain();
}

/// The effects of a history since its queue was last created or its AOF rewritten.
pub fn effects(history: &History) -> Vec<Vec<u8>> {
    let mut world = World::new(history);
    for step in &history.steps {
        world.pass(step.passed);
        world.act(&step.act);
    }
    world.log
}

fn ms(ms: u64) -> UnixMs {
    UnixMs::new(ms)
}

/// The effects of a rewritten AOF.
fn rewritten(queue: &Queue) -> Vec<Vec<u8>> {
    let now = queue.viewed();
    queue.pieces().map(|effect| encoded(&Stamped { now, effect })).collect()
}

fn encoded(stamped: &Stamped<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    stamped.encode(&mut bytes).unwrap();
    bytes
}

/// Applies an effect as a server does: to the existing queue, or to the one that the effect creates.
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
        let master =
            || Master { queue: Queue::new(history.settings), floor: Floor::default(), since: Since::default() };
        World {
            model: Model::new(history.settings, history.start),
            eager: master(),
            lazy: master(),
            lazy_counts: true,
            replica: None,
            replica_since: Since::default(),
            replica_seen: 0,
            replica_counts: true,
            targets: Targets::default(),
            log: Vec::new(),
            clock: history.start,
            started: history.start,
            skew: history.skew,
            given: (0, 0),
            receipts: Vec::new(),
            expected_ends: Vec::new(),
            clients: AllClients::default(),
            steps: 0,
            consumer: None,
        }
    }

    /// Moves the clock, the model and the eager master.
    fn pass(&mut self, passed: i64) {
        self.steps += 1;
        if passed < 0 {
            // Before a step back, the lazy master notices the latest time, so that its time does not run backwards
            // either.
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
        if advanced.died > 0 {
            self.clients.eager.each(Awaits::look_again);
        }
        assert!(advanced.ready >= moved.newly_ready, "{advanced:?} of {}", moved.newly_ready);
        assert!(moved.events > 0 || advanced.moved() == 0, "{advanced:?}");
        if moved.events > 0 {
            // The queue had announced a wake-up that was not too late.
            assert!(wake.is_some_and(|wake| wake <= ms(self.model.now)), "{wake:?}");
        }
        assert_eq!(advanced.next, self.eager.queue.next_wake());
        assert_eq!(advanced.next, self.next_event(), "never late, never idle");
    }

    /// The next instant at which time does something to a message, ends a pause, or lets the rate limit or a group
    /// allow a delivery.
    fn next_event(&self) -> Option<UnixMs> {
        let opens = match self.model.paused_until {
            NEVER => None,
            end if end > self.model.now => Some(end),
            _ => self.model.next_delivery(),
        };
        self.model.next_event().into_iter().chain(opens).chain(self.model.next_opening()).min().map(ms)
    }

    fn act(&mut self, act: &Act) {
        self.model.forget_groups();
        match act {
            Act::Push(push) => self.push(push),
            Act::Pop { count, lease } => self.pop(*count, *lease),
            Act::Ack(aims) => self.ack(aims),
            Act::Complete { aim, result, retain } => self.complete(aim, *result, *retain),
            Act::Nack { aim, delay, error, verdict, checkpoint } => {
                let (error, checkpoint) = (error.map(|nth| ERRORS[nth]), checkpoint.map(|nth| CHECKPOINTS[nth]));
                self.nack(aim, *delay, error, *verdict, checkpoint);
            }
            Act::Bury { aim, error } => self.bury(aim, error.map(|nth| ERRORS[nth])),
            Act::Promote { count, until } => self.promote(*count, *until),
            Act::Extend { aims, lease, checkpoint } => {
                self.extend(aims, *lease, checkpoint.map(|nth| CHECKPOINTS[nth]));
            }
            Act::PushAll { of, names } => self.push_all(of, names.as_deref()),
            Act::Cancel(aims) => self.cancel(aims),
            Act::Reschedule { aim, due, priority } => self.reschedule(aim, *due, *priority),
            Act::Redrive { which, delay } => self.redrive(which, *delay),
            Act::Purge(of) => self.purge(of),
            Act::PurgeGroup { group, of } => self.purge_group(*group, of),
            Act::Alter { settings, by } => self.alter(*settings, *by),
            Act::ForwardTo(to) => self.set_target(Source::Due, *to),
            Act::Forward { count, taken } => self.forward(*count, *taken),
            Act::ForwardDeadTo(to) => self.set_target(Source::Dead, *to),
            Act::ForwardDead { count, taken } => self.forward_dead(*count, *taken),
            Act::Suspend(flow, length) => self.suspend(*flow, *length),
            Act::Resume(flow) => self.resume(*flow),
            Act::SuspendGroup(group, length) => self.suspend_group(GROUPS[*group], *length),
            Act::ResumeGroup(group) => self.resume_group(GROUPS[*group]),
            Act::Advance { budget } => self.advance_lazy(*budget),
            Act::AdvanceReplica { ahead, budget, reads } => self.advance_replica(*ahead, *budget, *reads),
            Act::Trim { budget, by } => self.trim(*budget, *by),
            Act::Schedule(every) => self.schedule(every),
            Act::Beside { which, of } => self.act_beside(*which, of),
            Act::EndRuns { budget, by } => self.end_runs(*budget, *by),
            Act::Reload(way) => self.reload(*way),
            Act::Failover => self.fail_over(),
            Act::Ahead { by, act } => self.act_ahead(*by, act),
            Act::Remake => self.remake(),
            Act::AckPop { aims, count, lease } => self.ack_pop(aims, *count, *lease),
            Act::WorkAs(consumer) => self.consumer = *consumer,
            Act::CloseBatch { batch, then } => self.close_batch(*batch, then),
            Act::CancelBatch(batch) => self.cancel_batch(*batch),
            Act::Release { consumer, count, verdict } => self.release(*consumer, *count, *verdict),
        }
    }

    /// Sends an effect that both masters agree on, stamped with the queue's own time.
    fn send(&mut self, effect: Effect<'_>) {
        let stamps = [&mut self.eager.queue, &mut self.lazy.queue].map(|queue| queue.stamp(ms(self.clock)));
        assert_eq!(stamps, [ms(self.model.now); 2]);
        self.model.forget_known();
        self.settle_batches();
        self.model.forget_batches();
        self.send_at(self.model.now, effect);
    }

    fn send_at(&mut self, now: u64, effect: Effect<'_>) {
        for effect in self.with_ends(effect) {
            self.clients.each(|clients| clients.note(&effect));
            let bytes = encoded(&Stamped { now: ms(now), effect });
            self.replica_counts &= self.clock == self.model.now;
            if self.replica.is_none() {
                self.replica_since = Since::default();
            }
            apply(&mut self.replica, &bytes);
            self.log.push(bytes);
        }
    }

    fn advance_lazy(&mut self, budget: usize) {
        let before = digest(&self.lazy.queue);
        let moved = |queue: &Queue| queue.totals().died + queue.totals().lease_expired;
        let moved_before = moved(&self.lazy.queue);
        let advanced = self.lazy.queue.advance(ms(self.clock), budget);
        if advanced.died > 0 {
            self.clients.lazy.each(Awaits::look_again);
        }
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

    /// The timer of the replica runs, after a client has read the queue there if `reads` says so.
    fn advance_replica(&mut self, ahead: i64, budget: usize, reads: bool) {
        let now = self.clock.saturating_add_signed(self.skew + ahead).min(UnixMs::MAX.as_ms());
        if let Some(replica) = &mut self.replica {
            self.replica_seen = self.replica_seen.max(now);
            self.replica_counts &= now <= self.model.now;
            if reads {
                replica.notice(ms(now));
            }
            if replica.advance_view(ms(now), budget).died > 0 {
                self.clients.replica.each(Awaits::look_again);
            }
        }
    }

    /// One master drops dead and done messages that are no longer kept, and the other one applies its effects.
    fn trim(&mut self, budget: usize, by: Who) {
        let (dead, done) = (self.model.excess_dead(), self.model.excess_done().len());
        let trimmer = match by {
            Who::Eager => &mut self.eager.queue,
            Who::Lazy => &mut self.lazy.queue,
        };
        trimmer.notice(ms(self.clock));
        let had_excess = trimmer.has_excess();
        let (bytes_before, pushed) = (stored_bytes(trimmer), trimmer.totals().pushed);
        let trimmed = trimmer.trim(budget);
        let finished = !trimmer.has_excess();
        // What follows a batch whose last member was dropped is stored meanwhile, and takes the id of a done message.
        let followed = (trimmer.totals().pushed - pushed) as usize;
        let freed = bytes_before + followed * 8_200 - stored_bytes(trimmer);
        let dropped = self.note_trimmed(trimmed, by);
        assert!(dropped <= budget.min(dead + done));
        match by {
            // A large payload or result takes several steps.
            Who::Eager => {
                assert!(dropped + followed >= budget.min(dead + done) || dropped + freed / 8192 >= budget);
            }
            // The lazy master drops at least what it knows to be dead.
            Who::Lazy => assert!(dropped > 0 || !had_excess || budget < usize::MAX),
        }
        assert!(finished || budget < usize::MAX);
    }

    /// Takes note of what one master dropped, and lets the other one apply its effects. Returns how many messages that
    /// were.
    pub(super) fn note_trimmed(&mut self, trimmed: Trimmed, by: Who) -> usize {
        let dead = self.model.drop_dead_in(&trimmed.dead);
        // What follows a batch finds the done messages as they were.
        self.settle_batches();
        let dropped = dead + self.model.drop_done_in(&trimmed.done);
        let now = ms(self.model.now);
        for effect in trimmed.effects() {
            let other = match by {
                Who::Eager => &mut self.lazy.queue,
                Who::Lazy => &mut self.eager.queue,
            };
            other.apply(&Stamped { now, effect: effect.clone() }).unwrap();
            self.send(effect);
        }
        dropped
    }

    fn reload(&mut self, way: Way) {
        if self.replica.is_none() {
            return;
        }
        let since = self.since_now();
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
            assert_eq!(copy.targets(), self.targets);
            assert_eq!(copy.last_given(), master.queue.last_given());
            // The totals of refused pushes are not in the AOF, so a replayed queue does not replace the master.
            if !matches!(way, Way::Replay) {
                assert_eq!(copy.header(), master.queue.header(), "what is saved is saved again");
                master.queue = copy;
                master.since = since;
            }
        }
        if matches!(way, Way::Rewrite) {
            self.log = rewritten(&self.lazy.queue);
        }
        self.restart_at(self.model.now);
    }

    /// Promotes the replica to a master, and makes a new replica of it.
    fn fail_over(&mut self) {
        let Some(replica) = self.replica.take() else { return };
        self.replica = Some(reload(&replica));
        self.lazy.queue = replica;
        self.lazy.since = self.promoted_now(self.replica_since);
        self.replica_since = self.since_now();
        self.lazy_counts = false;
        self.restart_at(self.model.now.max(self.replica_seen));
        // The timer of the new master looks at all queues.
        self.lazy.queue.advance(ms(self.clock), 0);
    }

    /// Starts a server that has seen no time yet.
    fn restart_at(&mut self, now: u64) {
        self.started = now;
        self.clock = now;
        self.clients.each(Awaits::look_again);
        self.advance_eager();
    }

    /// Deletes the queue; the next push creates a new one.
    fn remake(&mut self) {
        let settings = self.model.settings;
        let given = self.model.given;
        self.model = Model::new(settings, self.model.now);
        self.model.given = given;
        // As the server does after each command: a new queue repeats no id.
        for master in [&mut self.eager, &mut self.lazy] {
            let (sequence, receipt) = master.queue.last_given();
            master.floor.raise(sequence, receipt);
        }
        self.eager.queue = Queue::new(settings);
        self.lazy.queue = Queue::new(settings);
        self.eager.since = Since::default();
        self.lazy.since = Since::default();
        self.lazy_counts = true;
        self.replica = None;
        self.targets = Targets::default();
        self.model.moves_dead = false;
        self.replica_counts = true;
        self.replica_seen = 0;
        self.log.clear();
        self.restart_at(self.model.now);
    }
}

/// A delivery with owned data.
#[derive(Clone, Debug, PartialEq)]
pub struct Popped {
    pub sequence: u64,
    pub name: Option<Vec<u8>>,
    pub payload: Vec<u8>,
    pub attempt: u32,
    pub receipt: Option<u64>,
    pub meta: DeliveredMeta,
}

/// The other fields of a delivery, which `META` returns.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveredMeta {
    pub created: u64,
    pub due: u64,
    pub priority: i8,
    pub group: Option<Vec<u8>>,
    pub headers: Option<Vec<u8>>,
    pub checkpoint: Vec<u8>,
    pub error: Option<Vec<u8>>,
    pub batch: Option<Vec<u8>>,
}

impl DeliveredMeta {
    fn read(message: &dq_queue::Delivered<'_>) -> DeliveredMeta {
        let meta = message.details.read();
        DeliveredMeta {
            created: meta.created.as_ms(),
            due: meta.due.as_ms(),
            priority: meta.priority,
            group: meta.group.map(<[u8]>::to_vec),
            headers: meta.headers.map(|headers| headers.block().to_vec()),
            checkpoint: meta.checkpoint.unwrap_or_default().to_vec(),
            error: meta.error.map(<[u8]>::to_vec),
            batch: meta.batch.map(<[u8]>::to_vec),
        }
    }
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
                receipt: message.leased.then_some(message.grant.receipt.0),
                meta: DeliveredMeta::read(&message),
            });
        });
        (delivered, grants)
    }
}

/// The size of all payloads and of all results.
fn stored_bytes(queue: &Queue) -> usize {
    let results = queue.done().map(|done| done.result.map_or(0, <[u8]>::len));
    queue.counts().payload_bytes as usize + results.sum::<usize>()
}

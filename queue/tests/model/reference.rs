//! The simplest implementation of the contract of a queue: a vector, linear scans, stored states, and one event of time
//! after the other. It shares no idea with the real queue, which stores no states.

use crate::ahead::Happened;
use crate::batches::{Batch, Left};
use crate::done::Finished;
use crate::gates::Gates;
use crate::groups::Rounds;
use crate::history::{Past, CHECKPOINTS, ERRORS};
use crate::measured::{First, Measured};
use crate::recurring::{End, How, Recurs};
use dq_queue::id::Sequence;
use dq_queue::settings::{GroupOrder, Settings};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Counts, Flow, Oldest, Reason, Spans, Spare, StateKind, Totals, Verdict};

/// An instant that never comes.
pub const NEVER: u64 = u64::MAX;

/// Adds a duration to an instant. The sum saturates.
pub fn after(instant: u64, duration: u64) -> u64 {
    (instant + duration).min(UnixMs::MAX.as_ms())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Delayed,
    Ready,
    InFlight { deadline: u64 },
    Dead { died: u64, reason: Reason },
}

#[derive(Clone, Debug)]
pub struct Message {
    pub sequence: u64,
    pub name: Option<Vec<u8>>,
    pub payload: Vec<u8>,
    pub error: Option<Vec<u8>>,
    /// Errors of past attempts: the attempt, when it ended, and why.
    pub errors: Vec<(u32, u64, Vec<u8>)>,
    /// Empty if there is none.
    pub checkpoint: Vec<u8>,
    pub priority: i8,
    pub due: u64,
    pub retries: i32,
    pub lease: Option<u64>,
    pub ttl: u64,
    pub expires: u64,
    pub attempts: u32,
    /// When its id was accepted; 0 if it is a schedule that took it from no message.
    pub accepted: u64,
    /// When the first message of its chain of replacements was pushed, until a delivery or death ends the chain.
    pub chain: Option<u64>,
    /// The current receipt, if there is one.
    pub receipt: Option<u64>,
    /// Its only delivery was given back uncounted, as this one of all that were.
    pub given_back: Option<usize>,
    pub state: State,
    /// How long it is kept after its completion, if it says so itself.
    pub retain: Option<u64>,
    /// Its schedule, if it is a recurring message.
    pub recurs: Option<Recurs>,
    /// The message that takes its place when its delivery ends. It already has the place of that one in push order.
    pub next: Option<Box<Message>>,
    /// Its own sequence, if it has the place of another message.
    pub own: Option<u64>,
    pub group: Option<Vec<u8>>,
    /// The number of its headers.
    pub headers: Option<usize>,
    /// The consumer of its last delivery.
    pub consumer: Option<Vec<u8>>,
}

impl Message {
    /// The consumer that holds it.
    pub fn holder(&self) -> Option<&[u8]> {
        self.consumer.as_deref().filter(|_| matches!(self.state, State::InFlight { .. }))
    }

    /// The schedule that clients see, which is that of the kept message if there is one.
    pub fn schedule(&self) -> Option<&Recurs> {
        self.next.as_ref().map_or(self.recurs.as_ref(), |next| next.recurs.as_ref())
    }

    /// An attempt has failed for this reason, and this many errors are kept.
    pub fn note_error(&mut self, attempt: u32, at: u64, error: &[u8], kept: u64) {
        let text = error[..error.len().min(1024)].to_vec();
        self.error = Some(text.clone());
        self.errors.push((attempt, at, text));
        let excess = self.errors.len().saturating_sub(kept as usize);
        self.errors.drain(..excess);
    }

    /// The size of its payload and that of the message that is kept to replace it.
    fn payload_bytes(&self) -> u64 {
        (self.payload.len() + self.next.as_ref().map_or(0, |next| next.payload.len())) as u64
    }

    /// When the chain of replacements began that a replacement would continue.
    fn chain_to_continue(&self) -> Option<u64> {
        self.next.as_ref().map_or(self.chain, |next| next.chain)
    }

    /// The next instant at which time changes the state of this message.
    fn next_event(&self) -> u64 {
        match self.state {
            State::Delayed => self.due.min(self.expires),
            State::Ready => self.expires,
            State::InFlight { deadline } => deadline,
            State::Dead { .. } => NEVER,
        }
    }

    /// Whether it is dead for good. A recurring message is shown as dead until the end of its run is decided.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, State::Dead { .. }) && self.recurs.is_none()
    }

    pub fn kind(&self) -> StateKind {
        match self.state {
            State::Delayed => StateKind::Delayed,
            State::Ready => StateKind::Ready,
            State::InFlight { .. } => StateKind::InFlight,
            State::Dead { .. } => StateKind::Dead,
        }
    }

    /// When it came into its state.
    fn in_state_since(&self) -> u64 {
        match self.state {
            State::Delayed => self.sequence >> 20,
            State::Ready => self.due,
            State::InFlight { .. } => self.receipt.expect("it was delivered") >> 20,
            State::Dead { died, .. } => died,
        }
    }

    /// The sort key among the messages of the same state, in the order in which they leave it.
    fn turn(&self) -> (i128, i32, i128) {
        let (due, sequence) = (i128::from(self.due), i128::from(self.sequence));
        match self.state {
            State::Delayed => (due, -i32::from(self.priority), sequence),
            State::Ready => ((-i128::from(self.priority)) << 64 | due, 0, sequence),
            State::InFlight { deadline } => (i128::from(deadline), 0, sequence),
            State::Dead { died, .. } => (-i128::from(died), 0, -sequence),
        }
    }

    /// Gives the message a new due time. Its receipt becomes stale, and its TTL starts again.
    fn wait_until(&mut self, due: u64, now: u64) {
        self.due = due;
        self.receipt = None;
        self.state = State::Delayed;
        self.expires = if self.ttl == 0 { NEVER } else { after(due.max(now), self.ttl) };
    }

    /// The sort key of the order of delivery.
    pub fn order(&self) -> (i32, u64, u64) {
        (-i32::from(self.priority), self.due, self.sequence)
    }

    /// The sort key among dead messages, oldest first.
    fn age(&self) -> (u64, u64) {
        match self.state {
            State::Dead { died, .. } => (died, self.sequence),
            _ => (NEVER, self.sequence),
        }
    }
}

/// A push with absolute times.
#[derive(Clone, Copy)]
pub struct Push<'a> {
    pub payload: &'a [u8],
    pub name: Option<&'a [u8]>,
    pub due: u64,
    pub priority: i8,
    pub retries: Option<i32>,
    pub lease: Option<u64>,
    pub ttl: Option<u64>,
    pub replace: bool,
    pub maxwait: Option<u64>,
    pub later: bool,
    pub retain: Option<u64>,
    pub group: Option<&'a [u8]>,
    pub headers: Option<usize>,
    pub batch: Option<&'a [u8]>,
    pub past: Option<Past>,
}

impl Push<'_> {
    fn is_dead(&self) -> bool {
        self.past.is_some_and(|past| past.dead.is_some())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    Added { replaced: bool },
    Duplicate,
    HeldDead,
    Closed,
    TooLarge,
    Full(u64),
}

/// How a client refers to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    Sequence(u64),
    Text(Vec<u8>),
}

/// Why a batch was refused as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Closed,
    Full(u64),
    TooLarge(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackedTo {
    Due(u64),
    Dead(Reason),
}

#[derive(Clone)]
pub struct Model {
    pub settings: Settings,
    /// The end of the pause: nothing is delivered before this instant.
    pub paused_until: u64,
    /// No message is accepted before this instant.
    pub closed_until: u64,
    pub now: u64,
    pub messages: Vec<Message>,
    /// The instants of the deliveries that a rate limit counts, oldest first.
    pub begun: Vec<u64>,
    /// The pauses and the recent deliveries of groups.
    pub gates: Gates,
    /// The ids whose messages are gone, with the instants at which they were accepted. Those whose window has ended
    /// are among them until the settings change.
    pub known: Vec<(Vec<u8>, u64)>,
    /// What is kept of completed messages.
    pub done: Vec<Finished>,
    pub totals: Totals,
    pub measured: Measured,
    /// The highest sequence ever given.
    pub given: u64,
    pub rounds: Rounds,
    /// Whether dead messages are forwarded, so that none is dropped.
    pub moves_dead: bool,
    pub batches: Vec<Batch>,
    /// The sequences of the members of batches, and the names of those.
    pub members: Vec<(u64, Vec<u8>)>,
    /// What time has done since [`Model::watch_time`].
    pub happened: Option<Vec<Happened>>,
}

/// The result of an advance.
#[derive(Default)]
pub struct Moved {
    pub newly_ready: usize,
    pub died: usize,
    pub events: usize,
}

impl Model {
    pub fn new(settings: Settings, now: u64) -> Model {
        Model {
            settings,
            paused_until: 0,
            closed_until: 0,
            now,
            messages: Vec::new(),
            begun: Vec::new(),
            gates: Gates::default(),
            known: Vec::new(),
            done: Vec::new(),
            totals: Totals::default(),
            measured: Measured::default(),
            given: 0,
            rounds: Rounds::default(),
            moves_dead: false,
            batches: Vec::new(),
            members: Vec::new(),
            happened: None,
        }
    }

    /// Moves the time forward, and applies the events until then in their order.
    pub fn advance(&mut self, now: u64) -> Moved {
        // Time never runs backwards.
        self.now = self.now.max(now);
        let was_ready: Vec<u64> = self.ready_sequences();
        let mut moved = Moved::default();
        while let Some(at) = self.next_event().filter(|at| *at <= self.now) {
            for nth in 0..self.messages.len() {
                if self.messages[nth].next_event() == at {
                    moved.events += 1;
                    let before = self.messages[nth].clone();
                    moved.died += usize::from(self.happen(nth, at));
                    let after = self.messages[nth].clone();
                    self.happened.iter_mut().for_each(|all| {
                        all.push(Happened { at, before: before.clone(), after: after.clone() });
                    });
                }
            }
        }
        moved.newly_ready = self.ready_sequences().iter().filter(|sequence| !was_ready.contains(sequence)).count();
        moved
    }

    fn ready_sequences(&self) -> Vec<u64> {
        let ready = self.messages.iter().filter(|message| message.state == State::Ready);
        ready.map(|message| message.sequence).collect()
    }

    /// Applies the next event of one message, as the table "What happens when" of the contract says. Returns whether
    /// the message became dead.
    fn happen(&mut self, nth: usize, at: u64) -> bool {
        if self.messages[nth].next.is_some() {
            self.totals.lease_expired += 1;
            return self.succeed(nth, at);
        }
        let message = &mut self.messages[nth];
        let dies = |reason| State::Dead { died: at, reason };
        message.state = match message.state {
            State::Delayed | State::Ready if message.expires <= at => dies(Reason::Expired),
            State::Delayed => State::Ready,
            State::InFlight { .. } => {
                self.totals.lease_expired += 1;
                if message.expires <= at {
                    dies(Reason::Expired)
                } else if message.retries >= 0 && i64::from(message.attempts) > i64::from(message.retries) {
                    dies(Reason::Retries)
                } else if message.due > at {
                    // A clock that was ahead has delivered it.
                    State::Delayed
                } else {
                    State::Ready
                }
            }
            state => state,
        };
        let State::Dead { reason, .. } = message.state else { return false };
        message.chain = None;
        self.count_death(reason);
        true
    }

    /// Keeps a message until the delivery of another one ends. If that delivery is a run, its series has ended.
    pub fn keep_beside(&mut self, nth: usize, message: Message) {
        self.leave_batch(self.messages[nth].sequence, Left::Cancelled);
        let delivered = &mut self.messages[nth];
        delivered.own.get_or_insert(delivered.sequence);
        delivered.sequence = message.sequence;
        delivered.recurs = None;
        delivered.next = Some(Box::new(message));
    }

    /// The kept message takes the place of the delivered one, whose lease has ended. Returns whether it is dead.
    fn succeed(&mut self, nth: usize, at: u64) -> bool {
        self.messages[nth] = *self.messages[nth].next.take().expect("a kept message");
        let died = self.messages[nth].expires <= at;
        if died {
            let died = self.messages[nth].expires;
            self.messages[nth].state = State::Dead { died, reason: Reason::Expired };
            self.messages[nth].chain = None;
            self.count_death(Reason::Expired);
        }
        died
    }

    /// The same if a command has ended the delivery. Its TTL applies as if it had been waiting.
    fn succeed_now(&mut self, nth: usize) {
        self.messages[nth] = *self.messages[nth].next.take().expect("a kept message");
        self.advance(self.now);
    }

    fn count_death(&mut self, reason: Reason) {
        self.totals.died += 1;
        self.totals.expired += u64::from(reason == Reason::Expired);
    }

    /// The next instant at which time changes anything.
    pub fn next_event(&self) -> Option<u64> {
        self.messages.iter().map(Message::next_event).filter(|at| *at != NEVER).min()
    }

    pub fn count(&self, wanted: fn(&State) -> bool) -> u64 {
        self.messages.iter().filter(|message| wanted(&message.state)).count() as u64
    }

    pub fn counts(&self) -> Counts {
        Counts {
            delayed: self.count(|state| *state == State::Delayed),
            ready: self.count(|state| *state == State::Ready),
            inflight: self.inflight(),
            dead: self.count(|state| matches!(state, State::Dead { .. })),
            done: self.done.len() as u64,
            payload_bytes: self.messages.iter().map(Message::payload_bytes).sum(),
        }
    }

    fn inflight(&self) -> u64 {
        self.count(|state| matches!(state, State::InFlight { .. }))
    }

    pub fn find(&self, name: &Name) -> Option<usize> {
        self.messages.iter().position(|message| match name {
            // A message with a name is not found by its sequence.
            Name::Sequence(sequence) => message.name.is_none() && message.sequence == *sequence,
            Name::Text(text) => message.name.as_ref() == Some(text),
        })
    }

    /// Pushes a message. `sequence` is the one that the real queue issued, if it accepted the message.
    pub fn push(&mut self, push: &Push<'_>, sequence: Option<u64>) -> Pushed {
        let held = push.name.and_then(|name| self.find(&Name::Text(name.to_vec())));
        if let Some(held) = held.filter(|_| !push.replace) {
            if self.messages[held].is_dead() {
                return Pushed::HeldDead;
            }
            self.totals.duplicates += 1;
            return Pushed::Duplicate;
        }
        if push.name.is_some_and(|name| held.is_none() && !push.replace && self.is_taken(name)) {
            self.totals.duplicates += 1;
            return Pushed::Duplicate;
        }
        if self.now < self.closed_until {
            return Pushed::Closed;
        }
        if self.is_too_large(push) {
            return Pushed::TooLarge;
        }
        let live = self.live();
        let counts = held.is_some_and(|held| !self.messages[held].is_dead());
        if !counts && !push.is_dead() && self.settings.maxlen > 0 && live >= self.settings.maxlen {
            self.totals.rejected_full += 1;
            return Pushed::Full(live);
        }
        let sequence = sequence.expect("the queue took what the contract takes");
        let chain = held.and_then(|held| self.messages[held].chain_to_continue()).unwrap_or(self.now);
        let was_done = push.name.is_some_and(|name| self.drop_done_named(name));
        let due = push.maxwait.map_or(push.due, |wait| push.due.min(after(chain, wait)));
        self.known.retain(|(name, _)| Some(&name[..]) != push.name);
        self.enter_group(push.group);
        let ttl = push.ttl.unwrap_or(self.settings.ttl.as_ms());
        let mut message = Message {
            sequence,
            name: push.name.map(<[u8]>::to_vec),
            payload: push.payload.to_vec(),
            error: None,
            errors: Vec::new(),
            checkpoint: Vec::new(),
            priority: push.priority,
            due,
            retries: push.retries.unwrap_or(self.settings.retries.count()),
            lease: push.lease,
            ttl,
            expires: if ttl == 0 { NEVER } else { after(due.max(self.now), ttl) },
            attempts: 0,
            // That of a message without a name is told by its generated id.
            accepted: if push.name.is_some() { self.now } else { sequence >> 20 },
            chain: Some(chain),
            receipt: None,
            given_back: None,
            state: State::Delayed,
            retain: push.retain,
            recurs: None,
            group: push.group.map(<[u8]>::to_vec),
            headers: push.headers,
            next: None,
            own: None,
            consumer: None,
        };
        if let Some(past) = push.past {
            if let Some(error) = past.error {
                message.note_error(past.attempts, self.now, ERRORS[error], self.settings.errors);
            }
            message.checkpoint = past.checkpoint.map_or(Vec::new(), |nth| CHECKPOINTS[nth].to_vec());
            message.attempts = past.attempts;
            if past.attempts > 0 || past.dead.is_some() {
                message.chain = None;
            }
            if let Some(reason) = past.dead {
                message.state = State::Dead { died: self.now, reason };
            }
        }
        match held {
            Some(held) if push.later && matches!(self.messages[held].state, State::InFlight { .. }) => {
                self.keep_beside(held, message);
            }
            _ => {
                if let Some(held) = held {
                    let replaced = self.messages.remove(held);
                    self.claim_turn(&replaced);
                    self.leave_as_removed(&replaced);
                }
                self.messages.push(message);
            }
        }
        self.join_batch(push.batch, sequence);
        self.totals.pushed += 1;
        if let Some(reason) = push.past.and_then(|past| past.dead) {
            self.leave_batch(sequence, Left::Dead);
            self.count_death(reason);
        }
        // The message may be due already and, at the largest instant, even expired.
        self.advance(self.now);
        Pushed::Added { replaced: held.is_some() || was_done }
    }

    fn is_too_large(&self, push: &Push<'_>) -> bool {
        self.settings.maxpayload > 0 && push.payload.len() as u64 > self.settings.maxpayload
    }

    /// Pushes all messages or none. Returns the number of messages in the queue if there would be too many. `sequences`
    /// are those that the real queue issued; if it issued none, any number stands in for them.
    pub fn push_all(&mut self, pushes: &[Push<'_>], sequences: &[u64]) -> Result<Vec<Pushed>, Refused> {
        let mut without_limit = self.clone();
        without_limit.settings.maxlen = 0;
        without_limit.settings.maxpayload = 0;
        let (mut given, mut outcomes) = (sequences.iter().copied(), Vec::new());
        for push in pushes {
            let held = push.name.is_some_and(|name| {
                without_limit.find(&Name::Text(name.to_vec())).is_some() || without_limit.is_taken(name)
            });
            let sequence = if held && !push.replace { None } else { Some(given.next().unwrap_or(NEVER)) };
            if sequence.is_some() && self.now < self.closed_until {
                return Err(Refused::Closed);
            }
            if sequence.is_some() && self.is_too_large(push) {
                return Err(Refused::TooLarge(push.payload.len()));
            }
            outcomes.push(without_limit.push(push, sequence));
        }
        let (before, after) = (self.live(), without_limit.live());
        let most = self.settings.maxlen;
        if most > 0 && after > most && after > before {
            self.totals.rejected_full += pushes.len() as u64;
            return Err(Refused::Full(before));
        }
        without_limit.settings = self.settings;
        *self = without_limit;
        Ok(outcomes)
    }

    /// The id of a message that is gone stays known until its window ends.
    pub fn remember(&mut self, message: &Message) {
        self.known.extend(message.name.clone().map(|name| (name, message.accepted)));
    }

    pub fn window_holds(&self, accepted: u64) -> bool {
        after(accepted, self.settings.dedupe.as_ms()) > self.now && !self.settings.dedupe.is_zero()
    }

    pub fn is_known(&self, name: &[u8]) -> bool {
        let is_ended = self.accepted_of_ended(name).is_some_and(|accepted| self.window_holds(accepted));
        is_ended || self.known.iter().any(|(known, accepted)| known == name && self.window_holds(*accepted))
    }

    /// When an id was accepted whose message is done or gone, if its window has not ended; else 0.
    pub fn accepted_of_gone(&self, name: &[u8]) -> u64 {
        let known = self.known.iter().filter(|(known, _)| known == name).map(|(_, accepted)| *accepted);
        let done = self.done.iter().filter(|finished| finished.name.as_deref() == Some(name));
        let accepted = known.chain(done.map(|finished| finished.accepted));
        accepted.filter(|accepted| self.window_holds(*accepted)).max().unwrap_or(0)
    }

    /// Whether a done message has the id, or it is known.
    pub fn is_taken(&self, name: &[u8]) -> bool {
        self.is_done(name) || self.is_known(name)
    }

    pub fn count_known(&self) -> usize {
        self.known.iter().filter(|(_, accepted)| self.window_holds(*accepted)).count()
    }

    /// Forgets a known id by a command.
    pub fn forget(&mut self, name: &[u8]) -> bool {
        let was_known = self.is_known(name);
        self.known.retain(|(known, _)| known != name);
        if was_known {
            self.drop_done_named(name);
        }
        was_known
    }

    /// New settings: what was forgotten stays forgotten, and a shorter window applies at once.
    pub fn alter(&mut self, settings: Settings) {
        let has_other_rate = self.settings.grouprate != settings.grouprate;
        for settings in [self.settings, settings] {
            self.settings = settings;
            let mut known = std::mem::take(&mut self.known);
            known.retain(|(_, accepted)| self.window_holds(*accepted));
            self.known = known;
        }
        if settings.rate.is_off() {
            self.begun.clear();
        }
        if has_other_rate {
            self.alter_gates();
        }
        if settings.grouporder == GroupOrder::Due {
            self.rounds = Rounds::default();
        }
    }

    pub fn live(&self) -> u64 {
        self.messages.iter().filter(|message| !message.is_dead()).count() as u64
    }

    pub fn cancel(&mut self, name: &Name) -> Option<(u64, StateKind)> {
        let Some(at) = self.find(name) else {
            let gone = self.find_done(name).map(|at| self.done.remove(at))?;
            self.totals.cancelled += 1;
            return Some((gone.sequence, StateKind::Done));
        };
        self.totals.cancelled += 1;
        let message = self.messages.remove(at);
        self.claim_turn(&message);
        self.leave_as_removed(&message);
        Some((message.sequence, message.kind()))
    }

    /// Makes a message dead by a command. Returns its former state.
    pub fn bury(&mut self, name: &Name, error: Option<&[u8]>) -> Option<(u64, StateKind, Option<End>)> {
        let at = self.find(name).filter(|at| self.messages[*at].kind() != StateKind::Dead)?;
        if self.messages[at].next.is_some() {
            self.succeed_now(at);
            return Some((self.messages[at].sequence, StateKind::InFlight, None));
        }
        if self.messages[at].recurs.is_some() {
            let (sequence, was) = (self.messages[at].sequence, self.messages[at].kind());
            let error = error.map(|error| (self.messages[at].attempts, error));
            let end = self.end_run(at, How::Buried, Some((self.now, Reason::Rejected)), error);
            return Some((sequence, was, Some(end)));
        }
        self.claim_turn(&self.messages[at].clone());
        let (now, message) = (self.now, &mut self.messages[at]);
        let was = message.kind();
        message.receipt = None;
        message.state = State::Dead { died: now, reason: Reason::Rejected };
        message.chain = None;
        if let Some(error) = error {
            message.note_error(message.attempts, now, error, self.settings.errors);
        }
        let sequence = message.sequence;
        self.leave_batch(sequence, Left::Dead);
        self.count_death(Reason::Rejected);
        Some((sequence, was, None))
    }

    /// Makes the next `count` delayed messages due now. Returns their sequences.
    pub fn promote(&mut self, count: usize, until: u64) -> Vec<u64> {
        let mut chosen = self.peek(StateKind::Delayed);
        let later: Vec<u64> = self.messages.iter().filter(|held| held.due > until).map(|held| held.sequence).collect();
        chosen.retain(|sequence| !later.contains(sequence));
        chosen.truncate(count);
        let now = self.now;
        for message in self.messages.iter_mut().filter(|message| chosen.contains(&message.sequence)) {
            message.wait_until(now, now);
        }
        self.advance(now);
        chosen
    }

    pub fn is_paused(&self) -> bool {
        self.now < self.paused_until
    }

    /// Pauses a flow until an instant, unless it is paused for longer. Returns what that changed.
    pub fn suspend(&mut self, flow: Flow, until: u64) -> Option<Flow> {
        let now = self.now;
        self.change_pauses(flow, |held| (until > now && until > held).then_some(until))
    }

    pub fn resume(&mut self, flow: Flow) -> Option<Flow> {
        let now = self.now;
        self.change_pauses(flow, |held| (now < held).then_some(0))
    }

    /// Changes the end of a pause of each part of a flow. Returns the parts that changed.
    fn change_pauses(&mut self, flow: Flow, change: impl Fn(u64) -> Option<u64>) -> Option<Flow> {
        let mut changed = Vec::new();
        for (part, end) in [(Flow::Out, &mut self.paused_until), (Flow::In, &mut self.closed_until)] {
            if let Some(new) = change(*end).filter(|_| flow == part || flow == Flow::Both) {
                *end = new;
                changed.push(part);
            }
        }
        match changed[..] {
            [] => None,
            [part] => Some(part),
            _ => Some(Flow::Both),
        }
    }

    pub fn reschedule(&mut self, name: &Name, due: Option<u64>, priority: Option<i8>) -> Option<u64> {
        let at = self.find(name)?;
        self.claim_turn(&self.messages[at].clone());
        let (now, message) = (self.now, &mut self.messages[at]);
        if !matches!(message.kind(), StateKind::Delayed | StateKind::Ready) {
            return None;
        }
        match due {
            Some(due) => message.wait_until(due, now),
            None => message.receipt = None,
        }
        message.priority = priority.unwrap_or(message.priority);
        let sequence = message.sequence;
        self.advance(now);
        Some(sequence)
    }

    /// Makes dead messages live again: the oldest ones that meet the conditions, or those that are named.
    pub fn redrive(&mut self, oldest: &Oldest, names: Option<&[Name]>, due: u64) -> usize {
        let chosen: Vec<u64> = match names {
            Some(names) => {
                let named = names.iter().filter_map(|name| self.find(name)).map(|at| &self.messages[at]);
                named.filter(|message| message.is_dead()).map(|message| message.sequence).collect()
            }
            None => {
                let mut dead = self.peek(StateKind::Dead);
                let recurring = self.failed_runs();
                let of = |reason: &Reason| oldest.reason.is_none_or(|wanted| wanted == *reason);
                let spared = self.spared(Spare::Nothing, oldest.older.map(DurationMs::as_ms));
                let other = self.messages.iter().filter(|message| match &message.state {
                    State::Dead { reason, .. } => !of(reason),
                    _ => true,
                });
                let other: Vec<u64> = other.map(|message| message.sequence).collect();
                dead.retain(|sequence| ![&recurring, &spared, &other].iter().any(|those| those.contains(sequence)));
                dead.reverse();
                dead.truncate(oldest.count);
                dead
            }
        };
        let now = self.now;
        self.leave_as_purged(&chosen);
        let mut redriven = 0;
        for message in self.messages.iter_mut().filter(|message| chosen.contains(&message.sequence)) {
            message.wait_until(due, now);
            message.attempts = 0;
            message.given_back = None;
            message.error = None;
            message.errors.clear();
            redriven += 1;
        }
        self.totals.redriven += redriven as u64;
        self.advance(now);
        redriven
    }

    /// Removes the first messages in these states, in the order of the states. Returns their sequences.
    pub fn purge_first(&mut self, kinds: &[StateKind], count: usize, older: Option<u64>, spare: Spare) -> Vec<u64> {
        let held = kinds.iter().filter(|kind| **kind != StateKind::Done);
        let mut chosen: Vec<u64> = held.flat_map(|kind| self.peek(*kind)).collect();
        let spared = self.spared(spare, older);
        chosen.retain(|sequence| !spared.contains(sequence));
        chosen.truncate(count);
        self.leave_as_purged(&chosen);
        self.keep_turns(&chosen);
        self.messages.retain(|message| !chosen.contains(&message.sequence));
        if kinds.contains(&StateKind::Done) {
            chosen.extend(self.purge_done(Some(count - chosen.len()), older));
        }
        chosen
    }

    pub fn purge(&mut self, kinds: &[StateKind], spare: Spare) -> usize {
        let before = self.messages.len();
        let done = if kinds.contains(&StateKind::Done) { self.purge_done(None, None).len() } else { 0 };
        let spared = self.spared(spare, None);
        let is_chosen = |message: &&Message| !spared.contains(&message.sequence) && kinds.contains(&message.kind());
        let chosen: Vec<u64> = self.messages.iter().filter(is_chosen).map(|message| message.sequence).collect();
        self.leave_as_purged(&chosen);
        self.keep_turns(&chosen);
        self.messages.retain(|message| spared.contains(&message.sequence) || !kinds.contains(&message.kind()));
        before - self.messages.len() + done
    }

    /// The messages that a purge passes over: schedules, and those that came into their state less than `older` ago.
    pub fn spared(&self, spare: Spare, older: Option<u64>) -> Vec<u64> {
        let spared = self.messages.iter().filter(|message| {
            let is_young = older.is_some_and(|older| self.now.saturating_sub(message.in_state_since()) < older);
            is_young || (spare == Spare::Schedules && message.schedule().is_some())
        });
        spared.map(|message| message.sequence).collect()
    }

    /// The sequences in a state, in the order in which the messages leave it. Dead messages are newest first.
    pub fn peek(&self, kind: StateKind) -> Vec<u64> {
        if kind == StateKind::Done {
            return self.kept().iter().map(|finished| finished.sequence).collect();
        }
        let mut those: Vec<&Message> = self.messages.iter().filter(|message| message.kind() == kind).collect();
        those.sort_by_key(|message| message.turn());
        those.into_iter().map(|message| message.sequence).collect()
    }

    /// The deliveries that the rate limit counts at `now`, oldest first: those that began less than a period ago.
    fn recent(&self, now: u64) -> Vec<u64> {
        let period = self.settings.rate.period.as_ms();
        self.begun.iter().copied().filter(|begun| after(*begun, period) > now).collect()
    }

    fn rate_room(&self) -> u64 {
        let rate = self.settings.rate;
        if rate.is_off() {
            return u64::MAX;
        }
        rate.most.saturating_sub(self.recent(self.now).len() as u64)
    }

    /// When the rate limit allows a delivery again, if it allows none now.
    pub fn next_delivery(&self) -> Option<u64> {
        if self.rate_room() > 0 {
            return None;
        }
        let (recent, rate) = (self.recent(self.now), self.settings.rate);
        Some(after(recent[recent.len() - rate.most as usize], rate.period.as_ms()))
    }

    /// Counts deliveries that begin now, and forgets those that no longer count.
    fn begin(&mut self, count: usize) {
        if !self.settings.rate.is_off() && count > 0 {
            self.begun = self.recent(self.now);
            self.begun.extend(std::iter::repeat_n(self.now, count));
        }
    }

    /// The number of messages that a pop of `count` delivers.
    pub fn deliverable(&self, count: usize, no_ack: bool) -> usize {
        (self.open() as u64).min(self.room(no_ack)).min(count as u64) as usize
    }

    /// The number of messages that a pop may deliver.
    fn room(&self, no_ack: bool) -> u64 {
        if self.is_paused() {
            return 0;
        }
        let room = match self.settings.maxinflight {
            0 => u64::MAX,
            most if self.inflight() >= most => 0,
            _ if no_ack => u64::MAX,
            most => most - self.inflight(),
        };
        room.min(self.rate_room())
    }

    /// Pops messages. Returns them in order, as they were before. `lease` is `None` for a delivery without
    /// acknowledgement. Runs that this ends are appended to `ends`.
    pub fn pop(
        &mut self,
        count: usize,
        lease: Option<Option<u64>>,
        receipts: &[u64],
        ends: &mut Vec<End>,
    ) -> Vec<Message> {
        let count = self.deliverable(count, lease.is_none());
        self.begin(count);
        let mut round = self.begin_round(count);
        let mut delivered = Vec::new();
        for nth in 0..count {
            let popped = self.serve_next(&mut round, lease.is_none());
            delivered.push(popped.clone());
            self.totals.delivered += 1;
            if popped.attempts == 0 {
                let ms = self.now.saturating_sub(popped.due);
                self.measured.lateness.push(First { ms, given_back: popped.given_back });
            }
            let at = self.messages.iter().position(|message| message.sequence == popped.sequence).unwrap();
            if lease.is_none() && popped.recurs.is_some() {
                ends.push(self.end_run(at, How::Taken, None, None));
                continue;
            }
            let Some(lease) = lease else {
                let taken = self.messages.remove(at);
                self.leave(&taken, taken.attempts + 1, None, None);
                continue;
            };
            let message = &mut self.messages[at];
            message.chain = None;
            message.consumer = None;
            let lease = lease.or(message.lease).unwrap_or(self.settings.lease.as_ms());
            let lease =
                if self.settings.maxlease.is_zero() { lease } else { lease.min(self.settings.maxlease.as_ms()) };
            message.attempts += 1;
            if let Some(recurs) = &mut message.recurs {
                recurs.last = Some(self.now);
            }
            message.receipt = Some(receipts.get(nth).copied().expect("a receipt for each delivery"));
            message.state = State::InFlight { deadline: after(self.now, lease) };
        }
        self.end_round(round);
        self.advance(self.now);
        delivered
    }

    /// Notes the consumer of the deliveries with these receipts.
    pub fn hold_as(&mut self, receipts: &[u64], name: &[u8]) {
        let lent = self.messages.iter_mut().filter(|message| message.receipt.is_some_and(|of| receipts.contains(&of)));
        lent.for_each(|message| message.consumer = Some(name.to_vec()));
    }

    /// Forwards up to `count` messages one after the other, each as by a pop without a lease. Returns them in order, as
    /// they were before. Runs end once all are forwarded.
    pub fn forward(&mut self, count: usize, ends: &mut Vec<End>) -> Vec<Message> {
        let most = self.room(true).min(count as u64);
        let (mut forwarded, mut runs) = (Vec::new(), Vec::new());
        while (forwarded.len() as u64) < most && self.open() > 0 {
            self.begin(1);
            let mut round = self.begin_round(1);
            let next = self.serve_next(&mut round, true);
            self.end_round(round);
            if next.attempts == 0 {
                let ms = self.now.saturating_sub(next.due);
                self.measured.lateness.push(First { ms, given_back: next.given_back });
            }
            let at = self.messages.iter().position(|message| message.sequence == next.sequence).unwrap();
            if next.recurs.is_some() {
                // It is out of the way until all are forwarded.
                runs.push(next.clone());
                self.messages[at].state = State::InFlight { deadline: NEVER };
                self.messages[at].attempts = 0;
            } else {
                let taken = self.messages.remove(at);
                self.leave(&taken, taken.attempts + 1, None, None);
            }
            forwarded.push(next);
        }
        for run in runs {
            let at = self.messages.iter().position(|message| message.sequence == run.sequence).unwrap();
            self.messages[at] = run;
            ends.push(self.end_run(at, How::Taken, None, None));
        }
        self.totals.delivered += forwarded.len() as u64;
        self.totals.forwarded += forwarded.len() as u64;
        self.advance(self.now);
        forwarded
    }

    /// Finds a message by its name if its current delivery has `receipt`, or if it has any current delivery and
    /// `receipt` is `None`.
    fn delivered(&self, name: &Name, receipt: Option<u64>) -> Option<usize> {
        let at = self.find(name)?;
        let current = self.messages[at].receipt?;
        receipt.is_none_or(|receipt| receipt == current).then_some(at)
    }

    fn in_flight(&self, name: &Name, receipt: Option<u64>) -> Option<usize> {
        self.delivered(name, receipt).filter(|at| matches!(self.messages[*at].state, State::InFlight { .. }))
    }

    pub fn ack(&mut self, name: &Name, receipt: Option<u64>) -> Option<(u64, Option<End>)> {
        self.complete(name, receipt, None, None)
    }

    pub fn complete(
        &mut self,
        name: &Name,
        receipt: Option<u64>,
        retain: Option<u64>,
        result: Option<&[u8]>,
    ) -> Option<(u64, Option<End>)> {
        let at = self.delivered(name, receipt)?;
        // A receipt tells when its delivery began.
        let began = self.messages[at].receipt? >> 20;
        self.measured.runtimes.push(self.now.saturating_sub(began));
        if self.messages[at].next.is_some() {
            self.totals.acked += 1;
            self.succeed_now(at);
            return Some((self.messages[at].sequence, None));
        }
        if self.messages[at].recurs.is_some() {
            let sequence = self.messages[at].sequence;
            return Some((sequence, Some(self.end_run(at, How::Acked, None, None))));
        }
        self.totals.acked += 1;
        let acked = self.messages.remove(at);
        self.leave(&acked, acked.attempts, retain, result);
        Some((acked.sequence, None))
    }

    pub fn nack(
        &mut self,
        name: &Name,
        receipt: Option<u64>,
        delay: Option<u64>,
        (error, checkpoint): (Option<&[u8]>, Option<&[u8]>),
        verdict: Verdict,
        jitter: impl FnOnce(u64) -> u64,
    ) -> Option<(u64, NackedTo, State, Option<End>)> {
        let at = self.in_flight(name, receipt)?;
        if self.messages[at].next.is_some() {
            self.count_nack(verdict);
            self.succeed_now(at);
            let message = &self.messages[at];
            let to = match message.state {
                State::Dead { reason, .. } => NackedTo::Dead(reason),
                _ => NackedTo::Due(message.due),
            };
            return Some((message.sequence, to, message.state, None));
        }
        let (now, backoff) = (self.now, self.settings.backoff);
        let message = &mut self.messages[at];
        if let Some(checkpoint) = checkpoint {
            message.checkpoint = checkpoint.to_vec();
        }
        let spent = message.retries >= 0 && i64::from(message.attempts) > i64::from(message.retries);
        let reason = if verdict == Verdict::Rejected {
            Some(Reason::Rejected)
        } else if message.expires <= now {
            Some(Reason::Expired)
        } else if spent && verdict == Verdict::Failed {
            Some(Reason::Retries)
        } else {
            None
        };
        if let Some(reason) = reason.filter(|_| message.recurs.is_some()) {
            let sequence = message.sequence;
            self.count_nack(verdict);
            let error = error.map(|error| (self.messages[at].attempts, error));
            self.messages[at].attempts -= u32::from(verdict == Verdict::NotCounted);
            let end = self.end_run(at, How::Nacked, Some((now, reason)), error);
            return Some((sequence, NackedTo::Dead(reason), State::Dead { died: now, reason }, Some(end)));
        }
        message.receipt = None;
        let counted = message.attempts;
        message.attempts -= u32::from(verdict == Verdict::NotCounted);
        if message.attempts == 0 {
            self.measured.given_back += 1;
            message.given_back = Some(self.measured.given_back);
        }
        if let Some(error) = error {
            message.note_error(counted, now, error, self.settings.errors);
        }
        self.count_nack(verdict);
        let message = &mut self.messages[at];
        let to = match reason {
            Some(reason) => {
                message.state = State::Dead { died: now, reason };
                let sequence = message.sequence;
                self.leave_batch(sequence, Left::Dead);
                self.count_death(reason);
                NackedTo::Dead(reason)
            }
            None => {
                let doubled = (1..counted).fold(backoff.base.as_ms(), |wait, _| wait.saturating_mul(2));
                message.due = match (delay, verdict) {
                    (Some(delay), _) => after(now, delay),
                    (None, Verdict::NotCounted) => message.due,
                    (None, _) => after(now, jitter(doubled.min(backoff.max.as_ms()))),
                };
                message.state = if message.due > now { State::Delayed } else { State::Ready };
                NackedTo::Due(message.due)
            }
        };
        let message = &self.messages[at];
        Some((message.sequence, to, message.state, None))
    }

    fn count_nack(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::NotCounted => self.totals.given_back += 1,
            Verdict::Failed | Verdict::Rejected => self.totals.nacked += 1,
        }
    }

    pub fn extend(
        &mut self,
        name: &Name,
        receipt: Option<u64>,
        lease: Option<u64>,
        checkpoint: Option<&[u8]>,
    ) -> Option<(u64, u64)> {
        let at = self.in_flight(name, receipt).filter(|at| self.messages[*at].next_event() > self.now)?;
        if let Some(checkpoint) = checkpoint {
            self.messages[at].checkpoint = checkpoint.to_vec();
        }
        let message = &self.messages[at];
        let began = message.receipt? >> 20;
        let asked = after(self.now, lease.or(message.lease).unwrap_or(self.settings.lease.as_ms()));
        let deadline = match self.settings.maxlease.as_ms() {
            0 => asked,
            longest => asked.min(after(began.min(self.now), longest)).max(self.now),
        };
        self.messages[at].state = State::InFlight { deadline };
        Some((self.messages[at].sequence, deadline))
    }

    /// Forwards the oldest `count` dead messages. Returns them in order.
    pub fn forward_dead(&mut self, count: usize) -> Vec<Message> {
        let mut moved = Vec::new();
        while let Some(oldest) = self.oldest_dead().filter(|_| moved.len() < count) {
            let at = self.messages.iter().position(|message| message.age() == oldest).unwrap();
            let message = self.messages.remove(at);
            self.leave_as_removed(&message);
            self.remember(&message);
            moved.push(message);
        }
        self.totals.deadforwarded += moved.len() as u64;
        moved
    }

    /// The number of dead messages above the limit.
    pub fn excess_dead(&self) -> usize {
        if self.moves_dead {
            return 0;
        }
        let dead = self.messages.iter().filter(|message| message.is_dead()).count();
        let too_many = self.settings.deadlen.map_or(0, |kept| dead.saturating_sub(kept as usize));
        let kept = self.settings.deadttl.as_ms();
        let is_old = |message: &&Message| match message.state {
            State::Dead { died, .. } => message.recurs.is_none() && kept > 0 && after(died, kept) <= self.now,
            _ => false,
        };
        too_many.max(self.messages.iter().filter(is_old).count())
    }

    /// The oldest dead messages, by (died, sequence).
    fn oldest_dead(&self) -> Option<(u64, u64)> {
        self.messages.iter().filter(|message| message.is_dead()).map(Message::age).min()
    }

    /// Drops the messages that a trim named, which must be the oldest dead messages. Returns their number.
    pub fn drop_dead_in(&mut self, spans: &Spans) -> usize {
        let named = |sequence: u64| spans.contain(Sequence(sequence));
        let doomed = self.messages.iter().filter(|message| named(message.sequence)).count();
        for _ in 0..doomed {
            let oldest = self.oldest_dead().expect("only dead messages are dropped");
            assert!(named(oldest.1), "an older one is kept");
            let at = self.messages.iter().position(|message| message.age() == oldest).unwrap();
            let dropped = self.messages.remove(at);
            self.leave_as_removed(&dropped);
            self.remember(&dropped);
        }
        doomed
    }
}

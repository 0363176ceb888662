//! Delivery: the first messages in delivery order are leased to a consumer, or delivered without a lease and removed.

use super::advance::PILED_MAX;
use super::{At, DurationMs, Ended, Phase, Queue, Record, Sequence, State, StateKind, UnixMs};
use crate::batches::Batches;
use crate::effect::Grant;
use crate::errors::Errors;
use crate::gate::Lease;
use crate::groups::Pops;
use crate::headers::Headers;
use crate::id::{Floor, GroupId, Receipt};
use crate::messages::Messages;

/// The largest number of messages whose TTL has ended that the turn of one blocked client passes over. It is small
/// because all blocked clients may have their turns one after another.
const PASSED_OVER_IN_A_TURN: usize = 16;

/// What a consumer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pop {
    /// The largest number of messages to deliver.
    pub count: usize,
    /// How the messages are leased.
    pub lease: Lease,
}

/// A message as a consumer receives it.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    /// The delivery. Its sequence is the message's id if the message has no name.
    pub grant: Grant,
    /// Whether the message is leased: a delivery without a lease has neither a receipt nor a deadline.
    pub leased: bool,
    /// How long after its due time the message is delivered, if this is its first delivery.
    pub lateness: Option<DurationMs>,
    /// The message's name.
    pub name: Option<&'a [u8]>,
    /// The payload.
    pub payload: &'a [u8],
    /// The message, for a consumer that wants to know more of it.
    pub details: Details<'a>,
}

/// A message that is being delivered, of which nothing is read unless somebody asks.
#[derive(Clone, Copy, Debug)]
pub struct Details<'a> {
    messages: &'a Messages,
    batches: Option<&'a Batches>,
    at: At,
    record: &'a Record,
}

/// What a consumer may want to know of a message besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// When it was pushed.
    pub created: UnixMs,
    /// Its due time.
    pub due: UnixMs,
    /// Its priority.
    pub priority: i8,
    /// The name of its group.
    pub group: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Option<Headers<'a>>,
    /// Its checkpoint.
    pub checkpoint: Option<&'a [u8]>,
    /// Its last error.
    pub error: Option<&'a [u8]>,
    /// The name of its batch.
    pub batch: Option<&'a [u8]>,
}

impl<'a> Details<'a> {
    /// Reads it.
    #[inline(never)]
    pub fn read(&self) -> Meta<'a> {
        let Details { messages, batches, at, record } = *self;
        let bytes = messages.bytes(at);
        Meta {
            created: record.sequence.created(),
            due: record.due,
            priority: record.priority,
            group: messages.group_name(at),
            headers: bytes.headers,
            checkpoint: messages.checkpoint(at),
            error: bytes.errors.map(Errors::last),
            batch: batches.and_then(|batches| batches.name_of(messages.batch(at)?)),
        }
    }
}

impl Queue {
    /// How many messages the limits of the queue allow a pop without a lease to take at `now`.
    pub(crate) fn room_to_take(&self, now: UnixMs) -> usize {
        self.gate.room(&self.settings, self.view.inflight(), Lease::NoAck, now)
    }

    /// Returns how many messages `pop` would deliver at `now`. O(log n), plus O(log n) for each lease and TTL that
    /// ended since the last advance; one call processes a bounded number of them.
    pub fn deliverable(&mut self, now: UnixMs, pop: &Pop) -> usize {
        let now = self.observe(now);
        // This comes before the catch-up: a queue that is paused delivers nothing, so its messages need not be brought
        // up to `now`.
        if self.gate.pause().holds_at(now) {
            return 0;
        }
        // A pop that finds enough messages without ending many leases ends few, because many consumers may pop one
        // after another.
        let is_done = self.catch_up_few(now);
        if !is_done && self.view.open() < pop.count {
            self.catch_up(now);
        }
        self.available(now, pop, PILED_MAX)
    }

    /// [`Queue::deliverable`] without ending leases and TTLs first, for a blocked client's turn: the timer ends them,
    /// and it signals the key as soon as a message is deliverable. O(log n).
    pub fn deliverable_as_viewed(&mut self, now: UnixMs, pop: &Pop) -> usize {
        let now = self.observe(now);
        self.view.advance_due(now);
        self.available(now, pop, PASSED_OVER_IN_A_TURN)
    }

    /// How many messages `pop` would deliver of those that the view, which must be at `now`, has as ready.
    /// At most `expired_max` messages whose TTL has ended are passed over.
    fn available(&mut self, now: UnixMs, pop: &Pop, expired_max: usize) -> usize {
        let room = self.gate.room(&self.settings, self.view.inflight(), pop.lease, now);
        // The view is at `now`, so the messages that it counts as open are those that are due and do not wait for their
        // group.
        let count = self.view.open().min(pop.count).min(room);
        if count > 0 && self.view.has_expired(now) {
            return if self.messages.has_groups() {
                self.clear_expired_of_groups(now, count, expired_max)
            } else {
                self.clear_expired(now, count, expired_max)
            };
        }
        count
    }

    /// Marks messages whose TTL has ended as dead if they stand before or among the first `count` ready ones. Returns
    /// how many messages are ready then, at most `count`; fewer if too many had to be passed over.
    #[cold]
    fn clear_expired(&mut self, now: UnixMs, count: usize, expired_max: usize) -> usize {
        let mut ready = 0;
        for sequence in self.view.in_state(now, StateKind::Ready, count.saturating_add(expired_max)) {
            let Some(at) = self.messages.find_sequence(sequence) else { break };
            if self.refresh(at, now).state_at(now).kind() == StateKind::Ready {
                ready += 1;
                if ready == count {
                    break;
                }
            }
        }
        ready
    }

    /// [`Queue::clear_expired`] for a queue with groups, in which a death may let another message come first. Returns
    /// zero if too many messages had to be passed over.
    #[cold]
    fn clear_expired_of_groups(&mut self, now: UnixMs, mut count: usize, expired_max: usize) -> usize {
        let mut steps = count.saturating_mul(4).saturating_add(expired_max);
        loop {
            count = count.min(self.view.open());
            let is_expired = |sequence: &Sequence| {
                self.messages.locate(*sequence).is_some_and(|at| self.messages.record(at).state_at(now) != State::Ready)
            };
            let Some(upcoming) = self.view.upcoming(&self.messages, now, Pops::One) else {
                return self.clear_expired(now, count, expired_max);
            };
            let mut seen = 0;
            let expired = upcoming.take(count.min(steps)).inspect(|_| seen += 1).find(is_expired);
            steps -= seen;
            let Some(at) = expired.and_then(|sequence| self.messages.find_sequence(sequence)) else {
                return if seen == count { count } else { 0 };
            };
            self.refresh(at, now);
        }
    }

    /// Whether no message is due that a pop could deliver, as of the last advance. O(1).
    pub fn has_nothing_open(&self) -> bool {
        self.view.open() == 0
    }

    /// Whether a pop at `now` would deliver a message, judged without bringing all messages up to `now`. The answer may
    /// be `true` although the only lease that expired belongs to a message that died. O(priorities in use).
    pub fn has_deliverable(&self, now: UnixMs) -> bool {
        let now = self.own_time(now);
        let is_open = |inflight| self.gate.room(&self.settings, inflight, Lease::Default, now) > 0;
        if self.view.first_deadline().is_some_and(|deadline| deadline <= now) {
            // The end of a lease makes room and makes its message deliverable, unless the message died.
            return is_open(0);
        }
        let opens = self.view.earliest_open().is_some_and(|due| due <= now) || self.view.has_opening(now);
        opens && is_open(self.view.inflight())
    }

    /// Delivers the first messages in delivery order to `sink`, as many as [`Queue::deliverable`] returns, and appends
    /// their grants to `grants`.
    pub fn pop(
        &mut self,
        now: UnixMs,
        floor: &mut Floor,
        pop: &Pop,
        grants: &mut Vec<Grant>,
        mut sink: impl FnMut(Delivered<'_>),
    ) {
        let count = self.deliverable(now, pop);
        self.deliver(now, floor, &Pop { count, ..*pop }, |delivered| {
            grants.push(delivered.grant);
            sink(delivered);
        });
    }

    /// Delivers `pop.count` messages to `sink`. The caller must have just asked [`Queue::deliverable`] whether this
    /// many are ready. O(log n) for each message.
    pub fn deliver(&mut self, now: UnixMs, floor: &mut Floor, pop: &Pop, mut sink: impl FnMut(Delivered<'_>)) {
        let now = self.observe(now);
        let last = self.last_receipt.max(Receipt(floor.receipt));
        let mut receipt = Receipt::next(last, now, floor.start);
        let mut begun = 0;
        let mut round = Round::begin(self, now, pop.count);
        let longest = self.settings.longest_lease();
        for _ in 0..pop.count {
            let Some((at, record)) = self.view.take_next(&mut self.messages, now) else { break };
            let lease = match pop.lease {
                Lease::NoAck => None,
                Lease::For(lease) => Some(lease),
                Lease::Default => Some(record.lease.unwrap_or(self.settings.lease)),
            };
            let grant = Grant {
                sequence: record.sequence,
                attempt: record.attempts.saturating_add(1),
                deadline: now.after(lease.unwrap_or(DurationMs::ZERO).min(longest)),
                // If the receipts are exhausted, which only a forged snapshot can bring about, the last is repeated.
                receipt: receipt.unwrap_or(Receipt(u64::MAX)),
            };
            let group = self.messages.group(at);
            round.serve(self, group);
            let lateness = self.count_lateness(at, &record, now);
            let (name, _, payload) = self.messages.texts(at);
            let batches = self.optional.batches.as_deref();
            let details = Details { messages: &self.messages, batches, at, record: &record };
            sink(Delivered { grant, leased: lease.is_some(), lateness, name, payload, details });
            begun += 1;
            if let (None, Some(id)) = (lease, group) {
                self.view.hold(id);
            }
            if lease.is_none() && record.recurring {
                self.view.place(&mut self.messages, at, &record, now);
                self.end_run(at, &record, Ended::Taken, None, now);
                continue;
            }
            if lease.is_none() {
                self.retain_taken(at, &record, now);
                self.messages.remove(at);
                continue;
            }
            self.view.lend(&mut self.messages, at, &grant);
            if record.recurring {
                self.note_run(at, now);
            }
            self.last_receipt = grant.receipt;
            receipt = grant.receipt.0.checked_add(1).map(Receipt);
        }
        round.end(self);
        if begun > 0 {
            self.note_delivery(now);
        }
        self.count_begun(begun, now);
        floor.raise(self.last_sequence, self.last_receipt);
    }

    /// Counts deliveries that began at `now`.
    pub(crate) fn count_begun(&mut self, count: usize, now: UnixMs) {
        self.tally.delivered += count as u64;
        self.gate.record(&self.settings, now, count);
    }

    /// Applies a delivery that was decided elsewhere.
    pub(crate) fn lend(&mut self, grant: &Grant, turn: Option<u64>, now: UnixMs) {
        if let Some((at, record)) = self.messages.locate_record(grant.sequence) {
            self.refresh(at, now);
            self.serve_group(self.messages.group(at), turn, now);
            let phase = Phase::Leased { deadline: grant.deadline, receipt: grant.receipt };
            self.rewrite(at, &record, &Record { attempts: grant.attempt, phase, ..record }, now);
            self.note_run(at, now);
        }
        self.last_receipt = self.last_receipt.max(grant.receipt);
    }
}

/// The turns that one pop gives to groups.
///
/// The deliveries of one effect are one turn of each group that they serve, so that their order within the effect does
/// not matter to the server that applies it. Within the pop, a group that was served goes to the end of the round each
/// time.
struct Round {
    /// The turn that the effect gives; `None` if groups take no turns.
    turn: Option<u64>,
    /// The groups that were served, and `None` for the messages without one.
    served: Vec<Option<GroupId>>,
}

impl Round {
    /// Begins a pop of `count` messages. It gives a turn if the queue already has groups, which is also the condition
    /// where its effect is applied.
    fn begin(queue: &mut Queue, now: UnixMs, count: usize) -> Round {
        let turn = if count > 0 { queue.messages.begin_turn(now) } else { None };
        Round { turn, served: Vec::new() }
    }

    /// Moves a group that is served to the end of the round.
    fn serve(&mut self, queue: &mut Queue, group: Option<GroupId>) {
        if let Some(turn) = self.turn {
            self.served.push(group);
            queue.give_turn(group, Some(turn.saturating_add(self.served.len() as u64)));
        }
    }

    /// Completes the pop: all groups that it served have the turn of the effect.
    fn end(self, queue: &mut Queue) {
        for group in &self.served {
            queue.give_turn(*group, self.turn);
        }
        queue.view.release(&queue.messages);
    }
}

//! Effects: decisions of clients in the form in which they are replicated, written to the AOF and sent to other slots.
//!
//! An effect leaves nothing to be decided again: its times are absolute, and it names messages and receipts explicitly.
//! In particular, a command that takes messages by their state replicates which ones it took, because every server
//! advances its view in steps of its own. It carries the instant of the decision, which is the only time that a server
//! uses when it applies the effect. [`apply`](super::apply) applies it, and [`wire`](super::wire) defines its bytes.

use super::batches::{is_batch_name, BatchState, FollowUp};
use super::checkpoint::is_checkpoint;
use super::consumers::is_consumer_name;
use super::counters::Totals;
use super::done::DoneMessage;
use super::errors::Errors;
use super::forward::Targets;
use super::gate::{Flow, Pause};
use super::groups::{is_group_name, GroupGate, TurnState};
use super::headers::Headers;
use super::id::{Id, Receipt, Sequence};
use super::known::KnownId;
use super::origin::Origin;
use super::rate::RateLog;
use super::record::{Phase, Reason, Record};
use super::recurring::{Declaration, Ended, Recurring, RunEnd};
use super::settings::{Settings, MAX_LENGTH};
use super::spans::Spans;
use super::store::Bytes;
use super::time::{DurationMs, UnixMs};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// A whole message: its record and its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Image<'a> {
    /// The record.
    pub record: Record,
    /// The name that the producer chose.
    pub name: Option<&'a [u8]>,
    /// The payload.
    pub payload: &'a [u8],
    /// Its errors.
    pub errors: Option<Errors<'a>>,
    /// The name of its group.
    pub group: Option<&'a [u8]>,
    /// Where it comes from; `None` if that follows from its sequence.
    pub origin: Option<Origin>,
    /// How long it is retained after its completion, if not for as long as the queue's setting says; zero means not at
    /// all.
    pub retain: Option<DurationMs>,
    /// Its schedule, if it is a recurring message.
    pub recurring: Option<Box<Recurring>>,
    /// Its headers.
    pub headers: Option<Headers<'a>>,
    /// Its checkpoint.
    pub checkpoint: Option<&'a [u8]>,
    /// The name of the consumer to whom it was delivered last.
    pub consumer: Option<&'a [u8]>,
    /// The name of its batch.
    pub batch: Option<&'a [u8]>,
}

impl<'a> Image<'a> {
    /// A message that has a payload and nothing else.
    #[inline(always)]
    pub(super) fn new(record: Record, payload: &'a [u8]) -> Image<'a> {
        Image {
            record,
            name: None,
            payload,
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

    /// Whether a push could have created this message.
    pub(super) fn is_new(&self) -> bool {
        let has_past = self.record.attempts > 0 || self.errors.is_some() || self.checkpoint.is_some();
        let may_begin = match self.record.phase {
            Phase::Waiting | Phase::Dead { .. } => true,
            Phase::Successor { .. } => self.name.is_some() && !has_past,
            Phase::Leased { .. } => false,
        };
        may_begin
            && self.errors.is_none_or(|errors| errors.listed().count() <= 1)
            && self.consumer.is_none()
            && self
                .recurring
                .as_ref()
                .is_none_or(|state| state.series.is_some() && state.declared.is_none() && !has_past)
    }

    /// Whether it is dead and a member of a batch, as it can only be when it is pushed.
    pub(super) fn is_dead_member(&self) -> bool {
        self.batch.is_some() && matches!(self.record.phase, Phase::Dead { .. })
    }

    /// Whether it may be a member of a batch: the runs of schedules are not.
    fn may_be_member(&self) -> bool {
        self.recurring.as_ref().is_none_or(|state| state.series.is_none())
    }

    /// Whether a queue could hold this message.
    pub fn is_valid(&self) -> bool {
        self.record.sequence.is_possible()
            && self.record.is_valid()
            && self.name.is_none_or(Id::is_name)
            && self.group.is_none_or(is_group_name)
            && self.checkpoint.is_none_or(is_checkpoint)
            && self
                .origin
                .is_none_or(|origin| self.name.is_some() && origin.unless_derived_from(self.record.sequence).is_some())
            && self.record.recurring == self.recurring.is_some()
            && self.recurring.as_ref().is_none_or(|state| state.is_valid() && self.name.is_some())
            && self.batch.is_none_or(|batch| is_batch_name(batch) && self.may_be_member())
            && self.consumer.is_none_or(|consumer| is_consumer_name(consumer) && self.record.receipt().is_some())
    }
}

impl<'a> From<&Image<'a>> for Bytes<'a> {
    fn from(image: &Image<'a>) -> Self {
        let Image { name, payload, errors, origin, headers, .. } = *image;
        Bytes { name, payload, errors, origin, headers }
    }
}

/// Messages, each with an instant. A single one, which is usual, takes no memory of its own.
pub type Deadlines = SmallVec<[(Sequence, UnixMs); 1]>;

/// One delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The message.
    pub sequence: Sequence,
    /// The number of this delivery of the message, from 1.
    pub attempt: u32,
    /// When its lease ends.
    pub deadline: UnixMs,
    /// Its receipt.
    pub receipt: Receipt,
}

/// What becomes of a message that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The message is due again at this instant.
    Due(UnixMs),
    /// The message is dead.
    Dead {
        /// The instant of death. It is explicit, since the queue's own time may be ahead of the instant with which the
        /// effect is stamped.
        died: UnixMs,
        /// The reason.
        reason: Reason,
    },
}

/// The data of a queue without its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueHeader {
    /// Its settings.
    pub settings: Settings,
    /// The pause of deliveries that was last set; it may have ended.
    pub pause: Pause,
    /// The same for new messages.
    pub closed: Pause,
    /// The last sequence that the queue assigned.
    pub last_sequence: Sequence,
    /// The last receipt that the queue assigned.
    pub last_receipt: Receipt,
    /// The totals since the queue was created.
    pub totals: Totals,
    /// The instant of the view: `totals` count what time did up to it.
    pub viewed: UnixMs,
    /// The recent deliveries that the rate limit counts.
    pub log: RateLog,
    /// Where its messages are forwarded.
    pub targets: Targets,
}

impl QueueHeader {
    /// Whether a queue could have written this header.
    pub fn is_valid(&self) -> bool {
        self.settings.are_valid()
            && self.totals.numbers().iter().all(|total| *total <= MAX_LENGTH)
            && (self.log.is_empty() || !self.settings.rate.is_off())
            && self.targets.are_valid()
    }
}

/// What one command did to a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect<'a> {
    /// These messages were pushed, and each replaced the message of its name if there was one. The settings are present
    /// if the push created the queue.
    Push(Option<Settings>, Vec<Image<'a>>),
    /// Messages were leased, after others were completed (`DQ.ACKPOP`).
    Deliver {
        /// The messages that were leased.
        grants: Vec<Grant>,
        /// The messages that were completed.
        acked: Vec<Sequence>,
        /// The name of the consumer to whom they were leased.
        consumer: Option<&'a [u8]>,
    },
    /// These messages were delivered without a lease, and removed.
    Take(Vec<Sequence>),
    /// These messages were forwarded, and removed.
    Forward(Vec<Sequence>),
    /// These dead messages were forwarded, and removed.
    DeadForward(Spans),
    /// These messages were completed.
    Ack(Vec<Sequence>),
    /// A message was completed.
    Complete {
        /// The message.
        sequence: Sequence,
        /// Until when it is retained; `None` if it is not.
        until: Option<UnixMs>,
        /// The result that is retained with it.
        result: Option<&'a [u8]>,
    },
    /// A message was given back.
    Nack {
        /// The message.
        sequence: Sequence,
        /// What becomes of it.
        fate: Fate,
        /// Its number of attempts after the nack.
        attempts: u32,
        /// The error that is stored with it.
        error: Option<&'a [u8]>,
        /// The checkpoint that is stored with it, in place of the one that it has; an empty one removes that.
        checkpoint: Option<&'a [u8]>,
    },
    /// Leases end at other instants from now on.
    Extend {
        /// The messages, and when the lease of each ends.
        those: Deadlines,
        /// The checkpoint that is stored with them, as for a nack.
        checkpoint: Option<&'a [u8]>,
    },
    /// These messages were cancelled, and these ids, whose messages were gone already, were forgotten.
    Cancel(Vec<Sequence>, Vec<&'a [u8]>),
    /// A message was given another due time, another priority, or both.
    Reschedule {
        /// The message.
        sequence: Sequence,
        /// The new due time.
        due: Option<UnixMs>,
        /// The new priority.
        priority: Option<i8>,
    },
    /// The due time of these messages was set to this instant.
    Promote(UnixMs, Spans),
    /// This message became dead at the instant of the decision, with this error.
    Bury(Sequence, Option<&'a [u8]>),
    /// These dead messages became live again, due at this instant.
    Redrive(Spans, UnixMs),
    /// A consumer has lost messages that it held.
    Release {
        /// Those whose leases ended at the instant of the decision.
        ended: Vec<Sequence>,
        /// Those that were given back without being counted.
        given_back: Vec<Sequence>,
    },
    /// Messages were removed in bulk.
    Purge {
        /// The messages that were not done.
        messages: Spans,
        /// The done messages.
        done: Spans,
    },
    /// A batch was closed, or cancelled.
    Batch {
        /// The settings, if the queue was created for it.
        settings: Option<Settings>,
        /// Its name.
        name: &'a [u8],
        /// The sequence of what follows, and every other one from now on, is above this one.
        last: Sequence,
        /// What follows it; `None` if it was cancelled.
        then: Option<Box<FollowUp>>,
    },
    /// The queue was created with these settings.
    Create(Settings, Targets),
    /// The settings of the queue were replaced by these.
    Alter(Settings, Targets),
    /// A flow was suspended, or resumed.
    Pause {
        /// The pause.
        pause: Pause,
        /// What it suspends.
        flow: Flow,
        /// The group whose deliveries it suspends, if not those of the whole queue.
        group: Option<&'a [u8]>,
    },
    /// This recurring message was declared, and waits for a run. It replaced the message of its name if there was one.
    /// The settings are present if the declaration created the queue.
    Schedule(Option<Settings>, Image<'a>),
    /// This declaration applies to the message from its next run on; `None` withdraws the pending one.
    Declare(Sequence, Option<Box<Declaration>>),
    /// Runs ended, and ordinary messages with them.
    EndRuns {
        /// How they ended.
        how: Ended<'a>,
        /// The messages that were completed or taken in the same way. If they were forwarded, the runs are among them,
        /// because the turns of the groups follow from the order of all. If time alone ended the runs, these are dead
        /// messages whose membership in a batch has ended.
        others: Vec<Sequence>,
        /// The runs.
        ends: Vec<RunEnd>,
    },
    /// These dead messages were dropped, because the settings no longer keep them.
    Trim(Spans),
    /// These done messages were dropped, because their time has ended or the settings no longer keep them.
    TrimDone(Spans),
    /// Deliveries that the rate limit has recorded at later instants count as if they had begun at the instant of this
    /// effect.
    PullBack,
    /// The queue is created again, and its messages follow: the start of a queue in a rewritten AOF.
    Begin(QueueHeader),
    /// These are the next messages of a queue that [`Effect::Begin`] started.
    Continue(Vec<Image<'a>>),
    /// These are batches of a queue that [`Effect::Begin`] started. Its messages, which name their batches, follow.
    Batches(Vec<BatchState<'a>>),
    /// These are done messages of a queue that [`Effect::Begin`] started.
    Done(Vec<DoneMessage<'a>>),
    /// These are turns of groups of a queue that [`Effect::Begin`] started.
    Turns(TurnState<'a>),
    /// These are pauses and recent deliveries of groups of a queue that [`Effect::Begin`] started.
    Gates(Vec<GroupGate<'a>>),
    /// These are known ids, whose messages are gone, of a queue that [`Effect::Begin`] started.
    Recall(Vec<KnownId<'a>>),
    /// These are the messages in flight that have a successor, each after the sequence of its successor, of a queue
    /// that [`Effect::Begin`] started.
    Leaving(Vec<(Sequence, Image<'a>)>),
}

impl<'a> Effect<'a> {
    /// Whether it is a part of a whole queue, which was decided by nobody.
    pub(super) fn is_piece(&self) -> bool {
        matches!(
            self,
            Effect::Begin(_)
                | Effect::Batches(_)
                | Effect::Continue(_)
                | Effect::Done(_)
                | Effect::Recall(_)
                | Effect::Leaving(_)
                | Effect::Turns(_)
                | Effect::Gates(_)
        )
    }

    /// Combines this effect with the runs that the same operation ended.
    ///
    /// Returns up to two effects, in the order in which they are applied. An effect that completes messages, or that
    /// gives one back, becomes one that ends runs. If a call acked and delivered messages, its deliveries are the
    /// second effect. For any other effect, time ended the runs before it, and an effect of its own says so.
    #[must_use]
    pub fn with_ends(self, ends: Vec<RunEnd>) -> (Effect<'a>, Option<Effect<'a>>) {
        let ended: BTreeSet<Sequence> = ends.iter().map(|end| end.sequence).collect();
        let is_other = |sequence: &Sequence| !ended.contains(sequence);
        let others_of = |all: Vec<Sequence>| all.into_iter().filter(is_other).collect();
        let (how, others, then) = match self {
            Effect::Ack(all) => (Ended::Acked, others_of(all), None),
            Effect::Deliver { grants, acked, consumer } if !acked.is_empty() => {
                (Ended::Acked, others_of(acked), Some(Effect::Deliver { grants, acked: Vec::new(), consumer }))
            }
            Effect::Complete { .. } => (Ended::Completed, Vec::new(), None),
            Effect::Take(all) => (Ended::Taken, others_of(all), None),
            Effect::Forward(all) => (Ended::Forwarded, all, None),
            Effect::Nack { error, checkpoint, .. } => (Ended::Nacked { error, checkpoint }, Vec::new(), None),
            Effect::Bury(_, error) => (Ended::Buried(error), Vec::new(), None),
            Effect::Release { ended, given_back } => {
                let is_empty = ended.is_empty() && given_back.is_empty();
                let then = (!is_empty).then_some(Effect::Release { ended, given_back });
                (Ended::Nacked { error: None, checkpoint: None }, Vec::new(), then)
            }
            effect => (Ended::ByTime, Vec::new(), Some(effect)),
        };
        (Effect::EndRuns { how, others, ends }, then)
    }
}

/// An effect with the instant of the decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped<'a> {
    /// The instant of the decision, by the clock of the server that decided.
    pub now: UnixMs,
    /// What was decided.
    pub effect: Effect<'a>,
}

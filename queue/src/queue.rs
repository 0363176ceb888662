//! The queue: its parts, and the steps that its operations have in common.

use super::batches::Batches;
use super::counters::{Counts, Tally, Totals};
use super::done::Done;
use super::effect::Image;
use super::gate::{Gate, Pause};
use super::groups::{GroupGates, GroupLimits, Membership};
use super::id::{BatchId, Receipt, Sequence};
use super::known::Known;
use super::memory::{box_bytes, given};
use super::messages::Messages;
use super::optional::{Optional, OptionalParts};
use super::record::Record;
use super::settings::Settings;
use super::stats::Stats;
use super::store::{At, Bytes};
use super::time::UnixMs;
use super::view::View;
use std::sync::Arc;

/// A delay queue.
///
/// # Example
/// ```
/// use dq_queue::id::{Floor, Target};
/// use dq_queue::settings::Settings;
/// use dq_queue::time::{DurationMs, UnixMs};
/// use dq_queue::{Due, Lease, NewMessage, Pop, Queue};
///
/// let at = |ms: u64| UnixMs::new(1_760_000_000_000 + ms);
/// let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
/// let due = Some(Due::After(DurationMs::new(500)));
/// queue.push(at(0), &mut floor, &NewMessage { payload: b"hello", name: Some(b"m"), due, ..NewMessage::default() });
///
/// // It is due in half a second and not before.
/// let pop = Pop { count: 10, lease: Lease::For(DurationMs::new(100)) };
/// assert_eq!(queue.deliverable(at(499), &pop), 0);
/// let mut payloads = Vec::new();
/// queue.pop(at(500), &mut floor, &pop, &mut Vec::new(), |message| payloads.push(message.payload.to_vec()));
/// assert_eq!(payloads, [b"hello"]);
///
/// // No other consumer gets it until its lease expires, and an ack removes it.
/// assert_eq!(queue.deliverable(at(599), &pop), 0);
/// assert!(queue.ack(at(599), &Target::parse(b"m").unwrap()).is_some());
/// assert_eq!(queue.deliverable(at(600), &pop), 0);
/// ```
#[derive(Debug)]
pub struct Queue {
    /// Most queues of a server have the same settings, and share them.
    pub(super) settings: Arc<Settings>,
    pub(super) gate: Gate,
    pub(super) tally: Tally,
    /// Allocated with the first pop.
    pub(super) stats: Option<Box<Stats>>,
    pub(super) last_sequence: Sequence,
    pub(super) last_receipt: Receipt,
    /// The latest `now` that was passed in: time never runs backwards within a queue. It is never saved.
    pub(super) clock: UnixMs,
    pub(super) messages: Messages,
    pub(super) view: View,
    pub(super) optional: Optional,
}

impl Queue {
    /// An empty queue.
    pub fn new(settings: Settings) -> Queue {
        Queue {
            settings: Arc::new(settings),
            gate: Gate::default(),
            tally: Tally::default(),
            stats: None,
            last_sequence: Sequence::ZERO,
            last_receipt: Receipt::ZERO,
            clock: UnixMs::EPOCH,
            messages: Messages::default(),
            view: View::default(),
            optional: Optional::default(),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Shares the settings with other queues: the queue takes `common` if its own settings are equal to it, and
    /// otherwise puts its own into `common`.
    pub fn share_settings(&mut self, common: &mut Arc<Settings>) {
        if self.settings == *common {
            self.settings = Arc::clone(common);
        } else {
            *common = Arc::clone(&self.settings);
        }
    }

    /// The totals since the queue was created. O(1).
    #[inline]
    pub fn totals(&self) -> Totals {
        self.tally.totals()
    }

    /// The totals as they are stored: those of messages pushed, delivered and acked; and, once one of the others was
    /// counted, all others, with these three zero. O(1).
    #[inline]
    pub fn tally(&self) -> ([u64; 3], Option<&Totals>) {
        self.tally.parts()
    }

    /// The last sequence and the last receipt that this queue assigned.
    pub fn last_given(&self) -> (Sequence, Receipt) {
        (self.last_sequence, self.last_receipt)
    }

    /// The number of messages in each state, as of the last advance. O(1).
    #[inline(always)]
    pub fn counts(&self) -> Counts {
        let done = self.optional.done.as_ref().map_or(0, |done| done.len() as u64);
        Counts { done, ..self.view.counts(&self.messages) }
    }

    /// The pause of deliveries that holds at `now`: [`Pause::Off`] if the last one has ended.
    pub fn pause_at(&self, now: UnixMs) -> Pause {
        self.gate.pause().at(self.own_time(now))
    }

    /// The same for new messages, which the queue does not accept meanwhile.
    pub fn closed_at(&self, now: UnixMs) -> Pause {
        self.gate.closed().at(self.own_time(now))
    }

    /// The queue's own time at `now`, which never runs backwards: the time of its decisions.
    #[inline]
    pub fn own_time(&self, now: UnixMs) -> UnixMs {
        self.clock.max(now)
    }

    /// Records that the time is `now`, for a caller that changes nothing: no later answer is for an earlier time. O(1).
    #[inline]
    pub fn notice(&mut self, now: UnixMs) {
        self.clock = self.own_time(now);
    }

    /// The number of messages, done messages and known ids, batches and gates of groups: what takes time to free. O(1).
    pub fn parts(&self) -> u64 {
        let batches = self.optional.batches.as_deref().map_or(0, Batches::len);
        let known = self.optional.known.as_deref().map_or(0, Known::len);
        let gates = self.messages.gates().map_or(0, GroupGates::len);
        self.counts().total() + (batches + known + gates) as u64
    }

    /// The number of bytes on the heap; those of what only some messages have are estimated if many have it.
    /// O(n / 64).
    pub fn heap_bytes(&self) -> usize {
        // The two counts of an `Arc`.
        const OWNED: usize = 2 * size_of::<usize>();
        let own_settings =
            if Arc::strong_count(&self.settings) == 1 { given(OWNED + size_of::<Settings>()) } else { 0 };
        let stats = self.stats.as_deref().map_or(0, |stats| box_bytes::<Stats>() + stats.heap_bytes());
        let known = self.optional.known.as_deref().map_or(0, |known| box_bytes::<Known>() + known.heap_bytes());
        let forwarding = [&self.optional.forwarding, &self.optional.dead_forwarding];
        let forwarding: usize = forwarding.into_iter().flatten().map(|forwarding| forwarding.heap_bytes()).sum();
        let done = self.optional.done.as_deref().map_or(0, |done| box_bytes::<Done>() + done.heap_bytes());
        let batches = self.optional.batches.as_deref();
        let batches = batches.map_or(0, |batches| box_bytes::<Batches>() + batches.heap_bytes());
        let optional = self.optional.held().map_or(0, |_| box_bytes::<OptionalParts>());
        own_settings
            + optional
            + done
            + batches
            + self.gate.heap_bytes()
            + self.tally.heap_bytes()
            + stats
            + self.messages.heap_bytes()
            + self.view.heap_bytes(&self.messages)
            + known
            + forwarding
    }

    /// Checks that the messages, their names and their orders agree, for every message. The error says what does not
    /// agree. O(n log n), for tests, and for debug builds after each command.
    pub fn check(&self) -> Result<(), &'static str> {
        self.messages.check()?;
        self.view.check(&self.messages)?;
        self.check_done()?;
        self.check_batches()?;
        let Some(known) = &self.optional.known else { return Ok(()) };
        known.check()?;
        match known.iter().find(|id| self.messages.find_named(id.name).is_some()) {
            Some(_) => Err("an id is remembered although a message has it"),
            None => Ok(()),
        }
    }
}

/// Steps that the operations have in common.
impl Queue {
    /// Records the time of a decision, and returns the queue's own time. If another clock brought the view beyond that
    /// time, the view is taken back to it.
    #[inline]
    pub(super) fn observe(&mut self, now: UnixMs) -> UnixMs {
        self.notice(now);
        if self.view.is_beyond(self.clock) {
            self.rewind(self.clock);
        }
        self.view.limit_to(self.clock);
        self.clock
    }

    /// Takes the view back to `now`, and the totals with it.
    #[cold]
    pub(super) fn rewind(&mut self, now: UnixMs) {
        let uncounted = self.view.rewind(&mut self.messages, now);
        self.tally.uncount(uncounted);
    }

    /// Brings one message up to `now`, counts what that changed, and returns its record. O(log n).
    #[inline]
    pub(super) fn refresh(&mut self, at: At, now: UnixMs) -> Record {
        let record = self.messages.record(at);
        if let Some(refreshed) = self.view.refresh(&mut self.messages, at, &record, now) {
            self.tally.uncount(refreshed.uncounted);
            if refreshed.lease_ended {
                self.tally.others().lease_expired += 1;
            }
            if let Some((died, reason)) = refreshed.died {
                self.tally.count_dead(died, reason);
                self.note_overdue(at, record.sequence);
            }
        }
        record
    }

    /// The message with `sequence`, brought up to `now`; `None` if the queue does not hold it. O(log n).
    pub(super) fn refreshed(&mut self, sequence: Sequence, now: UnixMs) -> Option<(At, Record)> {
        let at = self.messages.find_sequence(sequence)?;
        Some((at, self.refresh(at, now)))
    }

    /// Brings each of these messages up to `now` and calls `change` for it. Passes over those that the queue does not
    /// hold.
    pub(super) fn for_each_refreshed(
        &mut self,
        sequences: &[Sequence],
        now: UnixMs,
        mut change: impl FnMut(&mut Queue, At, &Record),
    ) {
        for sequence in sequences {
            if let Some((at, record)) = self.refreshed(*sequence, now) {
                change(self, at, &record);
            }
        }
    }

    /// Adds a message behind all others. O(log n).
    pub(super) fn insert(&mut self, record: &Record, bytes: Bytes<'_>, group: Option<&[u8]>, now: UnixMs) {
        let at = self.messages.add(record, bytes, self.membership(group, now), None);
        self.view.place(&mut self.messages, at, record, now);
    }

    /// [`Queue::insert`] for a whole message.
    pub(super) fn insert_image(&mut self, image: &Image<'_>, now: UnixMs) {
        let batch = self.join_batch(image, now);
        self.insert_member(image, batch, now, now);
    }

    /// [`Queue::insert_image`] for a message that has joined `batch`. If its group is new, the group enters the round
    /// at `entered`.
    pub(super) fn insert_member(&mut self, image: &Image<'_>, batch: Option<BatchId>, entered: UnixMs, now: UnixMs) {
        let at = self.messages.add_image(image, self.membership(image.group, entered), batch);
        self.view.place(&mut self.messages, at, &image.record, now);
    }

    /// Adds a message in place of the one of the same name at `at`, whose record is `record`. O(log n).
    pub(super) fn replace_with_image(&mut self, at: At, record: &Record, image: &Image<'_>, now: UnixMs) {
        self.end_removed(at, record.sequence);
        self.view.unplace(&self.messages, at, record);
        self.view.advance_due(now);
        let batch = self.join_batch(image, now);
        let at = self.messages.replace(at, image, self.membership(image.group, now), batch);
        self.view.place(&mut self.messages, at, &image.record, now);
    }

    /// Removes a message that was brought up to the time. O(log n).
    #[inline]
    pub(super) fn remove(&mut self, at: At, record: &Record) {
        self.end_removed(at, record.sequence);
        self.remove_ended(at, record);
    }

    /// [`Queue::remove`] for a message whose end was counted if it is a member of a batch.
    #[inline]
    pub(super) fn remove_ended(&mut self, at: At, record: &Record) {
        self.view.unplace(&self.messages, at, record);
        self.messages.remove(at);
    }

    /// Replaces the record of a message after a decision of a client. O(log n).
    pub(super) fn rewrite(&mut self, at: At, old: &Record, new: &Record, now: UnixMs) {
        // Messages that are due by `now` count as ready before this one is placed.
        self.view.advance_due(now);
        self.view.replace(&mut self.messages, at, old, new, now);
        self.note_rewritten(at, old, new, now);
    }

    /// The group that a message joins at `now`.
    #[inline]
    pub(super) fn membership<'a>(&self, group: Option<&'a [u8]>, now: UnixMs) -> Option<Membership<'a>> {
        group.map(|name| Membership { name, limits: GroupLimits::from(&*self.settings), now })
    }
}

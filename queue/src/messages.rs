//! The messages of a queue in push order, and an index of the names that producers chose.
//!
//! A message is found by its sequence, which every message has, or by its name, which is unique among the messages that
//! the queue holds. Clients refer to a named message by its name only.

mod batches;
mod consumers;
mod groups;

use super::effect::Image;
use super::errors::PastError;
use super::groups::{GroupGates, GroupNames, Membership};
use super::id::{BatchId, GroupId, Id, Receipt, Sequence};
use super::memory::box_bytes;
use super::name_index::NameIndex;
use super::origin::Origin;
use super::record::{Phase, Record};
use super::recurring::Recurring;
use super::spans::Spans;
use super::store::{At, Bytes, Leaving, Placement, Store};
use super::time::{DurationMs, UnixMs};
use groups::Grouped;
use std::ops::Deref;

/// The messages of a queue.
#[derive(Debug, Default)]
pub(super) struct Messages {
    store: Store,
    names: NameIndex<Sequence>,
    /// Allocated with the first message that has a group.
    groups: Option<Box<Grouped>>,
}

/// What reads one message or all of them is the store's. What changes a message goes through [`Messages`], so that the
/// names and the groups follow.
impl Deref for Messages {
    type Target = Store;

    #[inline]
    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Messages {
    /// Removes all messages. What was delivered from groups recently, and which are paused, stays.
    pub fn clear(&mut self) {
        let gates = self.groups.as_mut().and_then(|grouped| grouped.gates.take());
        let groups = gates.map(|gates| Box::new(Grouped { names: None, gates: Some(gates) }));
        *self = Messages { groups, ..Messages::default() };
    }

    /// Adds a message behind all others, and returns its place. Its sequence must be above theirs, and no other may
    /// have its name. O(log n).
    pub fn add(
        &mut self,
        record: &Record,
        bytes: Bytes<'_>,
        group: Option<Membership<'_>>,
        batch: Option<BatchId>,
    ) -> At {
        let at = self.store(record, bytes, group, batch);
        if let Some(name) = bytes.name {
            self.names.insert(name, record.sequence);
        }
        at
    }

    fn store(
        &mut self,
        record: &Record,
        bytes: Bytes<'_>,
        group: Option<Membership<'_>>,
        batch: Option<BatchId>,
    ) -> At {
        let group = group.map(|of| {
            let names = &mut self.groups.get_or_insert_default().names;
            names.get_or_insert_with(|| GroupNames::new(of.limits)).join(&of)
        });
        self.store.append(record, bytes, group, batch)
    }

    /// [`Messages::add`] for a whole message.
    pub fn add_image(&mut self, image: &Image<'_>, group: Option<Membership<'_>>, batch: Option<BatchId>) -> At {
        let at = self.add(&image.record, Bytes::from(image), group, batch);
        self.add_attachments(at, image);
        at
    }

    /// [`Messages::add_image`] in place of the message of the same name at `at`, which must no longer be in any order
    /// of the view. Returns its place. O(log n).
    pub fn replace(&mut self, at: At, image: &Image<'_>, group: Option<Membership<'_>>, batch: Option<BatchId>) -> At {
        let before = self.store.sequence(at);
        self.discard(at);
        let at = self.store(&image.record, Bytes::from(image), group, batch);
        if let Some(name) = image.name {
            self.names.replace(name, before, image.record.sequence);
        }
        self.add_attachments(at, image);
        at
    }

    #[inline]
    fn add_attachments(&mut self, at: At, image: &Image<'_>) {
        if let Some(state) = &image.recurring {
            self.store.set_recurring(at, state.clone());
        }
        if let Some(retain) = image.retain {
            self.store.set_retain(at, retain);
        }
        if let Some(checkpoint) = image.checkpoint {
            self.store.set_checkpoint(at, checkpoint);
        }
        if image.consumer.is_some() {
            self.set_consumer(at, image.consumer);
        }
    }

    /// Removes a message, which must no longer be in any order of the view. O(log n).
    #[inline]
    pub fn remove(&mut self, at: At) {
        if self.is_named(at) {
            if let Some(name) = self.store.bytes(at).name {
                self.names.remove(name, self.store.sequence(at));
            }
        }
        self.discard(at);
    }

    /// [`Messages::remove`] without the name.
    #[inline(always)]
    fn discard(&mut self, at: At) {
        if let Some(id) = self.group(at) {
            self.group_names_mut().into_iter().for_each(|groups| groups.leave(id));
        }
        if self.has_consumers() {
            self.set_consumer(at, None);
        }
        self.store.remove(at);
    }

    /// Removes all messages in `spans`. O(n), with little work for each.
    pub fn remove_spans(&mut self, spans: &Spans) {
        self.store.remove_where(|sequence| spans.contain(sequence));
        if let Some(groups) = self.groups.as_mut().and_then(|grouped| grouped.names.as_mut()) {
            groups.recount(self.store.iter_after(None).filter_map(|at| self.store.group(at)));
        }
        self.recount_consumers();
        if self.names.is_empty() {
            return;
        }
        let all = self.store.iter_after(None);
        self.names =
            NameIndex::from_names(all.filter_map(|at| Some((self.store.bytes(at).name?, self.store.sequence(at)))));
    }

    /// The place of the message that `id` refers to; `None` if there is none. O(log n).
    #[inline]
    pub fn find(&mut self, id: &Id<'_>) -> Option<At> {
        match id {
            Id::Generated(sequence) => {
                let at = self.store.find(*sequence)?;
                (!self.is_named(at)).then_some(at)
            }
            Id::Named(name) => self.find_named(name),
        }
    }

    /// [`Messages::find`] for a caller that may change nothing, not even the place where the next search begins.
    pub fn locate_id(&self, id: &Id<'_>) -> Option<At> {
        match id {
            Id::Generated(sequence) => self.store.locate(*sequence).filter(|at| !self.is_named(*at)),
            Id::Named(name) => self.find_named(name),
        }
    }

    /// The place of the message with this name; `None` if there is none. O(log n).
    pub fn find_named(&self, name: &[u8]) -> Option<At> {
        self.names
            .find(name, |sequence| self.store.locate(sequence).filter(|at| self.store.bytes(*at).name == Some(name)))
    }

    /// The place of the message with `sequence`. O(log n), and O(1) for the one after the last one found.
    #[inline]
    pub fn find_sequence(&mut self, sequence: Sequence) -> Option<At> {
        self.store.find(sequence)
    }

    /// The spans that name the messages with these sequences and no others. O(m log n).
    pub fn spans_of(&mut self, mut sequences: Vec<Sequence>) -> Spans {
        sequences.sort_unstable();
        sequences.dedup();
        let (mut spans, mut before) = (Spans::default(), None);
        for sequence in sequences {
            let Some(at) = self.store.find(sequence) else { continue };
            spans.add(sequence, before.is_some_and(|before| self.store.next(before) == Some(at)));
            before = Some(at);
        }
        spans
    }

    /// [`Messages::spans_of`] for messages that were just removed. O(m log n).
    pub fn spans_of_removed(&self, mut sequences: Vec<Sequence>) -> Spans {
        sequences.sort_unstable();
        let (mut spans, mut next_held) = (Spans::default(), None);
        for sequence in sequences {
            spans.add(sequence, next_held.is_some_and(|next| next > sequence));
            let next = self.store.first_from(sequence).map(|at| self.store.sequence(at));
            next_held = Some(next.unwrap_or(Sequence(u64::MAX)));
        }
        spans
    }

    /// The spans that name the messages at the places for which `chosen` returns `true`. O(n).
    pub fn spans_where(&self, chosen: impl Fn(&Messages, At) -> bool) -> Spans {
        let (mut spans, mut joins) = (Spans::default(), false);
        for at in self.store.iter_after(None) {
            let is_chosen = chosen(self, at);
            if is_chosen {
                spans.add(self.store.sequence(at), joins);
            }
            joins = is_chosen;
        }
        spans
    }

    /// Whether one of the spans covers every message of the queue. O(number of spans).
    pub fn all_in(&self, spans: &Spans) -> bool {
        let first = self.store.first_from(Sequence::ZERO).map(|at| self.store.sequence(at));
        let (Some(first), Some(last)) = (first, self.last()) else { return true };
        spans.iter().any(|span| span.first <= first && last <= span.last)
    }

    /// The messages in `spans` that the queue holds, in push order. O(m log n).
    pub fn in_spans(&self, spans: &Spans) -> Vec<Sequence> {
        let mut held = Vec::new();
        for span in spans.iter() {
            let mut next = self.store.first_from(span.first);
            while let Some(at) = next.filter(|at| self.store.sequence(*at) <= span.last) {
                held.push(self.store.sequence(at));
                next = self.store.next(at);
            }
        }
        held
    }

    /// The place and the record of the message with `sequence`; `None` if the queue no longer holds it.
    #[inline]
    pub fn locate_record(&mut self, sequence: Sequence) -> Option<(At, Record)> {
        let at = self.store.find(sequence)?;
        Some((at, self.store.record(at)))
    }

    /// Whether the message has a name. Reads no message in a queue without names.
    #[inline]
    pub fn is_named(&self, at: At) -> bool {
        !self.names.is_empty() && self.store.is_named(at)
    }

    /// Records which order of the view the message is in. Only the view calls this.
    pub fn set_placement(&mut self, at: At, placement: Placement) {
        self.store.set_placement(at, placement);
    }

    /// Sets which order of the view each message is in: calls `placement` with every record, in push order. Only the
    /// view calls this.
    pub fn place_all(&mut self, placement: impl FnMut(&Record, Option<GroupId>) -> Placement) {
        self.store.place_all(placement);
    }

    /// The priority of the message with `sequence`; zero if the queue does not hold it. O(log n).
    pub fn priority_of(&self, sequence: Sequence) -> i8 {
        self.store.locate(sequence).map_or(0, |at| self.store.priority(at))
    }

    /// Writes those fields of a record that can change: due time, priority, the end of its TTL, attempts and phase.
    pub fn update(&mut self, at: At, record: &Record) {
        if self.has_consumers() {
            self.end_delivery(at, record.receipt());
        }
        self.store.update(at, record);
    }

    /// Writes those fields of a record that a delivery changes, and marks the message as leased.
    pub fn lend(&mut self, at: At, attempts: u32, deadline: UnixMs, receipt: Receipt) {
        if self.has_consumers() {
            self.set_consumer(at, None);
        }
        self.store.lend(at, attempts, deadline, receipt);
    }

    /// Marks a message that waits again because its only delivery was given back without being counted. The mark is not
    /// part of the record and is not saved; the next [`Messages::update`] or [`Messages::lend`] removes it.
    pub fn mark_given_back(&mut self, at: At) {
        self.store.mark_given_back(at);
    }

    /// Whether a message has a successor, or had one until its delivery ended. O(1).
    pub fn has_successors(&self) -> bool {
        self.all_leaving().next().is_some()
    }

    /// Stores the message in flight whose successor is at `at`.
    pub fn set_leaving(&mut self, at: At, leaving: Leaving) {
        self.store.set_leaving(at, leaving);
    }

    /// Stores the message in flight whose successor has the sequence `kept`, while a queue is loaded.
    pub fn add_leaving(&mut self, kept: Sequence, image: &Image<'_>) {
        if let Some(at) = self.store.locate(kept) {
            self.store.set_leaving(at, Leaving::new(image.record, &Bytes::from(image), image.checkpoint));
        }
    }

    /// Stores where the message comes from.
    pub fn set_origin(&mut self, at: At, origin: Origin) {
        self.store.set_origin(at, origin);
    }

    /// How long the message is retained after its completion, if it has a retention of its own. O(1) if no message has.
    #[inline]
    pub fn retain(&self, at: At) -> Option<DurationMs> {
        if self.store.has_retain() {
            self.store.retain(at)
        } else {
            None
        }
    }

    /// Adds an error to those of the message, of which `kept` are kept.
    pub fn add_error(&mut self, at: At, error: &PastError<'_>, kept: u64) {
        self.store.add_error(at, error, kept);
    }

    /// Drops the errors of the message.
    pub fn clear_errors(&mut self, at: At) {
        self.store.clear_errors(at);
    }

    /// Stores a checkpoint with the message that is delivered, which is not the one at `at` if that is its successor at
    /// `now`. An empty one removes what was stored.
    pub fn set_checkpoint(&mut self, at: At, record: &Record, checkpoint: &[u8], now: UnixMs) {
        match record.is_successor_at(now) {
            true => self.store.set_checkpoint_of_leaving(at, checkpoint),
            false => self.store.set_checkpoint(at, checkpoint),
        }
    }

    /// Drops the checkpoint of the message.
    pub fn clear_checkpoint(&mut self, at: At) {
        if self.store.checkpoint(at).is_some() {
            self.store.set_checkpoint(at, &[]);
        }
    }

    /// [`Messages::recurring`], to change it.
    pub fn recurring_mut(&mut self, at: At) -> Option<&mut Recurring> {
        self.store.recurring_mut(at)
    }

    /// Whether no message recurs and there is no group, without a look at either.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.groups.is_none() && !self.store.has_attachments()
    }

    /// Stores what a recurring message has in addition to its record, and marks the message as recurring. It must not
    /// be in any order of the view.
    pub fn set_recurring(&mut self, at: At, recurring: Box<Recurring>) {
        self.store.set_recurring(at, recurring);
    }

    /// The number of messages that have a group. O(1).
    pub fn grouped(&self) -> usize {
        self.groups().map_or(0, GroupNames::members)
    }

    /// The number of bytes on the heap. O(n / 64).
    pub fn heap_bytes(&self) -> usize {
        let groups = self.groups().map_or(0, GroupNames::heap_bytes);
        let groups = groups + self.groups.as_ref().map_or(0, |_| box_bytes::<Grouped>());
        let gates = self.gates().map_or(0, |gates| box_bytes::<GroupGates>() + gates.heap_bytes());
        self.store.heap_bytes() + self.names.heap_bytes() + groups + gates
    }

    /// Checks that each name leads to its message and that each message is found by its sequence. O(n log n), for
    /// tests.
    pub fn check(&self) -> Result<(), &'static str> {
        self.gates().map_or(Ok(()), GroupGates::check)?;
        let mut named = 0;
        let mut count = 0;
        let mut recurring = 0;
        for at in self.store.iter_after(None) {
            count += 1;
            if self.store.locate(self.store.sequence(at)) != Some(at) {
                return Err("a message is not found by its sequence");
            }
            let record = self.store.record(at);
            recurring += usize::from(record.recurring);
            let is_sound = |state: &Recurring| state.is_valid() && record.is_valid() && self.store.is_named(at);
            if record.recurring != self.store.recurring(at).is_some_and(is_sound) {
                return Err("a recurring message has no name or no valid schedule");
            }
            if let Some(name) = self.store.bytes(at).name {
                named += 1;
                if self.find_named(name) != Some(at) {
                    return Err("a message is not found by its name");
                }
            }
        }
        let is_sound = |(kept, leaving): (Sequence, &Leaving)| {
            let record = self.store.locate(kept).map(|at| self.store.record(at));
            record.is_some_and(|record| matches!(record.phase, Phase::Successor { .. }))
                && matches!(leaving.record.phase, Phase::Leased { .. })
                && !leaving.record.recurring
        };
        if !self.store.all_leaving().all(is_sound) {
            return Err("a message is being delivered for a successor that does not exist");
        }
        if named != self.names.len() || count != self.store.len() || recurring != self.store.recurring_count() {
            return Err("the messages, their names or their schedules are miscounted");
        }
        self.check_consumers()?;
        let mut grouped = self.store.iter_after(None).filter_map(|at| self.store.group(at));
        match self.groups() {
            None if grouped.next().is_some() => Err("a message is in a group that does not exist"),
            Some(groups) if groups.is_empty() => Err("groups are remembered that have no message"),
            Some(groups) => groups.check(grouped),
            None => Ok(()),
        }
    }
}

//! Batches: messages join one when they are pushed and leave it when they end, and a message may follow the last one.
//!
//! What follows is pushed when the effect that ended the last member is complete, by every server that applies the
//! effect: its sequence is the next one of the queue, and its due time counts from the instant of the effect. So there
//! is no effect for it, and it is pushed exactly once. If time alone made a member dead, the server that decides says
//! so in an effect ([`Queue::end_failed_runs`]).

use super::dedupe::Ids;
use super::{At, Loss, Phase, Queue, Record, Sequence, Spans, StateKind, UnixMs};
use crate::batches::{Batch, BatchState, Batches, Entry, FollowUp, MemberEnd};
use crate::effect::Image;
use crate::headers::HeaderBlock;
use crate::id::{BatchId, Floor};
use crate::origin::Origin;
use crate::store::Placement;

/// The result of closing a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// How many members are left.
    pub left: u64,
    /// The last sequence that the queue, or any queue of the server, has assigned; that of what follows is above it.
    pub last: Sequence,
}

impl Queue {
    /// The batch with this name; `None` if there is none. O(log n).
    pub fn batch(&self, now: UnixMs, name: &[u8]) -> Option<Batch<'_>> {
        let batches = self.optional.batches.as_ref()?;
        batches.get(name, self.own_time(now)).map(Entry::shown)
    }

    /// The number of batches. O(log n).
    pub fn batches(&self, now: UnixMs) -> usize {
        self.optional.batches.as_ref().map_or(0, |batches| batches.count(self.own_time(now)))
    }

    /// Says what follows a batch once no member is left, in place of what was said before. Creates the batch if there
    /// is none. Returns `None`, and changes nothing, if the payload is too large. O(log n).
    pub fn close_batch(&mut self, now: UnixMs, floor: &Floor, name: &[u8], then: &FollowUp) -> Option<Closed> {
        let now = self.observe(now);
        if self.is_too_large(&then.payload) {
            return None;
        }
        let last = self.last_sequence.max(Sequence(floor.sequence));
        let left = self.set_follow_up(name, then, last, now);
        Some(Closed { left, last })
    }

    /// Applies what follows a batch. Returns how many members are left.
    pub(crate) fn set_follow_up(&mut self, name: &[u8], then: &FollowUp, last: Sequence, now: UnixMs) -> u64 {
        self.last_sequence = self.last_sequence.max(last);
        self.optional.for_adding().batches.get_or_insert_default().close(name, Box::new(then.clone()), now)
    }

    /// Removes a batch, and its members except those that are dead. Nothing follows. Returns how many messages were
    /// removed; `None` if there is no such batch. O(m log n), where m is the number of members, and O(1) for each
    /// other message that was pushed between them.
    pub fn cancel_batch(&mut self, now: UnixMs, name: &[u8]) -> Option<usize> {
        let now = self.observe(now);
        self.optional.batches.as_ref()?.get(name, now)?;
        let members = self.dissolve(name, now);
        if self.view.inflight() > 0 {
            let held = self.in_flight_of(members.iter().copied(), now);
            self.note_all_lost(&held, Loss::Cancelled);
        }
        Some(self.cancel_members(members, now))
    }

    /// Applies the cancellation of a batch.
    pub(crate) fn drop_batch(&mut self, name: &[u8], now: UnixMs) -> usize {
        let members = self.dissolve(name, now);
        self.cancel_members(members, now)
    }

    fn cancel_members(&mut self, members: Vec<Sequence>, now: UnixMs) -> usize {
        let spans = self.messages.spans_of(members);
        let removed = self.remove_spans(&spans, now, Ids::Forgotten);
        if removed > 0 {
            self.tally.others().cancelled += removed as u64;
        }
        removed
    }

    /// Removes a batch, and returns those of its members that are not dead.
    fn dissolve(&mut self, name: &[u8], now: UnixMs) -> Vec<Sequence> {
        let Some((id, batch)) = self.batches_mut().and_then(|batches| batches.dissolve(name)) else {
            return Vec::new();
        };
        let mut members = self.messages.dissolve(id, batch.first, batch.last);
        self.batches_mut().into_iter().for_each(|batches| batches.forget(&members));
        self.free_batches();
        members.retain(|sequence| !self.is_dead_at(*sequence, now));
        members
    }

    fn is_dead_at(&self, sequence: Sequence, now: UnixMs) -> bool {
        let record = self.messages.locate(sequence).map(|at| self.messages.record(at));
        record.is_some_and(|record| record.state_at(now).kind() == StateKind::Dead)
    }

    /// Whether a batch has ended since the last call.
    #[inline]
    pub fn take_batch_end(&mut self) -> bool {
        self.has_batches() && self.take_ended()
    }

    #[cold]
    fn take_ended(&mut self) -> bool {
        let ended = self.batches_mut().is_some_and(Batches::take_ended);
        self.free_batches();
        ended
    }

    #[inline]
    fn has_batches(&self) -> bool {
        self.optional.held().is_some_and(|parts| parts.batches.is_some())
    }

    #[inline]
    fn batches_mut(&mut self) -> Option<&mut Batches> {
        self.optional.held_mut()?.batches.as_deref_mut()
    }

    fn free_batches(&mut self) {
        if self.optional.batches.as_deref().is_some_and(Batches::is_empty) {
            self.optional.take(|parts| &mut parts.batches);
        }
    }

    /// The name of the batch of a message, unless the message is dead.
    pub(crate) fn batch_of(&self, at: At, record: &Record, now: UnixMs) -> Option<&[u8]> {
        self.batch_of_image(at).filter(|_| record.state_at(now).kind() != StateKind::Dead)
    }

    /// The name of the batch of a message, as it is saved.
    #[inline]
    pub(crate) fn batch_of_image(&self, at: At) -> Option<&[u8]> {
        self.optional.batches.as_ref()?.name_of(self.messages.batch(at)?)
    }

    /// Whether these batches may be added to those that the queue has while it is loaded.
    pub(crate) fn may_restore_batches(&self, states: &[BatchState<'_>]) -> bool {
        self.optional.batches.as_deref().unwrap_or(&Batches::default()).may_restore(states)
    }

    /// A message that is about to be added joins its batch.
    #[inline(always)]
    pub(crate) fn join_batch(&mut self, image: &Image<'_>, now: UnixMs) -> Option<BatchId> {
        let name = image.batch?;
        Some(self.optional.for_adding().batches.get_or_insert_default().join(name, image.record.sequence, now))
    }

    /// A message of a saved queue, which is about to be added, is a member of its batch. `now` is the instant of the
    /// view.
    pub(crate) fn restore_member(&mut self, image: &Image<'_>, now: UnixMs) -> Option<BatchId> {
        let name = image.batch?;
        let batches = self.optional.for_adding().batches.get_or_insert_default();
        if image.record.state_at(now).kind() == StateKind::Dead {
            batches.note_overdue(image.record.sequence);
        }
        Some(batches.restore_member(name, image.record.sequence, now))
    }

    /// Counts the end of a message if it is a member of a batch.
    #[inline]
    pub(crate) fn end_member(&mut self, at: At, sequence: Sequence, how: MemberEnd) {
        if self.has_batches() {
            self.end_membership(at, sequence, how);
        }
    }

    #[inline(never)]
    fn end_membership(&mut self, at: At, sequence: Sequence, how: MemberEnd) {
        let Some(id) = self.messages.leave_batch(at) else { return };
        if let Some(batches) = self.batches_mut() {
            batches.end(id, sequence, how);
        }
    }

    /// [`Queue::end_member`] for each of these messages that the queue holds.
    pub(crate) fn end_members(&mut self, sequences: &[Sequence], how: MemberEnd) {
        for sequence in sequences {
            if let Some(at) = self.messages.find_sequence(*sequence) {
                self.end_member(at, *sequence, how);
            }
        }
    }

    /// Counts the end of a message that is removed but not completed, and that was brought up to the time.
    #[inline]
    pub(crate) fn end_removed(&mut self, at: At, sequence: Sequence) {
        if self.has_batches() {
            let is_dead = self.messages.placement(at) == Placement::Dead;
            self.end_member(at, sequence, if is_dead { MemberEnd::Dead } else { MemberEnd::Cancelled });
        }
    }

    /// Counts the ends of all messages in `spans`, which are removed but not completed. All that time has made dead by
    /// `now` stand among the dead.
    pub(crate) fn end_removed_in(&mut self, spans: &Spans, now: UnixMs) {
        let Some(mut batches) = self.optional.held_mut().and_then(|parts| parts.batches.take()) else { return };
        for (sequence, id) in self.messages.members_in(spans) {
            let is_dead = batches.is_overdue(sequence) && self.is_dead_at(sequence, now);
            batches.end(id, sequence, if is_dead { MemberEnd::Dead } else { MemberEnd::Cancelled });
        }
        self.optional.for_adding().batches = Some(batches);
    }

    /// Takes note of another record of a message: a decision may have made it dead, or live again, and a successor may
    /// be dead already.
    #[inline]
    pub(crate) fn note_rewritten(&mut self, at: At, old: &Record, new: &Record, now: UnixMs) {
        if self.has_batches() {
            self.note_rewritten_member(at, old, new, now);
        }
    }

    #[cold]
    fn note_rewritten_member(&mut self, at: At, old: &Record, new: &Record, now: UnixMs) {
        let is_dead = |record: &Record| record.state_at(now).kind() == StateKind::Dead;
        // A redrive may come before the server has written what time has made dead.
        if matches!(new.phase, Phase::Dead { .. }) || is_dead(old) {
            self.end_member(at, new.sequence, MemberEnd::Dead);
        } else if is_dead(new) {
            self.note_overdue(at, new.sequence);
        }
    }

    /// Takes note that time alone has made a message dead.
    pub(crate) fn note_overdue(&mut self, at: At, sequence: Sequence) {
        if self.has_batches() && self.messages.batch(at).is_some() {
            self.batches_mut().into_iter().for_each(|batches| batches.note_overdue(sequence));
        }
    }

    /// Whether time alone may have made members dead whose membership has not ended. O(1).
    #[inline]
    pub(crate) fn has_overdue_members(&self) -> bool {
        self.optional.batches.as_ref().is_some_and(|batches| batches.has_overdue())
    }

    /// Ends the membership of messages that time alone has made dead, at most `budget`, and returns them.
    pub(crate) fn end_dead_members(&mut self, now: UnixMs, budget: usize) -> Vec<Sequence> {
        let mut ended = Vec::new();
        for _ in 0..budget {
            let Some(sequence) = self.batches_mut().and_then(Batches::pop_overdue) else { break };
            let Some((at, record)) = self.messages.locate_record(sequence) else { continue };
            // Another clock may have been ahead. The run of a message that has become recurring ends by itself.
            if !record.recurring && record.state_at(now).kind() == StateKind::Dead {
                self.end_member(at, sequence, MemberEnd::Dead);
                ended.push(sequence);
            }
        }
        ended
    }

    /// Completes an effect that was decided at `now`: pushes what follows the batches that have ended, and ends the
    /// groups that have no message.
    #[inline]
    pub(crate) fn end_effect(&mut self, now: UnixMs) {
        self.settle(now);
        self.messages.end_effect();
    }

    /// Pushes what follows the batches that have ended. Called between the acks and the deliveries of one command, so
    /// that these can deliver it.
    #[inline]
    pub fn settle(&mut self, now: UnixMs) {
        if self.has_batches() {
            self.settle_batches(now);
        }
    }

    #[inline(never)]
    fn settle_batches(&mut self, now: UnixMs) {
        let over = self.batches_mut().map_or_else(Vec::new, |batches| batches.settle(now));
        if !over.is_empty() {
            // A group without messages begins anew with what follows.
            self.messages.end_effect();
        }
        for entry in over {
            if let Some(then) = &entry.then {
                self.push_follow_up(&entry, then, now);
            }
        }
        self.free_batches();
    }

    /// Pushes what follows a batch. An id that is taken is replaced by a generated one.
    fn push_follow_up(&mut self, batch: &Entry, then: &FollowUp, now: UnixMs) {
        // If the sequences are exhausted, which only a forged snapshot can bring about, nothing follows.
        let Some(sequence) = Sequence::next(self.last_sequence, now) else { return };
        let Batch { total, acked, dead, cancelled, .. } = batch.shown();
        let counts = [total, acked, dead, cancelled].map(|count| count.to_string());
        let [total, acked, dead, cancelled] = counts.each_ref().map(|count| count.as_bytes());
        let added: [(&[u8], &[u8]); 5] = [
            (b"dq-batch", &batch.name),
            (b"dq-batch-total", total),
            (b"dq-batch-acked", acked),
            (b"dq-batch-dead", dead),
            (b"dq-batch-cancelled", cancelled),
        ];
        let headers = HeaderBlock::with_added(then.headers.as_ref().map(HeaderBlock::headers), &added);
        let is_free = |name: &&[u8]| self.messages.find_named(name).is_none() && !self.is_taken(name, now);
        let name = then.name.as_deref().filter(is_free);
        let due = then.delay.map_or(now, |delay| now.after(delay));
        let retries = then.retries.unwrap_or(self.settings.retries);
        let record = Record {
            priority: then.priority,
            lease: then.lease,
            ..Record::new(sequence, due, retries, self.settings.ttl, now)
        };
        let image = Image {
            name,
            group: then.group.as_deref(),
            origin: name.and_then(|_| Origin::new(now).unless_derived_from(sequence)),
            headers: Some(headers.headers()),
            ..Image::new(record, &then.payload)
        };
        self.take_in(now, &image);
    }

    /// Checks the batches. O(n log n), for tests.
    pub(crate) fn check_batches(&self) -> Result<(), &'static str> {
        let Some(batches) = &self.optional.batches else { return Ok(()) };
        let members = self.messages.iter_after(None).filter_map(|at| {
            let record = self.messages.record(at);
            let is_dead = self.messages.placement(at) == Placement::Dead && !record.recurring;
            Some((record.sequence, self.messages.batch(at)?, is_dead))
        });
        batches.check(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::push::NewMessage;
    use crate::settings::Settings;

    #[test]
    fn a_batch_among_others_is_cancelled_alone() {
        let mut queue = Queue::new(Settings::default());
        let now = UnixMs::new(1_760_000_000_000);
        for nth in 0..400 {
            let batch = [None, Some(&b"many"[..]), Some(b"few")][usize::from(nth > 0) + usize::from(nth % 40 == 39)];
            queue.push(now, &mut Floor::default(), &NewMessage { batch, ..NewMessage::default() });
        }
        let left = |queue: &Queue, name: &[u8]| queue.batch(now, name).map(|batch| batch.left);
        assert_eq!(queue.cancel_batch(now, b"few"), Some(10));
        assert_eq!((queue.check(), left(&queue, b"few"), left(&queue, b"many")), (Ok(()), None, Some(389)));
        queue.push(now, &mut Floor::default(), &NewMessage { batch: Some(b"few"), ..NewMessage::default() });
        assert_eq!(queue.cancel_batch(now, b"many"), Some(389));
        assert_eq!((queue.check(), left(&queue, b"few"), queue.cancel_batch(now, b"few")), (Ok(()), Some(1), Some(1)));
        assert_eq!((queue.counts().total(), queue.batches(now)), (1, 0));
    }
}

//! Done messages: what is retained of a message after its completion, until its retention ends or there are too many
//! (`DONELEN`).
//!
//! Once its retention has ended, every operation that names a done message treats it as gone. Dropping it is a write,
//! so only a master does it, in bounded steps.

use super::advance::PILED_MAX;
use super::dedupe::{over_by, Ids};
use super::{At, DurationMs, Id, Queue, Record, Sequence, Spans, UnixMs};
use crate::batches::MemberEnd;
use crate::done::DoneMessage;
use crate::known::KnownId;
use std::collections::BTreeSet;

/// Retaining messages.
impl Queue {
    /// Until when a message that is completed at `now` is retained; `None` if it is not. O(1) in a queue that retains
    /// none.
    #[inline]
    pub(crate) fn retained_until(&self, at: At, now: UnixMs) -> Option<UnixMs> {
        if self.settings.retain.is_zero() && !self.messages.has_retain() {
            return None;
        }
        self.end_of(self.messages.retain(at).unwrap_or(self.settings.retain), now)
    }

    /// Removes a message that was delivered without a lease: the delivery completes it.
    pub(crate) fn take(&mut self, at: At, record: &Record, now: UnixMs) {
        self.retain_taken(at, record, now);
        self.remove_ended(at, record);
    }

    /// Retains a message that is delivered without a lease, as [`Queue::retain`] does. The caller removes the message.
    #[inline]
    pub(crate) fn retain_taken(&mut self, at: At, record: &Record, now: UnixMs) {
        let until = self.retained_until(at, now);
        let attempts = record.attempts.saturating_add(1);
        self.retain(at, &Record { attempts, ..*record }, until, None, now);
    }

    /// Until when a message that is completed at `now` is retained if its retention is `retain`; `None` if that is zero
    /// or `DONELEN` is.
    pub(crate) fn end_of(&self, retain: DurationMs, now: UnixMs) -> Option<UnixMs> {
        (!retain.is_zero() && self.settings.donelen != Some(0)).then(|| now.after(retain))
    }

    /// Retains a message that was completed, which ends its membership in a batch, or only remembers its id for as long
    /// as `DEDUPE` says if `until` is `None`. The caller removes the message.
    #[inline(always)]
    pub(crate) fn retain(
        &mut self,
        at: At,
        record: &Record,
        until: Option<UnixMs>,
        result: Option<&[u8]>,
        now: UnixMs,
    ) {
        self.end_member(at, record.sequence, MemberEnd::Acked);
        match until {
            None => self.remember(at, now),
            Some(until) => self.retain_done(at, record, until, result, now),
        }
    }

    #[cold]
    fn retain_done(&mut self, at: At, record: &Record, until: UnixMs, result: Option<&[u8]>, now: UnixMs) {
        let message = DoneMessage {
            sequence: record.sequence,
            name: self.messages.bytes(at).name,
            due: record.due,
            attempts: record.attempts,
            done: now,
            until: until.max(now),
            result,
            accepted: self.origin(at).accepted,
        };
        self.optional.for_adding().done.get_or_insert_default().insert(&message);
    }
}

/// Reading done messages.
impl Queue {
    /// The done message that `id` refers to, if its retention has not ended. O(log n).
    pub fn get_done(&self, now: UnixMs, id: &Id<'_>) -> Option<DoneMessage<'_>> {
        let now = self.own_time(now);
        self.optional.done.as_ref()?.find(id).filter(|message| now < message.until)
    }

    /// The done message with `sequence`, if its retention has not ended. O(log n).
    pub(crate) fn done_at(&self, now: UnixMs, sequence: Sequence) -> Option<DoneMessage<'_>> {
        self.optional.done.as_ref()?.get(sequence).filter(|message| now < message.until)
    }

    /// Whether the queue holds a done message of this name whose retention has not ended at `now`, the instant of a
    /// decision. That may be the decision of another server, so the clock of this one is not asked. O(log n).
    #[inline]
    pub(crate) fn is_done(&self, name: &[u8], now: UnixMs) -> bool {
        let done = self.optional.done.as_ref().and_then(|done| done.find_named(name));
        done.is_some_and(|message| now < message.until)
    }

    /// When the id of a done message was accepted whose retention has ended, but which has not been dropped yet.
    pub(crate) fn accepted_of_ended(&self, name: &[u8], now: UnixMs) -> Option<UnixMs> {
        let message = self.optional.done.as_ref()?.find_named(name)?;
        (message.until <= now).then_some(message.accepted)
    }

    /// The number of done messages whose retention has not ended. O(log n).
    pub(crate) fn count_done(&self, now: UnixMs) -> u64 {
        self.optional.done.as_ref().map_or(0, |done| done.count_at(now) as u64)
    }

    /// The done messages that were completed last, at most `count`. At most [`PILED_MAX`] whose retention has ended are
    /// passed over.
    pub(crate) fn newest_done(&self, now: UnixMs, count: usize) -> Vec<Sequence> {
        let Some(done) = &self.optional.done else { return Vec::new() };
        let seen = done.newest().take(count.saturating_add(PILED_MAX));
        seen.filter(|message| now < message.until).take(count).map(|message| message.sequence).collect()
    }

    /// All done messages, in push order.
    pub fn done(&self) -> impl Iterator<Item = DoneMessage<'_>> + '_ {
        self.optional.done.iter().flat_map(|done| done.iter())
    }

    /// Checks the done messages and that none exists together with a message of the same id. O(n log n), for tests.
    pub(crate) fn check_done(&self) -> Result<(), &'static str> {
        let Some(done) = &self.optional.done else { return Ok(()) };
        done.check()?;
        if done.is_empty() {
            return Err("memory is kept for done messages although there are none");
        }
        let is_beside = |message: DoneMessage<'_>| {
            self.messages.locate(message.sequence).is_some()
                || message.name.is_some_and(|name| self.messages.find_named(name).is_some() || self.remembers(name))
        };
        match done.iter().any(is_beside) {
            true => Err("a done message and another one have the same id"),
            false => Ok(()),
        }
    }
}

/// Dropping done messages.
impl Queue {
    /// Whether the retention of a done message has ended by the queue's own time, or there are more than `DONELEN`.
    /// O(1), and O(log n) with `DONELEN`.
    #[inline]
    pub(crate) fn has_excess_done(&self) -> bool {
        self.optional.done.as_ref().is_some_and(|done| {
            done.first_end().is_some_and(|first| first.time() <= self.clock)
                || self.settings.donelen.is_some_and(|kept| done.count_at(self.clock) as u64 > kept)
        })
    }

    /// The next instant at which the retention of a done message ends; `None` if there is no done message. O(1).
    #[inline]
    pub(crate) fn next_done_end(&self) -> Option<UnixMs> {
        Some(self.optional.done.as_ref()?.first_end()?.time())
    }

    /// The done message to drop next; `None` if none is to be dropped.
    pub(crate) fn first_excess_done(&self) -> Option<Sequence> {
        let done = self.optional.done.as_ref()?;
        let ended = done.first_end().filter(|first| first.time() <= self.clock);
        // If no message is left whose retention has ended, all of them count.
        let oldest = || done.oldest().filter(|_| self.settings.donelen.is_some_and(|kept| done.len() as u64 > kept));
        ended.or_else(oldest).map(|key| key.sequence())
    }

    /// Drops a done message, and returns the number of bytes of its result. If the retention of the message has ended,
    /// its id stays known for as long as `DEDUPE` says, whatever `ids` says.
    pub(crate) fn drop_done(&mut self, sequence: Sequence, ids: Ids, now: UnixMs) -> usize {
        let Some(parts) = self.optional.held_mut() else { return 0 };
        let Some(done) = &mut parts.done else { return 0 };
        if let Some(message) = done.get(sequence).filter(|_| !self.settings.dedupe.is_zero()) {
            let over = over_by(self.settings.dedupe, now);
            let is_in_window = over.is_none_or(|over| over < message.accepted);
            if let Some(name) =
                message.name.filter(|_| is_in_window && (ids == Ids::Remembered || message.until <= now))
            {
                parts.known.get_or_insert_default().insert(KnownId { name, accepted: message.accepted });
            }
        }
        let size = done.remove(sequence).unwrap_or(0);
        if done.is_empty() {
            self.optional.take(|parts| &mut parts.done);
        }
        size
    }

    /// Drops the done message that has this name, because a client takes the name. Returns whether there was one whose
    /// retention had not ended. O(log n).
    #[inline]
    pub(crate) fn drop_done_named(&mut self, name: &[u8], now: UnixMs) -> bool {
        self.optional.done.is_some() && self.drop_named(name, now)
    }

    #[cold]
    fn drop_named(&mut self, name: &[u8], now: UnixMs) -> bool {
        let Some(done) = self.optional.held_mut().and_then(|parts| parts.done.as_mut()) else { return false };
        let Some(message) = done.find_named(name) else { return false };
        let (sequence, is_kept) = (message.sequence, now < message.until);
        done.remove(sequence);
        if done.is_empty() {
            self.optional.take(|parts| &mut parts.done);
        }
        is_kept
    }

    /// Drops the done messages in `spans` that the queue holds.
    pub(crate) fn drop_done_spans(&mut self, spans: &Spans, ids: Ids, now: UnixMs) {
        let Some(done) = &self.optional.done else { return };
        let doomed = done.in_spans(spans);
        if doomed.len() == done.len() && self.settings.dedupe.is_zero() {
            self.optional.take(|parts| &mut parts.done);
            return;
        }
        for sequence in doomed {
            self.drop_done(sequence, ids, now);
        }
    }

    /// Chooses the done messages that a purge removes: all of them, or the `count` newest of those that were completed
    /// at least `older` ago. Returns how many of those are still retained, and the spans that name them.
    pub(crate) fn done_to_purge(&self, now: UnixMs, count: Option<usize>, older: Option<DurationMs>) -> (usize, Spans) {
        let Some(done) = &self.optional.done else { return Default::default() };
        let chosen = match (count, older) {
            (None, _) => match done.count_at(now) {
                0 => return Default::default(),
                count => return (count, Spans::up_to(self.last_sequence)),
            },
            (Some(count), None) => self.newest_done(now, count),
            (Some(count), Some(older)) => {
                let those = done.newest().filter(|message| now < message.until && now.since(message.done) >= older);
                those.take(count).map(|message| message.sequence).collect()
            }
        };
        (chosen.len(), done.spans_of(chosen))
    }
}

/// Loading done messages.
impl Queue {
    /// Adds done messages that a queue held when it was saved.
    pub(crate) fn restore_done(&mut self, messages: &[DoneMessage<'_>]) {
        for message in messages {
            self.optional.for_adding().done.get_or_insert_default().insert(message);
        }
    }

    /// Whether these done messages may be held in addition to the messages and the ids that the queue holds while it is
    /// loaded.
    pub(crate) fn may_restore_done(&self, messages: &[DoneMessage<'_>]) -> bool {
        let (mut sequences, mut names) = (BTreeSet::new(), BTreeSet::new());
        messages.iter().all(|message| {
            message.is_valid()
                && message.sequence <= self.last_sequence
                && sequences.insert(message.sequence)
                && self.messages.locate(message.sequence).is_none()
                && !self.holds_done(message.sequence, message.name)
                && message.name.is_none_or(|name| {
                    names.insert(name) && self.messages.find_named(name).is_none() && !self.remembers(name)
                })
        })
    }

    /// Whether a done message has this sequence or this name, whether or not its retention has ended.
    pub(crate) fn holds_done(&self, sequence: Sequence, name: Option<&[u8]>) -> bool {
        self.optional.done.as_ref().is_some_and(|done| {
            done.get(sequence).is_some() || name.is_some_and(|name| done.find_named(name).is_some())
        })
    }
}

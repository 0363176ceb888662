//! Pushing one message or a batch.

#[cfg(test)]
mod tests;

use super::{At, DurationMs, Loss, Phase, Queue, Reason, Record, Sequence, StateKind, UnixMs};
use crate::batches::MemberEnd;
use crate::effect::Image;
use crate::errors::{Errors, PastError};
use crate::headers::Headers;
use crate::id::Floor;
use crate::origin::Origin;
use crate::settings::Retries;
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// When a message may be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Due {
    /// It is due at once.
    #[default]
    Now,
    /// It is due this long after its push.
    After(DurationMs),
    /// It is due at this instant. If that lies in the past, the message is ready at once and comes before those that
    /// were due later.
    At(UnixMs),
}

impl Due {
    /// The due time of a message that is pushed or moved at `now`.
    pub fn from(self, now: UnixMs) -> UnixMs {
        match self {
            Due::Now => now,
            Due::After(delay) => now.after(delay),
            Due::At(instant) => instant,
        }
    }
}

/// The largest number of bytes in a payload, whatever the settings allow: the format has 32 bits for its length.
pub const PAYLOAD_MAX: usize = u32::MAX as usize;

/// A message as its producer describes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewMessage<'a> {
    /// The payload.
    pub payload: &'a [u8],
    /// The name that the producer chose.
    pub name: Option<&'a [u8]>,
    /// When it may be delivered; overrides the queue's delay.
    pub due: Option<Due>,
    /// The priority; higher ones are delivered first.
    pub priority: i8,
    /// The number of redeliveries; overrides the queue's setting.
    pub retries: Option<Retries>,
    /// The duration of its leases; overrides the queue's setting.
    pub lease: Option<DurationMs>,
    /// The time to live; overrides the queue's setting. Zero means no limit.
    pub ttl: Option<DurationMs>,
    /// What happens if its name is taken.
    pub on_duplicate: OnDuplicate,
    /// The latest due time, counted from the first push of the chain of replacements.
    pub maxwait: Option<DurationMs>,
    /// How long it is retained after its completion; overrides the queue's setting. Zero means not at all.
    pub retain: Option<DurationMs>,
    /// The name of its group.
    pub group: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Option<Headers<'a>>,
    /// The name of the batch that it joins.
    pub batch: Option<&'a [u8]>,
    /// What it went through before. With it, [`OnDuplicate::ReplaceLater`] replaces at once.
    pub past: Option<&'a Past<'a>>,
}

impl NewMessage<'_> {
    /// Whether it is dead from its push on.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.past.is_some_and(|past| past.dead.is_some())
    }
}

/// What messages went through before they are pushed, in another queue or in another system. It belongs to one call,
/// since a queue writes their error into it as it stores that.
#[derive(Clone, Debug, Default)]
pub struct Past<'a> {
    /// How often they were delivered.
    pub attempts: u32,
    /// The last error, of which the first [`ERROR_MAX`](super::super::errors::ERROR_MAX) bytes are stored.
    pub error: Option<&'a [u8]>,
    /// The checkpoint, of at most [`CHECKPOINT_MAX`](crate::CHECKPOINT_MAX) bytes and not empty.
    pub checkpoint: Option<&'a [u8]>,
    /// Why they are dead, if they are; they die when they are pushed.
    pub dead: Option<Reason>,
    errors: OnceCell<Box<[u8]>>,
}

impl<'a> Past<'a> {
    /// Gives the past to a message that is pushed at `now` to a queue that keeps this many errors.
    #[cold]
    fn give_to(&'a self, image: &mut Image<'a>, now: UnixMs, kept: u64) {
        image.record.attempts = self.attempts;
        image.checkpoint = self.checkpoint;
        image.errors = self.error.map(|text| {
            let error = PastError { attempt: self.attempts, at: now, text };
            Errors::stored(self.errors.get_or_init(|| Errors::with(None, &error, kept)))
        });
        if let Some(reason) = self.dead {
            image.record.phase = Phase::Dead { died: now, reason };
        }
    }
}

/// What a push does if a message of the same name is held, or its id is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDuplicate {
    /// It is refused.
    #[default]
    Refuse,
    /// It replaces the message, whatever state that is in.
    Replace,
    /// It replaces the message, but if that is in flight, the new message becomes its successor: the delivery goes on,
    /// and the successor takes the place when it ends.
    ReplaceLater,
}

impl OnDuplicate {
    const fn replaces(self) -> bool {
        match self {
            OnDuplicate::Refuse => false,
            OnDuplicate::Replace | OnDuplicate::ReplaceLater => true,
        }
    }
}

/// The outcome of a push.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "nearly every push adds its message")]
pub enum Pushed<'a> {
    /// The message was added; its effect consists of the image.
    Added {
        /// The message.
        image: Image<'a>,
        /// Whether it replaced another message.
        replaced: bool,
    },
    /// The queue holds a live or a done message of that name, or knows the id although its message is gone.
    Duplicate,
    /// The queue holds a dead message of that name.
    HeldDead,
    /// The queue accepts no messages.
    Closed,
    /// The payload is larger than the settings allow.
    TooLarge,
    /// The queue holds as many messages as `MAXLEN` allows.
    Full {
        /// The number of messages that it holds.
        held: u64,
    },
    /// No sequence is left, which only a forged snapshot can bring about.
    Exhausted,
}

/// Why a whole batch was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPushed {
    /// The queue accepts no messages, and one of them is no duplicate.
    Closed,
    /// The queue holds this many messages, and the batch would exceed `MAXLEN`.
    Full(u64),
    /// One of the payloads has this many bytes, which is more than the settings allow.
    TooLarge(usize),
    /// No sequence is left, which only a forged snapshot can bring about.
    Exhausted,
}

impl Queue {
    /// Pushes a message. Every outcome other than [`Pushed::Added`] changes at most a total. O(log n).
    pub fn push<'a>(&mut self, now: UnixMs, floor: &mut Floor, message: &NewMessage<'a>) -> Pushed<'a> {
        let now = self.observe(now);
        let held = message.name.and_then(|name| self.messages.find_named(name));
        if let Some(at) = held.filter(|_| !message.on_duplicate.replaces()) {
            return self.refuse_duplicate(at, now);
        }
        if self.is_refused_as_taken(message, now) {
            return self.refused_id();
        }
        if self.is_closed(now) {
            return Pushed::Closed;
        }
        if self.is_too_large(message.payload) {
            return Pushed::TooLarge;
        }
        let makes_room = held.is_some_and(|at| self.is_live(at, now));
        if let (false, Some(held)) = (makes_room, self.full(now, 1).filter(|_| !message.is_dead())) {
            self.tally.others().rejected_full += 1;
            return Pushed::Full { held };
        }
        self.enter(now, floor, message, held)
    }

    /// Pushes all messages, or none of them if they do not all fit. `sink` gets the outcome of each, in order:
    /// [`Pushed::Added`], [`Pushed::Duplicate`] or [`Pushed::HeldDead`]. Returns an error if the batch was refused,
    /// which changes at most a total. O(m log n).
    pub fn push_all<'a>(
        &mut self,
        now: UnixMs,
        floor: &mut Floor,
        messages: &[NewMessage<'a>],
        mut sink: impl FnMut(Pushed<'a>),
    ) -> Result<(), NotPushed> {
        let now = self.observe(now);
        let last = self.last_sequence.max(Sequence(floor.sequence));
        if last.0.checked_add(messages.len() as u64).is_none() {
            return Err(NotPushed::Exhausted);
        }
        if self.is_closed(now) && messages.iter().any(|message| self.would_enter(message, now)) {
            return Err(NotPushed::Closed);
        }
        if let Some(size) = self.too_large_of(messages, now) {
            return Err(NotPushed::TooLarge(size));
        }
        if self.settings.maxlen != 0 {
            let added = self.count_added(now, messages);
            if let Some(held) = self.full(now, added) {
                self.tally.others().rejected_full += messages.len() as u64;
                return Err(NotPushed::Full(held));
            }
        }
        for message in messages {
            let held = message.name.and_then(|name| self.messages.find_named(name));
            sink(match held.filter(|_| !message.on_duplicate.replaces()) {
                Some(at) => self.refuse_duplicate(at, now),
                None if self.is_refused_as_taken(message, now) => self.refused_id(),
                None => self.enter(now, floor, message, held),
            });
        }
        Ok(())
    }

    /// The outcome of a push that is refused because the message at `at` has its name.
    fn refuse_duplicate<'a>(&mut self, at: At, now: UnixMs) -> Pushed<'a> {
        if !self.is_live(at, now) {
            return Pushed::HeldDead;
        }
        self.refused_id()
    }

    fn refused_id<'a>(&mut self) -> Pushed<'a> {
        self.tally.others().duplicates += 1;
        Pushed::Duplicate
    }

    /// Whether the push is refused because a done message has its id, or because the id is known although its message
    /// is gone.
    fn is_refused_as_taken(&self, message: &NewMessage<'_>, now: UnixMs) -> bool {
        !message.on_duplicate.replaces() && message.name.is_some_and(|name| self.is_taken(name, now))
    }

    /// Whether the message is no duplicate of what the queue holds or knows.
    fn would_enter(&self, message: &NewMessage<'_>, now: UnixMs) -> bool {
        let is_new = |name: &[u8]| self.messages.find_named(name).is_none() && !self.is_taken(name, now);
        message.on_duplicate.replaces() || message.name.is_none_or(is_new)
    }

    /// Whether a done message has this id, or the id is known although its message is gone.
    pub(crate) fn is_taken(&self, name: &[u8], now: UnixMs) -> bool {
        self.is_done(name, now) || self.is_known(name, now)
    }

    pub(crate) fn is_too_large(&self, payload: &[u8]) -> bool {
        payload.len() > self.payload_max()
    }

    /// The largest number of bytes that the payload of a message may have.
    #[inline]
    fn payload_max(&self) -> usize {
        match usize::try_from(self.settings.maxpayload) {
            Ok(most) if most != 0 => most.min(PAYLOAD_MAX),
            Ok(_) | Err(_) => PAYLOAD_MAX,
        }
    }

    /// The size in bytes of the first payload that is too large and whose message would be added.
    fn too_large_of(&self, messages: &[NewMessage<'_>], now: UnixMs) -> Option<usize> {
        let most = self.payload_max();
        if messages.iter().all(|message| message.payload.len() <= most) {
            return None;
        }
        let mut named = BTreeSet::new();
        messages.iter().find_map(|message| {
            let is_duplicate = message.name.is_some_and(|name| {
                let is_taken = || self.messages.find_named(name).is_some() || self.is_taken(name, now);
                !message.on_duplicate.replaces() && (!named.insert(name) || is_taken())
            });
            (!is_duplicate && self.is_too_large(message.payload)).then_some(message.payload.len())
        })
    }

    /// The number by which the batch would raise the count of messages that `MAXLEN` limits.
    fn count_added(&self, now: UnixMs, messages: &[NewMessage<'_>]) -> u64 {
        let mut added = 0;
        let mut named = BTreeSet::new();
        for message in messages {
            let adds = match message.name {
                _ if message.is_dead() => false,
                None => true,
                // The second message of a name is a duplicate of the first, or replaces it.
                Some(name) if !named.insert(name) => false,
                Some(name) => match self.messages.find_named(name) {
                    None => message.on_duplicate.replaces() || !self.is_taken(name, now),
                    Some(at) => message.on_duplicate.replaces() && !self.is_live(at, now),
                },
            };
            added += u64::from(adds);
        }
        added
    }

    /// Whether the message counts towards `MAXLEN`.
    pub(crate) fn is_live(&self, at: At, now: UnixMs) -> bool {
        let record = self.messages.record(at);
        record.recurring || record.state_at(now).kind() != StateKind::Dead
    }

    /// Adds a message for which there is room.
    fn enter<'a>(&mut self, now: UnixMs, floor: &mut Floor, message: &NewMessage<'a>, held: Option<At>) -> Pushed<'a> {
        let last = self.last_sequence.max(Sequence(floor.sequence));
        let Some(sequence) = Sequence::next(last, now) else { return Pushed::Exhausted };

        let chain = held.and_then(|at| self.chain_of(at, now)).unwrap_or(now);
        let latest = message.maxwait.map_or(UnixMs::MAX, |wait| chain.after(wait));
        let due = message.due.map_or_else(|| now.after(self.settings.delay), |due| due.from(now)).min(latest);
        let ttl = message.ttl.unwrap_or(self.settings.ttl);
        let waits = held.filter(|_| message.on_duplicate == OnDuplicate::ReplaceLater && message.past.is_none());
        let phase = waits.and_then(|at| self.as_successor_of(at, now)).unwrap_or(Phase::Waiting);
        if let (Some(at), Phase::Waiting) = (held, phase) {
            let replaced = self.messages.record(at);
            self.note_lost(at, &replaced, Loss::Replaced, now);
        }
        let retries = message.retries.unwrap_or(self.settings.retries);
        let record = Record {
            priority: message.priority,
            lease: message.lease,
            phase,
            ..Record::new(sequence, due, retries, ttl, now)
        };
        let origin =
            message.name.and_then(|_| Origin { accepted: now, chain: Some(chain) }.unless_derived_from(sequence));
        let mut image = Image {
            name: message.name,
            group: message.group,
            origin,
            retain: message.retain,
            headers: message.headers,
            batch: message.batch,
            ..Image::new(record, message.payload)
        };
        if let Some(past) = message.past {
            past.give_to(&mut image, now, self.settings.errors);
        }
        let replaced = self.take_in_for(held, now, &image);
        floor.raise(self.last_sequence, self.last_receipt);
        Pushed::Added { image, replaced }
    }

    /// Applies a push: adds the message in place of one of the same name. Returns whether there was one.
    pub(crate) fn take_in(&mut self, now: UnixMs, image: &Image<'_>) -> bool {
        let held = image.name.and_then(|name| self.messages.find_named(name));
        self.take_in_for(held, now, image)
    }

    /// [`Queue::take_in`], if the message of the same name is known to be at `held`.
    fn take_in_for(&mut self, held: Option<At>, now: UnixMs, image: &Image<'_>) -> bool {
        let mut replaced = held.is_some();
        let (mut leaving, mut consumer) = (None, None);
        if let Some(at) = held {
            let record = self.refresh(at, now);
            if matches!(image.record.phase, Phase::Successor { .. }) {
                leaving = self.leaving(at);
                consumer = self.messages.consumer_name(at).map(<[u8]>::to_vec);
            }
            self.claim_turn(at, &record, now);
            self.replace_with_image(at, &record, image, now);
        } else {
            if let Some(name) = image.name {
                replaced = self.drop_done_named(name, now);
                self.unlearn(name);
            }
            self.view.advance_due(now);
            self.insert_image(image, now);
        }
        if let Some(leaving) = leaving {
            self.set_leaving(image.record.sequence, leaving, consumer.as_deref(), now);
        }
        self.last_sequence = self.last_sequence.max(image.record.sequence);
        self.tally.pushed += 1;
        if let Phase::Dead { died, reason } = image.record.phase {
            self.count_pushed_dead(image.record.sequence, died, reason);
        }
        replaced
    }

    #[cold]
    fn count_pushed_dead(&mut self, sequence: Sequence, died: UnixMs, reason: Reason) {
        self.tally.count_dead(died, reason);
        self.end_members(&[sequence], MemberEnd::Dead);
    }

    /// Returns how many messages the queue holds if `added` more would exceed `MAXLEN`, and `None` if they fit.
    pub(crate) fn full(&mut self, now: UnixMs, added: u64) -> Option<u64> {
        let most = self.settings.maxlen;
        if most == 0 || added == 0 {
            return None;
        }
        if self.held().saturating_add(added) > most {
            // Some of them may be dead by now.
            self.catch_up(now);
        }
        Some(self.held()).filter(|held| held.saturating_add(added) > most)
    }

    /// The number of messages that are not dead.
    pub(crate) fn held(&self) -> u64 {
        (self.messages.len() - self.view.dead()) as u64
    }
}

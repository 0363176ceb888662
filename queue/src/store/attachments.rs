//! What few messages have, stored apart from their headers: errors, a checkpoint, an origin, a schedule, a time to keep
//! what is left of them, a delivery before its successor, and large payloads.

// The segment of a place comes from a search in the same call.
#![allow(clippy::indexing_slicing)]

use super::{At, Bytes, Store};
use crate::consumers::Consumers;
use crate::effect::Image;
use crate::errors::{Errors, PastError};
use crate::headers::HeaderBlock;
use crate::id::Sequence;
use crate::memory::{box_bytes, given};
use crate::origin::Origin;
use crate::record::Record;
use crate::recurring::Recurring;
use crate::time::DurationMs;
use std::collections::BTreeMap;

/// A message in flight that has a successor (`REPLACE LATER`).
#[derive(Clone, Debug, PartialEq)]
pub struct Leaving {
    /// Its record as of its replacement. The lease of its delivery may have been extended since.
    pub record: Record,
    /// Its payload.
    pub payload: Box<[u8]>,
    /// The block of its errors.
    errors: Option<Box<[u8]>>,
    /// Its headers.
    pub headers: Option<HeaderBlock>,
    /// Its checkpoint.
    checkpoint: Option<Box<[u8]>>,
}

impl Leaving {
    /// A message with this record, these bytes and this checkpoint.
    pub fn new(record: Record, bytes: &Bytes<'_>, checkpoint: Option<&[u8]>) -> Leaving {
        Leaving {
            record,
            payload: bytes.payload.into(),
            errors: bytes.errors.map(|errors| errors.block().into()),
            headers: bytes.headers.map(HeaderBlock::from),
            checkpoint: checkpoint.map(Box::from),
        }
    }

    /// Its image, without what its successor has of it.
    pub fn image(&self) -> Image<'_> {
        Image {
            errors: self.errors(),
            headers: self.headers.as_ref().map(HeaderBlock::headers),
            checkpoint: self.checkpoint(),
            ..Image::new(self.record, &self.payload)
        }
    }

    /// Its errors.
    pub fn errors(&self) -> Option<Errors<'_>> {
        self.errors.as_deref().map(Errors::stored)
    }

    /// Its checkpoint.
    pub fn checkpoint(&self) -> Option<&[u8]> {
        self.checkpoint.as_deref()
    }

    /// The number of bytes on the heap, with its own.
    pub(super) fn heap_bytes(&self) -> usize {
        box_bytes::<Leaving>()
            + given(self.payload.len())
            + self.errors.as_ref().map_or(0, |errors| given(errors.len()))
            + self.headers.as_ref().map_or(0, HeaderBlock::heap_bytes)
            + self.checkpoint.as_ref().map_or(0, |checkpoint| given(checkpoint.len()))
    }
}

/// The data that few messages have, by the sequences of those messages.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    pub(super) large: BTreeMap<Sequence, Box<[u8]>>,
    /// Blocks of errors.
    pub(super) errors: BTreeMap<Sequence, Box<[u8]>>,
    pub(super) checkpoints: BTreeMap<Sequence, Box<[u8]>>,
    pub(super) origins: BTreeMap<Sequence, Origin>,
    pub(super) retains: BTreeMap<Sequence, DurationMs>,
    pub(super) recurring: BTreeMap<Sequence, Box<Recurring>>,
    /// The messages in flight that have a successor, by the sequences of their successors.
    pub(super) leaving: BTreeMap<Sequence, Box<Leaving>>,
    /// The names of the consumers of deliveries; allocated with the first one.
    pub(super) consumers: Option<Box<Consumers>>,
}

impl Attachments {
    /// Removes what is stored of a message. Returns its headers and its payload, if these are stored here.
    pub(super) fn remove(&mut self, sequence: Sequence) -> Option<Box<[u8]>> {
        self.leaving.remove(&sequence);
        self.errors.remove(&sequence);
        self.checkpoints.remove(&sequence);
        self.origins.remove(&sequence);
        self.retains.remove(&sequence);
        self.recurring.remove(&sequence);
        self.large.remove(&sequence)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.large.is_empty()
            && self.errors.is_empty()
            && self.checkpoints.is_empty()
            && !self.has_unmarked()
            && self.recurring.is_empty()
            && self.consumers.is_none()
    }

    /// Whether anything is stored here that the header of its message does not show.
    pub(super) fn has_unmarked(&self) -> bool {
        !self.origins.is_empty() || !self.retains.is_empty() || !self.leaving.is_empty()
    }
}

impl Store {
    /// Removes what is stored of a message apart from its segment.
    #[inline(never)]
    pub(super) fn remove_attachments(&mut self, at: At) {
        self.take_leaving(at);
        let sequence = self.sequence(at);
        self.change_attachments(|attachments| drop(attachments.remove(sequence)));
    }

    /// Adds an error to those of the message, of which `kept` are kept.
    #[cold]
    pub fn add_error(&mut self, at: At, error: &PastError<'_>, kept: u64) {
        let block = Errors::with(self.bytes(at).errors, error, kept);
        let sequence = self.sequence(at);
        self.attachments.get_or_insert_default().errors.insert(sequence, block);
        self.segments[at.segment()].set_error(at.index(), true);
    }

    /// Drops the errors of the message.
    pub fn clear_errors(&mut self, at: At) {
        if self.header(at).has_error() {
            let sequence = self.sequence(at);
            self.change_attachments(|attachments| drop(attachments.errors.remove(&sequence)));
            self.segments[at.segment()].set_error(at.index(), false);
        }
    }

    /// The checkpoint of the message.
    pub fn checkpoint(&self, at: At) -> Option<&[u8]> {
        let attachments = self.attachments.as_ref().filter(|_| self.header(at).has_checkpoint())?;
        attachments.checkpoints.get(&self.sequence(at)).map(|checkpoint| &**checkpoint)
    }

    /// Stores a checkpoint with the message; an empty one removes what was stored.
    #[cold]
    pub fn set_checkpoint(&mut self, at: At, checkpoint: &[u8]) {
        let sequence = self.sequence(at);
        if checkpoint.is_empty() {
            self.change_attachments(|attachments| drop(attachments.checkpoints.remove(&sequence)));
        } else {
            self.attachments.get_or_insert_default().checkpoints.insert(sequence, checkpoint.into());
        }
        self.header_mut(at).set_checkpoint(!checkpoint.is_empty());
    }

    /// [`Store::set_checkpoint`] for the message that is delivered before its successor at a place.
    pub fn set_checkpoint_of_leaving(&mut self, at: At, checkpoint: &[u8]) {
        let sequence = self.sequence(at);
        let leaving = self.attachments.as_mut().and_then(|attachments| attachments.leaving.get_mut(&sequence));
        if let Some(leaving) = leaving {
            leaving.checkpoint = (!checkpoint.is_empty()).then(|| checkpoint.into());
        }
    }

    /// Removes something of the attachments, and these if nothing is left.
    fn change_attachments(&mut self, change: impl FnOnce(&mut Attachments)) {
        if let Some(attachments) = &mut self.attachments {
            change(attachments);
            if attachments.is_empty() {
                self.attachments = None;
            }
        }
    }

    /// The names of consumers; `None` if no delivery bears one.
    pub fn consumers(&self) -> Option<&Consumers> {
        self.attachments.as_ref()?.consumers.as_deref()
    }

    /// The names of consumers, to change them. The caller frees them with [`Store::free_consumers`].
    pub fn consumers_mut(&mut self) -> &mut Consumers {
        self.attachments.get_or_insert_default().consumers.get_or_insert_default()
    }

    /// Frees the names of consumers if there are none.
    pub fn free_consumers(&mut self) {
        if let Some(attachments) = &mut self.attachments {
            attachments.consumers.take_if(|consumers| consumers.is_empty());
        }
        self.attachments.take_if(|attachments| attachments.is_empty());
    }

    /// The message in flight whose successor is at `at`.
    pub fn leaving(&self, at: At) -> Option<&Leaving> {
        let attachments = self.attachments.as_ref()?;
        attachments.leaving.get(&self.sequence(at)).map(|leaving| &**leaving)
    }

    /// The messages in flight that have successors, each after the sequence of its successor.
    pub fn all_leaving(&self) -> impl Iterator<Item = (Sequence, &Leaving)> {
        let leaving = self.attachments.iter().flat_map(|attachments| &attachments.leaving);
        leaving.map(|(sequence, leaving)| (*sequence, &**leaving))
    }

    /// Stores the message in flight whose successor is at `at`.
    pub fn set_leaving(&mut self, at: At, leaving: Leaving) {
        self.take_leaving(at);
        let sequence = self.sequence(at);
        self.payload_bytes += leaving.payload.len() as u64;
        self.attachments.get_or_insert_default().leaving.insert(sequence, Box::new(leaving));
    }

    /// Removes the message in flight whose successor is at `at`, if there is one.
    pub(super) fn drop_leaving(&mut self, at: At) {
        if self.attachments.is_some() {
            self.take_leaving(at);
        }
    }

    /// [`Store::drop_leaving`], which returns the message.
    pub fn take_leaving(&mut self, at: At) -> Option<Leaving> {
        self.attachments.as_ref().filter(|attachments| !attachments.leaving.is_empty())?;
        let sequence = self.sequence(at);
        let attachments = self.attachments.as_mut()?;
        let leaving = attachments.leaving.remove(&sequence)?;
        self.payload_bytes -= leaving.payload.len() as u64;
        if attachments.is_empty() {
            self.attachments = None;
        }
        Some(*leaving)
    }

    /// Stores where the message comes from, unless that follows from its sequence.
    pub fn set_origin(&mut self, at: At, origin: Origin) {
        let sequence = self.sequence(at);
        let Some(origin) = origin.unless_derived_from(sequence) else { return };
        self.attachments.get_or_insert_default().origins.insert(sequence, origin);
    }

    /// How long the message is retained after its completion, if it has a retention of its own.
    pub fn retain(&self, at: At) -> Option<DurationMs> {
        self.attachments.as_ref()?.retains.get(&self.sequence(at)).copied()
    }

    /// Whether any message has a retention of its own.
    pub fn has_retain(&self) -> bool {
        self.attachments.as_ref().is_some_and(|attachments| !attachments.retains.is_empty())
    }

    /// Stores how long the message is retained after its completion.
    pub fn set_retain(&mut self, at: At, retain: DurationMs) {
        let sequence = self.sequence(at);
        self.attachments.get_or_insert_default().retains.insert(sequence, retain);
    }

    /// What a recurring message has in addition to its record; `None` for an ordinary message.
    pub fn recurring(&self, at: At) -> Option<&Recurring> {
        let attachments = self.attachments.as_ref().filter(|_| self.header(at).is_recurring())?;
        attachments.recurring.get(&self.sequence(at)).map(|recurring| &**recurring)
    }

    /// [`Store::recurring`], to change it.
    pub fn recurring_mut(&mut self, at: At) -> Option<&mut Recurring> {
        let (sequence, recurs) = (self.sequence(at), self.header(at).is_recurring());
        let attachments = self.attachments.as_mut().filter(|_| recurs)?;
        attachments.recurring.get_mut(&sequence).map(|recurring| &mut **recurring)
    }

    /// Stores what a recurring message has in addition to its record, and marks the message as recurring.
    pub fn set_recurring(&mut self, at: At, recurring: Box<Recurring>) {
        let sequence = self.sequence(at);
        self.attachments.get_or_insert_default().recurring.insert(sequence, recurring);
        self.segments[at.segment()].set_recurring(at.index());
    }

    /// Whether any message may have something attached.
    #[inline]
    pub fn has_attachments(&self) -> bool {
        self.attachments.is_some()
    }

    /// The number of recurring messages.
    pub fn recurring_count(&self) -> usize {
        self.attachments.as_ref().map_or(0, |attachments| attachments.recurring.len())
    }
}

//! A queue as bytes: a header, then chunks of messages in push order, each in MessagePack.
//!
//! A chunk holds about 64 KiB, so that a save is a stream and a load never needs more than a chunk at a time. The
//! sorted sets are not saved: they follow from the records. A reader of one version is never changed; a new layout
//! gets a new version and a new reader.

use super::effect::{decode, encode, Image, Refused};
use super::id::{Receipt, Sequence};
use super::order::{Key, OrderedKeys};
use super::record::State;
use super::settings::{Settings, MAX_LENGTH};
use super::store::Bytes;
use super::time::UnixMs;
use super::{hash_of, Pause, Queue, Reason, Totals};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The layout that is written.
const VERSION: u8 = 1;

/// A chunk is closed once it holds so many bytes: large enough to compress well and to make the cost of a chunk
/// disappear, small enough to copy.
const CHUNK_BYTES: usize = 64 * 1024;

/// What there is to say of a queue beside its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    version: u8,
    settings: Settings,
    pause: Pause,
    last_sequence: Sequence,
    last_receipt: Receipt,
    totals: Totals,
    /// The instant of the view: `totals` count what time did up to it.
    viewed: UnixMs,
}

impl Header {
    /// Whether a queue could have written this.
    pub fn is_valid(&self) -> bool {
        self.version == VERSION
            && self.settings.are_valid()
            && self.totals.numbers().iter().all(|total| *total <= MAX_LENGTH)
    }
}

/// What travels first: the parts of a header that make up a queue's identity.
#[derive(Serialize)]
struct Identity<'a> {
    settings: &'a Settings,
    pause: Pause,
    last_sequence: Sequence,
    last_receipt: Receipt,
}

impl Queue {
    /// The instant of the view: the latest time that was brought to bear on it, here or before it was saved.
    pub fn viewed(&self) -> UnixMs {
        self.viewed
    }

    /// The header, as [`Header`].
    pub fn header(&self) -> Header {
        Header {
            version: VERSION,
            settings: *self.settings,
            pause: self.pause,
            last_sequence: self.last_sequence,
            last_receipt: self.last_receipt,
            totals: self.settled_totals(),
            viewed: self.viewed,
        }
    }

    /// The totals once the view is complete up to its instant. Saving must not advance.
    fn settled_totals(&self) -> Totals {
        let viewed = self.viewed;
        let end = Key::end_of(viewed);
        let mut totals = self.totals();
        let behind = |keys: &OrderedKeys| keys.iter_after(None).take_while(|key| *key <= end).collect::<Vec<_>>();
        let leases = behind(&self.inflight);
        totals.lease_expired += leases.len() as u64;
        for key in leases.into_iter().chain(behind(&self.expiring)) {
            let Some(at) = self.store.locate(key.sequence()) else { continue };
            if let State::Dead { reason, .. } = self.store.record(at).state_at(viewed) {
                totals.died += 1;
                totals.expired += u64::from(reason == Reason::Expired);
            }
        }
        totals
    }

    /// Hands the queue to `sink`: the header first, then each chunk. O(n).
    pub fn save<E: From<Refused>>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut buffer = Vec::new();
        encode(&mut buffer, &self.header())?;
        sink(&buffer)?;
        for chunk in self.chunks() {
            buffer.clear();
            encode(&mut buffer, &chunk)?;
            sink(&buffer)?;
        }
        Ok(())
    }

    /// The messages in push order, some at a time.
    pub fn chunks(&self) -> impl Iterator<Item = Vec<Image<'_>>> + '_ {
        let mut images = self.images().peekable();
        std::iter::from_fn(move || {
            images.peek()?;
            let mut chunk = Vec::new();
            let mut bytes = 0;
            while bytes < CHUNK_BYTES {
                let Some(image) = images.next() else { break };
                // What a record takes, roughly.
                bytes += 48 + image.payload.len();
                chunk.push(image);
            }
            Some(chunk)
        })
    }

    /// The pieces that tell this queue from every other, for a digest: not totals, counts, the view or the time.
    pub fn digest(&self, mut sink: impl FnMut(&[u8])) -> Result<(), Refused> {
        let mut buffer = Vec::new();
        let identity = Identity {
            settings: &self.settings,
            pause: self.pause,
            last_sequence: self.last_sequence,
            last_receipt: self.last_receipt,
        };
        encode(&mut buffer, &identity)?;
        sink(&buffer);
        for image in self.images() {
            buffer.clear();
            encode(&mut buffer, &image)?;
            sink(&buffer);
        }
        Ok(())
    }

    /// A queue with a header's settings, counters and no messages yet.
    pub(super) fn begin(header: &Header) -> Queue {
        let mut queue = Queue::new(header.settings);
        queue.pause = header.pause;
        queue.last_sequence = header.last_sequence;
        queue.last_receipt = header.last_receipt;
        queue.tally = header.totals.into();
        queue.viewed = header.viewed;
        queue
    }

    /// Adds the next messages of a queue that was begun, as they were when it was saved.
    pub(super) fn extend_with(&mut self, images: &[Image<'_>]) {
        for image in images {
            self.insert(&image.record, Bytes::from(image), self.viewed);
        }
    }

    /// Whether `images` may follow the messages that were loaded so far.
    pub(super) fn may_follow(&self, images: &[Image<'_>]) -> bool {
        let mut last = self.store.last();
        let mut names = BTreeSet::new();
        images.iter().all(|image| {
            let follows = last.is_none_or(|last| last < image.record.sequence);
            last = Some(image.record.sequence);
            let known = image.record.sequence <= self.last_sequence
                && image.record.receipt().is_none_or(|receipt| receipt <= self.last_receipt);
            let unique = image.name.is_none_or(|name| names.insert(name) && self.find_named(name).is_none());
            follows && known && unique && image.is_valid()
        })
    }

    /// A copy.
    pub fn duplicate(&self) -> Result<Queue, Refused> {
        let mut loader = Loader::default();
        self.save(|piece| loader.take(piece))?;
        let mut copy = loader.finish(self.viewed)?;
        copy.clock = self.clock;
        Ok(copy)
    }
}

/// Puts a queue together from the pieces of [`Queue::save`].
#[derive(Debug, Default)]
pub struct Loader {
    queue: Option<Queue>,
}

impl Loader {
    /// Takes the next piece.
    pub fn take(&mut self, piece: &[u8]) -> Result<(), Refused> {
        let Some(queue) = &mut self.queue else {
            let header: Header = decode(piece)?;
            if !header.is_valid() {
                return Err(Refused::Impossible);
            }
            self.queue = Some(Queue::begin(&header));
            return Ok(());
        };
        let images: Vec<Image<'_>> = decode(piece)?;
        if !queue.may_follow(&images) {
            return Err(Refused::Impossible);
        }
        for image in &images {
            queue.store.append(&image.record, Bytes::from(image));
            if let Some(name) = image.name {
                queue.names.insert(Key::hashed(hash_of(name), image.record.sequence));
            }
        }
        Ok(())
    }

    /// The queue, once all pieces were taken: its view is that of the save, but not beyond `now`, for the clock may
    /// have been ahead when it was saved.
    pub fn finish(self, now: UnixMs) -> Result<Queue, Refused> {
        let mut queue = self.queue.ok_or(Refused::Malformed)?;
        queue.lay_out(queue.viewed);
        if now < queue.viewed {
            queue.rewind(now);
        }
        Ok(queue)
    }
}

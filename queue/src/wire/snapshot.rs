//! A queue as bytes: a header, then chunks of messages in push order, then chunks of done messages, then chunks of known
//! ids.
//!
//! A chunk holds about 64 KiB, so that a save is a stream and a load never needs more than one chunk at a time. The
//! orders are not saved: they follow from the records.

use super::super::done::DoneMessage;
use super::super::effect::Image;
use super::super::forward::Forward;
use super::super::gate::{Gate, Pause};
use super::super::groups::{GroupNames, TurnState};
use super::super::id::{Receipt, Sequence};
use super::super::known::KnownId;
use super::super::rate::RateLog;
use super::super::record::State;
use super::super::settings::{Settings, MAX_LENGTH};
use super::super::time::UnixMs;
use super::super::view::View;
use super::super::{Queue, Reason, Totals};
use super::{codec, v1, Refused, VERSION};

/// A chunk is closed once it holds this many bytes: large enough to compress well and to make the cost per chunk
/// negligible, small enough to copy.
const CHUNK_BYTES: usize = 64 * 1024;

/// The data of a queue beside its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueHeader {
    /// Its settings.
    pub settings: Settings,
    /// The pause that was last set; it may have ended.
    pub pause: Pause,
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
    pub forward: Option<Box<Forward>>,
}

impl QueueHeader {
    /// Whether a queue could have written this header.
    pub fn is_valid(&self) -> bool {
        self.settings.are_valid()
            && self.totals.numbers().iter().all(|total| *total <= MAX_LENGTH)
            && (self.log.is_empty() || !self.settings.rate.is_off())
            && self.forward.as_ref().is_none_or(|forward| forward.is_valid())
    }
}

impl Queue {
    /// The instant of the view, which is the latest time to which it was brought, here or before it was saved.
    pub fn viewed(&self) -> UnixMs {
        self.view.at()
    }

    /// The data of the queue beside its messages.
    pub fn header(&self) -> QueueHeader {
        QueueHeader {
            settings: *self.settings,
            pause: self.gate.pause(),
            last_sequence: self.last_sequence,
            last_receipt: self.last_receipt,
            totals: self.totals_as_viewed(),
            viewed: self.view.at(),
            log: self.gate.log().cloned().unwrap_or_default(),
            forward: self.forward().cloned().map(Box::new),
        }
    }

    /// The totals that the queue would have if the view were complete up to its instant. A save must not advance the
    /// view.
    fn totals_as_viewed(&self) -> Totals {
        let viewed = self.view.at();
        let mut totals = self.totals();
        let (leases, ends) = self.view.overdue();
        totals.lease_expired += leases.len() as u64;
        for key in leases.into_iter().chain(ends) {
            let Some(at) = self.messages.locate(key.sequence()) else { continue };
            if let State::Dead { reason, .. } = self.messages.record(at).state_at(viewed) {
                totals.died += 1;
                totals.expired += u64::from(reason == Reason::Expired);
            }
        }
        totals
    }

    /// Passes the queue to `sink` in pieces: first the header, then each chunk. Stops at the first error. O(n).
    pub fn save<E: From<Refused>>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut buffer = vec![VERSION];
        codec::encode(&mut buffer, &v1::QueueHeader::from(&self.header()))?;
        sink(&buffer)?;
        let messages = self.chunks().map(|chunk| v1::Piece::Messages(v1::images(&chunk, 0)));
        let known = self.known_chunks().map(|chunk| v1::Piece::Known(v1::known(&chunk)));
        let done = self.done_chunks().map(|chunk| v1::Piece::Done(v1::done(&chunk, 0)));
        let leaving = self.leaving_chunks().map(|chunk| v1::Piece::Leaving(v1::leaving(&chunk)));
        let turns = self.turn_chunks().map(|chunk| v1::Piece::Turns(v1::turns(&chunk)));
        for piece in messages.chain(done).chain(known).chain(leaving).chain(turns) {
            buffer.clear();
            codec::encode(&mut buffer, &piece)?;
            sink(&buffer)?;
        }
        Ok(())
    }

    /// The messages in push order, in chunks.
    pub fn chunks(&self) -> impl Iterator<Item = Vec<Image<'_>>> + '_ {
        // The approximate size of a record.
        in_chunks(self.images(), |image| 48 + image.payload.len())
    }

    /// The done messages, in chunks.
    pub fn done_chunks(&self) -> impl Iterator<Item = Vec<DoneMessage<'_>>> + '_ {
        in_chunks(self.done(), |message| {
            let bytes = message.name.map_or(0, <[u8]>::len) + message.result.map_or(0, <[u8]>::len);
            32 + bytes
        })
    }

    /// The known ids whose messages are gone, in chunks.
    pub fn known_chunks(&self) -> impl Iterator<Item = Vec<KnownId<'_>>> + '_ {
        in_chunks(self.known_ids(), |id| 8 + id.name.len())
    }

    /// The messages that are still delivered beside kept ones, with the sequences of these, in chunks.
    pub fn leaving_chunks(&self) -> impl Iterator<Item = Vec<(Sequence, Image<'_>)>> + '_ {
        in_chunks(self.all_leaving(), |(_, image)| 48 + image.payload.len())
    }

    /// The turns of the groups, in chunks.
    pub fn turn_chunks(&self) -> impl Iterator<Item = TurnState<'_>> + '_ {
        let turns = self.messages.groups().and_then(GroupNames::turns);
        turns.into_iter().flat_map(|TurnState { last, ungrouped, groups }| {
            let mut chunks: Vec<_> = in_chunks(groups.into_iter(), |(name, _)| 12 + name.len())
                .map(|groups| TurnState { last, ungrouped, groups })
                .collect();
            if chunks.is_empty() {
                chunks.push(TurnState { last, ungrouped, groups: Vec::new() });
            }
            chunks
        })
    }

    /// Passes to `sink` the pieces that distinguish this queue from every other, for a digest. Totals, counts, the view
    /// and the time are left out.
    pub fn digest(&self, mut sink: impl FnMut(&[u8])) -> Result<(), Refused> {
        let mut buffer = Vec::new();
        // All other fields of the header are left at their defaults.
        let identity = QueueHeader { totals: Totals::default(), viewed: UnixMs::EPOCH, ..self.header() };
        codec::encode(&mut buffer, &v1::QueueHeader::from(&identity))?;
        sink(&buffer);
        for image in self.images() {
            buffer.clear();
            codec::encode(&mut buffer, &v1::image(&image, 0))?;
            sink(&buffer);
        }
        for message in self.done() {
            buffer.clear();
            codec::encode(&mut buffer, &v1::done(&[message], 0))?;
            sink(&buffer);
        }
        for id in self.known_ids() {
            buffer.clear();
            codec::encode(&mut buffer, &v1::known(&[id]))?;
            sink(&buffer);
        }
        for leaving in self.all_leaving() {
            buffer.clear();
            codec::encode(&mut buffer, &v1::leaving(&[leaving]))?;
            sink(&buffer);
        }
        for turns in self.turn_chunks() {
            buffer.clear();
            codec::encode(&mut buffer, &v1::turns(&turns))?;
            sink(&buffer);
        }
        Ok(())
    }

    /// A queue with the settings and counters of a header, and no messages yet.
    pub(crate) fn begin(header: &QueueHeader) -> Queue {
        let mut queue = Queue::new(header.settings);
        queue.gate = Gate::new(header.pause, header.log.clone());
        queue.last_sequence = header.last_sequence;
        queue.last_receipt = header.last_receipt;
        queue.tally = header.totals.into();
        queue.view = View::starting_at(header.viewed);
        queue.set_forward(header.forward.as_deref().cloned());
        queue
    }

    /// A copy of the queue. O(n).
    pub fn duplicate(&self) -> Result<Queue, Refused> {
        let mut loader = Loader::default();
        self.save(|piece| loader.take(piece))?;
        let mut copy = loader.finish(self.view.at())?;
        copy.clock = self.clock;
        Ok(copy)
    }
}

/// Adds the next messages of a queue that is being loaded.
fn add(queue: &mut Queue, images: &[Image<'_>]) -> Result<(), Refused> {
    if !queue.may_continue_with(images) {
        return Err(Refused::Impossible);
    }
    for image in images {
        queue.messages.add_image(image, queue.membership(image.group, UnixMs::EPOCH));
    }
    Ok(())
}

/// Adds the next done messages of a queue that is being loaded.
fn restore(queue: &mut Queue, messages: &[DoneMessage<'_>]) -> Result<(), Refused> {
    if !queue.may_restore_done(messages) {
        return Err(Refused::Impossible);
    }
    queue.restore_done(messages);
    Ok(())
}

/// Adds the next known ids of a queue that is being loaded.
fn recall(queue: &mut Queue, ids: &[KnownId<'_>]) -> Result<(), Refused> {
    if !queue.may_recall(ids) {
        return Err(Refused::Impossible);
    }
    queue.recall(ids);
    Ok(())
}

/// Adds messages that are delivered beside kept ones to a queue that is being loaded.
fn resume(queue: &mut Queue, leaving: &[(Sequence, Image<'_>)]) -> Result<(), Refused> {
    if !queue.may_resume(leaving) {
        return Err(Refused::Impossible);
    }
    for (sequence, image) in leaving {
        queue.messages.resume(*sequence, image);
    }
    Ok(())
}

/// Restores the turns of the groups of a queue that is being loaded.
fn take_turns(queue: &mut Queue, turns: &TurnState<'_>) -> Result<(), Refused> {
    if !queue.may_restore(turns) {
        return Err(Refused::Impossible);
    }
    queue.messages.restore_turns(turns);
    Ok(())
}

/// Puts items together in chunks of [`CHUNK_BYTES`].
fn in_chunks<T>(items: impl Iterator<Item = T>, size: impl Fn(&T) -> usize) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.peekable();
    std::iter::from_fn(move || {
        items.peek()?;
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while bytes < CHUNK_BYTES {
            let Some(item) = items.next() else { break };
            bytes += size(&item);
            chunk.push(item);
        }
        Some(chunk)
    })
}

/// Loads a queue from the pieces that [`Queue::save`] produced.
#[derive(Debug, Default)]
pub struct Loader {
    /// The queue so far, and the version of its pieces.
    begun: Option<(u8, Queue)>,
}

impl Loader {
    /// Takes the next piece. Returns an error if it is damaged, has another version, or could not have been saved by a
    /// queue.
    pub fn take(&mut self, piece: &[u8]) -> Result<(), Refused> {
        let Some((version, queue)) = &mut self.begun else {
            let (version, rest) = codec::version_of(piece)?;
            let header: QueueHeader = match version {
                1 => codec::decode::<v1::QueueHeader>(rest)?.try_into()?,
                _ => return Err(Refused::Version(version)),
            };
            if !header.is_valid() {
                return Err(Refused::Impossible);
            }
            self.begun = Some((version, Queue::begin(&header)));
            return Ok(());
        };
        match version {
            1 => match codec::decode(piece)? {
                v1::Piece::Messages(images) => add(queue, &v1::live_images(images, 0)?),
                v1::Piece::Done(messages) => restore(queue, &v1::live_done(messages, 0)?),
                v1::Piece::Known(ids) => recall(queue, &v1::live_known(ids)?),
                v1::Piece::Leaving(leaving) => resume(queue, &v1::live_leaving(leaving)?),
                v1::Piece::Turns(turns) => take_turns(queue, &v1::live_turns(turns)),
            },
            _ => Err(Refused::Version(*version)),
        }
    }

    /// Returns the queue after all pieces were taken. Its view is that of the save, but not beyond `now`: the clock may
    /// have been ahead when it was saved. Returns an error if no piece was taken.
    pub fn finish(self, now: UnixMs) -> Result<Queue, Refused> {
        let (_, mut queue) = self.begun.ok_or(Refused::Malformed)?;
        let viewed = queue.view.at();
        queue.view.rebuild(&mut queue.messages, viewed);
        if now < viewed {
            queue.rewind(now);
        }
        Ok(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::id::{Floor, Target};
    use super::super::super::time::DurationMs;
    use super::super::super::{Effect, Lease, NewMessage, Pop, Stamped};
    use super::*;

    fn at(ms: u64) -> UnixMs {
        UnixMs::new(ms)
    }

    /// A queue with one message, leased from 1,000 until 61,000.
    fn leased() -> (Queue, Floor) {
        let (mut queue, mut floor) = (Queue::new(Settings::default()), Floor::default());
        queue.push(at(1_000), &mut floor, &NewMessage { name: Some(b"m"), ..NewMessage::default() });
        let pop = Pop { count: 1, lease: Lease::For(DurationMs::new(60_000)) };
        queue.pop(at(1_000), &mut floor, &pop, &mut Vec::new(), |_| ());
        (queue, floor)
    }

    fn popped(queue: &mut Queue, floor: &mut Floor, now: u64) -> usize {
        let mut grants = Vec::new();
        queue.pop(at(now), floor, &Pop { count: 9, lease: Lease::Default }, &mut grants, |_| ());
        grants.len()
    }

    #[test]
    fn a_masters_clock_that_was_ahead_ends_no_lease_here() {
        let (mut queue, mut floor) = leased();
        // A master whose clock was an hour ahead decided something about the message.
        let sequence = queue.last_given().0;
        let extended = Effect::Extend(sequence, at(61_000));
        queue.apply(&Stamped { now: at(3_600_000), effect: extended }).unwrap();
        assert_eq!((queue.counts().inflight, queue.totals().lease_expired), (0, 1));
        assert_eq!(popped(&mut queue, &mut floor, 2_000), 0);
        assert_eq!((queue.counts().inflight, queue.counts().ready), (1, 0));
        assert_eq!(queue.totals().lease_expired, 0, "the lease has not ended");
        assert!(queue.ack(at(2_000), &Target::parse(b"m").unwrap()).is_some());
    }

    #[test]
    fn a_clock_ahead_at_a_save_ends_no_lease_after_loading() {
        let (mut queue, mut floor) = leased();
        queue.push(at(3_600_000), &mut floor, &NewMessage::default());
        queue.advance(at(3_600_000), usize::MAX);
        let mut loader = Loader::default();
        queue.save(|piece| loader.take(piece)).unwrap();
        let mut loaded = loader.finish(at(2_000)).unwrap();
        assert_eq!((loaded.counts().inflight, loaded.totals().lease_expired), (1, 0));
        assert_eq!(popped(&mut loaded, &mut floor, 2_000), 0);
        loaded.advance(at(61_000), usize::MAX);
        assert_eq!(loaded.totals().lease_expired, 1, "the end of the lease is counted once");
    }

    #[test]
    fn an_unknown_version_is_refused_by_its_number() {
        let (queue, _) = leased();
        let mut loader = Loader::default();
        let saved = queue.save(|piece| {
            loader.take(&[&[VERSION + 1], &b"whatever comes"[..]].concat()).and(Ok(piece.len()).map(|_| ()))
        });
        assert_eq!(saved, Err(Refused::Version(VERSION + 1)));
        assert_eq!(Stamped::decode(&[9, 0xc0]), Err(Refused::Version(9)));
        assert_eq!(Stamped::decode(&[]), Err(Refused::Malformed));
        assert!(Refused::Version(9).to_string().contains("version 9"));
    }
}

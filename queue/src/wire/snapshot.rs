//! A queue as pieces: the effects that make it again.
//!
//! The first piece is the queue without its messages. The others are its batches, its messages in push order, its done
//! messages, its known ids, the messages in flight that have a successor, and the turns and the gates of its groups. A
//! saved queue, an AOF rewrite, a copy and a digest all consist of these pieces. Each holds about 64 KiB, so that a
//! save is a stream and a load never needs more than one piece at a time. The orders are not saved: they follow from
//! the records.

use super::Refused;
use crate::effect::{Effect, Image, QueueHeader, Stamped};
use crate::gate::Gate;
use crate::groups::{GroupGates, GroupNames, TurnState};
use crate::record::State;
use crate::time::UnixMs;
use crate::view::View;
use crate::{Queue, Reason, Totals};

/// A piece is closed once it holds this many bytes: large enough to compress well and to make the cost per piece
/// negligible, small enough to copy.
const PIECE_BYTES: usize = 64 * 1024;

impl Queue {
    /// The instant of the view, which is the latest time to which it was brought, here or before it was saved.
    pub fn viewed(&self) -> UnixMs {
        self.view.at()
    }

    /// The data of the queue without its messages.
    pub fn header(&self) -> QueueHeader {
        QueueHeader {
            settings: *self.settings,
            pause: self.gate.pause(),
            closed: self.gate.closed(),
            last_sequence: self.last_sequence,
            last_receipt: self.last_receipt,
            totals: self.totals_as_viewed(),
            viewed: self.view.at(),
            log: self.gate.log().cloned().unwrap_or_default(),
            targets: self.targets(),
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

    /// The pieces: effects which, applied in this order, make the queue. O(n).
    pub fn pieces(&self) -> impl Iterator<Item = Effect<'_>> {
        std::iter::once(Effect::Begin(self.header())).chain(self.contents())
    }

    /// The pieces without the first one.
    fn contents(&self) -> impl Iterator<Item = Effect<'_>> {
        let batches = self.optional.batches.as_ref().map_or_else(Vec::new, |batches| batches.states());
        let batches = in_chunks(batches.into_iter(), |batch| {
            48 + batch.name.len() + batch.then.as_ref().map_or(0, |then| then.payload.len())
        });
        let messages = in_chunks(self.images(), size);
        let done = in_chunks(self.done(), |message| {
            32 + message.name.map_or(0, <[u8]>::len) + message.result.map_or(0, <[u8]>::len)
        });
        let known = in_chunks(self.known_ids(), |id| 8 + id.name.len());
        let leaving = in_chunks(self.all_leaving(), |(_, image)| size(image));
        let turns = self.messages.groups().and_then(GroupNames::turns).into_iter().flat_map(in_turns);
        let gates = self.messages.gates().map(GroupGates::all).unwrap_or_default();
        let gates = in_chunks(gates.into_iter(), |gate| 24 + gate.name.len() + 4 * gate.log.len()).map(Effect::Gates);
        let messages = batches.map(Effect::Batches).chain(messages.map(Effect::Continue));
        let messages = messages.chain(done.map(Effect::Done)).chain(known.map(Effect::Recall));
        messages.chain(leaving.map(Effect::Leaving)).chain(turns.map(Effect::Turns)).chain(gates)
    }

    /// Passes the bytes of each piece to `sink`. Stops at the first error. O(n).
    pub fn save<E: From<Refused>>(&self, mut sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        encoded(self.pieces(), self.view.at(), &mut sink)
    }

    /// Passes to `sink` the bytes that distinguish this queue from every other, for a digest. Totals, counts, the view
    /// and the time are left out.
    pub fn digest(&self, mut sink: impl FnMut(&[u8])) -> Result<(), Refused> {
        let identity = QueueHeader { totals: Totals::default(), viewed: UnixMs::EPOCH, ..self.header() };
        let pieces = std::iter::once(Effect::Begin(identity)).chain(self.contents());
        encoded(pieces, UnixMs::EPOCH, &mut |piece| {
            sink(piece);
            Ok(())
        })
    }

    /// A queue with the settings and counters of a header, and no messages yet.
    pub(crate) fn begin(header: &QueueHeader) -> Queue {
        let mut queue = Queue::new(header.settings);
        queue.gate = Gate::new(header.pause, header.closed, header.log.clone());
        queue.last_sequence = header.last_sequence;
        queue.last_receipt = header.last_receipt;
        queue.tally = header.totals.into();
        queue.view = View::starting_at(header.viewed);
        queue.set_targets(&header.targets);
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

    /// Adds a piece to a queue whose view is built once all pieces are there.
    fn assemble(&mut self, piece: &Stamped<'_>) -> Result<(), Refused> {
        match &piece.effect {
            Effect::Continue(images) if self.may_continue_with(images) => {
                for image in images {
                    let batch = self.restore_member(image, self.view.at());
                    self.messages.add_image(image, self.membership(image.group, UnixMs::EPOCH), batch);
                }
            }
            Effect::Leaving(leaving) if self.may_add_leaving(leaving) => {
                leaving.iter().for_each(|(sequence, image)| self.messages.add_leaving(*sequence, image));
            }
            Effect::Turns(turns) if self.may_restore(turns) => self.messages.restore_turns(turns),
            Effect::Gates(gates) if self.may_restore_gates(gates) => self.restore_gates(gates),
            // Batches, done messages and known ids stand in no order of the view.
            Effect::Batches(_) | Effect::Done(_) | Effect::Recall(_) => {
                self.apply(piece)?;
            }
            _ => return Err(Refused::Impossible),
        }
        Ok(())
    }
}

/// The approximate size of a message in a piece.
fn size(image: &Image<'_>) -> usize {
    let headers = image.headers.map_or(0, |headers| headers.block().len());
    let errors = image.errors.map_or(0, |errors| errors.block().len());
    48 + image.payload.len() + headers + errors + image.checkpoint.map_or(0, <[u8]>::len)
}

/// Passes the bytes of each effect to `sink`, as decided at `now`.
fn encoded<'a, E: From<Refused>>(
    effects: impl Iterator<Item = Effect<'a>>,
    now: UnixMs,
    sink: &mut impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut buffer = Vec::new();
    for effect in effects {
        buffer.clear();
        Stamped { now, effect }.encode(&mut buffer)?;
        sink(&buffer)?;
    }
    Ok(())
}

/// Divides turns into one or more pieces.
fn in_turns(turns: TurnState<'_>) -> impl Iterator<Item = TurnState<'_>> {
    let TurnState { last, ungrouped, groups } = turns;
    let is_empty = groups.is_empty();
    let chunks = in_chunks(groups.into_iter(), |(name, ..)| 24 + name.len());
    let none = is_empty.then(Vec::new);
    chunks.chain(none).map(move |groups| TurnState { last, ungrouped, groups })
}

/// Puts items together in chunks of [`PIECE_BYTES`].
fn in_chunks<T>(items: impl Iterator<Item = T>, size: impl Fn(&T) -> usize) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.peekable();
    std::iter::from_fn(move || {
        items.peek()?;
        let mut chunk = Vec::new();
        let mut bytes = 0;
        while bytes < PIECE_BYTES {
            let Some(item) = items.next() else { break };
            bytes += size(&item);
            chunk.push(item);
        }
        Some(chunk)
    })
}

/// Builds a queue from the pieces that [`Queue::save`] produced.
#[derive(Debug, Default)]
pub struct Loader {
    /// The queue so far.
    begun: Option<Queue>,
}

impl Loader {
    /// Takes the next piece. Returns an error if it is damaged, needs a later version of the format, or could not have
    /// been saved by a queue.
    pub fn take(&mut self, piece: &[u8]) -> Result<(), Refused> {
        let piece = Stamped::decode(piece)?;
        match (&mut self.begun, &piece.effect) {
            (Some(queue), _) => queue.assemble(&piece),
            (None, Effect::Begin(header)) if header.is_valid() => {
                self.begun = Some(Queue::begin(header));
                Ok(())
            }
            (None, _) => Err(Refused::Impossible),
        }
    }

    /// Returns the queue after all pieces were taken. Its view is that of the save, but not beyond `now`: the clock may
    /// have been ahead when it was saved. Returns an error if no piece was taken.
    pub fn finish(self, now: UnixMs) -> Result<Queue, Refused> {
        let mut queue = self.begun.ok_or(Refused::Malformed)?;
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
    use super::*;
    use crate::id::{Floor, Target};
    use crate::settings::Settings;
    use crate::time::DurationMs;
    use crate::wire::VERSION;
    use crate::{Lease, NewMessage, Pop, Stamped};

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
        let extended = Effect::Extend { those: vec![(sequence, at(61_000))].into(), checkpoint: None };
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
        assert_eq!(Stamped::decode(&[6, 0xc0]), Err(Refused::Version(6)));
        assert_eq!(Stamped::decode(&[]), Err(Refused::Malformed));
        assert!(Refused::Version(6).to_string().contains("version 6"));
    }
}

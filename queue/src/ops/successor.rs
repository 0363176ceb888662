//! `REPLACE LATER`: a successor waits for the end of a delivery without disturbing it, and then takes the place of the
//! delivered message.
//!
//! The successor is the message of the id: it has the place in push order, and its record says what it will be. Its
//! phase holds the deadline and the receipt of the delivery that still runs, so its state follows from the time alone:
//! in flight until the deadline, and then whatever a message that was never delivered would be. The message that is
//! being delivered is stored with it, to be shown until then. If that was a run of a schedule, the series has ended.
//!
//! A schedule that is declared for such an id waits in the same way: it replaces the successor, not the message in
//! flight.

use super::{At, Phase, Queue, Record, Sequence, State, UnixMs};
use crate::effect::Image;
use crate::store::{Bytes, Leaving};

impl Queue {
    /// The phase of a successor of the message at `at`; `None` if that message is not in flight, and is replaced at
    /// once.
    pub(crate) fn as_successor_of(&self, at: At, now: UnixMs) -> Option<Phase> {
        match self.messages.record(at).phase {
            Phase::Leased { deadline, receipt } | Phase::Successor { deadline, receipt } if now < deadline => {
                Some(Phase::Successor { deadline, receipt })
            }
            Phase::Waiting | Phase::Leased { .. } | Phase::Successor { .. } | Phase::Dead { .. } => None,
        }
    }

    /// The message in flight under the id of the message at `at`, which is about to get a successor; `None` if none is
    /// in flight, which only a forged effect can bring about.
    pub(crate) fn leaving(&self, at: At) -> Option<Leaving> {
        let record = self.messages.record(at);
        if !matches!(record.phase, Phase::Leased { .. }) {
            return self.messages.leaving(at).cloned();
        }
        Some(Leaving::new(
            Record { recurring: false, ..record },
            &self.messages.bytes(at),
            self.messages.checkpoint(at),
        ))
    }

    /// Stores what is being delivered before its successor, and the name of the consumer that holds it. O(log n).
    pub(crate) fn set_leaving(&mut self, successor: Sequence, leaving: Leaving, consumer: Option<&[u8]>, now: UnixMs) {
        let Some((at, record)) = self.messages.locate_record(successor) else { return };
        // The view counts the payload if the delivery has ended, so the message is placed again.
        self.view.unplace(&self.messages, at, &record);
        self.messages.set_leaving(at, leaving);
        if consumer.is_some() {
            self.messages.set_consumer(at, consumer);
        }
        self.view.place(&mut self.messages, at, &record, now);
    }

    /// Ends the delivery that a successor waits for, so that the successor takes the place. Returns the state of the
    /// successor, which is dead if its TTL has ended meanwhile. O(log n).
    pub(crate) fn succeed(&mut self, at: At, record: &Record, now: UnixMs) -> State {
        let new = Record { phase: Phase::Waiting, ..*record };
        self.rewrite(at, record, &new, now);
        let state = new.state_at(now);
        if let State::Dead { died, reason } = state {
            self.tally.count_dead(died, reason);
        }
        state
    }

    /// The messages in flight that have a successor, each after the sequence of its successor.
    pub(crate) fn all_leaving(&self) -> impl Iterator<Item = (Sequence, Image<'_>)> + '_ {
        self.messages.all_leaving().map(|(sequence, leaving)| (sequence, leaving.image()))
    }

    /// Whether these messages may have these successors in a queue that is being loaded.
    pub(crate) fn may_add_leaving(&self, leaving: &[(Sequence, Image<'_>)]) -> bool {
        leaving.iter().all(|(sequence, image)| {
            let at = self.messages.locate(*sequence);
            let is_successor = at.is_some_and(|at| matches!(self.messages.record(at).phase, Phase::Successor { .. }));
            let is_alone =
                image.name.is_none() && image.origin.is_none() && image.recurring.is_none() && image.group.is_none();
            let is_alone = is_alone && image.batch.is_none();
            is_successor && is_alone && image.is_valid() && matches!(image.record.phase, Phase::Leased { .. })
        })
    }

    /// Stores messages in flight that have a successor, while a queue is loaded that was saved at `now`.
    pub(crate) fn add_leaving(&mut self, leaving: &[(Sequence, Image<'_>)], now: UnixMs) {
        for (sequence, image) in leaving {
            let leaving = Leaving::new(image.record, &Bytes::from(image), image.checkpoint);
            self.set_leaving(*sequence, leaving, None, now);
        }
    }
}

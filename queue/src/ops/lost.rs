//! Deliveries that a command of somebody else ends, so that their consumers can be notified: the message was cancelled,
//! say.
//!
//! Only the queue that decides takes note of them, until [`Queue::take_lost`] hands them over. What time ends, and what
//! a consumer ends itself, is not lost.

use super::{At, Loss, Queue, Record, Sequence, State, UnixMs};
use crate::id::IdBuffer;
use crate::lost::{Losses, Lost};

/// The most deliveries of one command that are named.
const NAMED_MAX: usize = 1_000;

impl Queue {
    /// The deliveries that consumers have lost by operations since the last call.
    #[inline]
    pub fn take_lost(&mut self) -> Option<Box<Losses>> {
        self.optional.take(|parts| &mut parts.lost)
    }

    /// Takes note that a message is taken from its consumer if it is in flight. It must not have been changed yet.
    pub(crate) fn note_lost(&mut self, at: At, record: &Record, how: Loss, now: UnixMs) {
        if record.state_at(now) == State::InFlight {
            self.add_lost(at, record, how);
        }
    }

    /// Takes note of a delivery. If there are too many to name each, a single word stands for all: a consumer that
    /// hears it asks for each message.
    #[cold]
    fn add_lost(&mut self, at: At, record: &Record, how: Loss) {
        let Some(receipt) = record.receipt() else { return };
        match self.optional.lost.as_deref().map(|lost| lost.0.as_slice()) {
            Some([Lost { receipt: None, .. }]) => return,
            Some(lost) if lost.len() == NAMED_MAX => {
                self.optional.for_adding().lost.get_or_insert_default().0 =
                    vec![Lost { how: Loss::Purged, receipt: None }];
                return;
            }
            Some(_) | None => {}
        }
        let mut buffer = IdBuffer::new();
        let id = buffer.id(record.sequence, self.messages.bytes(at).name);
        let printed = buffer.receipt(id, receipt);
        let receipt = Some(buffer.text(printed).into());
        self.optional.for_adding().lost.get_or_insert_default().0.push(Lost { how, receipt });
    }

    /// The first of these messages that are in flight: at most one more than are named.
    pub(crate) fn in_flight_of(&self, doomed: impl Iterator<Item = Sequence>, now: UnixMs) -> Vec<Sequence> {
        let record = |sequence| self.messages.locate(sequence).map(|at| self.messages.record(at));
        let is_held =
            |sequence: &Sequence| record(*sequence).is_some_and(|record| record.state_at(now) == State::InFlight);
        doomed.filter(is_held).take(NAMED_MAX + 1).collect()
    }

    /// Takes note of what [`Queue::in_flight_of`] has found among the messages that are about to be removed.
    pub(crate) fn note_all_lost(&mut self, held: &[Sequence], how: Loss) {
        for sequence in held {
            if let Some((at, record)) = self.messages.locate_record(*sequence) {
                self.add_lost(at, &record, how);
            }
        }
    }
}

//! Cancelling: a message is removed by its id, whatever its state.

use super::dedupe::Ids;
use super::{At, Id, Loss, Queue, Record, Sequence, StateKind, UnixMs};

impl Queue {
    /// Removes a message and returns its sequence and its last state; `None` if there is no such message. O(log n).
    pub fn cancel(&mut self, now: UnixMs, id: &Id<'_>) -> Option<(Sequence, StateKind)> {
        let now = self.observe(now);
        let Some(at) = self.messages.find(id) else {
            let done = self.get_done(now, id)?.sequence;
            self.drop_cancelled_done(done, now);
            return Some((done, StateKind::Done));
        };
        let record = self.refresh(at, now);
        self.note_lost(at, &record, Loss::Cancelled, now);
        self.drop_cancelled(at, &record, now);
        Some((record.sequence, record.state_at(now).kind()))
    }

    /// Applies a cancellation.
    pub(crate) fn drop_cancelled(&mut self, at: At, record: &Record, now: UnixMs) {
        self.claim_turn(at, record, now);
        self.remove(at, record);
        self.tally.others().cancelled += 1;
    }

    /// Applies a cancellation of a message that may be a done one.
    pub(crate) fn drop_cancelled_done(&mut self, sequence: Sequence, now: UnixMs) {
        if self.done_at(now, sequence).is_some() {
            self.drop_done(sequence, Ids::Forgotten, now);
            self.tally.others().cancelled += 1;
        }
    }
}

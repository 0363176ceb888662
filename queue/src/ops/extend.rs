//! Extending a lease.

use super::{At, DurationMs, Phase, Queue, Record, Sequence, State, UnixMs};
use crate::checkpoint::stored;
use crate::id::Target;

impl Queue {
    /// Restarts the lease of a message in flight: for `lease`, or for the message's own lease, or for that of the
    /// queue, but not beyond `MAXLEASE` after the beginning of the delivery. `checkpoint` is stored with it, if there
    /// is one; its first [`CHECKPOINT_MAX`](crate::CHECKPOINT_MAX) bytes are, and an empty one removes what was stored.
    /// Returns its sequence and its new deadline; `None` if the message is not in flight or the receipt is stale. O(log
    /// n).
    pub fn extend(
        &mut self,
        now: UnixMs,
        target: &Target<'_>,
        lease: Option<DurationMs>,
        checkpoint: Option<&[u8]>,
    ) -> Option<(Sequence, UnixMs)> {
        let now = self.observe(now);
        let (at, record) = self.in_flight(target, now)?;
        let own = self.messages.leaving(at).map_or(record.lease, |leaving| leaving.record.lease);
        let lease = lease.or(own).unwrap_or(self.settings.lease);
        let deadline = self.cut(&record, now.after(lease), now);
        self.move_deadline(at, &record, deadline, checkpoint.map(stored), now);
        Some((record.sequence, deadline))
    }

    /// The deadline of a delivery that asks for this one, with regard to `MAXLEASE`.
    fn cut(&self, record: &Record, deadline: UnixMs, now: UnixMs) -> UnixMs {
        let longest = self.settings.maxlease;
        match record.receipt() {
            // A receipt may be ahead of the clock, which may have stepped back. A delivery that lasts too long already,
            // because the setting was lowered, ends now.
            Some(receipt) if !longest.is_zero() => deadline.min(receipt.began().min(now).after(longest)).max(now),
            _ => deadline,
        }
    }

    /// Applies a new deadline, and a new checkpoint if there is one. If the deadline is not after `now`, the lease has
    /// ended; time does what follows, as at the end of every lease.
    pub(crate) fn move_deadline(
        &mut self,
        at: At,
        record: &Record,
        deadline: UnixMs,
        checkpoint: Option<&[u8]>,
        now: UnixMs,
    ) {
        let phase = match record.phase {
            Phase::Leased { receipt, .. } => Phase::Leased { deadline, receipt },
            Phase::Successor { receipt, .. } => Phase::Successor { deadline, receipt },
            Phase::Waiting | Phase::Dead { .. } => return,
        };
        if let Some(checkpoint) = checkpoint {
            self.messages.set_checkpoint(at, record, checkpoint, now);
        }
        // The message stands among the leases until time moves it.
        let runs = record.state_at(now) == State::InFlight;
        let seen = if runs { now.min(deadline.before()) } else { now };
        self.rewrite(at, record, &Record { phase, ..*record }, seen);
    }
}

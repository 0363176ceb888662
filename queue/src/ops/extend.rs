//! Extending a lease.

use super::super::checkpoint::stored;
use super::super::id::{Sequence, Target};
use super::super::record::{Phase, Record};
use super::super::store::At;
use super::super::time::{DurationMs, UnixMs};
use super::super::Queue;

impl Queue {
    /// Restarts the lease of a message in flight: for `lease`, or for the message's own lease, or for that of the
    /// queue. `checkpoint` is stored with it, if there is one; its first [`CHECKPOINT_MAX`](crate::CHECKPOINT_MAX) bytes are, and an empty one removes
    /// what was stored. Returns its sequence and its new deadline; `None` if the message is not in flight or the receipt is
    /// stale. O(log n).
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
        let deadline = now.after(lease);
        self.move_deadline(at, &record, deadline, checkpoint.map(stored), now);
        Some((record.sequence, deadline))
    }

    /// Applies a new deadline, and a new checkpoint if there is one.
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
        self.rewrite(at, record, &Record { phase, ..*record }, now);
    }
}

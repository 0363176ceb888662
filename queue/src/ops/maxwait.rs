//! Chains of replacements: a message that is replaced again and again is still due at a bounded time (`MAXWAIT`).

use super::super::origin::Origin;
use super::super::record::StateKind;
use super::super::store::At;
use super::super::time::UnixMs;
use super::super::Queue;

impl Queue {
    /// When the first message was pushed of the chain that a replacement of this message continues; `None` if the
    /// message was delivered, has died or is a recurring one, and a replacement therefore begins another chain.
    pub(crate) fn chain_of(&self, at: At, now: UnixMs) -> Option<UnixMs> {
        let record = self.messages.record(at);
        let goes_on = record.attempts == 0 && !record.recurring && record.state_at(now).kind() != StateKind::Dead;
        self.origin(at).chain.filter(|_| goes_on)
    }

    /// Ends the chain of a message whose attempts are counted from zero again, so that its record no longer tells it.
    pub(crate) fn end_chain(&mut self, at: At) {
        // A recurring message is in no chain.
        if self.messages.is_named(at) && self.messages.recurring(at).is_none() {
            let origin = self.origin(at);
            self.messages.set_origin(at, Origin { chain: None, ..origin });
        }
    }

    /// Where a message comes from.
    pub(crate) fn origin(&self, at: At) -> Origin {
        self.messages.bytes(at).origin.unwrap_or_else(|| Origin::told_by(self.messages.sequence(at)))
    }
}

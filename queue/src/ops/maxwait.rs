//! Chains of replacements: `MAXWAIT` bounds how long replacements can postpone a message.

use super::{At, Queue, StateKind, UnixMs};
use crate::origin::Origin;

impl Queue {
    /// When the chain began that a replacement of this message continues, which is when its first message was pushed.
    /// `None` if a replacement begins another chain: the message was delivered, is dead, or is a recurring one.
    pub(crate) fn chain_of(&self, at: At, now: UnixMs) -> Option<UnixMs> {
        let record = self.messages.record(at);
        let goes_on = record.attempts == 0 && !record.recurring && record.state_at(now).kind() != StateKind::Dead;
        self.origin(at).chain.filter(|_| goes_on)
    }

    /// Ends the chain of a message whose attempts are reset to zero, because its record then no longer shows that it
    /// was delivered.
    pub(crate) fn end_chain(&mut self, at: At) {
        // A recurring message is in no chain.
        if self.messages.is_named(at) && self.messages.recurring(at).is_none() {
            let origin = self.origin(at);
            self.messages.set_origin(at, Origin { chain: None, ..origin });
        }
    }

    /// Where a message comes from.
    pub(crate) fn origin(&self, at: At) -> Origin {
        self.messages.bytes(at).origin.unwrap_or_else(|| Origin::derived_from(self.messages.sequence(at)))
    }
}

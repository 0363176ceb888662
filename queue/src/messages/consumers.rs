//! The consumers whose names deliveries bear.

use super::Messages;
use crate::id::{ConsumerId, Receipt};
use crate::store::At;

impl Messages {
    /// Whether a delivery bears the name of a consumer.
    #[inline]
    pub fn has_consumers(&self) -> bool {
        self.consumers().is_some()
    }

    /// The consumer of the last delivery of a message.
    #[inline]
    pub fn consumer(&self, at: At) -> Option<ConsumerId> {
        self.consumers()?;
        self.store.consumer(at)
    }

    /// The name of the consumer of the last delivery of a message.
    pub fn consumer_name(&self, at: At) -> Option<&[u8]> {
        Some(self.consumers()?.name(self.store.consumer(at)?))
    }

    /// Notes the name of the consumer of the last delivery of a message; `None` if it has none. The view must not count
    /// the delivery for a consumer.
    #[cold]
    pub fn set_consumer(&mut self, at: At, name: Option<&[u8]>) {
        let before = self.store.consumer(at);
        if before.is_none() && name.is_none() {
            return;
        }
        let consumer = name.map(|name| self.store.consumers_mut().join(name));
        self.store.set_consumer(at, consumer);
        if let Some(before) = before {
            self.store.consumers_mut().leave(before);
            self.store.free_consumers();
        }
    }

    /// Forgets the consumer of a message that is given another receipt, or none.
    #[cold]
    pub(super) fn end_delivery(&mut self, at: At, receipt: Option<Receipt>) {
        if self.store.consumer(at).is_some() && self.store.record(at).receipt() != receipt {
            self.set_consumer(at, None);
        }
    }

    /// Counts the deliveries of each consumer again. O(n).
    pub(super) fn recount_consumers(&mut self) {
        if self.has_consumers() {
            let all: Vec<_> = self.store.all_with_consumers().map(|(_, consumer)| consumer).collect();
            self.store.consumers_mut().recount(all.into_iter());
            self.store.free_consumers();
        }
    }

    /// Checks that only deliveries bear names, and that these are counted.
    pub(super) fn check_consumers(&self) -> Result<(), &'static str> {
        if self.store.all_with_consumers().any(|(at, _)| self.store.record(at).receipt().is_none()) {
            return Err("a message that was not delivered has a consumer");
        }
        let all = self.store.all_with_consumers().map(|(_, consumer)| consumer);
        match self.consumers() {
            Some(consumers) => consumers.check(all),
            None if all.count() > 0 => Err("a delivery bears a name that is not there"),
            None => Ok(()),
        }
    }
}

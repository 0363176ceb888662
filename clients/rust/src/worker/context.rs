//! The context of a handler.

use super::lease::Lease;
use super::loss::Loss;
use super::stop::Stop;
use crate::names::{MessageId, QueueName, Receipt};
use crate::queue::Meta;
use std::fmt;
use std::sync::Arc;

/// The delivery that a handler works on.
#[derive(Clone)]
pub struct Context {
    pub(super) queue: QueueName,
    pub(super) meta: Option<Meta>,
    pub(super) lease: Arc<Lease>,
    pub(super) stop: Arc<Stop>,
}

impl Context {
    /// The name of the queue.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// The id of the message: work that must not be done twice can be keyed by it.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.lease.id
    }

    /// 1 on the first delivery of the message.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.lease.attempt
    }

    /// The headers of the message, what was stored of earlier work on it, and more, if the pool asks for it:
    /// [`Pool::meta`](crate::Pool::meta).
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        self.meta.as_ref()
    }

    /// Stores how far the work has come, in case it does not end: the next consumer of the message finds these bytes,
    /// up to 65536, in [`Meta::checkpoint`](crate::Meta::checkpoint). The last ones count. They are sent with the next
    /// extension of the lease, at the latest after a quarter of it, or with the failure of the handler.
    pub fn checkpoint(&self, bytes: impl AsRef<[u8]>) {
        self.lease.set_checkpoint(bytes.as_ref().to_vec());
    }

    /// Names this delivery.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.lease.receipt
    }

    /// Whether the lease is lost, because the message was cancelled or replaced, or the lease could not be extended:
    /// another worker may have the message, or get it soon. Long work should check this and stop; what it returns has
    /// no effect.
    ///
    /// Turns true a little before the end of a lease that could not be extended, and within milliseconds if the message
    /// was taken away and the user may subscribe to the queue's notices (`+subscribe`, and the channel `__dq@0__:` with
    /// the name of the queue); else when the lease is extended next.
    #[must_use]
    pub fn lease_lost(&self) -> bool {
        self.loss().is_some()
    }

    /// Why the lease is lost; `None` as long as it is not.
    #[must_use]
    pub fn loss(&self) -> Option<Loss> {
        self.lease.loss_for_handler()
    }

    /// Waits until the lease is lost, and returns why. By default a handler's future is dropped then, so only one that
    /// [goes on](crate::Pool::finish_when_lost) sees the end of this.
    pub async fn cancelled(&self) -> Loss {
        self.lease.lost.cancelled().await;
        self.loss().unwrap_or(Loss::Ended)
    }

    /// Whether the worker is stopping. Work that takes longer than the grace period should stop and fail.
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.stop.is_set()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Context");
        fields
            .field("queue", &self.queue)
            .field("id", self.id())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}

//! Why a lease is lost.

use crate::reply::words;

words! {
    /// Why a lease is lost. The words are those in the notices of the server, and three that no notice has: `lease`,
    /// `time limit` and `stopping`.
    #[non_exhaustive]
    Loss {
        /// The lease has ended, or it could not be extended, or the reason is not known.
        Ended = "lease",
        /// The message was cancelled.
        Cancelled = "cancelled",
        /// The message was replaced by another one.
        Replaced = "replaced",
        /// The message was buried.
        Buried = "buried",
        /// The message was purged.
        Purged = "purged",
        /// The message was released, for another worker.
        Released = "released",
        /// The handler runs for longer than [`Pool::time_limit`](crate::Pool::time_limit), and the message was given
        /// back as failed.
        TimeLimit = "time limit",
        /// The worker stops, the grace period is over, and the message was given back without counting as an attempt.
        Stopping = "stopping",
    }
}

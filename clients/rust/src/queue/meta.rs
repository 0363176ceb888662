//! What a delivery tells of its message besides the payload.

use super::headers::Headers;
use crate::reply::reply;
use std::time::SystemTime;

reply! {
    /// What a pop that asks for it tells of each message besides its payload.
    #[derive(Clone, PartialEq, Eq, Debug)]
    Meta {
        /// When it was pushed.
        pub created: SystemTime = "created",
        /// When it was due.
        pub due: SystemTime = "due",
        /// The end of the lease, unless it was popped without one.
        pub deadline: Option<SystemTime> = "deadline",
        /// Among ready messages, a higher priority is delivered first.
        pub priority: i8 = "priority",
        /// The group.
        pub group: Option<String> = "group",
        /// The batch.
        pub batch: Option<String> = "batch",
        /// The headers.
        pub headers: Headers = "headers",
        /// What a consumer has stored of its work with `Queue::checkpoint`.
        pub checkpoint: Option<Vec<u8>> = "checkpoint",
        /// The text of the last nack that had one.
        pub error: Option<String> = "error",
    }
}

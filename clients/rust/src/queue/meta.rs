//! What a delivery tells of its message besides the payload.

use super::headers::Headers;
use super::message::time;
use crate::reply::{self, Fields};
use crate::Error;
use redis::Value;
use std::time::SystemTime;

/// What a pop that asks for it tells of each message besides its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Meta {
    /// When it was pushed.
    pub created: SystemTime,
    /// When it was due.
    pub due: SystemTime,
    /// The end of the lease, unless it was popped without one.
    pub deadline: Option<SystemTime>,
    /// Among ready messages, a higher priority is delivered first.
    pub priority: i8,
    /// The group.
    pub group: Option<String>,
    /// The batch.
    pub batch: Option<String>,
    /// The headers.
    pub headers: Headers,
    /// What a consumer has stored of its work with [`Queue::checkpoint`](super::Queue::checkpoint).
    pub checkpoint: Option<Vec<u8>>,
    /// The text of the last nack that had one.
    pub error: Option<String>,
}

impl Meta {
    pub(super) fn read(value: Value) -> Result<Meta, Error> {
        let mut fields = Fields::from(value)?;
        let headers = Headers::read(fields.take("headers"))?;
        let checkpoint = fields.take("checkpoint").map(reply::bytes).transpose()?;
        Ok(Meta {
            created: time(fields.int("created")?),
            due: time(fields.int("due")?),
            deadline: fields.maybe_int("deadline")?.map(time),
            priority: i8::try_from(fields.maybe_int("priority")?.unwrap_or(0)).unwrap_or(0),
            group: fields.maybe_text("group")?,
            batch: fields.maybe_text("batch")?,
            headers,
            checkpoint,
            error: fields.maybe_text("error")?,
        })
    }
}

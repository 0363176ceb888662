//! Pausing what a queue delivers, what it accepts, or both.

use super::Queue;
use crate::connect::Sent;
use crate::mode::Mode;
use crate::request::millis;
use std::time::Duration;

/// What a pause suspends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Deliveries.
    Out,
    /// New messages, which are refused with [`Error::QueueClosed`](crate::Error::QueueClosed).
    In,
    /// Both.
    All,
}

impl Flow {
    fn as_str(self) -> &'static str {
        match self {
            Flow::Out => "OUT",
            Flow::In => "IN",
            Flow::All => "ALL",
        }
    }
}

impl<T: 'static, M: Mode> Queue<T, M> {
    /// Suspends delivery, for a time or until [`Queue::resume`].
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
    pub fn pause(&self, time: Option<Duration>) -> Sent<M, ()> {
        self.pause_flow(Flow::Out, time)
    }

    /// Suspends deliveries, new messages, or both, for a time or until [`Queue::resume_flow`].
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
    pub fn pause_flow(&self, flow: Flow, time: Option<Duration>) -> Sent<M, ()> {
        self.tell(self.command("DQ.PAUSE").word(flow.as_str()).maybe("FOR", time.map(millis)))
    }

    /// Resumes deliveries, and accepts new messages again.
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
    pub fn resume(&self) -> Sent<M, ()> {
        self.tell(self.command("DQ.RESUME"))
    }

    /// Resumes deliveries, new messages, or both.
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
    pub fn resume_flow(&self, flow: Flow) -> Sent<M, ()> {
        self.tell(self.command("DQ.RESUME").word(flow.as_str()))
    }
}

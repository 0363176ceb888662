//! Pausing what a queue delivers, what it accepts, or both.

use super::command::millis;
use super::Queue;
use crate::Error;
use std::time::Duration;

/// What a pause suspends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Deliveries.
    Out,
    /// New messages, which are refused with [`Error::QueueClosed`].
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

impl<T> Queue<T> {
    /// Suspends delivery, for a time or until [`Queue::resume`].
    ///
    /// # Errors
    /// [`Error::NoQueue`] if it does not exist.
    pub fn pause(&self, time: Option<Duration>) -> Result<(), Error> {
        self.pause_flow(Flow::Out, time)
    }

    /// Suspends deliveries, new messages, or both, for a time or until [`Queue::resume_flow`].
    ///
    /// # Errors
    /// [`Error::NoQueue`] if it does not exist.
    pub fn pause_flow(&self, flow: Flow, time: Option<Duration>) -> Result<(), Error> {
        let mut command = self.command("DQ.PAUSE");
        command.word(flow.as_str());
        command.maybe("FOR", time.map(millis));
        self.harmless(&command).map(drop)
    }

    /// Resumes deliveries, and accepts new messages again.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if it does not exist.
    pub fn resume(&self) -> Result<(), Error> {
        self.harmless(&self.command("DQ.RESUME")).map(drop)
    }

    /// Resumes deliveries, new messages, or both.
    ///
    /// # Errors
    /// [`Error::NoQueue`] if it does not exist.
    pub fn resume_flow(&self, flow: Flow) -> Result<(), Error> {
        let mut command = self.command("DQ.RESUME");
        command.word(flow.as_str());
        self.harmless(&command).map(drop)
    }
}

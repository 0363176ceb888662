//! What decides over a whole queue: its settings, its pauses, and the release of what a consumer holds.

use super::{Queue, Settings};
use crate::connect::Sent;
use crate::mode::Mode;
use crate::reply::words;
use crate::request::Request;
use crate::time::millis;
use std::time::Duration;

words! {
    /// What a pause suspends.
    Flow {
        /// Deliveries.
        Out = "OUT",
        /// New messages, which are refused with [`Error::QueueClosed`](crate::Error::QueueClosed).
        In = "IN",
        /// Both.
        All = "ALL",
    }
}

impl<T: 'static, M: Mode> Queue<T, M> {
    /// Creates the queue with these settings, or changes them if it exists. Processes call it at their start.
    ///
    /// # Errors
    /// [`Error::Server`](crate::Error::Server) if a setting is out of its range.
    pub fn declare(&self, settings: &Settings) -> Sent<M, ()> {
        let command = settings.write(self.command("DQ.ALTER").word("MKQUEUE"));
        self.client.send(Request::harmless(command))
    }

    /// Creates the queue with these settings.
    ///
    /// # Errors
    /// [`Error::Server`](crate::Error::Server) if it exists with others, or a setting is out of its range.
    pub fn create(&self, settings: &Settings) -> Sent<M, ()> {
        let command = settings.write(self.command("DQ.CREATE"));
        self.client.send(Request::harmless(command))
    }

    /// Changes settings.
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist; [`Error::Server`](crate::Error::Server) if a
    /// setting is out of its range.
    pub fn alter(&self, settings: &Settings) -> Sent<M, ()> {
        let command = settings.write(self.command("DQ.ALTER"));
        self.client.send(Request::harmless(command))
    }

    /// Suspends delivery, for a time or until [`Queue::resume`].
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
    pub fn pause(&self, time: Option<Duration>) -> Sent<M, ()> {
        let command = self.command("DQ.PAUSE").maybe("FOR", time.map(millis));
        self.client.send(Request::harmless(command))
    }

    /// Suspends deliveries, new messages, or both, for a time or until [`Queue::resume_flow`].
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
    pub fn pause_flow(&self, flow: Flow, time: Option<Duration>) -> Sent<M, ()> {
        let command = self.command("DQ.PAUSE").word(flow.as_str()).maybe("FOR", time.map(millis));
        self.client.send(Request::harmless(command))
    }

    /// Resumes deliveries, and accepts new messages again.
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
    pub fn resume(&self) -> Sent<M, ()> {
        let command = self.command("DQ.RESUME");
        self.client.send(Request::harmless(command))
    }

    /// Resumes deliveries, new messages, or both.
    ///
    /// # Errors
    /// [`Error::NoQueue`](crate::Error::NoQueue) if it does not exist.
    pub fn resume_flow(&self, flow: Flow) -> Sent<M, ()> {
        let command = self.command("DQ.RESUME").word(flow.as_str());
        self.client.send(Request::harmless(command))
    }

    /// Takes from a consumer that is gone the messages that it holds, or the `count` oldest deliveries of them, as if
    /// their leases had just ended. Returns how many. Sent only once.
    pub fn release(&self, consumer: impl AsRef<[u8]>, count: Option<u32>) -> Sent<M, u64> {
        let command = self.command("DQ.RELEASE").word(consumer.as_ref()).maybe("COUNT", count);
        self.client.send(Request::once(command))
    }

    /// [`Queue::release`] without counting the attempts, for a consumer that was stopped before it could give them
    /// back.
    pub fn release_uncounted(&self, consumer: impl AsRef<[u8]>, count: Option<u32>) -> Sent<M, u64> {
        let command = self.command("DQ.RELEASE").word(consumer.as_ref()).maybe("COUNT", count).word("NOCOUNT");
        self.client.send(Request::once(command))
    }
}

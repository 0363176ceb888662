//! Events that a worker reports, to `tracing` and to the program.

use super::loss::Loss;
use super::shut_down::Stopped;
use crate::error::Error;
use crate::names::{MessageId, QueueName, Receipt};
use crate::queue::State;
use std::fmt;

/// What becomes of messages whose outcome the server has not accepted.
const UNREPORTED: &str = "which are delivered again when their leases expire";

/// Something that an operator may want to know. `Display` is a line for a log.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The worker has started. It may not have reached a server yet.
    Started {
        /// Its name, `host:pid:name`.
        consumer: &'a str,
        /// Its queues, and how many handlers run at a time for each, or for all queues of its pool together.
        queues: &'a [(QueueName, usize)],
    },
    /// Messages cannot be popped: reported once for each outage.
    Interrupted {
        /// The queue.
        queue: &'a QueueName,
        /// Why.
        error: &'a Error,
    },
    /// Messages can be popped again.
    Resumed {
        /// The queue.
        queue: &'a QueueName,
    },
    /// A handler failed, or panicked, or the payload could not be decoded, and the message was given back.
    Failed {
        /// The queue.
        queue: &'a QueueName,
        /// The message.
        id: &'a MessageId,
        /// How often it was delivered.
        attempt: u32,
        /// The error.
        error: &'a str,
        /// The new state of the message; `None` if the server did not say: the lease was lost, as another event
        /// reports, or the answer to the first report was lost.
        state: Option<State>,
    },
    /// A message was lost while its handler ran, or its lease was over before its outcome could be reported. It may
    /// still be acknowledged, if nobody takes it meanwhile.
    LeaseLost {
        /// The queue.
        queue: &'a QueueName,
        /// The message.
        id: &'a MessageId,
        /// Names the delivery.
        receipt: &'a Receipt,
        /// Why.
        reason: Loss,
    },
    /// A handler has done its work, and its result cannot be kept: the message was completed without one. Reported once
    /// for each queue.
    ResultLost {
        /// The queue.
        queue: &'a QueueName,
        /// The message.
        id: &'a MessageId,
        /// Why.
        error: &'a Error,
    },
    /// The server refused to acknowledge, give back or extend: the messages are delivered again when their leases
    /// expire.
    Refused {
        /// The queue.
        queue: &'a QueueName,
        /// Why.
        error: &'a Error,
    },
    /// The worker has stopped.
    Stopped {
        /// Its name, `host:pid:name`.
        consumer: &'a str,
        /// How.
        stopped: &'a Stopped,
    },
}

impl Event<'_> {
    pub(super) fn trace(&self) {
        match self {
            Event::Started { consumer, queues } => {
                tracing::info!(consumer, queues = sizes(queues), "the worker has started");
            }
            Event::Interrupted { queue, error } => tracing::warn!(%queue, %error, "cannot pop"),
            Event::Resumed { queue } => tracing::info!(%queue, "can pop again"),
            Event::Failed { queue, id, attempt, error, state } => {
                let state = state.map(State::as_str);
                tracing::warn!(%queue, %id, attempt, error, state, "a message failed");
            }
            Event::LeaseLost { queue, id, reason, .. } => {
                tracing::warn!(%queue, %id, reason = reason.as_str(), "a message was lost while its handler ran");
            }
            Event::ResultLost { queue, id, error } => tracing::warn!(%queue, %id, %error, "a result cannot be kept"),
            Event::Refused { queue, error } => tracing::error!(%queue, %error, "the server refused an answer"),
            Event::Stopped { consumer, stopped: Stopped { given_back, unreported: 0, .. } } => {
                tracing::info!(consumer, given_back, "the worker has stopped");
            }
            Event::Stopped { consumer, stopped: Stopped { given_back, unreported, .. } } => {
                tracing::error!(consumer, given_back, unreported, "the worker has stopped without reporting all");
            }
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Started { consumer, queues } => write!(f, "{} works on {}", shown(consumer), sizes(queues)),
            Event::Interrupted { queue, error } => write!(f, "{queue}: cannot pop: {error}"),
            Event::Resumed { queue } => write!(f, "{queue}: can pop again"),
            Event::Failed { queue, id, attempt, error, state } => {
                write!(f, "{queue}: {id} failed at attempt {attempt}: {error}")?;
                state.map_or(Ok(()), |state| write!(f, "; now {}", state.as_str()))
            }
            Event::LeaseLost { queue, receipt, reason, .. } => {
                write!(f, "{queue}: {receipt} was lost while its handler ran: {}", reason.as_str())
            }
            Event::ResultLost { queue, id, error } => write!(f, "{queue}: {id} has no result: {error}"),
            Event::Refused { queue, error } => write!(f, "{queue}: the server refused an answer: {error}"),
            Event::Stopped { consumer, stopped } => {
                write!(f, "{} has stopped; {} messages went back", shown(consumer), stopped.given_back)?;
                match stopped.unreported {
                    0 => Ok(()),
                    count => write!(f, "; it could not report {count} messages, {UNREPORTED}"),
                }
            }
        }
    }
}

/// A consumer without the colon that its name ends with if its connections have none.
fn shown(consumer: &str) -> &str {
    consumer.trim_end_matches(':')
}

/// `mail (64 at a time), reports (2 at a time)`.
fn sizes(queues: &[(QueueName, usize)]) -> String {
    let sizes: Vec<String> = queues.iter().map(|(queue, number)| format!("{queue} ({number} at a time)")).collect();
    sizes.join(", ")
}

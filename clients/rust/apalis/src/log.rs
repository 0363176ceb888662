//! What a storage logs: to `tracing`, or to standard error if the program has no subscriber.

use dq_client::{Error, MessageId, QueueName, Receipt, State};
use std::fmt;
use std::io::{self, Write};

/// Something that an operator may want to know. `Display` is a line for a log.
pub(crate) enum Event<'a> {
    /// Tasks cannot be fetched: logged once for each outage.
    Interrupted {
        queue: &'a QueueName,
        error: &'a Error,
    },
    /// A task failed, and the server has taken it back.
    Failed {
        queue: &'a QueueName,
        receipt: &'a Receipt,
        attempt: usize,
        error: &'a str,
        state: Option<State>,
    },
    Undecodable {
        queue: &'a QueueName,
        id: &'a MessageId,
        error: &'a str,
    },
    NotGivenBack {
        queue: &'a QueueName,
        id: &'a MessageId,
        error: &'a Error,
    },
    /// The server cannot take an outcome now.
    NotReported {
        queue: &'a QueueName,
        receipt: &'a Receipt,
        error: &'a Error,
    },
    /// The lease was over before the server took the outcome.
    TooLate {
        queue: &'a QueueName,
        receipt: &'a Receipt,
    },
    ResultLost {
        queue: &'a QueueName,
        error: &'a Error,
    },
    NotExtended {
        queue: &'a QueueName,
        error: &'a Error,
    },
}

impl Event<'_> {
    pub fn log(&self) {
        if tracing::dispatcher::has_been_set() {
            self.trace();
        } else {
            // A program that has chosen no log is not to be silent about failures.
            let _ = writeln!(io::stderr(), "dq: {self}");
        }
    }

    fn trace(&self) {
        match self {
            Event::Interrupted { queue, error } => tracing::warn!(%queue, %error, "cannot pop"),
            Event::Failed { queue, receipt, attempt, error, state } => {
                let state = state.map(State::as_str);
                tracing::warn!(%queue, %receipt, attempt, error, state, "a task failed");
            }
            Event::Undecodable { queue, id, error } => tracing::warn!(%queue, %id, error, "a task cannot be decoded"),
            Event::NotGivenBack { queue, id, error } => {
                tracing::warn!(%queue, %id, %error, "a task cannot be given back");
            }
            Event::NotReported { queue, receipt, error } => {
                tracing::warn!(%queue, %receipt, %error, "an outcome cannot be reported");
            }
            Event::TooLate { queue, receipt } => tracing::warn!(%queue, %receipt, "{TOO_LATE}"),
            Event::ResultLost { queue, error } => tracing::warn!(%queue, %error, "a result cannot be kept"),
            Event::NotExtended { queue, error } => tracing::warn!(%queue, %error, "leases cannot be extended"),
        }
    }
}

const TOO_LATE: &str = "the outcome of a task could not be reported before its lease was over";

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Interrupted { queue, error } => write!(f, "{queue}: cannot pop: {error}"),
            Event::Failed { queue, receipt, attempt, error, state } => {
                write!(f, "{queue}: {receipt} failed at attempt {attempt}: {error}")?;
                state.map_or(Ok(()), |state| write!(f, "; now {}", state.as_str()))
            }
            Event::Undecodable { queue, id, error } => write!(f, "{queue}: {id} failed: {error}"),
            Event::NotGivenBack { queue, id, error } => write!(f, "{queue}: {id} cannot be given back: {error}"),
            Event::NotReported { queue, receipt, error } => {
                write!(f, "{queue}: the outcome of {receipt} cannot be reported: {error}")
            }
            Event::TooLate { queue, receipt } => write!(f, "{queue}: {receipt}: {TOO_LATE}"),
            Event::ResultLost { queue, error } => write!(f, "{queue}: a result cannot be kept: {error}"),
            Event::NotExtended { queue, error } => write!(f, "{queue}: leases cannot be extended: {error}"),
        }
    }
}

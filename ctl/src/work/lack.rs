//! Why a message was not handled: it failed, or the worker lacks what it needs for any message.

use dq_client::Failure;
use rustix::io::Errno;
use std::io;

/// Why a message was not handled.
pub enum NotDone {
    Failed(Failure),
    /// The system refused what every handler needs, such as a process or a file descriptor. That is not the message's
    /// fault.
    Lacking(String),
}

impl From<Failure> for NotDone {
    fn from(failure: Failure) -> NotDone {
        NotDone::Failed(failure)
    }
}

/// Whether the system has no more of something for this worker.
pub fn is_lack(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    error.is_some_and(|error| matches!(error, Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM))
}

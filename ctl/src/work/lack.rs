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

/// Whether the system has run out of a resource for this worker.
pub fn is_lack(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    error.is_some_and(|error| matches!(error, Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM))
}

/// Whether a program cannot be run, whatever its message is: it was removed, is being replaced, or is not executable.
/// Arguments that are too long are the message's fault.
pub fn is_of_program(error: &io::Error) -> bool {
    let Some(error) = Errno::from_io_error(error) else { return false };
    let of_file = [Errno::NOENT, Errno::NOTDIR, Errno::ISDIR, Errno::LOOP, Errno::IO, Errno::STALE];
    let of_program = [Errno::ACCESS, Errno::PERM, Errno::NOEXEC, Errno::TXTBSY, Errno::LIBBAD];
    of_file.contains(&error) || of_program.contains(&error)
}

#[cfg(test)]
mod tests {
    use super::{is_lack, is_of_program, Errno};
    use std::io;

    #[test]
    fn what_is_too_long_is_the_fault_of_a_message() {
        let kinds = |error: Errno| {
            let error = io::Error::from_raw_os_error(error.raw_os_error());
            (is_lack(&error), is_of_program(&error))
        };
        assert_eq!(kinds(Errno::TOOBIG), (false, false));
        assert_eq!(kinds(Errno::MFILE), (true, false));
        assert_eq!(kinds(Errno::TXTBSY), (false, true));
    }
}

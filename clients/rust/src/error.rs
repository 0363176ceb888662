//! Errors, distinguished by what a program can do about them.

use crate::connection_error::{ConnectionError, ConnectionErrorKind};
use crate::names::MessageId;
use std::fmt;
use std::sync::Arc;

type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// An error of a queue, of its server, or of the connection to it.
///
/// The texts of servers are kept as they were sent.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no room under the queue's `MAXLEN`. Nothing was pushed.
    #[error("{0}")]
    QueueFull(String),
    /// The queue is closed for pushes, by `DQ.PAUSE … IN`. Nothing was pushed.
    #[error("{0}")]
    QueueClosed(String),
    /// The queue holds a dead message of this id: redrive it, cancel it, or push with `replace`.
    #[error("{0}")]
    DeadId(String),
    /// A payload is larger than the queue's `MAXPAYLOAD`, or a result than the 65,536 bytes that a queue keeps. Nothing
    /// was changed.
    #[error("{0}")]
    TooLarge(String),
    /// The server has reached `maxmemory`, and still does after the command was repeated. Nothing was changed.
    #[error("{0}")]
    OutOfMemory(String),
    /// The user lacks the right to the command or to the key.
    #[error("{0}")]
    NoPermission(String),
    /// The server refused the user name or the password, or wants one.
    #[error("{0}")]
    Authentication(String),
    /// A certificate of TLS is missing or not accepted, by the client or by the server. The text says what to give.
    #[error("TLS: {0}")]
    Certificate(String),
    /// The key holds a value that is not a queue.
    #[error("{0}")]
    WrongType(String),
    /// There is no queue of this name, and the command does not create one.
    #[error("{0}")]
    NoQueue(String),
    /// The server does not have the module `dq`.
    #[error("the server has not loaded the module dq: {0}")]
    NoModule(String),
    /// The server cannot execute the command now, but may be able to later: it is loading, a replica, without its
    /// master, busy, or part of a cluster that is down. The command was not executed.
    #[error("{0}")]
    Unavailable(String),
    /// Any other error that the server answered. The command was not executed.
    #[error("{0}")]
    Server(String),
    /// No connection could be made. The command was not executed.
    #[error("cannot connect: {0}")]
    Connect(ConnectionError),
    /// The connection was lost, or the reply did not come in time, after the command was sent: it may have been
    /// executed.
    #[error("the connection was lost: {0}")]
    Lost(ConnectionError),
    /// The URL, or an option of the connection, cannot be understood.
    #[error("{0}")]
    Config(String),
    /// The message that was waited for is dead.
    #[error("the message {id} is dead ({reason}){}", after_colon(.error.as_deref()))]
    Failed {
        /// Its id.
        id: MessageId,
        /// `rejected`, `expired` or `retries`.
        reason: String,
        /// The text of the last failure, if there was one.
        error: Option<String>,
    },
    /// The message that was waited for was not completed in time. It may still be: wait again, or cancel it.
    #[error("the message {0} was not completed in time")]
    TimedOut(MessageId),
    /// The message that was waited for is gone: it was cancelled, or its result was not kept for long enough.
    #[error("the message {0} is gone: it was cancelled, or its result was not kept for long enough")]
    Gone(MessageId),
    /// A payload or a result could not be encoded.
    #[error("the value cannot be encoded: {0}")]
    Encode(#[source] Cause),
    /// A payload or a result could not be decoded as the type that was asked for.
    #[error("the value cannot be decoded: {0}")]
    Decode(#[source] Cause),
    /// The server answered something that this client does not understand.
    #[error("unexpected reply: {0}")]
    Protocol(String),
    /// The operating system refused something that a worker needs, such as a thread.
    #[error("{0}")]
    System(#[source] Arc<std::io::Error>),
}

/// Its text: a `main` that returns an error, and `unwrap`, print that.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The end of a text that may have a detail.
fn after_colon(detail: Option<&str>) -> String {
    detail.map(|detail| format!(": {detail}")).unwrap_or_default()
}

impl Error {
    /// Whether the same command may succeed if it is sent again later.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Connect(error) => error.kind() != ConnectionErrorKind::NoTls,
            other => matches!(other, Error::Unavailable(_) | Error::Lost(_) | Error::OutOfMemory(_)),
        }
    }

    /// Whether it is unknown if the server executed the command.
    pub fn may_have_been_executed(&self) -> bool {
        matches!(self, Error::Lost(_))
    }

    /// Whether a node of a cluster has said that another one has the key.
    pub(crate) fn is_redirection(&self) -> bool {
        matches!(self, Error::Unavailable(text) if text.starts_with("MOVED ") || text.starts_with("ASK "))
    }

    pub(crate) fn decode(text: impl Into<String>) -> Error {
        Error::Decode(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(text.into())))
    }

    /// The error of a server's reply, from its code and the text after it.
    pub(crate) fn from_reply(code: &str, detail: &str) -> Error {
        let text = if detail.is_empty() { code.to_owned() } else { format!("{code} {detail}") };
        match code {
            "QUEUEFULL" => Error::QueueFull(text),
            "QUEUECLOSED" => Error::QueueClosed(text),
            "DEADID" => Error::DeadId(text),
            "TOOLARGE" => Error::TooLarge(text),
            "OOM" => Error::OutOfMemory(text),
            "NOPERM" => Error::NoPermission(text),
            "NOAUTH" | "WRONGPASS" => Error::Authentication(text),
            "WRONGTYPE" => Error::WrongType(text),
            "READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "MISCONF" | "NOREPLICAS" | "BUSY"
            | "UNBLOCKED" | "MOVED" | "ASK" => Error::Unavailable(text),
            _ if detail.starts_with("no such key") => Error::NoQueue(text),
            _ if detail.starts_with("RESULT must be at most") => Error::TooLarge(text),
            // The server repeats the arguments, among them the payload.
            _ if is_unknown_command(detail) => {
                Error::NoModule(text.split(", with args").next().unwrap_or_default().to_owned())
            }
            _ => Error::Server(text),
        }
    }
}

fn is_unknown_command(detail: &str) -> bool {
    detail.strip_prefix("unknown command").is_some_and(|rest| {
        rest.trim_start_matches([' ', '\'', '`']).get(..3).is_some_and(|name| name.eq_ignore_ascii_case("dq."))
    })
}

impl From<std::io::Error> for Error {
    fn from(cause: std::io::Error) -> Error {
        Error::System(Arc::new(cause))
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionError, ConnectionErrorKind, Error};

    #[test]
    fn replies_are_told_apart_by_their_code() {
        assert!(matches!(Error::from_reply("QUEUEFULL", "queue holds 1 message"), Error::QueueFull(_)));
        assert!(matches!(Error::from_reply("READONLY", "You can't write"), Error::Unavailable(_)));
        assert!(matches!(Error::from_reply("ERR", "no such key"), Error::NoQueue(_)));
        assert!(matches!(Error::from_reply("ERR", "RESULT must be at most 65536 bytes"), Error::TooLarge(_)));
        let missing = Error::from_reply("ERR", "unknown command 'DQ.PUSH', with args beginning with: 'q' 'secret'");
        assert!(matches!(missing, Error::NoModule(_)) && !missing.to_string().contains("secret"), "{missing}");
        // What `main` prints.
        assert_eq!(format!("{missing:?}"), "the server has not loaded the module dq: ERR unknown command 'DQ.PUSH'");
        assert!(matches!(Error::from_reply("ERR", "unknown command 'FOO', with args"), Error::Server(_)));
        assert_eq!(Error::from_reply("ERR", "syntax error").to_string(), "ERR syntax error");
    }

    #[test]
    fn only_a_lost_connection_leaves_it_open_what_happened() {
        let error = || ConnectionError::new(ConnectionErrorKind::Closed, "h:1", "broken pipe");
        assert!(Error::Lost(error()).may_have_been_executed());
        assert!(!Error::Connect(error()).may_have_been_executed());
        assert!(!Error::from_reply("LOADING", "").may_have_been_executed());
        assert!(Error::from_reply("LOADING", "").is_transient());
    }
}

//! Why a connection to a server could not be made, or was lost.

use std::fmt::{self, Display};

/// Why a connection to a server could not be made, or was lost.
///
/// Its text names the server, what happened, and the other scheme of the URL if only one side seems to speak TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionError {
    kind: ConnectionErrorKind,
    server: String,
    reason: String,
}

/// The kind of a [`ConnectionError`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ConnectionErrorKind {
    /// No server accepts connections at the address, or the socket does not exist.
    Refused,
    /// The name of the host has no address.
    UnknownHost,
    /// No connection was made in time.
    TimedOut,
    /// No connection with TLS was made in time: the server cannot be reached, or does not speak TLS on this port.
    TlsTimedOut,
    /// The server does not speak TLS on this port.
    NoTls,
    /// The server closed the connection before it answered anything, as a server does that expects TLS.
    MayExpectTls,
    /// The server accepts connections, but did not reply in time.
    NoReply,
    /// The server has reached its `maxclients`.
    TooManyClients,
    /// The server is in its protected mode, and refuses clients of other machines.
    Protected,
    /// Sentinels have named another master than this server.
    NotMaster,
    /// The connection was closed, or failed in another way.
    Closed,
    /// Anything else, in which no connection was made.
    Other,
}

impl ConnectionError {
    /// An error with this kind: what happened at this server.
    pub fn new(kind: ConnectionErrorKind, server: impl Display, reason: impl Display) -> ConnectionError {
        ConnectionError { kind, server: server.to_string(), reason: reason.to_string() }
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ConnectionErrorKind {
        self.kind
    }

    /// The server, as `host:port` or as the path of its socket.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What happened, in the words of the server or of the system if these are known.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The server did not reply in time.
    pub(crate) fn no_reply(server: impl Display) -> ConnectionError {
        ConnectionError::new(ConnectionErrorKind::NoReply, server, "no reply in time")
    }

    /// The connection works, but is given up.
    pub(crate) fn not_master(server: impl Display) -> ConnectionError {
        ConnectionError::new(ConnectionErrorKind::NotMaster, server, "another server is the master now")
    }
}

impl ConnectionErrorKind {
    /// The scheme that the URL may have to have instead; empty if that has nothing to do with it.
    fn hint(self) -> &'static str {
        match self {
            ConnectionErrorKind::NoTls => ", and so expects redis://",
            ConnectionErrorKind::TlsTimedOut => "; the server may not speak TLS on this port, and so expect redis://",
            ConnectionErrorKind::MayExpectTls => "; the server may expect TLS, and so rediss://",
            ConnectionErrorKind::Refused | ConnectionErrorKind::UnknownHost | ConnectionErrorKind::TimedOut => "",
            ConnectionErrorKind::NoReply | ConnectionErrorKind::TooManyClients | ConnectionErrorKind::Protected => "",
            ConnectionErrorKind::NotMaster | ConnectionErrorKind::Closed | ConnectionErrorKind::Other => "",
        }
    }
}

impl Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.server, self.reason, self.kind.hint())
    }
}

impl std::error::Error for ConnectionError {}

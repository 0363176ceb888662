//! Errors of the client with advice, in which commands name the queue, the message or the server, so that they can be
//! pasted into a shell.

use dq_client::{ConnectionError, ConnectionErrorKind, Error};
use std::fmt::Display;

/// Characters of a word that a shell takes as they are.
const PLAIN: &str = "_-.:/@%+=,{}";

/// The advice if nothing more is known of a server that cannot be reached.
const START: &str = "start the server, or name another one with --url or DQ_URL";

/// The code of the error that a payload is too large. For results and checkpoints there is no limit that could be
/// raised.
const PAYLOAD_TOO_LARGE: &str = "TOOLARGE ";

/// What advice names, as far as it is known.
#[derive(Debug, Default)]
pub struct Subject {
    pub queue: Option<String>,
    pub message: Option<String>,
    pub server: Option<String>,
}

impl Subject {
    /// The queue as a word of a shell.
    fn queue(&self) -> String {
        self.queue.as_deref().map_or_else(|| "QUEUE".to_owned(), quoted)
    }

    /// The id of the message as a word of a shell.
    fn message(&self) -> String {
        self.message.as_deref().map_or_else(|| "ID".to_owned(), quoted)
    }
}

/// An error, and what to do about it.
pub fn described(error: &Error, subject: &Subject) -> String {
    let queue = subject.queue();
    let advice = match error {
        Error::Connect(error) => return not_connected(error),
        Error::NoQueue(_) => {
            let which = subject.queue.as_ref().map_or_else(|| "such queue".to_owned(), |name| format!("queue {name}"));
            return format!("there is no {which}; it is created by its first push, and dqctl ls lists the queues");
        }
        Error::NoModule(_) => {
            let server = subject.server.as_ref().map_or_else(String::new, |server| format!(": {server}"));
            return format!(
                "the server has not loaded the module dq{server}; load it with loadmodule /PATH/libdq.so in its \
                 configuration, or name another server with --url"
            );
        }
        Error::DeadId(_) if subject.message.is_some() => {
            let id = subject.message();
            return format!(
                "DEADID message {id} is dead; dqctl redrive {queue} {id} makes it live again, dqctl cancel {queue} \
                 {id} removes it, and --replace takes its place"
            );
        }
        Error::Unavailable(_) => "try again later, or name the master with --url".to_owned(),
        Error::NoPermission(_) => "grant the user the command and the key with ACL SETUSER".to_owned(),
        Error::Certificate(_) => "see --cacert, --cert and --key".to_owned(),
        Error::Authentication(_) => "name the user and the password: --url redis://user:password@host".to_owned(),
        Error::WrongType(_) => "name a key that is a queue; dqctl ls lists them".to_owned(),
        Error::QueueFull(_) => format!(
            "push again when messages have been completed, or raise the limit with dqctl alter {queue} --maxlen N"
        ),
        Error::QueueClosed(_) => format!("push again later, or open it with dqctl resume {queue} in"),
        Error::TooLarge(text) if text.starts_with(PAYLOAD_TOO_LARGE) => {
            format!("push less, or raise the limit with dqctl alter {queue} --maxpayload BYTES")
        }
        Error::OutOfMemory(_) => "free memory, or raise maxmemory".to_owned(),
        Error::Server(text) => return text.strip_prefix("ERR ").unwrap_or(text).to_owned(),
        error => return error.to_string(),
    };
    format!("{error}; {advice}")
}

/// Why no connection could be made, and what to do about it.
fn not_connected(error: &ConnectionError) -> String {
    let (server, reason) = (error.server(), error.reason());
    let advice = match error.kind() {
        ConnectionErrorKind::NoReply => {
            return format!(
                "{server} accepts connections, but does not answer: it is stopped, or busy for seconds; look at its \
                 log, or name another server with --url or DQ_URL"
            );
        }
        // The text of the server has its own advice.
        ConnectionErrorKind::Protected => return format!("cannot connect: {error}"),
        ConnectionErrorKind::TooManyClients => {
            "close connections that are not needed (CLIENT LIST shows whose they are), or raise maxclients"
        }
        ConnectionErrorKind::MayExpectTls => {
            "if the server speaks TLS on this port, name it as rediss://; else start it, or name another one with \
             --url or DQ_URL"
        }
        ConnectionErrorKind::TlsTimedOut => {
            "if the server speaks no TLS on this port, name it as redis://; else start it, or name another one with \
             --url or DQ_URL"
        }
        ConnectionErrorKind::NoTls => "name it as redis://, or name another server with --url or DQ_URL",
        ConnectionErrorKind::UnknownHost => "correct the host in --url or DQ_URL",
        ConnectionErrorKind::Refused
        | ConnectionErrorKind::TimedOut
        | ConnectionErrorKind::NotMaster
        | ConnectionErrorKind::Closed
        | ConnectionErrorKind::Other => START,
        // One of a newer client.
        _ => START,
    };
    format!("cannot connect: {server}: {reason}; {advice}")
}

/// The program that talks to a server, with the options that name it: `redis-cli -h 127.0.0.1 -p 6379`.
pub fn redis_cli(server: &str) -> String {
    match server.rsplit_once(':') {
        Some((host, port)) => format!("redis-cli -h {} -p {port}", host.trim_matches(['[', ']'])),
        None => format!("redis-cli -s {}", quoted(server)),
    }
}

/// Writes a line to standard error.
pub fn print_note(text: impl Display) {
    print_error!("dqctl: {text}");
}

/// A name as a word of a shell.
pub fn quoted(name: &str) -> String {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || PLAIN.contains(c)) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{described, quoted, redis_cli, Subject};
    use dq_client::{ConnectionError, ConnectionErrorKind, Error};

    #[test]
    fn a_name_is_one_word_of_a_shell() {
        assert_eq!(quoted("svc:mail-1"), "svc:mail-1");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn commands_name_the_server() {
        for (server, options) in [("host:63", "-h host -p 63"), ("[::1]:63", "-h ::1 -p 63"), ("/a b", "-s '/a b'")] {
            assert_eq!(redis_cli(server), format!("redis-cli {options}"));
        }
    }

    #[test]
    fn both_mismatches_of_tls_name_the_other_scheme() {
        for (kind, scheme) in [
            (ConnectionErrorKind::MayExpectTls, "name it as rediss://"),
            (ConnectionErrorKind::TlsTimedOut, "name it as redis://"),
            (ConnectionErrorKind::NoTls, "name it as redis://"),
        ] {
            let error = Error::Connect(ConnectionError::new(kind, "h:1", "reset"));
            let text = described(&error, &Subject::default());
            assert!(text.starts_with("cannot connect: h:1: reset; ") && text.contains(scheme), "{text}");
        }
    }
}

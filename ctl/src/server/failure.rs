//! How a command ends: exit codes, and errors of one line that say what to do.

use crate::server::advice;
use crate::text::{messages, visible};
use clap::error::ErrorKind;
use dq_client::Error;
use std::fmt::{self, Display};
use std::io;
use std::process::ExitCode;

/// The exit code of [`Outcome::Nothing`].
const NOTHING: u8 = 1;
/// The command line cannot be understood.
const USAGE: u8 = 2;
/// The server refused, could not be reached, or the system refused something.
const FAILED: u8 = 3;

/// How the client says that a server has accepted a connection and nothing more.
const NO_REPLY: &str = ": no reply in time";

/// What a server says to a client that is one too many, and to one that is not of its machine, before it closes the
/// connection.
const TOO_MANY: &str = "max number of clients reached";
const PROTECTED: &str = ": DENIED ";

/// What the server says of a command that it does not know.
const UNKNOWN: &str = "unknown command";

/// What an error says that ended a script, which is one of rights.
const SCRIPT_ENDED: &str = " script: ";

/// What the server says of a value that is right on no queue.
const OF_VALUES: [&str; 9] = [
    "syntax error",
    " must ",
    " takes ",
    "CRON ",
    "unknown time zone",
    "a receipt is not an id",
    "looks like seconds",
    "would be after UNTIL",
    " is given twice",
];

/// The outcome of a command that the server answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Outcome {
    /// It did what was asked. Exit code 0.
    Done,
    /// Nothing was changed or found: a duplicate push, an id or a queue that does not exist, or a change of many
    /// messages that found none. Exit code 1.
    #[default]
    Nothing,
}

impl Outcome {
    pub fn code(self) -> ExitCode {
        match self {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::Nothing => ExitCode::from(NOTHING),
        }
    }

    /// Done if something was found.
    pub fn found(found: bool) -> Outcome {
        if found {
            Outcome::Done
        } else {
            Outcome::Nothing
        }
    }
}

/// Why a command could not be executed.
#[derive(Debug)]
pub struct Failure {
    /// Empty if there is nothing to report: the reader of the output has gone, or the text is the help.
    text: String,
    code: u8,
    /// The error of the client, if it is one.
    cause: Option<Error>,
}

impl Failure {
    fn new(text: impl Display, code: u8) -> Failure {
        Failure { text: text.to_string(), code, cause: None }
    }

    /// There is no such thing.
    pub fn nothing(text: impl Display) -> Failure {
        Failure::new(text, NOTHING)
    }

    /// The command line is wrong; the text says what would be right.
    pub fn usage(text: impl Display) -> Failure {
        Failure::new(text, USAGE)
    }

    /// Something that the command needs was refused.
    pub fn failed(text: impl Display) -> Failure {
        Failure::new(text, FAILED)
    }

    /// What `clap` says, in one line, with the command whose help explains it. Help and version are printed, which is
    /// not a failure.
    pub fn of_usage(error: &clap::Error, help: &str) -> Failure {
        if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            let _ = error.print();
            return Failure::new("", u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
        let text = error.to_string();
        let is_end = |part: &&str| part.starts_with("Usage:") || part.starts_with("For more information");
        // The advice to give an unknown option as a value is never what is meant.
        let is_meant = |part: &&str| !part.is_empty() && !part.starts_with("tip: to pass");
        let parts: Vec<&str> = text.lines().map(str::trim).take_while(|part| !is_end(part)).filter(is_meant).collect();
        let line = parts.join(" ");
        let line = line.trim_start_matches("error: ").trim_end_matches('.');
        let line = &line.replace("invalid digit found in string", "it must be a whole number");
        Failure::usage(format!("{line}{help}"))
    }

    /// The same failure, whose advice names the queue that the command was about.
    #[must_use]
    pub fn about(self, queue: Option<&str>) -> Failure {
        let Some(queue) = queue else { return self };
        let text = self.text.replacen("there is no such queue", &format!("there is no queue {queue}"), 1);
        Failure { text: advice::for_queue(&text, queue), ..self }
    }

    /// Whether a server has not loaded the module, and it is not said which.
    pub fn lacks_module(&self) -> bool {
        matches!(&self.cause, Some(Error::NoModule(text)) if text.contains(UNKNOWN))
    }

    /// The status with which the page answers.
    pub fn status(&self) -> u16 {
        match (self.code, &self.cause) {
            (NOTHING, _) => 404,
            (USAGE, _) => 400,
            (_, Some(Error::NoPermission(_))) => 403,
            (_, Some(Error::QueueFull(_) | Error::QueueClosed(_) | Error::TooLarge(_) | Error::OutOfMemory(_))) => 409,
            (_, Some(Error::WrongType(_) | Error::DeadId(_))) => 409,
            (_, Some(Error::NoModule(_))) => 501,
            _ if self.is_of_value() => 400,
            _ => 503,
        }
    }

    /// Whether the connection was lost while the server answered, perhaps because its reply was too long.
    pub fn is_cut(&self) -> bool {
        self.cause.as_ref().is_some_and(is_cut)
    }

    /// Whether the user may not execute the command.
    pub fn is_denied(&self) -> bool {
        matches!(self.cause, Some(Error::NoPermission(_)))
    }

    /// Whether the key is none of a queue, or the user may not use it.
    pub fn is_of_key(&self) -> bool {
        matches!(self.cause, Some(Error::WrongType(_) | Error::NoPermission(_)))
    }

    /// Whether the server refused a value, which is wrong on any queue.
    fn is_of_value(&self) -> bool {
        matches!(&self.cause, Some(Error::Server(text)) if OF_VALUES.iter().any(|part| text.contains(part)))
    }

    /// Whether other queues would fail in the same way: the command line is wrong, or the server cannot be reached.
    pub fn is_of_any_queue(&self) -> bool {
        self.is_of_value() || self.code == USAGE || self.cause.as_ref().is_some_and(Error::is_transient)
    }

    /// The failure of a command whose values come from its command line: if the server refused one for what it is, the
    /// command line is wrong.
    #[must_use]
    pub fn of_command_line(self) -> Failure {
        let code = if self.is_of_value() { USAGE } else { self.code };
        Failure { code, ..self }
    }

    /// The failure of a command that changes something: if the connection was lost, it may have done so.
    #[must_use]
    pub fn of_write(mut self) -> Failure {
        if matches!(self.cause, Some(Error::Lost(_))) {
            self.text.push_str("; it is unknown whether the server executed the command: look before you repeat it");
        }
        self
    }

    /// The failure of a command that changes nothing. It does not matter whether a server that does not answer has got
    /// it.
    pub fn of_read(error: Error) -> Failure {
        match error {
            Error::Lost(text) if text.ends_with(NO_REPLY) => Error::Connect(text).into(),
            other => other.into(),
        }
    }

    /// The failure of a script. Redis 7 does not say which right the script lacks, so `rights` does.
    pub fn of_script(error: Error, rights: &str) -> Failure {
        match error.to_string().split_once(SCRIPT_ENDED) {
            Some((why, _)) if !matches!(error, Error::WrongType(_)) => Failure::failed(format!("{why}; {rights}")),
            Some(_) | None => error.into(),
        }
    }

    /// The same failure, of something that is named.
    #[must_use]
    pub fn of(self, what: impl Display) -> Failure {
        Failure { text: format!("{what}: {}", self.text), ..self }
    }

    /// The same failure, after so many messages were changed, or more if answers were lost. `verb` says how, such as
    /// `redriven`.
    #[must_use]
    pub fn after_change(self, number: u64, verb: &str) -> Failure {
        let was = if number == 1 { "was" } else { "were" };
        let least = if matches!(self.cause, Some(Error::Lost(_))) { "at least " } else { "" };
        match number {
            0 => self,
            _ => Failure { text: format!("{least}{} {was} {verb}, then: {}", messages(number), self.text), ..self },
        }
    }

    /// Writes the line to standard error. The result is the exit code.
    pub fn report(&self) -> ExitCode {
        if !self.text.is_empty() {
            advice::tell(self);
        }
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    /// One line, without control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&visible(self.text.replace(['\r', '\n'], " ").trim()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (text, code) = match &error {
            Error::NoQueue(_) => {
                let text = "there is no such queue; it is created by its first push, and dqctl ls lists the queues";
                (text.to_owned(), NOTHING)
            }
            Error::Config(text) if !text.contains("URL") => (text.clone(), USAGE),
            Error::Config(_) => (format!("{error}; an example is --url redis://user:password@127.0.0.1:6379"), USAGE),
            error => (described(error), FAILED),
        };
        Failure { cause: Some(error), ..Failure::new(text, code) }
    }
}

/// Whether a connection was lost while its server answered. A server closes one whose replies exceed its
/// `client-output-buffer-limit`, so a smaller reply may get through.
pub fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Lost(text) if !text.ends_with(NO_REPLY))
}

/// What an error says, and what to do.
fn described(error: &Error) -> String {
    let advice = match error {
        Error::Connect(text) if text.ends_with(NO_REPLY) => {
            let server = text.trim_end_matches(NO_REPLY);
            return format!(
                "{server} accepts connections, but does not answer: it is stopped, or busy for seconds; look at its \
                 log, or name another server with --url or DQ_URL"
            );
        }
        Error::Connect(text) if text.ends_with(TOO_MANY) => {
            "close connections that are not needed (CLIENT LIST shows whose they are), or raise maxclients"
        }
        // The server says what to do.
        Error::Connect(text) if text.contains(PROTECTED) => return error.to_string(),
        Error::Connect(_) => "start the server, or name another one with --url or DQ_URL",
        Error::Unavailable(_) => "try again later, or name the master with --url",
        Error::NoModule(text) => {
            // What the server said of an unknown command says no more. Else it is the address of the server.
            let server = if text.contains(UNKNOWN) { "" } else { &format!(": {text}") };
            return format!(
                "the server has not loaded the module dq{server}; load it with loadmodule /PATH/libdq.so in its \
                 configuration, or name another server with --url"
            );
        }
        Error::NoPermission(_) => "grant the user the command and the key with ACL SETUSER",
        Error::Certificate(_) => "see --cacert, --cert and --key",
        Error::Authentication(_) => "name the user and the password: --url redis://user:password@host",
        Error::WrongType(_) => "name a key that is a queue; dqctl ls lists them",
        Error::QueueFull(_) => {
            "push again when messages have been completed, or raise the limit with dqctl alter QUEUE --maxlen N"
        }
        Error::QueueClosed(_) => "push again later, or open it with dqctl resume QUEUE in",
        Error::DeadId(text) => {
            let named = text.strip_prefix("DEADID message ").and_then(|text| text.rsplit_once(" is dead: "));
            let id = named.map_or("ID", |(id, _)| id);
            return format!(
                "DEADID message {id} is dead; dqctl redrive QUEUE {id} makes it live again, dqctl cancel QUEUE {id} \
                 removes it, and --replace takes its place"
            );
        }
        Error::TooLarge(text) if !text.contains("RESULT") => {
            "push less, or raise the limit with dqctl alter QUEUE --maxpayload BYTES"
        }
        Error::OutOfMemory(_) => "free memory, or raise maxmemory",
        Error::Server(text) => return text.strip_prefix("ERR ").unwrap_or(text).to_owned(),
        error => return error.to_string(),
    };
    format!("{error}; {advice}")
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            // A pipe that was closed by `head` is not a failure.
            io::ErrorKind::BrokenPipe => Failure::new("", 0),
            _ => Failure::failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Failure};

    #[test]
    fn more_may_be_changed_than_was_answered() {
        let after = |error: Error| Failure::from(error).after_change(3, "buried").to_string();
        assert!(after(Error::Lost("reset".to_owned())).starts_with("at least 3 messages were buried, then: "));
        assert!(after(Error::NoPermission("NOPERM".to_owned())).starts_with("3 messages were buried, then: "));
    }
}

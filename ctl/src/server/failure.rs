//! How a command ends: exit codes, and errors of one line with advice.
//!
//! A [`Failure`] has a kind, from which its exit code, its status on the page and its text follow. What advice names,
//! such as the queue, is added to the failure; the text is written at the end.

use crate::server::advice::{self, Subject};
use crate::text::{messages, visible};
use clap::error::ErrorKind;
use dq_client::{Address, ConnectionErrorKind, Error};
use std::fmt::{self, Display};
use std::io;
use std::process::ExitCode;

/// The exit code of [`Outcome::Nothing`].
const NOTHING: u8 = 1;
/// The command line cannot be understood.
const USAGE: u8 = 2;
/// The server refused, could not be reached, or the system refused something.
const FAILED: u8 = 3;

/// The code of the errors in which the module refuses the words of a command. Every other error has a code of its own.
const WORDS_REFUSED: &str = "ERR";

/// What follows the reason in an error that ended a script because of a missing right.
const SCRIPT_ENDED: &str = " script: ";

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

    /// Done if something was found or changed.
    pub fn done_if(is_done: bool) -> Outcome {
        if is_done {
            Outcome::Done
        } else {
            Outcome::Nothing
        }
    }
}

/// Why a command could not be executed.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    /// In a box, because every function that can fail returns one.
    details: Box<Details>,
}

#[derive(Debug, Default)]
struct Details {
    /// What advice names.
    subject: Subject,
    /// What was done until then, or to what.
    context: String,
    /// Whether it is unknown if the server executed the command.
    may_be_done: bool,
}

#[derive(Debug)]
enum Kind {
    /// There is nothing to report: the reader of the output has gone, or the help was printed. Holds the exit code.
    Silent(u8),
    /// There is no such thing.
    Nothing(String),
    /// The command line is wrong.
    Usage(String),
    /// The system or the server refused something that is needed.
    Refused(String),
    /// The command line names a server that cannot be understood.
    Url(Error),
    /// The client reports an error.
    Client(Error),
}

impl Failure {
    fn new(kind: Kind) -> Failure {
        Failure { kind, details: Box::default() }
    }

    /// There is no such thing.
    pub fn nothing(text: impl Display) -> Failure {
        Failure::new(Kind::Nothing(text.to_string()))
    }

    /// The command line is wrong; the text says what would be right.
    pub fn usage(text: impl Display) -> Failure {
        Failure::new(Kind::Usage(text.to_string()))
    }

    /// Something that the command needs was refused.
    pub fn failed(text: impl Display) -> Failure {
        Failure::new(Kind::Refused(text.to_string()))
    }

    /// The URL of the server is wrong.
    pub fn url(error: Error) -> Failure {
        Failure::new(Kind::Url(error))
    }

    /// An error of `clap` in one line, with a hint at the help. Help and version are printed, which is not a failure.
    pub fn clap(error: &clap::Error, help: &str) -> Failure {
        if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            let _ = error.print();
            return Failure::new(Kind::Silent(u8::try_from(error.exit_code()).unwrap_or(USAGE)));
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

    /// The failure of a command that changes nothing. If the server does not answer, it does not matter whether it got
    /// the command.
    pub fn read(error: Error) -> Failure {
        match error {
            Error::Lost(lost) if lost.kind() == ConnectionErrorKind::NoReply => Error::Connect(lost).into(),
            other => other.into(),
        }
    }

    /// The failure of a script. Redis 7 does not name the right that the script lacks, so `rights` does.
    pub fn script(error: Error, rights: &str) -> Failure {
        match error.to_string().split_once(SCRIPT_ENDED) {
            Some((why, _)) if !matches!(error, Error::WrongType(_)) => Failure::failed(format!("{why}; {rights}")),
            Some(_) | None => error.into(),
        }
    }

    /// Names the queue in advice, unless one is named already.
    #[must_use]
    pub fn about(mut self, queue: Option<&str>) -> Failure {
        let known = self.details.subject.queue.take();
        self.details.subject.queue = known.or_else(|| queue.map(str::to_owned));
        self
    }

    /// Names the message in advice.
    #[must_use]
    pub fn about_message(mut self, id: impl Display) -> Failure {
        self.details.subject.message = Some(id.to_string());
        self
    }

    /// Names the server that has not loaded the module.
    #[must_use]
    pub fn about_server(mut self, server: &Address) -> Failure {
        self.details.subject.server = Some(server.to_string());
        self
    }

    /// Whether a server has not loaded the module.
    pub fn lacks_module(&self) -> bool {
        matches!(&self.kind, Kind::Client(Error::NoModule(_)))
    }

    /// Whether the failure names the server that lacks the module.
    pub fn names_server(&self) -> bool {
        self.details.subject.server.is_some()
    }

    /// The status with which the page answers.
    pub fn status(&self) -> u16 {
        match &self.kind {
            Kind::Nothing(_) => 404,
            Kind::Usage(_) | Kind::Url(_) => 400,
            Kind::Refused(_) | Kind::Silent(_) => 503,
            Kind::Client(error) => status_of(error),
        }
    }

    /// The exit code.
    fn code(&self) -> u8 {
        match &self.kind {
            Kind::Silent(code) => *code,
            Kind::Nothing(_) | Kind::Client(Error::NoQueue(_)) => NOTHING,
            Kind::Usage(_) | Kind::Url(_) | Kind::Client(Error::Config(_)) => USAGE,
            Kind::Refused(_) | Kind::Client(_) => FAILED,
        }
    }

    fn client_error(&self) -> Option<&Error> {
        match &self.kind {
            Kind::Client(error) => Some(error),
            Kind::Silent(_) | Kind::Nothing(_) | Kind::Usage(_) | Kind::Refused(_) | Kind::Url(_) => None,
        }
    }

    /// Whether the connection was lost while the server answered, perhaps because its reply was too long.
    pub fn is_cut(&self) -> bool {
        self.client_error().is_some_and(is_cut)
    }

    /// Whether a server that comes back would not end it: the user, a certificate or the module is wrong.
    pub fn is_lasting(&self) -> bool {
        match self.client_error() {
            Some(Error::Authentication(_) | Error::Certificate(_) | Error::Config(_) | Error::NoModule(_)) => true,
            Some(Error::Connect(error)) => error.kind() == ConnectionErrorKind::NoTls,
            Some(_) | None => false,
        }
    }

    /// Whether the user may not execute the command.
    pub fn is_denied(&self) -> bool {
        matches!(self.client_error(), Some(Error::NoPermission(_)))
    }

    /// Whether the key is not a queue, or the user may not use it.
    pub fn is_of_key(&self) -> bool {
        matches!(self.client_error(), Some(Error::WrongType(_) | Error::NoPermission(_)))
    }

    /// Whether other queues would fail in the same way: the command line is wrong, or the server cannot be reached.
    pub fn is_of_any_queue(&self) -> bool {
        let is_of_any = |error: &Error| are_words_refused(error) || error.is_transient();
        self.code() == USAGE || self.client_error().is_some_and(is_of_any)
    }

    /// The failure of a command whose words come from its command line: if the server refused these, the command line
    /// is wrong.
    #[must_use]
    pub fn on_command_line(self) -> Failure {
        match &self.kind {
            Kind::Client(error) if are_words_refused(error) => {
                Failure { kind: Kind::Usage(advice::described(error, &self.details.subject)), ..self }
            }
            Kind::Client(_) | Kind::Silent(_) | Kind::Nothing(_) => self,
            Kind::Usage(_) | Kind::Refused(_) | Kind::Url(_) => self,
        }
    }

    /// The failure of a command that changes something: if the connection was lost, it may have done so.
    #[must_use]
    pub fn after_write(mut self) -> Failure {
        self.details.may_be_done = matches!(self.client_error(), Some(Error::Lost(_)));
        self
    }

    /// The same failure, which names what was done, or to what.
    #[must_use]
    pub fn in_context(mut self, context: impl Display) -> Failure {
        self.details.context = format!("{context}: {}", self.details.context);
        self
    }

    /// The same failure, after `number` messages were changed, or more if answers were lost. `verb` is a participle
    /// such as `redriven`.
    #[must_use]
    pub fn after_change(self, number: u64, verb: &str) -> Failure {
        let was = if number == 1 { "was" } else { "were" };
        let least = if matches!(self.client_error(), Some(Error::Lost(_))) { "at least " } else { "" };
        match number {
            0 => self,
            _ => self.in_context(format!("{least}{} {was} {verb}, then", messages(number))),
        }
    }

    /// Writes the line to standard error. The result is the exit code.
    pub fn report(&self) -> ExitCode {
        if !matches!(self.kind, Kind::Silent(_)) {
            advice::print_note(self);
        }
        ExitCode::from(self.code())
    }
}

impl fmt::Display for Failure {
    /// One line, without control characters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.details.context.clone();
        match &self.kind {
            Kind::Silent(_) => {}
            Kind::Nothing(what) | Kind::Usage(what) | Kind::Refused(what) => text.push_str(what),
            Kind::Url(error) => {
                text.push_str(&format!("{error}; an example is --url redis://user:password@127.0.0.1:6379"));
            }
            Kind::Client(error) => text.push_str(&advice::described(error, &self.details.subject)),
        }
        if self.details.may_be_done {
            text.push_str("; it is unknown whether the server executed the command: look before you repeat it");
        }
        f.write_str(&visible(text.replace(['\r', '\n'], " ").trim()))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(Kind::Client(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            // A pipe that was closed by `head` is not a failure.
            io::ErrorKind::BrokenPipe => Failure::new(Kind::Silent(0)),
            _ => Failure::failed(error),
        }
    }
}

/// Whether a connection was lost while its server answered. A server closes one whose replies exceed its
/// `client-output-buffer-limit`, so a smaller reply may get through.
pub fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Lost(lost) if lost.kind() != ConnectionErrorKind::NoReply)
}

/// Whether the server refused the words of a command, which are wrong on any queue.
fn are_words_refused(error: &Error) -> bool {
    matches!(error, Error::Server(text) if code_of(text) == WORDS_REFUSED)
}

/// The code with which the text of an error of a server begins.
fn code_of(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// The status of the page for an error of the client.
fn status_of(error: &Error) -> u16 {
    match error {
        Error::NoQueue(_) => 404,
        Error::Config(_) => 400,
        error if are_words_refused(error) => 400,
        Error::NoPermission(_) => 403,
        Error::QueueFull(_) | Error::QueueClosed(_) | Error::TooLarge(_) | Error::OutOfMemory(_) => 409,
        Error::WrongType(_) | Error::DeadId(_) => 409,
        Error::NoModule(_) => 501,
        _ => 503,
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionErrorKind, Error, Failure};
    use dq_client::ConnectionError;

    fn server(text: &str) -> Failure {
        Failure::from(Error::Server(text.to_owned()))
    }

    #[test]
    fn more_may_be_changed_than_was_answered() {
        let after = |error: Error| Failure::from(error).after_change(3, "buried").to_string();
        let reset = ConnectionError::new(ConnectionErrorKind::Closed, "h:1", "reset");
        assert!(after(Error::Lost(reset)).starts_with("at least 3 messages were buried, then: "));
        assert!(after(Error::NoPermission("NOPERM".to_owned())).starts_with("3 messages were buried, then: "));
    }

    #[test]
    fn a_refused_word_is_an_error_of_usage_and_any_other_code_is_none() {
        for (text, code, status) in [
            ("ERR DELAY must be a whole number", 2, 400),
            ("ERR a queue cannot forward to itself", 2, 400),
            ("QUEUEEXISTS queue exists with other settings", 3, 503),
            ("UNSOUND a bug in the module", 3, 503),
        ] {
            let failure = server(text).on_command_line();
            assert_eq!((failure.code(), server(text).status()), (code, status), "{text}");
        }
    }

    #[test]
    fn advice_names_the_queue_that_was_named_first() {
        let full = || Failure::from(Error::QueueFull("QUEUEFULL queue holds 1 message".to_owned()));
        let text = full().about(Some("a b")).about(Some("*")).in_context("a b").to_string();
        assert!(text.starts_with("a b: QUEUEFULL") && text.contains("dqctl alter 'a b' --maxlen N"), "{text}");
        assert!(full().to_string().contains("dqctl alter QUEUE --maxlen N"));
    }
}

//! Why a handler did not complete a message.

use crate::queue::Nack;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// How many sources of an error are named: it could be a source of itself.
const MOST_SOURCES: usize = 10;

/// Why a handler did not complete a message, and what happens to the message.
///
/// Any error converts into a failure that is retried, so `?` works in a handler: also `anyhow::Error`, and
/// `Box<dyn Error + Send + Sync>`. Its text has those of its sources, too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    pub(super) nack: Box<Nack>,
    /// `None` if the work was not begun.
    pub(super) text: Option<String>,
}

impl Failure {
    pub(super) fn new(nack: Nack, text: impl fmt::Display) -> Failure {
        let text = text.to_string();
        Failure { nack: Box::new(nack.error(text.as_str())), text: Some(text) }
    }

    /// The message is delivered again after the queue's backoff, or becomes dead if its retries are spent. The text is
    /// kept with the message.
    pub fn retry(text: impl fmt::Display) -> Failure {
        Failure::new(Nack::retry(), text)
    }

    /// A failure that is retried, with the texts of an error and of its sources: the conversion of an error into a
    /// failure, for a program that keeps the error.
    pub fn of(error: &dyn Error) -> Failure {
        Failure::retry(with_sources(error))
    }

    /// The message is delivered again after this time.
    pub fn retry_after(delay: Duration, text: impl fmt::Display) -> Failure {
        Failure::new(Nack::retry().after(delay), text)
    }

    /// The message must not be tried again: it becomes dead.
    pub fn reject(text: impl fmt::Display) -> Failure {
        Failure::new(Nack::reject(), text)
    }

    /// The work was not begun, for example because the worker is stopping: the delivery does not count as an attempt.
    #[must_use]
    pub fn give_back() -> Failure {
        Failure { nack: Box::new(Nack::give_back()), text: None }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error: Box<dyn Error + Send + Sync> = error.into();
        Failure::of(&*error)
    }
}

/// The text of an error and of its sources. Some errors name their source themselves.
fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    for _ in 0..MOST_SOURCES {
        let Some(error) = source else { break };
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Failure;
    use std::error::Error;
    use std::fmt;

    /// An error that is none itself, such as `anyhow::Error`.
    struct Report(&'static str);

    impl From<Report> for Box<dyn Error + Send + Sync> {
        fn from(report: Report) -> Self {
            report.0.into()
        }
    }

    #[test]
    fn a_question_mark_takes_what_becomes_an_error() {
        let handler = || -> Result<(), Failure> { Err(Report("no answer"))? };
        assert_eq!(handler(), Err(Failure::retry("no answer")));
    }

    #[test]
    fn any_error_is_a_failure_that_is_retried() {
        let failure: Failure = "x".parse::<u8>().unwrap_err().into();
        assert_eq!(failure, Failure::retry("invalid digit found in string"));
        let boxed: Box<dyn std::error::Error + Send + Sync> = "no answer".into();
        assert_eq!(Failure::from(boxed), Failure::retry("no answer"));
    }

    #[derive(Debug)]
    struct Refused(&'static str, Option<Box<Refused>>);

    impl fmt::Display for Refused {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Refused {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|source| &**source as &(dyn Error + 'static))
        }
    }

    #[test]
    fn a_failure_has_the_texts_of_all_sources_once() {
        let root = Refused("connection refused", None);
        let named = Refused("cannot connect: connection refused", Some(Box::new(root)));
        let outer = Refused("the mail was not sent", Some(Box::new(named)));
        let text = "the mail was not sent: cannot connect: connection refused";
        assert_eq!(Failure::from(outer), Failure::retry(text));
    }
}

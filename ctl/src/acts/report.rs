//! The outcome of an act.

use crate::server::Outcome;
use serde_json::Value as Json;

/// The outcome of an act in one queue.
#[derive(Default)]
pub struct Report {
    /// Whether it did all that was asked, or nothing was to be changed.
    pub outcome: Outcome,
    /// How many messages it has changed, if that is the whole result.
    pub number: Option<u64>,
    /// Else a line for each change, as text and as JSON.
    pub lines: Vec<(String, Json)>,
    /// Explanations, such as why a message was left alone.
    pub notes: Vec<String>,
}

impl Report {
    /// A number of messages; zero is reported as nothing done.
    pub fn number(number: u64) -> Report {
        Report { number: Some(number), ..Report::default() }.ended(number > 0)
    }

    pub fn line(text: impl Into<String>, object: Json) -> Report {
        Report { lines: vec![(text.into(), object)], ..Report::default() }.ended(true)
    }

    pub fn note(mut self, text: impl Into<String>) -> Report {
        self.notes.push(text.into());
        self
    }

    pub fn ended(self, is_done: bool) -> Report {
        Report { outcome: Outcome::done_if(is_done), ..self }
    }
}

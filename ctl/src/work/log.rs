//! The log of `dqctl work`: a line on standard error for each event, as text or as JSON.

use crate::cli::LogFormat;
use crate::text::{self, instant, millis, now_ms, span, visible};
use dq_client::{Context, Event, State};
use serde_json::{json, Map, Value as Json};
use std::io;
use std::time::Duration;

#[derive(Clone, Copy)]
pub struct Log {
    pub format: LogFormat,
    pub is_verbose: bool,
}

impl Log {
    /// What the worker itself does.
    pub fn info(&self, event: &str, text: &str, fields: Json) {
        self.write("info", event, text, fields);
    }

    /// What an operator should look at.
    pub fn warn(&self, event: &str, text: &str, fields: Json) {
        self.write("warning", event, text, fields);
    }

    /// With `--verbose`: a handler begins, or has done its work in this time.
    pub fn handler(&self, context: &Context, took: Option<Duration>) {
        if !self.is_verbose {
            return;
        }
        let (queue, id, attempt) = (context.queue().to_string(), context.id().to_string(), context.attempt());
        let took = took.map(millis);
        let fields = json!({ "queue": queue, "id": id, "attempt": attempt, "ms": took });
        match took {
            None => self.info("began", &format!("{queue}: {id} begins, attempt {attempt}"), fields),
            Some(took) => self.info("handled", &format!("{queue}: {id} is done after {}", span(took)), fields),
        }
    }

    /// What the client reports.
    pub fn event(&self, event: &Event<'_>) {
        let text = event.to_string();
        let with_error = |queue: &dyn ToString, error: &dyn ToString| {
            let (queue, error) = (queue.to_string(), error.to_string());
            json!({ "queue": queue, "error": error })
        };
        match event {
            Event::Interrupted { queue, error } => self.warn("interrupted", &text, with_error(queue, error)),
            Event::Resumed { queue } => self.info("resumed", &text, json!({ "queue": queue.to_string() })),
            Event::Failed { queue, id, attempt, error, state } => {
                let (queue, id, state) = (queue.to_string(), id.to_string(), state.map(State::as_str));
                let fields = json!({ "queue": queue, "id": id, "attempt": attempt, "error": error, "state": state });
                self.warn("failed", &text, fields);
            }
            Event::LeaseLost { queue, id, reason, .. } => {
                let (queue, id) = (queue.to_string(), id.to_string());
                let fields = json!({ "queue": queue, "id": id, "reason": reason.as_str() });
                self.warn("lost", &text, fields);
            }
            Event::Refused { queue, error } => self.warn("refused", &text, with_error(queue, error)),
            // The log names all queues in one line, and has one for each queue that is not worked on any more.
            Event::Started { .. } | Event::Stopped { .. } => {}
            _ => self.warn("other", &text, json!({})),
        }
    }

    /// Lets a thread write the log, so that no lease waits for whoever reads it.
    pub fn in_background(self) -> io::Result<()> {
        text::in_background(move |number| {
            let text = format!("{number} parts of the outputs were left out, because nobody read them in time");
            self.line("warning", "left-out", &text, json!({ "parts": number }))
        })
    }

    fn write(&self, level: &str, event: &str, text: &str, fields: Json) {
        print_error!("{}", self.line(level, event, text, fields));
    }

    fn line(&self, level: &str, event: &str, text: &str, fields: Json) -> String {
        if self.format == LogFormat::Text {
            return format!("dqctl: {}", visible(text));
        }
        let words = [("time", instant(now_ms()).as_str()), ("level", level), ("event", event), ("text", text)]
            .map(|(name, word)| (name.to_owned(), Json::from(word)));
        let mut line = Map::from_iter(words);
        if let Json::Object(fields) = fields {
            line.extend(fields);
        }
        Json::Object(line).to_string()
    }
}

//! The log of `dqctl work`: a line on standard error for each event, as text or as JSON.

use crate::message::distance;
use crate::reply::Fields;
use crate::time::{instant, now_ms};
use crate::visible::visible;
use clap::ValueEnum;
use dq_client::{cmd, Client, Context, Error, Event, Id, Loss, Resend, State};
use serde_json::{json, Map, Value as Json};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many failures may wait until it is known when their messages are due again. Beyond that, their lines lack it.
const WAITING: usize = 1_000;
/// For how long that is not asked of a server that was lost.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy)]
enum Level {
    Info,
    Warning,
}

pub struct Log {
    format: Format,
    is_verbose: bool,
    /// Finds out until when failed messages are delayed, so that the worker need not wait for that.
    delays: Mutex<Option<(SyncSender<Failed>, JoinHandle<()>)>>,
}

/// A failed attempt whose message is delayed.
struct Failed {
    queue: String,
    id: Id,
    attempt: u32,
    error: String,
}

impl Log {
    pub fn new(format: Format, is_verbose: bool, client: &Client) -> Arc<Log> {
        let log = Arc::new(Log { format, is_verbose, delays: Mutex::default() });
        let (sender, failures) = sync_channel(WAITING);
        let (client, own) = (client.clone(), Arc::clone(&log));
        let thread =
            thread::Builder::new().name("dq-log".to_owned()).spawn(move || own.tell_delays(&client, &failures));
        if let Ok(thread) = thread {
            *log.delays.lock().unwrap_or_else(PoisonError::into_inner) = Some((sender, thread));
        }
        log
    }

    /// Waits until all is written.
    pub fn close(&self) {
        let delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sender, thread)) = delays {
            drop(sender);
            let _ = thread.join();
        }
    }

    /// What the worker itself does.
    pub fn info(&self, event: &str, text: &str, fields: Json) {
        self.write(Level::Info, event, text, fields);
    }

    /// What an operator should look at.
    pub fn warn(&self, event: &str, text: &str, fields: Json) {
        self.write(Level::Warning, event, text, fields);
    }

    /// With `--verbose`: a handler begins.
    pub fn began(&self, context: &Context) {
        if self.is_verbose {
            let (queue, id, attempt) = (context.queue(), context.id().to_string(), context.attempt());
            let fields = json!({ "queue": queue, "id": id, "attempt": attempt });
            self.info("began", &format!("{queue}: {id} begins, attempt {attempt}"), fields);
        }
    }

    /// With `--verbose`: a handler has done its work.
    pub fn handled(&self, context: &Context, time: Duration) {
        if self.is_verbose {
            let (queue, id, attempt) = (context.queue(), context.id().to_string(), context.attempt());
            let ms = crate::time::millis(time);
            let fields = json!({ "queue": queue, "id": id, "attempt": attempt, "ms": ms });
            self.info("handled", &format!("{queue}: {id} is done after {}", crate::time::span(ms)), fields);
        }
    }

    /// What the client reports.
    pub fn event(&self, event: &Event<'_>) {
        let text = event.to_string();
        match event {
            Event::Interrupted { queue, error } => {
                self.warn("interrupted", &text, json!({ "queue": queue, "error": error.to_string() }));
            }
            Event::Resumed { queue } => self.info("resumed", &text, json!({ "queue": queue })),
            Event::Failed { queue, id, attempt, error, state } => {
                let failed = Failed {
                    queue: (*queue).to_owned(),
                    id: (*id).clone(),
                    attempt: *attempt,
                    error: (*error).to_owned(),
                };
                self.failed(failed, *state);
            }
            Event::LeaseLost { queue, id, reason, .. } => {
                let fields = json!({ "queue": queue, "id": id.to_string(), "reason": reason.as_str() });
                self.warn("lost", &format!("{queue}: {id} {}", lost(*reason)), fields);
            }
            Event::Refused { queue, error } => {
                self.warn("refused", &text, json!({ "queue": queue, "error": error.to_string() }));
            }
            _ => self.warn("other", &text, json!({})),
        }
    }

    fn failed(&self, failed: Failed, state: Option<State>) {
        let delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        match (state, delays.as_ref()) {
            (Some(State::Delayed), Some((sender, _))) => {
                if let Err(TrySendError::Full(failed) | TrySendError::Disconnected(failed)) = sender.try_send(failed) {
                    self.write_failure(&failed, state, None);
                }
            }
            _ => self.write_failure(&failed, state, None),
        }
    }

    fn tell_delays(&self, client: &Client, failures: &Receiver<Failed>) {
        let mut lost: Option<Instant> = None;
        for failed in failures {
            // A server that is lost must not delay the lines that wait, nor the end of the worker, by a timeout each.
            let is_lost = lost.is_some_and(|at| at.elapsed() < PAUSE);
            let due = if is_lost { Ok(None) } else { due_of(client, &failed) };
            if due.as_ref().is_err_and(Error::is_transient) {
                lost = Some(Instant::now());
            }
            self.write_failure(&failed, Some(State::Delayed), due.ok().flatten());
        }
    }

    fn write_failure(&self, failed: &Failed, state: Option<State>, due: Option<i64>) {
        let Failed { queue, id, attempt, error } = failed;
        let state = state.map_or("lost", State::as_str);
        let until = due.map_or_else(String::new, |due| format!(" until {} ({})", instant(due), distance(due)));
        let text = format!("{queue}: {id} failed at attempt {attempt}: {error}; now {state}{until}");
        let mut fields =
            json!({ "queue": queue, "id": id.to_string(), "attempt": attempt, "error": error, "state": state });
        if let (Some(due), Some(fields)) = (due, fields.as_object_mut()) {
            fields.insert("due".to_owned(), due.into());
        }
        self.write(Level::Warning, "failed", &text, fields);
    }

    fn write(&self, level: Level, event: &str, text: &str, fields: Json) {
        if self.format == Format::Text {
            return say!("dqctl: {}", visible(text));
        }
        let level = match level {
            Level::Info => "info",
            Level::Warning => "warning",
        };
        let mut line = Map::new();
        line.insert("time".to_owned(), instant(now_ms()).into());
        line.insert("level".to_owned(), level.into());
        line.insert("event".to_owned(), event.into());
        line.insert("text".to_owned(), text.into());
        if let Json::Object(fields) = fields {
            line.extend(fields);
        }
        say!("{}", Json::Object(line));
    }
}

/// When a failed message is due again, if it is still delayed. The user may lack the right to this.
fn due_of(client: &Client, failed: &Failed) -> Result<Option<i64>, Error> {
    let command = cmd("DQ.GET").arg(&failed.queue).arg(failed.id.as_ref()).clone();
    let message = Fields::read(client.call(&command, Resend::Harmless)?).ok().flatten();
    Ok(message.filter(|message| message.text("state") == "delayed").and_then(|message| message.int("due")))
}

/// What happened to a message while it was handled.
fn lost(reason: Loss) -> &'static str {
    match reason {
        Loss::Ended => "lost its lease while it was handled: it expired, or could not be extended, and the message is delivered again",
        Loss::Cancelled => "was cancelled while it was handled",
        Loss::Replaced => "was replaced by another push while it was handled",
        Loss::Buried => "was buried while it was handled",
        Loss::Purged => "was purged while it was handled",
        Loss::Released => "was released for another worker while it was handled",
        _ => "was taken from its handler",
    }
}

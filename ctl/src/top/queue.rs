//! The page of a queue: its messages in one state.

use super::app::App;
use super::list::{late, rate, style};
use super::listing::{clamped, Only};
use super::queues::Row;
use super::text::{bytes, count, cut, left, named, named_in, right, shown, Line, Style};
use crate::dead::error_of;
use crate::message;
use crate::reply::Fields;
use crate::time::span;
use dq_client::State;

/// The states in the order of their tabs.
pub const STATES: [State; 5] = [State::Delayed, State::Ready, State::Inflight, State::Dead, State::Done];

pub struct QueuePage {
    pub name: Vec<u8>,
    pub state: State,
    /// `None`: all messages of the state are listed.
    pub only: Option<Only>,
    /// `None`: they have not been read yet.
    pub messages: Option<Vec<Fields>>,
    pub place: usize,
    pub top: usize,
}

impl QueuePage {
    /// Shows the messages of a state, or some of them.
    pub fn show(&mut self, state: State, only: Option<Only>) {
        (self.state, self.only, self.messages, self.place, self.top) = (state, only, None, 0, 0);
    }

    pub fn selected(&self) -> Option<&Fields> {
        self.messages.as_ref()?.get(self.place)
    }

    /// Keeps the cursor on a message, and the message on the screen.
    pub fn clamp(&mut self, height: usize) {
        let count = self.messages.as_ref().map_or(0, Vec::len);
        (self.place, self.top) = clamped(self.place, self.top, count, height);
    }
}

pub fn queue_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    // One line more than in the list: the numbers of the queue.
    let height = height.saturating_sub(2);
    app.height = height;
    let row = app.queue.as_ref().and_then(|page| app.queues.row(&page.name)).cloned().unwrap_or_default();
    let Some(page) = app.queue.as_mut() else { return Vec::new() };
    page.clamp(height);
    let mut title = Line::new(Style::Bold, named_in(width.saturating_sub(24).max(8), &page.name));
    for (condition, level) in &row.conditions {
        title.add(style(Some(*level)), format!("  {}", condition.as_str()));
    }
    let errors = |info: &Fields| [info.text("forward-error"), info.text("deadforward-error")];
    for error in row.latest.as_ref().map(|snapshot| errors(&snapshot.info)).into_iter().flatten() {
        title.add(Style::Bad, if error.is_empty() { error } else { format!(": {}", shown(&error)) });
    }
    let numbers = format!(
        "oldest {}  in {}/s  out {}/s  late {}  waiting clients {}  payloads {}",
        row.oldest().map_or_else(|| "-".to_owned(), span),
        rate(row.pushed),
        rate(row.completed),
        late(row.late()),
        row.number("waiting-clients"),
        bytes(row.number("payload-bytes")),
    );
    let mut tabs = Line::default();
    for state in STATES {
        let text = format!(" {} {} ", state.as_str(), count(row.number(state.as_str())));
        tabs.add(if state == page.state { Style::Selected } else { Style::Plain }, text);
        tabs.add(Style::Plain, " ");
    }
    match &page.only {
        Some(Only::Cause(cause)) => tabs.add(Style::Warning, format!(" {}", shown(cause))),
        Some(Only::Group(group)) => tabs.add(Style::Warning, format!(" group {}", named(group))),
        None => {}
    }
    let mut lines =
        vec![title, Line::new(Style::Plain, numbers), tabs, Line::new(Style::Bold, message_heading(width, page))];
    match &page.messages {
        None => lines.push(Line::new(Style::Dim, "Reading …")),
        Some(messages) if messages.is_empty() => {
            let why = match page.only {
                Some(Only::Cause(_)) => "None of the newest dead messages has this cause.".to_owned(),
                Some(Only::Group(_)) => format!("The group has no {} messages.", page.state.as_str()),
                None => empty(page.state, &row),
            };
            lines.push(Line::new(Style::Dim, why));
        }
        Some(messages) => {
            for (place, message) in messages.iter().enumerate().skip(page.top).take(height) {
                let line = Line::new(Style::Plain, message_line(message, width, page));
                lines.push(if place == page.place { line.fitted(width).selected() } else { line });
            }
        }
    }
    lines
}

/// Why a list is empty.
fn empty(state: State, row: &Row) -> String {
    let number = |field: &str| row.number(field);
    let next = row.latest.as_ref().and_then(|snapshot| snapshot.info.int("next-due"));
    let why = match (state, next) {
        _ if row.latest.is_none() => String::new(),
        (State::Ready, _) if number("pushed") == 0 => ": nothing was pushed to this queue yet".to_owned(),
        (State::Ready, Some(due)) => format!(": the next one is due {}", message::distance(due)),
        (State::Inflight, _) if number("paused") == 1 => ": the queue is paused".to_owned(),
        (State::Dead, _) if number("died") == 0 => ": none has died".to_owned(),
        (State::Dead, _) if number("deadforwarded") > 0 => ": they are moved away, as DEADFORWARD says".to_owned(),
        (State::Done, _) if number("retain") == 0 => ": they are not kept, RETAIN of this queue is 0".to_owned(),
        _ => String::new(),
    };
    format!("There are no {} messages{why}.", state.as_str())
}

/// The widths of the columns of messages: the id, and what is left for the payload and the error.
fn message_widths(width: usize) -> (usize, usize) {
    let id = (width / 4).clamp(12, 40);
    (id, width.saturating_sub(id + 1 + 12 + 1 + 7 + 1))
}

fn message_heading(width: usize, page: &QueuePage) -> String {
    let (id, rest) = message_widths(width);
    let (when, what) = match page.state {
        State::Dead => ("DIED", "PAYLOAD, ERROR"),
        State::Inflight => ("LEASE ENDS", "PAYLOAD"),
        State::Done => ("DONE", "RESULT"),
        _ => ("DUE", "PAYLOAD"),
    };
    format!(
        "{} {} {} {}",
        left("ID", id),
        left(when, 12),
        right("ATTEMPT", 7),
        left(&format!("{}{what}", holders(page, rest, |name, _| name.to_uppercase())), rest)
    )
}

/// The columns of those who hold messages in flight, if any is known: the consumer and the group.
fn holders(page: &QueuePage, rest: usize, cell: impl Fn(&str, usize) -> String) -> String {
    let messages = page.messages.iter().flatten();
    let is_known =
        |name: &&str| page.state == State::Inflight && messages.clone().any(|one| !one.bytes(name).is_empty());
    let width = (rest / 3).min(20);
    ["consumer", "group"]
        .into_iter()
        .filter(is_known)
        .map(|name| format!("{} ", left(&cell(name, width), width)))
        .collect()
}

fn message_line(message: &Fields, width: usize, page: &QueuePage) -> String {
    let (id, rest) = message_widths(width);
    let instant = match page.state {
        State::Dead => "died",
        State::Inflight => "deadline",
        State::Done => "done",
        _ => "due",
    };
    let due = message.int(instant).map_or_else(|| "-".to_owned(), message::distance);
    let mut text =
        shown(&String::from_utf8_lossy(message.bytes(if page.state == State::Done { "result" } else { "payload" })));
    text.insert_str(0, &holders(page, rest, |name, width| named_in(width, message.bytes(name))));
    let error = error_of(message);
    if !error.is_empty() {
        // Both are useful, so neither may hide the other.
        text = format!("{}  {}", left(&text, rest / 2), shown(&error));
    }
    format!(
        "{} {} {} {}",
        left(&named_in(id, message.bytes("id")), id),
        left(&due, 12),
        right(&message.text("attempt"), 7),
        cut(&text, rest)
    )
}

//! The page of a queue: its messages in one state.

use super::app::App;
use super::deaths::target_in_words;
use super::entries::{Entry, Only};
use super::head::{add_conditions, numbers};
use super::listing::clamped;
use crate::dead::{error_of, header};
use crate::message;
use crate::output::cut_in_the_middle;
use crate::output::text::{count, cut, grouped, left, named, named_in, paragraph, right, shown, Line, Style};
use crate::reply::Fields;
use crate::row::Row;
use dq_client::State;
use std::collections::BTreeSet;
use unicode_width::UnicodeWidthStr;

/// The states in the order of their tabs.
pub const STATES: [State; 5] = [State::Delayed, State::Ready, State::Inflight, State::Dead, State::Done];

/// The column of the queue in which a letter died.
const DIED_IN: &str = "died in";

pub struct QueuePage {
    pub name: Vec<u8>,
    pub state: State,
    /// `None`: all messages of the state are listed.
    pub only: Option<Only>,
    /// `None`: they have not been read yet.
    messages: Option<Vec<Fields>>,
    /// Only messages with this in their id, error or payload are shown: of the messages, those at these places.
    pub filter: String,
    fitting: Vec<usize>,
    /// The ids of the messages that are marked.
    pub marked: BTreeSet<Vec<u8>>,
    /// The consumer that has held a message for longest, if that is long.
    pub holder: Option<Entry>,
    pub paused_groups: usize,
    pub place: usize,
    pub top: usize,
}

impl QueuePage {
    pub fn new(name: Vec<u8>, state: State) -> QueuePage {
        QueuePage {
            name,
            state,
            only: None,
            messages: None,
            filter: String::new(),
            fitting: Vec::new(),
            marked: BTreeSet::new(),
            holder: None,
            paused_groups: 0,
            place: 0,
            top: 0,
        }
    }

    /// Shows the messages of a state, or some of them.
    pub fn show(&mut self, state: State, only: Option<Only>) {
        (self.state, self.only, self.messages, self.place, self.top) = (state, only, None, 0, 0);
        self.marked.clear();
        self.arrange();
    }

    /// Shows what was read. The cursor stays on its message, wherever that is now, unless it is on the first line.
    pub fn take(&mut self, messages: Vec<Fields>) {
        let selected = self.selected().filter(|_| self.place > 0).map(|message| message.bytes("id").to_vec());
        // What is no longer in this state is not meant.
        let ids: BTreeSet<&[u8]> = messages.iter().map(|message| message.bytes("id")).collect();
        self.marked.retain(|id| ids.contains(id.as_slice()));
        self.messages = Some(messages);
        self.arrange();
        let place = selected.and_then(|id| self.rows().position(|message| message.bytes("id") == id));
        if let Some(place) = place {
            // The lines around it stay where they are, too.
            self.top = (self.top + place).saturating_sub(self.place);
            self.place = place;
        }
    }

    /// Applies the filter, without regard to upper and lower case.
    pub fn arrange(&mut self) {
        let filter = self.filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&filter);
        let is_meant = |message: &Fields| {
            has(&named(message.bytes("id")))
                || has(&error_of(message))
                || ["payload", "result"].iter().any(|name| has(&String::from_utf8_lossy(message.bytes(name))))
        };
        let messages = self.messages.iter().flatten().enumerate();
        self.fitting =
            messages.filter(|(_, message)| filter.is_empty() || is_meant(message)).map(|(place, _)| place).collect();
    }

    /// The messages that the filter shows.
    pub fn rows(&self) -> impl Iterator<Item = &Fields> {
        self.fitting.iter().filter_map(|place| self.messages.as_ref()?.get(*place))
    }

    pub fn selected(&self) -> Option<&Fields> {
        self.rows().nth(self.place)
    }

    /// Whether some of its messages died in other queues and were moved here.
    pub fn has_letters(&self) -> bool {
        self.state != State::Dead
            && self.messages.iter().flatten().any(|message| header(message, "dq-reason").is_some())
    }

    /// Keeps the cursor on a message, and the message on the screen.
    pub fn clamp(&mut self, height: usize) {
        (self.place, self.top) = clamped(self.place, self.top, self.fitting.len(), height);
    }
}

pub fn queue_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    // One line more than in the list: the numbers of the queue.
    let height = height.saturating_sub(2);
    app.height = height;
    let row = app.queue.as_ref().and_then(|page| app.queues.row(&page.name)).cloned().unwrap_or_default();
    let deaths = app.queue.as_ref().map_or_else(String::new, |page| app.queues.deaths(&page.name));
    let Some(page) = app.queue.as_mut() else { return Vec::new() };
    page.clamp(height);
    let mut title = Line::new(Style::Bold, named_in(width.saturating_sub(24).max(8), &page.name));
    add_conditions(&mut title, &row, page.holder.as_ref(), &deaths, page.paused_groups, width);
    let numbers = numbers(&row, width);
    let mut tabs = Line::default();
    for state in STATES {
        // A queue that was not read yet may have any.
        let number = row.latest.as_ref().map_or_else(|| "-".to_owned(), |_| count(row.number(state.as_str())));
        let text = format!(" {} {number} ", state.as_str());
        tabs.add(if state == page.state { Style::Selected } else { Style::Plain }, text);
        tabs.add(Style::Plain, " ");
    }
    if !page.marked.is_empty() {
        tabs.add(Style::Warning, format!(" {} marked", page.marked.len()));
    }
    match &page.only {
        Some(Only::Cause(cause)) => tabs.add(Style::Warning, format!(" {}", shown(cause))),
        Some(Only::Group(group)) => tabs.add(Style::Warning, format!(" group {}", named(group))),
        Some(Only::Batch(batch)) => tabs.add(Style::Warning, format!(" batch {}", named(batch))),
        Some(Only::Consumer(consumer)) => tabs.add(Style::Warning, format!(" consumer {}", named(consumer))),
        None => {}
    }
    let widths = Widths::of(width, page, height);
    let read = page.messages.as_ref().map_or(0, Vec::len);
    if !page.filter.is_empty() {
        let found = format!(" {} with {:?} of {} read", page.fitting.len(), shown(&page.filter), grouped(read));
        tabs.add(Style::Warning, found);
    }
    let mut lines =
        vec![title, Line::new(Style::Plain, numbers), tabs, Line::new(Style::Bold, message_heading(&widths, page))];
    match &page.messages {
        None => lines.push(Line::new(Style::Dim, "Reading …")),
        Some(_) if page.fitting.is_empty() => {
            let why = match page.only {
                _ if read > 0 => "None of those that were read has this in its id, error or payload.".to_owned(),
                Some(Only::Cause(_)) => "None of the messages that were read has this cause.".to_owned(),
                Some(Only::Group(_)) => format!("The group has no {} messages.", page.state.as_str()),
                Some(Only::Consumer(_)) => "The consumer holds none of the messages that were read.".to_owned(),
                Some(Only::Batch(_)) => {
                    format!("None of the {} messages that were read belongs to this batch.", page.state.as_str())
                }
                None => empty(page.state, &row),
            };
            lines.extend(paragraph(Style::Dim, &why, width));
        }
        Some(_) => {
            for (place, message) in page.rows().enumerate().skip(page.top).take(height) {
                let is_marked = page.marked.contains(message.bytes("id"));
                let style = if is_marked { Style::Warning } else { Style::Plain };
                let line = Line::new(style, message_line(message, &widths, page));
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
        (State::Dead, _) if number("deadforwarded") > 0 => match target_in_words(row) {
            Some(target) => format!(": DEADFORWARD moves them to {target}"),
            None => ": DEADFORWARD has moved them away".to_owned(),
        },
        (State::Done, _) if number("retain") == 0 => ": they are not kept, RETAIN of this queue is 0".to_owned(),
        _ => String::new(),
    };
    format!("There are no {} messages{why}.", state.as_str())
}

/// The widths of the columns of messages.
struct Widths {
    id: usize,
    /// The columns of those who hold messages in flight, if any is known: the consumer and the group. Of letters, the queue in
    /// which they died.
    holders: Vec<(&'static str, usize)>,
    /// What is left for the payload and the error, and of that the part of the payload; all of it if there is no error.
    rest: usize,
    payload: usize,
}

impl Widths {
    /// The ids and holders are as wide as those on the screen need. Payload and error are both useful, so neither may hide the
    /// other; of the dead and of letters, the errors are whole first.
    fn of(width: usize, page: &QueuePage, height: usize) -> Widths {
        let shown_rows = || page.rows().skip(page.top).take(height);
        let widest = |cell: &dyn Fn(&Fields) -> String| shown_rows().map(|one| cell(one).width()).max().unwrap_or(0);
        let id = widest(&|message| named(message.bytes("id"))).clamp("ID".len(), (width / 4).clamp(12, 40));
        let rest = width.saturating_sub(id + 1 + 12 + 1 + 7 + 1);
        let most = (rest / 3).min(20);
        let holders: Vec<_> = [DIED_IN, "consumer", "group"]
            .into_iter()
            .filter(|name| if *name == DIED_IN { page.has_letters() } else { page.state == State::Inflight })
            .map(|name| (name, widest(&|message| holder(message, name))))
            .filter(|(_, width)| *width > 0)
            .map(|(name, width)| (name, width.max(name.len()).min(most)))
            .collect();
        let rest = rest.saturating_sub(holders.iter().map(|(_, width)| width + 1).sum());
        let payload = match widest(&|message| shown(&error_of(message))) {
            0 if page.state != State::Dead => rest,
            errors if page.state == State::Dead || page.has_letters() => {
                rest.saturating_sub(errors.max("ERROR".len()) + 2).max(rest / 4)
            }
            _ => rest / 2,
        };
        Widths { id, holders, rest, payload }
    }

    fn cells(&self, cell: impl Fn(&'static str, usize) -> String) -> String {
        self.holders.iter().map(|(name, width)| format!("{} ", left(&cell(name, *width), *width))).collect()
    }

    /// The payload, and the error if any message on the screen has one.
    fn contents(&self, payload: &str, error: &str) -> String {
        if self.payload == self.rest {
            left(payload, self.rest)
        } else {
            cut(&format!("{}  {error}", left(payload, self.payload)), self.rest)
        }
    }
}

fn message_heading(widths: &Widths, page: &QueuePage) -> String {
    let (when, what) = match page.state {
        State::Dead => ("DIED", "PAYLOAD"),
        State::Inflight => ("LEASE ENDS", "PAYLOAD"),
        State::Done => ("DONE", "RESULT"),
        _ => ("DUE", "PAYLOAD"),
    };
    format!(
        "{} {} {} {}{}",
        left("ID", widths.id),
        left(when, 12),
        right("ATTEMPT", 7),
        widths.cells(|name, _| name.to_uppercase()),
        widths.contents(what, "ERROR")
    )
}

/// Who holds a message, or where it died.
fn holder(message: &Fields, name: &str) -> String {
    match name {
        DIED_IN => shown(&header(message, "dq-queue").unwrap_or_default()),
        name => named(message.bytes(name)),
    }
}

fn message_line(message: &Fields, widths: &Widths, page: &QueuePage) -> String {
    let instant = match page.state {
        State::Dead => "died",
        State::Inflight => "deadline",
        State::Done => "done",
        _ => "due",
    };
    let due = message.int(instant).map_or_else(|| "-".to_owned(), message::distance);
    let name = if page.state == State::Done { "result" } else { "payload" };
    let text = shown(&message.get(name).and_then(message::as_text).unwrap_or_default());
    format!(
        "{}{}{} {} {}{}",
        left(&named_in(widths.id, message.bytes("id")), widths.id),
        if page.marked.contains(message.bytes("id")) { '*' } else { ' ' },
        left(&due, 12),
        right(&message.text("attempt"), 7),
        widths.cells(|name, width| cut_in_the_middle(&holder(message, name), width)),
        widths.contents(&text, &shown(&error_of(message)))
    )
}

#[cfg(test)]
mod tests {
    use crate::condition::Recent;
    use crate::reply::Fields;
    use crate::row::Snapshot;
    use crate::time::now_ms;
    use crate::top::app::App;
    use crate::top::entries::Entry;
    use crate::top::exchange::Update;
    use crate::top::view::screen;
    use crate::top::view::tests::{app, press, text};
    use crossterm::event::KeyCode;
    use dq_client::{State, Value};
    use std::time::Instant;

    /// An app with one queue that has these fields.
    fn with(fields: &[(&str, Value)]) -> App {
        let mut app = app(&["orders"]);
        let info = Fields(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect());
        let snapshot = Snapshot { at: Instant::now(), info, late: None, recent: Recent::default() };
        app.update(Update::Queues(vec![(b"orders".to_vec(), Some(snapshot))]));
        app
    }

    #[test]
    fn a_queue_that_hangs_opens_at_what_is_in_flight_and_says_who_holds_it() {
        let numbers = [("ready", 5), ("inflight", 2), ("oldest-ready", 70_000), ("oldest-inflight", 480_000)];
        let mut app = with(&numbers.map(|(name, number)| (name, Value::Int(number))));
        let line = text(&screen(&mut app, 80, 24)).swap_remove(2);
        assert!(line.contains("late (held 8m)"), "{line}");
        // With less room, why it is late.
        let line = text(&screen(&mut app, 42, 24)).swap_remove(2);
        assert!(line.contains(" held 8m"), "{line}");
        press(&mut app, &[KeyCode::Enter]);
        assert_eq!(app.queue.as_ref().map(|page| page.state), Some(State::Inflight));
        let head = text(&screen(&mut app, 80, 24)).swap_remove(0);
        assert_eq!(head.trim_end(), "orders  late (2 in flight, the oldest for 8m)");
        let holder = Entry::new(b"encoder-7".to_vec(), 1, Some(now_ms() - 480_500));
        app.update(Update::Holder(b"orders".to_vec(), Some(holder)));
        let head = text(&screen(&mut app, 80, 24)).swap_remove(0);
        assert_eq!(head.trim_end(), "orders  late: encoder-7 holds one for 8m");
    }

    #[test]
    fn a_queue_at_its_limit_in_flight_says_who_holds_it() {
        let numbers = [("ready", 5), ("inflight", 2), ("maxinflight", 2), ("oldest-inflight", 480_000)];
        let mut app = with(&numbers.map(|(name, number)| (name, Value::Int(number))));
        let line = text(&screen(&mut app, 100, 24)).swap_remove(2);
        assert!(line.contains("at its limit in flight (held 8m)"), "{line}");
        press(&mut app, &[KeyCode::Enter]);
        assert_eq!(app.queue.as_ref().map(|page| page.state), Some(State::Inflight));
        let holder = Entry::new(b"encoder-7".to_vec(), 1, Some(now_ms() - 480_500));
        app.update(Update::Holder(b"orders".to_vec(), Some(holder)));
        let head = text(&screen(&mut app, 80, 24)).swap_remove(0);
        assert_eq!(head.trim_end(), "orders  at its limit in flight: encoder-7 holds one for 8m");
    }

    #[test]
    fn numbers_of_a_queue_are_whole_or_left_out() {
        let mut app = with(&[("ready", Value::Int(1)), ("payload-bytes", Value::Int(8_294))]);
        press(&mut app, &[KeyCode::Enter]);
        let mut line = |width| text(&screen(&mut app, width, 24)).swap_remove(1).trim_end().to_owned();
        assert!(line(80).ends_with("waiting clients 0  payloads 8.1 KiB"), "{}", line(80));
        assert!(line(60).ends_with("  waiting clients 0"), "{}", line(60));
    }

    #[test]
    fn the_errors_of_the_dead_are_whole_first() {
        let mut app = with(&[("dead", Value::Int(2))]);
        press(&mut app, &[KeyCode::Enter]);
        let dead = |id: &str, error: &str| {
            let fields = [("id", id), ("payload", r#"{"order":4711,"customer":12}"#), ("error", error)];
            Fields(fields.map(|(name, value)| (name.to_owned(), Value::BulkString(value.into()))).into())
        };
        let long = "1795612345678-123-3";
        let messages = vec![dead(long, "connection refused by mail"), dead("b", "timeout")];
        app.update(Update::Messages(b"orders".to_vec(), "dead", messages));
        let lines = text(&screen(&mut app, 80, 24));
        assert!(lines[3].trim_end().ends_with("PAYLOAD      ERROR"), "{}", lines[3]);
        assert!(lines[4].trim_end().ends_with(r#"{"order":4…  connection refused by mail"#), "{}", lines[4]);
        assert!(lines[5].trim_end().ends_with(r#"{"order":4…  timeout"#), "{}", lines[5]);
        // Short ids leave the room to them.
        app.update(Update::Messages(b"orders".to_vec(), "dead", vec![dead("a", "connection refused by mail")]));
        let line = text(&screen(&mut app, 80, 24)).swap_remove(4);
        assert!(line.starts_with("a  -") && line.contains(r#""customer":12}  connection refused by mail"#), "{line}");
    }

    #[test]
    fn the_cursor_stays_on_its_message_while_others_die() {
        let mut app = with(&[("dead", Value::Int(3))]);
        press(&mut app, &[KeyCode::Enter]);
        let mut selected = |ids: &[&str], keys: &[KeyCode]| {
            let message = |id: &&str| Fields(vec![("id".to_owned(), Value::BulkString((*id).into()))]);
            app.update(Update::Messages(b"orders".to_vec(), "dead", ids.iter().map(message).collect()));
            press(&mut app, keys);
            app.selected_id().map(|id| String::from_utf8(id).unwrap()).unwrap_or_default()
        };
        assert_eq!(selected(&["c", "b", "a"], &[]), "c");
        assert_eq!(selected(&["d", "c", "b", "a"], &[]), "d", "the first line shows the newest");
        assert_eq!(selected(&["d", "c", "b", "a"], &[KeyCode::Down]), "c");
        assert_eq!(selected(&["f", "e", "d", "c", "b", "a"], &[]), "c");
        assert_eq!(selected(&["f", "e", "d", "b", "a"], &[]), "b", "the next one follows one that is gone");
    }

    #[test]
    fn bytes_that_are_no_text_are_listed_in_hexadecimal() {
        let mut app = with(&[("ready", Value::Int(1))]);
        press(&mut app, &[KeyCode::Enter]);
        let payload = Value::BulkString(vec![1, 2, 0xff, b'a']);
        let message = Fields(vec![("id".to_owned(), Value::BulkString(b"b".into())), ("payload".to_owned(), payload)]);
        app.update(Update::Messages(b"orders".to_vec(), "ready", vec![message]));
        let line = text(&screen(&mut app, 80, 24)).swap_remove(4);
        assert!(line.trim_end().ends_with(" 4 bytes: 01 02 ff 61 ...a"), "{line}");
    }

    #[test]
    fn an_error_follows_the_condition_that_it_explains() {
        let error = Value::BulkString(b"WRONGTYPE Operation against a key holding the wrong kind of value".to_vec());
        let mut app = with(&[
            ("forward-failing-since", Value::Int(1)),
            ("forward-error", error),
            ("ready", Value::Int(1)),
            ("inflight", Value::Int(1)),
            ("oldest-ready", Value::Int(70_000)),
        ]);
        press(&mut app, &[KeyCode::Enter]);
        let head = text(&screen(&mut app, 80, 24)).swap_remove(0);
        assert_eq!(head, "orders  forwarding fails: WRONGTYPE Operation against a key holding the w…  late");
    }
}

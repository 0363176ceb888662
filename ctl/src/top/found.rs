//! The search for a message by its id, or by the beginning of it, and the page with several that were found.

use super::app::App;
use super::entries::ROWS;
use super::listing::clamped;
use super::message::MessagePage;
use super::queue::{QueuePage, STATES};
use super::source::granted;
use crate::dead::error_of;
use crate::failure::Failure;
use crate::message::{as_text, distance};
use crate::output::text::{cut, grouped, left, named, named_in, shown, Line, Style};
use crate::queues;
use crate::reply::Fields;
use crate::scan;
use dq_client::{cmd, Client, Resend, State};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;

/// How long messages are looked at for the beginning of their ids, as on the page.
const SEARCH: Duration = Duration::from_secs(3);
/// How many characters of an error or a payload are kept.
const KEPT: usize = 200;

/// What was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Search {
    /// A whole id; if no queue has it, those that begin with it are found.
    Id(Vec<u8>),
    Beginning(Vec<u8>),
}

impl Search {
    fn id(&self) -> &[u8] {
        match self {
            Search::Id(id) | Search::Beginning(id) => id,
        }
    }
}

/// A message that was found.
struct Hit {
    queue: Vec<u8>,
    id: Vec<u8>,
    state: String,
    /// When it died or is due, in Unix ms.
    at: Option<i64>,
    /// Its error or, without one, its payload.
    text: String,
}

impl Hit {
    fn new(queue: &[u8], message: &Fields) -> Hit {
        let error = error_of(message);
        let payload = || message.get("payload").and_then(as_text).unwrap_or_default();
        let text = if error.is_empty() { payload() } else { error };
        Hit {
            queue: queue.to_vec(),
            id: message.bytes("id").to_vec(),
            state: message.text("state"),
            at: message.int("died").or_else(|| message.int("due")),
            text: text.chars().take(KEPT).collect(),
        }
    }
}

/// The messages that were found.
pub struct Found {
    search: Search,
    hits: Vec<Hit>,
    /// Whether the search ended before all messages were looked at.
    has_more: bool,
}

/// Looks in all queues. `answered` is called whenever the server has answered.
pub fn look(client: &Client, pattern: Option<&str>, search: Search, answered: impl Fn()) -> Result<Found, Failure> {
    let (queues, missing) = queues::find_reachable(client, pattern)?;
    let mut found = Found { search, hits: Vec::new(), has_more: false };
    if let Search::Id(id) = &found.search {
        for queue in &queues {
            let reply = granted(client.call(cmd("DQ.GET").arg(queue).arg(id), Resend::Harmless))?;
            let message = reply.map(Fields::read).transpose()?.flatten();
            found.hits.extend(message.map(|message| Hit::new(queue, &message)));
            answered();
        }
    }
    if found.hits.is_empty() {
        found.search = Search::Beginning(found.search.id().to_vec());
        let end = Instant::now() + SEARCH;
        for queue in &queues {
            found.look_through(client, queue, end)?;
            answered();
        }
        found.hits.sort_by(|a, b| (&a.queue, &a.id).cmp(&(&b.queue, &b.id)));
    }
    match missing {
        // It may be in one of those.
        Some(missing) if found.hits.is_empty() => Err(missing),
        _ => Ok(found),
    }
}

impl Found {
    /// Looks at all messages of a queue, unless enough were found or it takes too long. What the user may not read is left out.
    fn look_through(&mut self, client: &Client, queue: &[u8], end: Instant) -> Result<(), Failure> {
        if self.has_more {
            return Ok(());
        }
        let info = granted(client.call(cmd("DQ.INFO").arg(queue), Resend::Harmless))?;
        let Some(info) = info.map(Fields::read).transpose()?.flatten() else { return Ok(()) };
        let beginning = self.search.id().to_vec();
        let read = scan::pages(client, queue, &info, &[], |page| {
            let meant = page.iter().filter(|message| message.bytes("id").starts_with(&beginning));
            self.hits.extend(meant.map(|message| Hit::new(queue, message)));
            self.has_more = self.hits.len() >= ROWS || Instant::now() >= end;
            Ok(if self.has_more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        match read {
            Err(failure) if failure.is_denied() => Ok(()),
            read => read,
        }
    }
}

/// The page with several messages.
pub struct FoundPage {
    found: Found,
    pub place: usize,
    top: usize,
}

impl App {
    /// Shows the message that was found, or a list of several.
    pub fn found(&mut self, found: Found) {
        let id = named(found.search.id());
        match (found.hits.as_slice(), found.has_more) {
            ([], true) => self
                .say(&format!("no message {id} was found in {} s; dqctl find --prefix looks at all", SEARCH.as_secs())),
            ([], false) => self.say(&format!("no queue has a message {id}, nor one whose id begins with that")),
            ([hit], false) => {
                let (queue, id, state) = (hit.queue.clone(), hit.id.clone(), hit.state.clone());
                self.found = None;
                self.show_found(queue, id, &state);
            }
            _ => {
                self.leave_queue();
                (self.said, self.listing) = (None, None);
                self.found = Some(FoundPage { found, place: 0, top: 0 });
            }
        }
    }

    pub fn enter_found(&mut self) {
        let hit = self.found.as_ref().and_then(|page| page.found.hits.get(page.place));
        if let Some((queue, id, state)) = hit.map(|hit| (hit.queue.clone(), hit.id.clone(), hit.state.clone())) {
            self.show_found(queue, id, &state);
        }
    }

    fn show_found(&mut self, queue: Vec<u8>, id: Vec<u8>, state: &str) {
        let state = STATES.into_iter().find(|known| known.as_str() == state).unwrap_or(State::Ready);
        self.leave_queue();
        self.listing = None;
        self.queue = Some(QueuePage::new(queue, state));
        self.message = Some(MessagePage { id, message: None, scroll: 0 });
        self.said = None;
    }

    /// Closes all pages of a queue. What follows is the list of queues, or that of consumers, if the queue was opened there.
    pub fn leave_queue(&mut self) {
        (self.queue, self.listing, self.details, self.message) = (None, self.holders.take(), None, None);
    }
}

pub fn found_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let Some(page) = &mut app.found else { return Vec::new() };
    app.height = height;
    let hits = &page.found.hits;
    (page.place, page.top) = clamped(page.place, page.top, hits.len(), height);
    let (what, id) = match &page.found.search {
        Search::Id(id) => ("have the id", id),
        Search::Beginning(id) => ("have ids that begin with", id),
    };
    let mut title = Line::new(Style::Bold, format!("{} messages", grouped(hits.len())));
    title.add(Style::Plain, format!(" {what} {}", named_in(width / 3, id)));
    if page.found.has_more {
        title.add(Style::Warning, "  there may be more");
    }
    let rows = || hits.iter().skip(page.top).take(height);
    let widest = |of: fn(&Hit) -> &[u8]| rows().map(|hit| named(of(hit)).width()).max().unwrap_or(0);
    let most = (width / 4).max(12);
    let queue = widest(|hit| &hit.queue).clamp("QUEUE".len(), most);
    let id = widest(|hit| &hit.id).clamp("ID".len(), most);
    let line = |cells: [String; 5]| {
        let [queue_cell, id_cell, state, at, text] = cells;
        let start =
            format!("{} {} {} {}", left(&queue_cell, queue), left(&id_cell, id), left(&state, 8), left(&at, 12));
        format!("{start} {}", cut(&text, width.saturating_sub(start.width() + 1)))
    };
    let heading = ["QUEUE", "ID", "STATE", "DUE OR DIED", "ERROR OR PAYLOAD"].map(str::to_owned);
    let mut lines = vec![title, Line::new(Style::Bold, line(heading))];
    for (place, hit) in rows().enumerate() {
        let at = hit.at.map_or_else(|| "-".to_owned(), distance);
        let cells = [named_in(queue, &hit.queue), named_in(id, &hit.id), hit.state.clone(), at, shown(&hit.text)];
        let text = Line::new(Style::Plain, line(cells));
        lines.push(if place + page.top == page.place { text.fitted(width).selected() } else { text });
    }
    lines
}

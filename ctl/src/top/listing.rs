//! What a queue has besides its messages: the consumers that hold some, its groups, and the causes of its dead ones.

use super::app::App;
use super::text::{count, grouped, left, named_in, right, Line, Style};
use crate::dead::{causes, Among, Filter};
use crate::failure::Failure;
use crate::message::distance;
use crate::time::now_ms;
use dq_client::{Client, GroupInfo, GroupPause, Queue, Raw};
use std::time::{SystemTime, UNIX_EPOCH};
use unicode_width::UnicodeWidthStr;

/// The most rows of a list, and the most groups of which these are chosen.
const ROWS: usize = 500;
const GROUPS: usize = 5_000;
/// The least width of the states of groups.
const STATE: usize = 21;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listing {
    Consumers,
    Groups,
    Causes,
    /// The same of messages that died in other queues and were moved to this one.
    Letters,
}

/// The messages that are shown, if these are not all of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Only {
    /// Those that died of this cause, here or in another queue.
    Cause(String),
    Group(Vec<u8>),
}

/// A consumer, a group or a cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub name: Vec<u8>,
    pub messages: u64,
    /// When the oldest message was delivered, or is due, or when the newest died, in Unix ms.
    pub at: Option<i64>,
    pub group: Option<GroupInfo>,
}

impl Listing {
    /// The key that does something with an entry.
    pub fn key(self) -> char {
        match self {
            Listing::Groups => 'p',
            Listing::Consumers | Listing::Causes | Listing::Letters => 'r',
        }
    }
}

impl Entry {
    fn new(name: Vec<u8>, messages: u64, at: Option<i64>) -> Entry {
        Entry { name, messages, at, group: None }
    }

    /// Its name, if that is a text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// For how long it has held its oldest message, in ms.
    pub fn age(&self) -> i64 {
        self.at.map_or(0, |at| now_ms().saturating_sub(at))
    }

    pub fn is_paused(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.pause != GroupPause::Off)
    }
}

/// The page of such a list.
pub struct ListingPage {
    pub listing: Listing,
    /// `None`: it has not been read yet. An error is one line.
    pub entries: Option<Result<Vec<Entry>, String>>,
    pub place: usize,
    pub top: usize,
}

impl ListingPage {
    pub fn new(listing: Listing) -> ListingPage {
        ListingPage { listing, entries: None, place: 0, top: 0 }
    }

    fn rows(&self) -> &[Entry] {
        self.entries.as_ref().and_then(|entries| entries.as_deref().ok()).unwrap_or_default()
    }

    pub fn selected(&self) -> Option<&Entry> {
        self.rows().get(self.place)
    }

    /// Shows what was read. The cursor stays on its entry, wherever that is now.
    pub fn take(&mut self, entries: Result<Vec<Entry>, String>) {
        let selected = self.selected().map(|entry| entry.name.clone());
        self.entries = Some(entries);
        let place = self.rows().iter().position(|entry| Some(&entry.name) == selected.as_ref());
        self.place = place.unwrap_or(self.place);
    }

    pub fn clamp(&mut self, height: usize) {
        (self.place, self.top) = clamped(self.place, self.top, self.rows().len(), height);
    }
}

/// The cursor on one of `count` rows, and the first row of a screen that shows it.
pub fn clamped(place: usize, top: usize, count: usize, height: usize) -> (usize, usize) {
    let (place, height) = (place.min(count.saturating_sub(1)), height.max(1));
    (place, top.min(count.saturating_sub(height)).min(place).max((place + 1).saturating_sub(height)))
}

/// Reads a list. For the causes, all dead messages are read.
pub fn read(client: &Client, queue: &[u8], listing: Listing) -> Result<Vec<Entry>, Failure> {
    match listing {
        Listing::Consumers => consumers(&client.queue(queue)),
        Listing::Groups => groups(&client.queue(queue)),
        Listing::Causes | Listing::Letters => {
            let among = if listing == Listing::Letters { Among::Letters } else { Among::default() };
            let filter = Filter { among, ..Filter::default() };
            let found = causes(client, queue, &filter, |_| {})?.unwrap_or_default().into_iter().take(ROWS);
            Ok(found.map(|cause| Entry::new(cause.text.into(), cause.count, Some(cause.newest))).collect())
        }
    }
}

/// The one that has held a message for longest comes first.
fn consumers(queue: &Queue<Raw>) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for consumer in queue.consumers().take(ROWS) {
        let consumer = consumer?;
        entries.push(Entry::new(consumer.name, consumer.inflight, Some(unix_ms(consumer.oldest_delivery))));
    }
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

/// Those that are paused come first, then those at their rate, each by how long their messages have been due.
fn groups(queue: &Queue<Raw>) -> Result<Vec<Entry>, Failure> {
    let mut groups = queue.groups().take(GROUPS).collect::<Result<Vec<_>, _>>()?;
    let is_free = |group: &GroupInfo| (group.pause == GroupPause::Off, group.next_delivery.is_none());
    groups.sort_by_cached_key(|group| (is_free(group), group.oldest_due.is_none(), group.oldest_due));
    let entry = |group: GroupInfo| {
        let entry = Entry::new(group.name.clone(), group.waiting, group.oldest_due.map(unix_ms));
        Entry { group: Some(group), ..entry }
    };
    Ok(groups.into_iter().take(ROWS).map(entry).collect())
}

fn unix_ms(instant: SystemTime) -> i64 {
    i64::try_from(instant.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// What holds a group back. `limit` is the queue's `GROUPINFLIGHT`.
fn restraint(group: &GroupInfo, limit: i64) -> (Style, String) {
    match (group.pause, group.next_delivery) {
        (GroupPause::Endless, _) => (Style::Warning, "paused".to_owned()),
        (GroupPause::Until(end), _) => (Style::Warning, format!("paused, ends {}", distance(unix_ms(end)))),
        (GroupPause::Off, Some(next)) => (Style::Plain, format!("rate, next {}", distance(unix_ms(next)))),
        (GroupPause::Off, None) if limit > 0 && i64::try_from(group.occupied).is_ok_and(|now| now >= limit) => {
            (Style::Plain, "at its limit".to_owned())
        }
        (GroupPause::Off, None) => (Style::Plain, "open".to_owned()),
    }
}

pub fn listing_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    app.height = height;
    let (Some(queue), Some(page)) = (app.queue.as_ref(), app.listing.as_mut()) else { return Vec::new() };
    let number = |field: &str| app.queues.row(&queue.name).map_or(0, |row| row.number(field));
    page.clamp(height);
    let (what, first, when, noun) = match page.listing {
        Listing::Consumers => ("consumers that hold messages", "MESSAGES", "OLDEST SINCE", "CONSUMER"),
        Listing::Groups => ("groups", "WAITING", "FIRST DUE", "OCCUPIED STATE GROUP"),
        Listing::Causes => ("causes of the dead messages", "MESSAGES", "NEWEST", "CAUSE"),
        Listing::Letters => ("why they died in other queues", "MESSAGES", "NEWEST", "CAUSE"),
    };
    // The states of the groups on the screen are whole if there is room.
    let shown = page.rows().iter().skip(page.top).take(height).filter_map(|entry| entry.group.as_ref());
    let longest = shown.map(|group| restraint(group, number("groupinflight")).1.width()).max().unwrap_or(0);
    let state_width = longest.clamp(STATE, (width / 3).max(STATE));
    let noun = noun.replace("STATE", &left("STATE", state_width));
    let mut title = Line::new(Style::Bold, named_in(width.saturating_sub(32).max(8), &queue.name));
    title.add(Style::Plain, format!("  {what}"));
    let mut lines = vec![title, Line::new(Style::Bold, format!("{} {} {noun}", right(first, 8), left(when, 12)))];
    for (place, entry) in page.rows().iter().enumerate().skip(page.top).take(height) {
        let at = entry.at.map_or_else(|| "-".to_owned(), distance);
        let mut line = Line::new(Style::Plain, format!("{} {} ", right(&short(entry.messages), 8), left(&at, 12)));
        if let Some(group) = &entry.group {
            let (style, state) = restraint(group, number("groupinflight"));
            line.add(Style::Plain, format!("{} ", right(&short(group.occupied), 8)));
            line.add(style, format!("{} ", left(&state, state_width)));
        }
        line.add(Style::Plain, named_in(width.saturating_sub(line.width()), &entry.name));
        lines.push(if place == page.place { line.fitted(width).selected() } else { line });
    }
    let held: u64 = page.rows().iter().map(|entry| entry.messages).sum();
    let unnamed = u64::try_from(number("inflight")).unwrap_or(0).saturating_sub(held);
    let remark = match (&page.entries, page.listing) {
        (None, _) => "Reading …".to_owned(),
        (Some(Err(why)), _) => why.clone(),
        (Some(Ok(rows)), Listing::Consumers) if rows.len() < ROWS && unnamed > 0 => {
            format!("{} in flight with consumers that have no name: they pop without AS.", grouped(unnamed))
        }
        (Some(Ok(rows)), Listing::Consumers) if rows.is_empty() => "No consumer holds a message.".to_owned(),
        (Some(Ok(rows)), Listing::Groups) if rows.is_empty() => "No message has a group.".to_owned(),
        (Some(Ok(rows)), Listing::Causes | Listing::Letters) if rows.is_empty() => {
            "There are no dead messages.".to_owned()
        }
        (Some(Ok(_)), _) => return lines,
    };
    lines.push(Line::new(Style::Dim, remark));
    lines
}

fn short(messages: u64) -> String {
    count(i64::try_from(messages).unwrap_or(i64::MAX))
}

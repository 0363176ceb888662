//! What a queue has besides its messages: the consumers that hold some, and the causes of its dead ones.

use super::app::App;
use super::text::{count, grouped, left, named, named_in, right, Line, Style};
use crate::dead::{causes, Filter};
use crate::failure::Failure;
use crate::message::distance;
use dq_client::{Client, Queue, Raw};
use std::time::UNIX_EPOCH;

/// The most rows of a list.
const ROWS: usize = 500;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listing {
    Consumers,
    Causes,
}

/// A consumer, or a cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub name: Vec<u8>,
    pub messages: u64,
    /// When the oldest message was delivered, or when the newest died, in Unix ms.
    pub at: i64,
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
        Listing::Causes => {
            let found = causes(client, queue, &Filter::default(), |_| {})?.unwrap_or_default().into_iter().take(ROWS);
            Ok(found.map(|cause| Entry { name: cause.text.into(), messages: cause.count, at: cause.newest }).collect())
        }
    }
}

/// The one that has held a message for longest comes first.
fn consumers(queue: &Queue<Raw>) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for consumer in queue.consumers().take(ROWS) {
        let consumer = consumer?;
        let since = consumer.oldest_delivery.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        entries.push(Entry { name: consumer.name, messages: consumer.inflight, at });
    }
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

pub fn listing_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    app.height = height;
    let inflight =
        app.queue.as_ref().and_then(|page| app.queues.row(&page.name)).map_or(0, |row| row.number("inflight"));
    let (Some(queue), Some(page)) = (app.queue.as_ref(), app.listing.as_mut()) else { return Vec::new() };
    page.clamp(height);
    let (what, when, noun) = match page.listing {
        Listing::Consumers => ("consumers that hold messages", "OLDEST SINCE", "CONSUMER"),
        Listing::Causes => ("causes of the dead messages", "NEWEST", "CAUSE"),
    };
    let mut title = Line::new(Style::Bold, named_in(width.saturating_sub(32).max(8), &queue.name));
    title.add(Style::Plain, format!("  {what}"));
    let rest = width.saturating_sub(8 + 1 + 12 + 1);
    let heading = format!("{} {} {}", right("MESSAGES", 8), left(when, 12), left(noun, rest));
    let mut lines = vec![title, Line::new(Style::Bold, heading)];
    for (place, entry) in page.rows().iter().enumerate().skip(page.top).take(height) {
        let messages = count(i64::try_from(entry.messages).unwrap_or(i64::MAX));
        let name = left(&named(&entry.name), rest);
        let line = Line::new(Style::Plain, format!("{} {} {name}", right(&messages, 8), left(&distance(entry.at), 12)));
        lines.push(if place == page.place { line.fitted(width).selected() } else { line });
    }
    let held: u64 = page.rows().iter().map(|entry| entry.messages).sum();
    let unnamed = u64::try_from(inflight).unwrap_or(0).saturating_sub(held);
    let remark = match (&page.entries, page.listing) {
        (None, _) => "Reading …".to_owned(),
        (Some(Err(why)), _) => why.clone(),
        (Some(Ok(rows)), Listing::Consumers) if rows.len() < ROWS && unnamed > 0 => {
            format!("{} in flight with consumers that have no name: they pop without AS.", grouped(unnamed))
        }
        (Some(Ok(rows)), Listing::Consumers) if rows.is_empty() => "No consumer holds a message.".to_owned(),
        (Some(Ok(rows)), Listing::Causes) if rows.is_empty() => "There are no dead messages.".to_owned(),
        (Some(Ok(_)), _) => return lines,
    };
    lines.push(Line::new(Style::Dim, remark));
    lines
}

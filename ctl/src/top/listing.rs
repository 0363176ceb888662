//! What a queue has besides its messages, as lines: consumers, groups, causes of the dead, schedules and batches; and the
//! consumers of all queues.

use super::app::App;
use super::deaths::{target, target_in_words};
use super::entries::{unix_ms, About, Entries, Entry, ROWS};
use crate::daily::schedule::rule;
use crate::message::{as_text, distance};
use crate::name;
use crate::output::cut_in_the_middle;
use crate::output::text::{count, grouped, left, named, named_in, paragraph, right, shown, Line, Style};
use crate::reply::Fields;
use crate::row::Row;
use crate::time::{millis, now_ms, span};
use dq_client::{GroupInfo, GroupPause};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;

/// A run is late if it has been due for so long, in ms: as long as messages of a late queue.
const LATE: i64 = 60_000;
/// How many columns the name of a queue takes in which letters died.
const SOURCE: usize = 20;
/// On a screen of fewer columns, no column of a list is wider than it needs.
const NARROW: usize = 72;
/// How many lines a name in full has at most.
const FULL: usize = 4;
/// What is shown instead of the name of consumers that have none.
const UNNAMED: &str = "(no name: popped without AS)";
/// A list that was read longer ago says so.
const OLD: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listing {
    Consumers,
    /// The consumers that hold messages in all queues.
    Holders,
    Groups,
    Causes,
    /// The same of messages that died in other queues and were moved to this one.
    Letters,
    Schedules,
    Batches,
}

type Cell = (Style, String);
/// The name of a column, its least width, and where its cells end.
type Column = (&'static str, usize, fn(&str, usize) -> String);

impl Listing {
    /// The keys that change something about an entry.
    pub fn keys(self) -> &'static str {
        match self {
            Listing::Groups => "p",
            Listing::Consumers | Listing::Holders => "ru",
            Listing::Causes | Listing::Letters => "rc",
            Listing::Schedules => "n",
            Listing::Batches => "",
        }
    }

    /// Whether messages of the queue are read for it, one page after the other.
    pub fn is_costly(self) -> bool {
        match self {
            Listing::Consumers | Listing::Groups => false,
            Listing::Holders | Listing::Causes | Listing::Letters | Listing::Schedules | Listing::Batches => true,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Listing::Consumers | Listing::Holders => "consumers that hold messages",
            Listing::Groups => "groups",
            Listing::Causes => "causes of the dead messages",
            Listing::Letters => "why they died in other queues",
            Listing::Schedules => "schedules",
            Listing::Batches => "batches",
        }
    }

    /// The last column takes what is left.
    fn columns(self) -> &'static [Column] {
        match self {
            Listing::Consumers => &[("MESSAGES", 8, right), ("OLDEST SINCE", 12, left), ("CONSUMER", 0, left)],
            Listing::Holders => {
                &[("MESSAGES", 8, right), ("OLDEST SINCE", 12, left), ("QUEUE", 10, left), ("CONSUMER", 0, left)]
            }
            Listing::Groups => &[
                ("WAITING", 8, right),
                ("FIRST DUE", 12, left),
                ("OCCUPIED", 8, right),
                ("STATE", 21, left),
                ("GROUP", 0, left),
            ],
            Listing::Causes => &[("MESSAGES", 8, right), ("NEWEST", 12, left), ("CAUSE", 0, left)],
            Listing::Letters => {
                &[("MESSAGES", 8, right), ("NEWEST", 12, left), ("DIED IN", 10, left), ("CAUSE", 0, left)]
            }
            Listing::Schedules => &[
                ("RUNS", 8, right),
                ("NEXT RUN", 12, left),
                ("FAILED", 6, right),
                ("RULE", 9, left),
                ("SCHEDULE", 0, left),
            ],
            Listing::Batches => &[
                ("LEFT", 8, right),
                ("BEGAN", 12, left),
                ("ENDED", 12, left),
                ("DEAD", 5, right),
                ("THEN", 8, left),
                ("BATCH", 0, left),
            ],
        }
    }

    /// What is said if there is no row.
    fn empty(self) -> &'static str {
        match self {
            Listing::Consumers | Listing::Holders => "No consumer holds a message.",
            Listing::Groups => "No message has a group.",
            Listing::Causes | Listing::Letters => "There are no dead messages.",
            Listing::Schedules => "There are no schedules. dqctl schedule declares one.",
            Listing::Batches => "No message belongs to a batch.",
        }
    }
}

/// The page of such a list.
pub struct ListingPage {
    pub listing: Listing,
    /// `None`: it has not been read yet. An error is one line.
    pub entries: Option<Result<Entries, String>>,
    /// When it was read last: one that is costly is not read each second.
    read: Option<Instant>,
    /// Only entries with this in their name, or in that of their queue, are shown.
    pub filter: String,
    /// The same once it is complete: all groups of the queue are searched for it, also those that were not listed.
    pub sought: String,
    pub place: usize,
    pub top: usize,
}

impl ListingPage {
    pub fn new(listing: Listing) -> ListingPage {
        ListingPage {
            listing,
            entries: None,
            read: None,
            filter: String::new(),
            sought: String::new(),
            place: 0,
            top: 0,
        }
    }

    /// The entries that the filter shows.
    fn rows(&self) -> Vec<&Entry> {
        let entries = self.entries.iter().flatten().flat_map(|entries| &entries.rows);
        entries.filter(|entry| entry.has(&self.filter)).collect()
    }

    pub fn selected(&self) -> Option<&Entry> {
        self.rows().get(self.place).copied()
    }

    /// Changes the filter. Groups are looked at again without the one before.
    pub fn filter(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        (self.place, self.top) = (0, 0);
        self.sought.clear();
    }

    /// Shows what was read. The cursor stays on its entry, wherever that is now.
    pub fn take(&mut self, entries: Result<Entries, String>) {
        let selected = self.selected().cloned();
        (self.entries, self.read) = (Some(entries), Some(Instant::now()));
        let is_it =
            |entry: &Entry| selected.as_ref().is_some_and(|it| (&it.name, it.queue()) == (&entry.name, entry.queue()));
        self.place = self.rows().into_iter().position(is_it).unwrap_or(self.place);
    }

    pub fn clamp(&mut self, height: usize) {
        (self.place, self.top) = clamped(self.place, self.top, self.rows().len(), height);
    }

    /// What is said below the rows.
    fn remark(&self, row: &Row) -> Option<String> {
        let entries = match &self.entries {
            None => return Some("Reading …".to_owned()),
            Some(Err(why)) => return Some(why.clone()),
            Some(Ok(entries)) => entries,
        };
        let filter = shown(&self.filter);
        match self.listing {
            Listing::Groups if self.filter != entries.sought => {
                let is_complete = self.filter == self.sought;
                return Some(
                    if is_complete { "Looking at all groups …" } else { "Enter looks at all groups." }.to_owned(),
                );
            }
            _ if !self.filter.is_empty() && self.rows().is_empty() => {
                let none = format!("Nothing in this list has {filter:?} in its name.");
                return Some([Some(none), entries.remark.clone()].into_iter().flatten().collect::<Vec<_>>().join(" "));
            }
            _ => {}
        }
        let held: u64 = entries.rows.iter().map(|entry| entry.messages).sum();
        let unnamed = u64::try_from(row.number("inflight")).unwrap_or(0).saturating_sub(held);
        if self.listing == Listing::Consumers && entries.rows.len() < ROWS && unnamed > 0 {
            let unnamed = grouped(unnamed);
            return Some(format!("{unnamed} in flight with consumers that have no name: they pop without AS."));
        }
        let empty = entries.rows.is_empty().then(|| self.listing.empty().to_owned());
        let moved = if self.listing == Listing::Causes { target_in_words(row) } else { None };
        match moved {
            Some(target) => {
                let moved = grouped(row.number("deadforwarded").unsigned_abs());
                let said = format!("DEADFORWARD moves them to {target}: {moved} so far.");
                let follows = self.leads_to(row).map(|_| "Enter shows there why they died.".to_owned());
                Some(empty.into_iter().chain([said]).chain(follows).collect::<Vec<_>>().join(" "))
            }
            None => entries.remark.clone().or(empty),
        }
    }

    /// The queue to which the dead messages are moved, if none is left here: the causes are listed there.
    pub fn leads_to(&self, row: &Row) -> Option<Vec<u8>> {
        let is_empty = matches!(&self.entries, Some(Ok(entries)) if entries.rows.is_empty());
        let (_, name) = target(row).filter(|(kind, _)| is_empty && *kind == "QUEUE")?;
        (self.listing == Listing::Causes).then(|| name.to_vec())
    }
}

/// The cursor on one of `count` rows, and the first row of a screen that shows it.
pub fn clamped(place: usize, top: usize, count: usize, height: usize) -> (usize, usize) {
    let (place, height) = (place.min(count.saturating_sub(1)), height.max(1));
    (place, top.min(count.saturating_sub(height)).min(place).max((place + 1).saturating_sub(height)))
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

/// When the next run of a schedule is due.
fn next_run(schedule: &Fields) -> (Style, String) {
    match (schedule.text("state").as_str(), schedule.int("due")) {
        ("inflight", _) => (Style::Good, "runs now".to_owned()),
        ("ready", Some(due)) if now_ms().saturating_sub(due) >= LATE => {
            (Style::Warning, format!("due {}", distance(due)))
        }
        (_, due) => (Style::Plain, due.map_or_else(|| "-".to_owned(), distance)),
    }
}

/// What follows a batch: the id of the message or its beginning; `open` if nobody has said that.
fn follows(batch: &Fields) -> (Style, String) {
    if batch.int("closed") != Some(1) {
        return (Style::Warning, "open".to_owned());
    }
    let text = match batch.bytes("then-id") {
        [] => batch.get("then").and_then(as_text).unwrap_or_default(),
        id => name::shown(id),
    };
    (Style::Plain, shown(&text))
}

/// The cells of a row, the last one without its name. `limit` is the queue's `GROUPINFLIGHT`.
fn cells(entry: &Entry, limit: i64) -> Vec<Cell> {
    let plain = |text: String| (Style::Plain, text);
    let first = plain(short(entry.messages));
    let at = plain(entry.at.map_or_else(|| "-".to_owned(), distance));
    match &entry.about {
        About::Nothing => vec![first, at],
        About::Letters(sources) => vec![first, at, plain(sources.words(SOURCE))],
        About::Queue(queue) => vec![first, at, plain(named(queue))],
        About::Group(group) => vec![first, at, plain(short(group.occupied)), restraint(group, limit)],
        About::Schedule(schedule) => {
            let failed = schedule.int("failed-runs").unwrap_or(0);
            let style = if failed > 0 { Style::Bad } else { Style::Plain };
            vec![first, next_run(schedule), (style, count(failed)), plain(shown(&rule(schedule)))]
        }
        About::Batch(batch) => {
            let number = |name: &str| batch.int(name).unwrap_or(0);
            let (total, dead) = (number("total"), number("dead"));
            let ended = total.saturating_sub(number("left"));
            let percent = ended.saturating_mul(100) / total.max(1);
            let ended = format!("{} of {}, {percent}%", count(ended), count(total));
            let style = if dead > 0 { Style::Bad } else { Style::Plain };
            vec![first, at, plain(ended), (style, count(dead)), follows(batch)]
        }
    }
}

pub fn listing_page(app: &mut App, width: usize, height: usize) -> Vec<Line> {
    let Some(page) = app.listing.as_mut() else { return Vec::new() };
    let queue = app.queue.as_ref();
    let row = queue.and_then(|queue| app.queues.row(&queue.name)).cloned().unwrap_or_default();
    let number = |field: &str| row.number(field);
    let remark: Vec<Line> =
        page.remark(&row).into_iter().flat_map(|text| paragraph(Style::Dim, &text, width)).collect();
    let columns = page.listing.columns();
    let cells: Vec<Vec<Cell>> = page.rows().into_iter().map(|entry| cells(entry, number("groupinflight"))).collect();
    // The cells are whole if there is room for the name, too. On a narrow screen no column is wider than it needs.
    let width_of = |(at, (heading, least, _)): (usize, &Column)| {
        let cells = cells.iter().filter_map(|cells| cells.get(at)).map(|(_, text)| text.width());
        let least = if width < NARROW { heading.len() } else { *least };
        cells.fold(heading.len(), usize::max).clamp(least, (width / 3).max(least))
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(width_of).collect();
    // What is said about the rows is seen however many these are, and so is the one under the cursor in full. As many lines are
    // free for it as the longest one needs, so that the rows do not move with the cursor.
    let (_, before) = widths.split_last().unwrap_or((&0, &[]));
    let room = width.saturating_sub(before.iter().sum::<usize>() + before.len());
    let of_queue = before.last().copied().unwrap_or(0);
    let full = |entry: &Entry| in_full(entry, room, of_queue, width);
    let longest = page.rows().into_iter().map(|entry| full(entry).len()).max().unwrap_or(0);
    let remark_lines = remark.len();
    let height = height.saturating_sub(remark_lines + longest);
    app.height = height;
    page.clamp(height);
    let of =
        queue.map_or_else(|| "all queues".to_owned(), |queue| named_in(width.saturating_sub(32).max(8), &queue.name));
    let mut title = Line::new(Style::Bold, of);
    title.add(Style::Plain, format!("  {}", page.listing.title()));
    if page.listing == Listing::Holders && matches!(page.entries, Some(Ok(_))) {
        let queues: BTreeSet<_> = page.rows().into_iter().map(Entry::queue).collect();
        let plural = if queues.len() == 1 { "" } else { "s" };
        title.add(Style::Plain, format!("  {} in {} queue{plural}", grouped(page.rows().len()), grouped(queues.len())));
        if !app.queues.filter.is_empty() {
            title.add(Style::Warning, format!("  with {:?}", shown(&app.queues.filter)));
        }
    }
    let paused = page.rows().iter().filter(|entry| entry.is_paused()).count();
    if paused > 0 {
        title.add(Style::Warning, format!("  {} paused", grouped(paused)));
    }
    if !page.filter.is_empty() {
        let found = format!("  {} with {:?}", grouped(page.rows().len()), shown(&page.filter));
        title.add(Style::Warning, found);
    }
    if let Some(age) = page.read.map(|at| at.elapsed()).filter(|age| *age >= OLD) {
        title.add(Style::Warning, format!("  read {} ago", span(millis(age))));
    }
    let headings = columns.iter().zip(&widths).map(|((heading, _, align), width)| align(heading, *width));
    let mut lines = vec![title, Line::new(Style::Bold, headings.collect::<Vec<_>>().join(" "))];
    let rows = page.rows().into_iter().zip(&cells).enumerate().skip(page.top).take(height);
    for (place, (entry, cells)) in rows {
        let mut line = Line::default();
        for ((style, text), ((.., align), width)) in cells.iter().zip(columns.iter().zip(&widths)) {
            line.add(*style, align(&cut_in_the_middle(text, *width), *width));
            line.add(Style::Plain, " ");
        }
        let room = width.saturating_sub(line.width());
        let name = if entry.name.is_empty() { UNNAMED.to_owned() } else { named_in(room, &entry.name) };
        line.add(Style::Plain, name);
        lines.push(if place == page.place { line.fitted(width).selected() } else { line });
    }
    lines.extend(remark);
    if longest > 0 {
        // The two lines above the rows.
        lines.resize(height + remark_lines + 2, Line::default());
        lines.extend(page.selected().map(full).into_iter().flatten());
    }
    lines
}

/// The name of an entry whose row has no room for it, or for that of its queue; nothing if it has.
fn in_full(entry: &Entry, room: usize, of_queue: usize, width: usize) -> Vec<Line> {
    let name = if entry.name.is_empty() { UNNAMED.to_owned() } else { named(&entry.name) };
    let queue = entry.queue().map_or_else(String::new, |queue| named(queue));
    if name.width() <= room && queue.width() <= of_queue {
        return Vec::new();
    }
    let of = if queue.is_empty() { queue } else { format!("{queue}  ") };
    let mut lines = paragraph(Style::Plain, &format!("{of}{name}"), width);
    lines.truncate(FULL);
    lines
}

fn short(messages: u64) -> String {
    count(i64::try_from(messages).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Listing, OLD};
    use crate::top::entries::{Entries, Entry};
    use crate::top::exchange::Update;
    use crate::top::view::screen;
    use crate::top::view::tests::{app, press, text};
    use crossterm::event::KeyCode;

    #[test]
    fn a_list_that_is_not_read_each_second_says_how_old_it_is() {
        let mut app = app(&["mail"]);
        press(&mut app, &[KeyCode::Enter, KeyCode::Char('s')]);
        app.update(Update::Listing(b"mail".to_vec(), Listing::Schedules, Ok(Entries::default())));
        let title = |app: &mut _| text(&screen(app, 80, 24)).swap_remove(0).trim_end().to_owned();
        assert_eq!(title(&mut app), "mail  schedules");
        let page = app.listing.as_mut().unwrap();
        page.read = page.read.and_then(|at| at.checked_sub(4 * OLD));
        assert_eq!(title(&mut app), "mail  schedules  read 40s ago");
    }
    #[test]
    fn a_name_is_whole_in_its_row_or_below_on_a_narrow_screen() {
        let mut app = app(&["mail"]);
        press(&mut app, &[KeyCode::Enter, KeyCode::Char('w')]);
        for name in ["encoder-00042", "encoder-00042.eu-central-1.example.org"] {
            let rows = vec![Entry::new(name.into(), 3, None)];
            let entries = Entries { rows, ..Entries::default() };
            app.update(Update::Listing(b"mail".to_vec(), Listing::Consumers, Ok(entries)));
            for width in [40, 50, 80] {
                let lines = text(&screen(&mut app, width, 14));
                assert!(lines.iter().any(|line| line.contains(name)), "{width}: {lines:?}");
            }
        }
    }
}

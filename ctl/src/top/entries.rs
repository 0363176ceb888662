//! What the lists of a queue hold, and how they are read: consumers that hold messages, groups, causes of the dead, schedules
//! and batches; and who holds messages in all queues.

use super::listing::Listing;
use super::sources::Sources;
use crate::batches;
use crate::dead::{causes, Among, Cause, Filter};
use crate::failure::Failure;
use crate::output::text::{grouped, named};
use crate::reply::Fields;
use crate::scan;
use crate::time::{exact, millis, now_ms};
use dq_client::{Client, GroupInfo, GroupPause, Queue, Raw};
use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The most rows of a list, and the most groups of which these are chosen.
pub const ROWS: usize = 500;
const GROUPS: usize = 5_000;
/// How long groups are looked at for a part of their names: less than what counts as no answer.
const SEARCH: Duration = Duration::from_secs(2);
/// The most messages that are looked at for their batches.
const OF_BATCHES: usize = 5_000;
/// Consumers without a name are listed among those of all queues if their oldest delivery is so much older than all others, in
/// ms, as on the page.
const UNNAMED: i64 = 2_000;

/// The messages that are shown, if these are not all of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Only {
    /// Those that died of this cause, here or in another queue.
    Cause(String),
    Group(Vec<u8>),
    Batch(Vec<u8>),
    /// Those in flight that a consumer holds.
    Consumer(Vec<u8>),
}

/// The rows of a list, and what is to be said about all of them.
#[derive(Default)]
pub struct Entries {
    pub rows: Vec<Entry>,
    pub remark: Option<String>,
    /// The part of their names for which all groups were looked at.
    pub sought: String,
}

impl Entries {
    /// The first rows that are meant.
    pub fn first_of(mut self, is_meant: impl Fn(&Entry) -> bool) -> Entries {
        self.rows.retain(is_meant);
        if self.rows.len() > ROWS {
            let (first, all) = (grouped(ROWS), grouped(self.rows.len()));
            let more = format!("The first {first} of {all}: / in the list of queues leaves out others.");
            self.remark = Some(self.remark.into_iter().chain([more]).collect::<Vec<_>>().join(" "));
            self.rows.truncate(ROWS);
        }
        self
    }
}

/// A row of a list.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    pub name: Vec<u8>,
    /// How many messages it has; of a schedule, how many runs it has made.
    pub messages: u64,
    /// When the oldest message was delivered, or is due, when the newest died, when the next run is due, or when the batch
    /// began, in Unix ms.
    pub at: Option<i64>,
    pub about: About,
}

/// What only some lists know of their rows.
#[derive(Clone, PartialEq, Debug)]
pub enum About {
    Nothing,
    Group(GroupInfo),
    /// The fields of the message.
    Schedule(Fields),
    /// The fields of `DQ.BATCHINFO`.
    Batch(Fields),
    /// Where letters of a cause died.
    Letters(Sources),
    /// The queue, in a list of all queues.
    Queue(Vec<u8>),
}

impl Entry {
    pub fn new(name: Vec<u8>, messages: u64, at: Option<i64>) -> Entry {
        Entry { name, messages, at, about: About::Nothing }
    }

    fn of_fields(name: &[u8], messages: &str, at: &str, fields: &Fields, about: fn(Fields) -> About) -> Entry {
        let messages = fields.int(messages).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        Entry { about: about(fields.clone()), ..Entry::new(name.to_vec(), messages, fields.int(at)) }
    }

    /// Whether its name or that of its queue has this in it, without regard to upper and lower case.
    pub fn has(&self, part: &str) -> bool {
        let is_in = |name: &[u8]| named(name).to_lowercase().contains(&part.to_lowercase());
        part.is_empty() || is_in(&self.name) || self.queue().is_some_and(|queue| is_in(queue))
    }

    /// Its name, if that is a text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// For how long it has held its oldest message, in ms.
    pub fn age(&self) -> i64 {
        self.at.map_or(0, |at| now_ms().saturating_sub(at))
    }

    /// The queue of one that holds messages, in the list of all queues.
    pub fn queue(&self) -> Option<&Vec<u8>> {
        match &self.about {
            About::Queue(queue) => Some(queue),
            About::Nothing | About::Group(_) | About::Schedule(_) | About::Batch(_) | About::Letters(_) => None,
        }
    }

    pub fn is_paused(&self) -> bool {
        matches!(&self.about, About::Group(group) if group.pause != GroupPause::Off)
    }
}

/// Reads a list, of groups those with `sought` in their names. For causes and schedules all messages that may be meant are read,
/// and `answered` is called with each part.
pub fn read(
    client: &Client,
    queue: &[u8],
    listing: Listing,
    sought: &str,
    answered: impl Fn(),
) -> Result<Entries, Failure> {
    let rows = match listing {
        Listing::Consumers => consumers(&client.queue(queue))?,
        Listing::Groups => return groups(&client.queue(queue), sought),
        Listing::Causes | Listing::Letters => {
            let among = if listing == Listing::Letters { Among::Letters } else { Among::default() };
            let filter = Filter { among, ..Filter::default() };
            let found = causes(client, queue, &filter, |_| answered())?.unwrap_or_default().into_iter().take(ROWS);
            let entry = |cause: Cause| {
                let entry = Entry::new(cause.text.into(), cause.count, Some(cause.newest));
                let about =
                    if cause.from.is_empty() { About::Nothing } else { About::Letters(Sources::new(cause.from)) };
                Entry { about, ..entry }
            };
            found.map(entry).collect()
        }
        Listing::Schedules => schedules(client, queue, answered)?,
        Listing::Batches => return batches(client, queue),
        // These are of no single queue.
        Listing::Holders => Vec::new(),
    };
    Ok(Entries { rows, ..Entries::default() })
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

/// Who holds messages of a queue with these fields of `DQ.INFO`. Consumers without a name are one entry, if they have held
/// messages for longest: the messages in flight and those of consumers are counted one after the other, so the counts differ by
/// what is delivered meanwhile.
pub fn holders(client: &Client, queue: &[u8], info: &Fields) -> Result<Vec<Entry>, Failure> {
    let mut entries = consumers(&client.queue(queue))?;
    let named: u64 = entries.iter().map(|entry| entry.messages).sum();
    let unnamed = info.int("inflight").and_then(|all| u64::try_from(all).ok()).unwrap_or(0).saturating_sub(named);
    let since = info.int("oldest-inflight").map_or(i64::MAX, |age| now_ms().saturating_sub(age));
    let first = entries.first().and_then(|entry| entry.at).unwrap_or_else(now_ms);
    if unnamed > 0 && since.saturating_add(UNNAMED) <= first {
        entries.push(Entry::new(Vec::new(), unnamed, Some(since)));
    }
    entries.iter_mut().for_each(|entry| entry.about = About::Queue(queue.to_vec()));
    Ok(entries)
}

/// Those that are paused come first, then those at their rate, each by how long their messages have been due. Of those with a part
/// in their names, all groups are looked at, as far as the time allows it.
fn groups(queue: &Queue<Raw>, sought: &str) -> Result<Entries, Failure> {
    let (mut groups, mut looked, mut has_more) = (Vec::new(), 0, false);
    let (end, part) = (Instant::now() + SEARCH, sought.to_lowercase());
    for group in queue.groups() {
        let group = group?;
        has_more = if part.is_empty() { looked == GROUPS } else { Instant::now() >= end };
        if has_more {
            break;
        }
        looked += 1;
        if part.is_empty() || named(&group.name).to_lowercase().contains(&part) {
            groups.push(group);
        }
    }
    let found = groups.len();
    let remark = match (part.is_empty(), has_more) {
        (true, true) => Some(format!("{} of the first {}: / finds others.", grouped(ROWS), grouped(GROUPS))),
        (true, false) if found > ROWS => Some(format!("{} of {}: / finds the others.", grouped(ROWS), grouped(found))),
        (false, true) => {
            Some(format!("Only {} groups were looked at, for {}.", grouped(looked), exact(millis(SEARCH))))
        }
        (false, false) if found > ROWS => Some(format!("{} of {}.", grouped(ROWS), grouped(found))),
        (_, false) => None,
    };
    let is_free = |group: &GroupInfo| (group.pause == GroupPause::Off, group.next_delivery.is_none());
    groups.sort_by_cached_key(|group| (is_free(group), group.oldest_due.is_none(), group.oldest_due));
    let entry = |group: GroupInfo| {
        let entry = Entry::new(group.name.clone(), group.waiting, group.oldest_due.map(unix_ms));
        Entry { about: About::Group(group), ..entry }
    };
    let rows = groups.into_iter().take(ROWS).map(entry).collect();
    Ok(Entries { rows, remark, sought: sought.to_owned() })
}

/// The one whose run is due first comes first, as in `dqctl schedule`.
fn schedules(client: &Client, queue: &[u8], answered: impl Fn()) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    scan::pages(client, queue, &Fields::default(), &["RECURRING"], |page| {
        let entry = |one: &Fields| Entry::of_fields(one.bytes("id"), "runs", "due", one, About::Schedule);
        entries.extend(page.iter().map(entry));
        answered();
        Ok(ControlFlow::Continue(()))
    })?;
    entries.sort_by_key(|entry: &Entry| entry.at);
    entries.truncate(ROWS);
    Ok(entries)
}

/// The one that has most messages left comes first, as on the page.
fn batches(client: &Client, queue: &[u8]) -> Result<Entries, Failure> {
    let Some(found) = batches::find(client, queue, OF_BATCHES)? else { return Ok(Entries::default()) };
    let entry = |(name, fields): &(Vec<u8>, Fields)| Entry::of_fields(name, "left", "created", fields, About::Batch);
    let mut rows: Vec<Entry> = found.batches.iter().map(entry).collect();
    rows.sort_by_key(|entry| Reverse(entry.messages));
    rows.truncate(ROWS);
    let remark = match found.empty {
        _ if found.is_limited => Some(format!("Those of about the first {} messages.", grouped(OF_BATCHES))),
        0 => None,
        empty => Some(format!("Open batches without a message left, whose names are not known: {}.", grouped(empty))),
    };
    Ok(Entries { rows, remark, ..Entries::default() })
}

pub fn unix_ms(instant: SystemTime) -> i64 {
    i64::try_from(instant.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

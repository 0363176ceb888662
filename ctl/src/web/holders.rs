//! Who holds messages back: consumers with their deliveries, of one queue or of all, and groups.

use super::button::{button, Act, Opt};
use super::html::{address, contains, element, head, named_link, queue_link, time};
use super::{App, Params, View};
use crate::board::{consumers, groups::each, groups::group_limit, Group, Holder, Status};
use crate::server::{Failure, QueueInfo};
use crate::text::{counted, messages, now_ms, separated, shown};
use dq_client::Error;
use maud::{html, Markup};
use std::cmp::Reverse;
use std::time::{Duration, Instant};

/// Limits of a view: the time for reading, the rows in memory, and the rows that are listed.
const READ: Duration = Duration::from_secs(2);
const ROWS: usize = 20_000;
const LISTED: usize = 500;

/// The consumers of one queue.
pub fn consumers_of_queue(app: &App, queue: &[u8], info: &QueueInfo) -> Result<Markup, Failure> {
    let (mut rows, unnamed) = consumers::read(&app.client, queue, info)?;
    rows.sort_by_key(|row| row.since);
    Ok(html! {
        (table(app, &rows, false))
        @if unnamed > 0 {
            p.dim { (messages(unnamed)) " in flight with consumers that have no name: they pop without AS." }
        }
        @if rows.is_empty() && unnamed == 0 { p.empty { "No consumer holds a message." } }
    })
}

/// The consumers of all queues, those that hold a message for longest first.
pub fn everywhere(app: &App, params: &Params) -> Result<View, Failure> {
    let part = params.bytes("contains").unwrap_or_default();
    let is_known = app.board.wait()?.is_known;
    let queues: Vec<(Vec<u8>, QueueInfo)> = app.board.rows(|rows| {
        let with_consumers = rows.iter().filter(|(_, row)| row.status == Status::Known && row.info.consumers > 0);
        with_consumers.map(|(name, row)| (name.clone(), row.info.clone())).collect()
    });
    let (mut rows, mut read, end) = (Vec::new(), 0, Instant::now() + READ);
    for (name, info) in &queues {
        if Instant::now() > end || rows.len() > ROWS {
            break;
        }
        match consumers::read(&app.client, name, info) {
            Ok((found, _)) => rows.extend(found),
            Err(Error::WrongType(_) | Error::NoPermission(_)) => {}
            Err(error) => return Err(error.into()),
        }
        read += 1;
    }
    rows.retain(|row| contains(&row.queue, part) || contains(&row.consumer, part));
    rows.sort_by_key(|row| row.since);
    let body = html! {
        div.head { h1 { "Consumers" } }
        form.filters id="filters" data-view="consumers" {
            label {
                "Filter"
                input type="search" name="contains" value=(params.text("contains")) placeholder="Consumer, queue";
            }
        }
        (table(app, &rows, true))
        @if !is_known { p { "Looking for consumers…" } }
        @else if rows.is_empty() { p.empty { "No such consumer holds a message." } }
        @if read < queues.len() { p.dim { "Not all queues were read, so there may be more." } }
    };
    Ok(View { title: "Consumers".to_owned(), body })
}

fn table(app: &App, rows: &[Holder], has_queue: bool) -> Markup {
    html! {
        @if !rows.is_empty() {
            table.cards {
                (head(&["Consumer", "Queue", "Messages", "Longest since", ""]))
                tbody { @for row in rows.iter().take(LISTED) {
                    @let (queue, consumer) = (shown(&row.queue), shown(&row.consumer));
                    @let held = [("queue", row.queue.as_slice()), ("tab", b"inflight"), ("consumer", &row.consumer)];
                    tr id=(element("consumer", &[&row.queue, &row.consumer])) {
                        td.name { (named_link(&address("queue", &held), &consumer)) }
                        td.num data-label="Queue" { @if has_queue { (queue_link(&row.queue)) } }
                        td.num data-label="Messages" { (separated(row.messages)) }
                        td.num data-label="Longest since" { (time(Some(row.since))) }
                        td { @if app.allow_writes {
                            (button("Release", Act::Release, &[Opt::Queue.is(queue), Opt::Consumer.is(consumer)], &[]))
                        } }
                    }
                } }
            }
        }
    }
}

/// The first groups of a list, and how many there are of all that were read.
struct Groups {
    first: Vec<Group>,
    found: usize,
    /// There was no time to read them all.
    is_partial: bool,
}

impl Groups {
    /// Reads groups until `end`, and keeps those whose names contain this text, held-back groups first.
    fn read<E>(
        groups: impl Iterator<Item = Result<Group, E>>,
        part: &[u8],
        limit: i64,
        end: Instant,
    ) -> Result<Groups, E> {
        let (mut first, mut found, mut is_partial) = (Vec::new(), 0, false);
        let rank = |group: &Group| Reverse((group.is_paused(), !held_back(group, limit).is_empty(), group.waiting));
        for group in groups {
            let group = group?;
            if contains(group.name.as_bytes(), part) {
                first.push(group);
                found += 1;
            }
            if first.len() >= ROWS {
                first.sort_by_cached_key(rank);
                first.truncate(LISTED);
            }
            if Instant::now() > end {
                is_partial = true;
                break;
            }
        }
        first.sort_by_cached_key(rank);
        first.truncate(LISTED);
        Ok(Groups { first, found, is_partial })
    }
}

/// The groups of a queue: first those that are held back, so that they can be resumed however many others there are.
pub fn groups(app: &App, queue: &[u8], info: &QueueInfo, params: &Params) -> Result<Markup, Failure> {
    let part = params.bytes("contains").unwrap_or_default();
    let limit = group_limit(info);
    let groups = Groups::read(each(&app.client, queue), part, limit, Instant::now() + READ)?;
    let name = shown(queue);
    Ok(html! {
        form.filters id="filters" data-view="queue" {
            label {
                "Filter"
                input type="search" name="contains" value=(params.text("contains")) placeholder="Part of a name";
            }
            p.dim {
                (counted(groups.found as u64, "group", "groups"))
                @if groups.is_partial { " so far: not all were read in time, so others may be held back as well" }
            }
        }
        @if app.allow_writes {
            @let fields = [Opt::Group, Opt::For].map(Opt::empty);
            (button("Pause a group by name", Act::Pause, &[Opt::Queue.is(&*name)], &fields))
        }
        table.cards {
            (head(&["Group", "Waiting", "Occupied by", "Oldest due", "Held back", ""]))
            tbody { @for group in &groups.first {
                @let tab: &[u8] = if group.oldest_due > Some(now_ms()) { b"delayed" } else { b"ready" };
                @let waiting = [("queue", queue), ("tab", tab), ("group", group.name.as_bytes())];
                tr id=(element("group", &[group.name.as_bytes()])) {
                    td.name { (named_link(&address("queue", &waiting), &group.name)) }
                    td.num data-label="Waiting" { (group.waiting) }
                    td.num data-label="Occupied by" { (group.occupied) }
                    td.num data-label="Oldest due" { (time(group.oldest_due)) }
                    td.num data-label="Held back" { (held_back(group, limit)) }
                    td { @if app.allow_writes {
                        @let this = [Opt::Queue.is(&*name), Opt::Group.is(&*group.name)];
                        @if group.is_paused() { (button("Resume", Act::Resume, &this, &[])) }
                        @else { (button("Pause", Act::Pause, &this, &[Opt::For.empty()])) }
                    } }
                }
            } }
        }
        @if groups.found == 0 { p.empty { "No such group has a message that is not dead, and none is paused." } }
    })
}

fn held_back(group: &Group, limit: i64) -> &'static str {
    match group.paused_until {
        None => "paused until it is resumed",
        Some(until) if until > 0 => "paused for a time",
        _ if group.next_delivery > Some(now_ms()) => "at its rate",
        _ if limit > 0 && group.waiting > 0 && group.occupied >= limit => "at its limit",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{Groups, LISTED, READ, ROWS};
    use crate::board::Group;
    use std::time::Instant;

    fn group(number: usize, paused_until: Option<i64>) -> Result<Group, ()> {
        let name = format!("g{number}");
        Ok(Group { name, waiting: 1, occupied: 0, oldest_due: None, paused_until, next_delivery: None })
    }

    #[test]
    fn the_last_group_comes_first_if_it_is_held_back() {
        let (others, number) = ((0..3 * ROWS).map(|number| group(number, Some(0))), 3 * ROWS);
        let groups = Groups::read(others.chain([group(number, None)]), b"", 0, Instant::now() + 60 * READ).unwrap();
        assert_eq!((groups.first[0].name.as_str(), groups.first.len()), (format!("g{number}").as_str(), LISTED));
        assert_eq!((groups.found, groups.is_partial), (number + 1, false));
    }

    #[test]
    fn a_list_for_which_there_is_no_time_says_so() {
        let groups = Groups::read([group(1, Some(0)), group(2, None)].into_iter(), b"", 0, Instant::now()).unwrap();
        assert!(groups.is_partial && groups.found <= 2);
    }
}

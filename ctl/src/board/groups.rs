//! The groups of a queue, from `DQ.GROUPS`: what each holds, and why its messages wait.

use crate::server::{quoted, Failure, QueueInfo};
use crate::text::{instant, now_ms, shown, unix_ms};
use dq_client::{blocking::Client, Error, GroupInfo, GroupPause, Raw};

/// The most groups that are read to find those that hold messages back: for somebody who looks at a queue, and for a
/// thorough look, which takes a few seconds then. And the most that are named.
pub const MOST_READ: usize = 5_000;
pub const MOST_EXAMINED: usize = 100_000;
pub const MOST_NAMED: usize = 3;

/// A row of `DQ.GROUPS`.
pub struct Group {
    pub name: String,
    pub waiting: i64,
    pub occupied: i64,
    pub oldest_due: Option<i64>,
    /// Zero if it is not paused, and `None` if it is paused until it is resumed.
    pub paused_until: Option<i64>,
    pub next_delivery: Option<i64>,
}

impl Group {
    fn from_info(info: GroupInfo) -> Group {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Group {
            name: String::from_utf8_lossy(&info.name).into_owned(),
            waiting: number(info.waiting),
            occupied: number(info.occupied),
            oldest_due: info.oldest_due.map(unix_ms),
            paused_until: match info.pause {
                GroupPause::Off => Some(0),
                GroupPause::Until(at) => Some(unix_ms(at)),
                GroupPause::Endless => None,
            },
            next_delivery: info.next_delivery.map(unix_ms),
        }
    }

    pub fn is_paused(&self) -> bool {
        self.paused_until != Some(0)
    }
}

/// All groups, read page by page.
pub fn each(client: &Client, queue: &[u8]) -> impl Iterator<Item = Result<Group, Error>> {
    client.queue::<Raw>(queue).groups().map(|info| info.map(Group::from_info))
}

/// Why a group holds its due messages back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Until this instant, in Unix ms, or until it is resumed.
    Paused(Option<i64>),
    /// It has had as many deliveries as `GROUPRATE` allows, until this instant.
    Rate(i64),
    /// As many of its messages are in flight or wait for a retry as `GROUPINFLIGHT` allows.
    Limit,
}

/// A group that holds due messages back.
pub struct HeldGroup {
    pub group: String,
    pub why: Why,
    pub oldest_due: i64,
}

impl HeldGroup {
    /// `None` if the group holds nothing back. `limit` is the queue's `GROUPINFLIGHT`.
    fn find(group: Group, limit: i64) -> Option<HeldGroup> {
        let oldest_due = group.oldest_due.filter(|due| *due <= now_ms())?;
        let why = match (group.is_paused(), group.next_delivery) {
            (true, _) => Why::Paused(group.paused_until),
            (false, Some(next)) => Why::Rate(next),
            (false, None) if limit > 0 && group.occupied >= limit => Why::Limit,
            (false, None) => return None,
        };
        Some(HeldGroup { group: group.name, why, oldest_due })
    }

    /// Those that somebody has to resume come first.
    fn rank(&self) -> u8 {
        match self.why {
            Why::Paused(_) => 0,
            Why::Rate(_) => 1,
            Why::Limit => 2,
        }
    }

    /// One sentence, with a command of `dqctl` on the queue if there is one that fits.
    pub fn sentence(&self, queue: &[u8]) -> String {
        let group = &self.group;
        let resume = format!("dqctl resume {} --group {}", quoted(&shown(queue)), quoted(group));
        match self.why {
            Why::Paused(None) => format!("group {group} is paused until it is resumed: {resume}"),
            Why::Paused(Some(until)) => format!("group {group} is paused until {}: {resume}", instant(until)),
            Why::Rate(next) => format!("group {group} is at its rate until {}", instant(next)),
            Why::Limit => format!("group {group} is at its limit of messages in flight or waiting for a retry"),
        }
    }
}

/// The queue's `GROUPINFLIGHT`; 0: no limit.
pub fn group_limit(info: &QueueInfo) -> i64 {
    i64::try_from(info.settings.group_inflight.unwrap_or(0)).unwrap_or(i64::MAX)
}

/// The groups that hold due messages back, of those that were read.
#[derive(Default)]
pub struct Holding {
    /// The paused ones come first.
    pub groups: Vec<HeldGroup>,
    /// How many groups were read, and how many there are, if that is more.
    pub part: Option<(usize, usize)>,
}

impl Holding {
    /// `only 5000 of 20000 groups were looked at`, if that is so.
    pub fn partial(&self) -> Option<String> {
        self.part.map(|(read, all)| format!("only {read} of {all} groups were looked at"))
    }

    /// A few sentences.
    pub fn sentences(&self, queue: &[u8]) -> Vec<String> {
        let named = self.groups.iter().take(MOST_NAMED);
        let mut sentences: Vec<String> = named.map(|group| group.sentence(queue)).collect();
        let rest = match (self.groups.len().saturating_sub(MOST_NAMED), self.partial()) {
            (0, partial) => partial,
            (more, None) => Some(format!("{more} more")),
            (more, Some(partial)) => Some(format!("{more} more, and {partial}")),
        };
        sentences.extend(rest.map(|rest| format!("{rest}: dqctl groups {}", quoted(&shown(queue)))));
        sentences
    }
}

/// The groups that hold due messages back, among the first `most`. Nothing is read if `info` shows that there are none.
pub fn held_back(client: &Client, queue: &[u8], info: &QueueInfo, most: usize) -> Result<Holding, Failure> {
    let (mut holding, limit) = (Holding::default(), group_limit(info));
    if info.blocked == 0 {
        return Ok(holding);
    }
    let (mut groups, mut read) = (each(client, queue), 0);
    for group in groups.by_ref().take(most) {
        holding.groups.extend(HeldGroup::find(group?, limit));
        read += 1;
    }
    if read == most && groups.next().is_some() {
        let all = usize::try_from(info.groups).unwrap_or(usize::MAX);
        holding.part = Some((read, all.max(read + 1)));
    }
    holding.groups.sort_by_key(|held| (held.rank(), held.oldest_due));
    Ok(holding)
}

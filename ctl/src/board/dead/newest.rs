//! How many messages of a queue have died in the last minutes, and of what, as far as the newest dead ones tell.

use super::cause_of;
use crate::board::condition::RECENT;
use crate::board::first::{self, Most};
use crate::server::reply::Fields;
use crate::text::number::separated;
use crate::text::time::{now_ms, span};
use crate::text::visible;
use dq_client::{cmd, Client};
use std::collections::HashMap;

/// The most dead messages that are read, and about the most bytes of their payloads: a page shows many queues.
const READ: i64 = 100;
const BYTES: i64 = 128 * 1024;

/// What is known of the deaths of the last minutes.
pub struct Known {
    pub count: i64,
    /// Whether more may have died.
    pub has_more: bool,
    /// How many of them were read.
    pub read: i64,
    /// How many of them are dead still, if fewer are.
    pub left: Option<i64>,
    /// The most frequent cause of those, and of how many it is.
    pub cause: Option<(String, i64)>,
}

impl Known {
    /// `at least 250 in 10m: timeout (98 of the newest 100)`; `None` if the cause is not known.
    pub fn words(&self) -> Option<String> {
        let (cause, of) = self.cause.as_ref()?;
        let number = |number: i64| separated(number.unsigned_abs());
        let least = if self.has_more { "at least " } else { "" };
        let of = match self.read {
            _ if self.left.is_some() => String::new(),
            read if read == *of => String::new(),
            read if read == self.count => format!(" ({} of them)", number(*of)),
            read => format!(" ({} of the newest {})", number(*of), number(read)),
        };
        let time = span(RECENT.unsigned_abs());
        let left = self.left.map_or_else(String::new, |left| format!(", {} dead still", number(left)));
        Some(format!("{least}{} in {time}{left}: {}{of}", number(self.count), visible(cause)))
    }
}

/// The causes of those of the newest dead messages that died lately, and at how many was looked.
#[derive(Default)]
pub struct Newest {
    causes: HashMap<String, i64>,
    looked: i64,
    /// How many had died and how many were dead at that time.
    died: i64,
    dead: i64,
}

impl Newest {
    /// Counts those that died in the last minutes.
    pub fn read(client: &Client, queue: &[u8], info: &Fields) -> Newest {
        let since = now_ms().saturating_sub(RECENT);
        let peek = cmd("DQ.PEEK").arg(queue).arg("dead").clone();
        let newest = first::read(client, &peek, info, Most { messages: READ, bytes: BYTES }).unwrap_or_default();
        let mut causes = HashMap::new();
        for message in &newest {
            if message.int("died").is_some_and(|died| died > since) {
                *causes.entry(cause_of(message)).or_default() += 1;
            }
        }
        let total = |name: &str| info.int(name).unwrap_or(0);
        let looked = i64::try_from(newest.len()).unwrap_or(i64::MAX);
        Newest { causes, looked, died: total("died"), dead: total("dead") }
    }

    /// With these counts of a queue in which so many have died, all of which are dead.
    #[cfg(test)]
    pub fn of(counts: &[(&str, i64)], looked: i64, died: i64) -> Newest {
        let causes = counts.iter().map(|(cause, count)| ((*cause).to_owned(), *count)).collect();
        Newest { causes, looked, died, dead: died }
    }

    /// The same with how many have died until now, and by how many that total has grown, and whether that is over the same time;
    /// `None` if it is not known that one died.
    pub fn known(&self, died: i64, (grown, is_known): (i64, bool)) -> Option<Known> {
        let read: i64 = self.causes.values().sum();
        let count = grown.max(read + (died - self.died).max(0));
        if count == 0 {
            return None;
        }
        // Without the growth, they are all that died only if none has ever left the dead, by a limit or by a redrive, or if none died
        // before.
        let is_all = count >= died || read < self.looked && self.dead >= self.died;
        let frequent = self.causes.iter().max_by(|(a, many), (b, more)| many.cmp(more).then_with(|| b.cmp(a)));
        let cause = frequent.map(|(cause, many)| (cause.clone(), *many));
        // All of these were read if the newest ones that were read include one that died before, or are all.
        let is_read = read < self.looked || self.looked >= self.dead;
        let left = (is_read && read < count - (died - self.died).max(0)).then_some(read);
        Some(Known { count, has_more: !is_known && !is_all, read, left, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::Newest;

    #[test]
    fn of_those_that_died_lately_it_is_told_how_many_are_left_if_the_others_were_redriven() {
        let words = |looked, dead, grown| {
            let newest = Newest { dead, ..Newest::of(&[("timeout", 1)], looked, 298) };
            newest.known(298, (grown, true)).and_then(|known| known.words()).unwrap()
        };
        assert_eq!(words(1, 1, 187), "187 in 10m, 1 dead still: timeout");
        assert_eq!(words(100, 150, 187), "187 in 10m, 1 dead still: timeout");
        assert_eq!(words(1, 1, 1), "1 in 10m: timeout");
        // There may be more of them behind those that were read.
        assert_eq!(words(1, 298, 298), "298 in 10m: timeout");
    }
}

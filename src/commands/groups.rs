//! `DQ.GROUPS key cursor [COUNT n]`

use super::listing::{self, ListingOption};
use super::{Access, Arg, Call, Command, Error, Handler, Keys, Row};
use dq_queue::time::UnixMs;
use dq_queue::Pause;

#[cfg(any(test, feature = "fuzzing"))]
pub(super) use super::listing::parse;

pub struct Groups;

impl Command for Groups {
    const ROW: Row = Row {
        name: c"DQ.GROUPS",
        flags: c"readonly",
        arity: -3,
        keys: Keys::First(Access::READ),
        summary: c"Iterates over the groups of a queue with a cursor. Returns how many messages of each wait and how \
                   many occupy it, and what holds it back",
        complexity: c"O(M * log N) for each call, where M is the number of groups looked at and N the number of \
                      messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"cursor")],
        options: &[ListingOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = groups;
}

fn groups(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let instant = |at: Option<UnixMs>| ctx.integer_or_null(at.map(|at| at.as_ms() as i64));
    listing::reply(call, |queue, now, page, begin| {
        let (groups, next) = queue.scan_groups(now, page.cursor, page.count);
        begin(next);
        ctx.array(groups.len());
        for group in groups {
            ctx.array(6);
            ctx.bulk(group.name);
            ctx.integer(group.waiting as i64);
            ctx.integer(group.occupied as i64);
            instant(group.oldest_due);
            match group.pause {
                Pause::Off => ctx.integer(0),
                Pause::Until(_) | Pause::Endless => instant(group.pause.end()),
            }
            instant(group.next_delivery);
        }
    })
}

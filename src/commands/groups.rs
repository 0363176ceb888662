//! `DQ.GROUPS key cursor [COUNT n]`

use super::error::Error;
use super::options::{self, options, Options};
use super::{key_name, look_caught_up, now, word, Command, Handler};
use crate::module_api::ctx::Ctx;
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::time::UnixMs;
use dq_queue::{Pause, Queue};

/// The command.
pub struct Groups;

impl Command for Groups {
    const ROW: Row = Row {
        name: c"DQ.GROUPS",
        flags: c"readonly",
        arity: -3,
        keys: Keys::First(Access::READ),
        summary: c"Iterates over the groups of a queue with a cursor. Returns how many messages of each wait and how many occupy it, and what holds it back",
        complexity: c"O(M * log N) for each call, where M is the number of groups looked at and N the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"cursor")],
        options: &[GroupsOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = groups;
}

options! {
    /// The options of `DQ.GROUPS`.
    enum GroupsOption {
        Count => Arg::token_int(c"COUNT", c"count"),
    }
}

/// How many groups a call looks at if `COUNT` is absent.
const COUNT: usize = 10;

fn groups(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let (cursor, count) = parse(call)?;
    let now = now(ctx);
    if look_caught_up(ctx, name, now, |held| reply_page(ctx, &held.queue, cursor, count, now))?.is_none() {
        ctx.array(2);
        ctx.bulk(b"0");
        ctx.array(0);
    }
    Ok(())
}

fn reply_page(ctx: Ctx, queue: &Queue, cursor: Option<u64>, count: usize, now: UnixMs) {
    let (page, next) = queue.scan_groups(now, cursor, count);
    ctx.array(2);
    ctx.bulk(next.unwrap_or(0).to_string().as_bytes());
    ctx.array(page.len());
    for group in page {
        let instant = |at: Option<UnixMs>| match at {
            Some(at) => ctx.integer(at.as_ms() as i64),
            None => ctx.null(),
        };
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
}

/// Parses the cursor, and how many groups to look at.
pub(super) fn parse(call: &mut Call<'_>) -> Result<(Option<u64>, usize), Error> {
    let (cursor, mut count) = (options::cursor(word(call))?, COUNT);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            GroupsOption::Count => count = options.count()?,
        }
    }
    Ok((cursor, count))
}

//! `DQ.CONSUMERS key cursor [COUNT n]`

use super::error::Error;
use super::options::{self, options, Options};
use super::{key_name, look_caught_up, now, word, Command, Handler};
use crate::module_api::ctx::Ctx;
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::time::UnixMs;
use dq_queue::Queue;

/// The command.
pub struct Consumers;

impl Command for Consumers {
    const ROW: Row = Row {
        name: c"DQ.CONSUMERS",
        flags: c"readonly",
        arity: -3,
        keys: Keys::First(Access::READ),
        summary: c"Iterates over the consumers that hold messages, with a cursor. Returns how many each holds and since when",
        complexity: c"O(M * log N) for each call, where M is the number of consumers looked at and N the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"cursor")],
        options: &[ConsumersOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = consumers;
}

options! {
    /// The options of `DQ.CONSUMERS`.
    enum ConsumersOption {
        Count => Arg::token_int(c"COUNT", c"count"),
    }
}

/// How many consumers a call looks at if `COUNT` is absent.
const COUNT: usize = 10;

fn consumers(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let (cursor, count) = parse(call)?;
    let now = now(ctx);
    if look_caught_up(ctx, name, now, |held| reply_page(ctx, &held.queue, now, cursor, count))?.is_none() {
        ctx.array(2);
        ctx.bulk(b"0");
        ctx.array(0);
    }
    Ok(())
}

fn reply_page(ctx: Ctx, queue: &Queue, now: UnixMs, cursor: Option<u64>, count: usize) {
    let (page, next) = queue.scan_consumers(now, cursor, count);
    ctx.array(2);
    ctx.bulk(next.unwrap_or(0).to_string().as_bytes());
    ctx.array(page.len());
    for consumer in page {
        ctx.array(3);
        ctx.bulk(consumer.name);
        ctx.integer(consumer.inflight as i64);
        ctx.integer(consumer.oldest.as_ms() as i64);
    }
}

/// Parses the cursor, and how many consumers to look at.
pub(super) fn parse(call: &mut Call<'_>) -> Result<(Option<u64>, usize), Error> {
    let (cursor, mut count) = (options::cursor(word(call))?, COUNT);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            ConsumersOption::Count => count = options.count()?,
        }
    }
    Ok((cursor, count))
}

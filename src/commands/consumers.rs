//! `DQ.CONSUMERS key cursor [COUNT n]`

use super::listing::{self, ListingOption};
use super::{Access, Arg, Call, Command, Error, Handler, Keys, Row};

#[cfg(any(test, feature = "fuzzing"))]
pub(super) use super::listing::parse;

pub struct Consumers;

impl Command for Consumers {
    const ROW: Row = Row {
        name: c"DQ.CONSUMERS",
        flags: c"readonly",
        arity: -3,
        keys: Keys::First(Access::READ),
        summary: c"Iterates over the consumers that hold messages, with a cursor. Returns how many each holds and \
                   since when",
        complexity: c"O(M * log N) for each call, where M is the number of consumers looked at and N the number of \
                      messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"cursor")],
        options: &[ListingOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = consumers;
}

fn consumers(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    listing::reply(call, |queue, now, page, begin| {
        let (consumers, next) = queue.scan_consumers(now, page.cursor, page.count);
        begin(next);
        ctx.array(consumers.len());
        for consumer in consumers {
            ctx.array(3);
            ctx.bulk(consumer.name);
            ctx.integer(consumer.inflight as i64);
            ctx.integer(consumer.oldest.as_ms() as i64);
        }
    })
}

//! `DQ.PROMOTE key [COUNT n]`

use super::error::Error;
use super::options::{options, Options};
use super::{change_queue, key_name, now, Command, Handler};
use crate::host::event::Event;
use crate::host::write;
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::Effect;

/// The command.
pub struct Promote;

impl Command for Promote {
    const ROW: Row = Row {
        name: c"DQ.PROMOTE",
        flags: c"write",
        arity: -2,
        keys: Keys::First(Access::UPDATE),
        summary:
            c"Makes delayed messages due now, all of them or the next ones. Returns the number of messages promoted",
        complexity:
            c"O(M * log N) where M is the number of messages promoted and N the number of messages in the queue",
        args: &[Arg::key(c"key")],
        options: &[PromoteOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = promote;
}

options! {
    /// The options of `DQ.PROMOTE`.
    enum PromoteOption {
        Count => Arg::token_int(c"COUNT", c"count"),
    }
}

fn promote(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let count = parse(call)?;
    let now = now(ctx);
    let outcome = change_queue(ctx, name, now, |queue| {
        let promoted = queue.promote(now, count);
        (promoted.count > 0).then_some((promoted.count, Effect::Promote(promoted.due, promoted.spans)))
    })?;
    match outcome {
        Some((count, announcement)) => {
            ctx.integer(count as i64);
            write::announce(ctx, name, announcement, &[Event::Promote]);
        }
        None => ctx.integer(0),
    }
    Ok(())
}

/// Parses how many messages to promote: all of them if `COUNT` is absent.
pub(super) fn parse(call: &mut Call<'_>) -> Result<usize, Error> {
    let mut count = usize::MAX;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            PromoteOption::Count => count = options.count()?,
        }
    }
    Ok(count)
}

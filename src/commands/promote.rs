//! `DQ.PROMOTE key [COUNT n] [UNTIL unix-ms]`

use super::{options, Access, Arg, Call, Command, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::time::UnixMs;
use dq_queue::Effect;

pub struct Promote;

impl Command for Promote {
    const ROW: Row = Row {
        name: c"DQ.PROMOTE",
        flags: c"write",
        arity: -2,
        keys: Keys::First(Access::UPDATE),
        summary:
            c"Makes delayed messages due now: all of them, the next ones, or those that are due until a time. Returns \
              the number of messages promoted",
        complexity:
            c"O(M * log N) where M is the number of messages promoted and N the number of messages in the queue",
        args: &[Arg::key(c"key")],
        options: &[PromoteOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = promote;
}

options! {
    enum PromoteOption {
        Count => Arg::token_int(c"COUNT", c"count"),
        Until => Arg::token_time(c"UNTIL", c"unix-ms"),
    }
}

fn promote(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (count, until) = parse(call)?;
    session.change(
        |queue| {
            let promoted = queue.promote(session.now, count, until);
            (promoted.count > 0).then_some((promoted.count, move || Effect::Promote(promoted.due, promoted.spans)))
        },
        |count| session.reply_count(count, &[Event::Promote]),
    )
}

/// Parses how many messages to promote at most, and until when they are due: all of them if no option is given.
pub(super) fn parse(call: &mut Call<'_>) -> Result<(usize, Option<UnixMs>), Error> {
    let (mut count, mut until) = (usize::MAX, None);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            PromoteOption::Count => count = options.count()?,
            PromoteOption::Until => until = Some(options.instant()?),
        }
    }
    Ok((count, until))
}

//! `DQ.SCAN key cursor [STATE state] [COUNT n] [RECURRING] [SEQUENCE]`

use super::get::{reply_all, Extra};
use super::len::{state, STATES};
use super::{options, word, Access, Arg, Call, Command, Error, Handler, Keys, Options, Row, Session};
use dq_queue::id::Sequence;
use dq_queue::ScanFilter;

pub struct Scan;

impl Command for Scan {
    const ROW: Row = Row {
        name: c"DQ.SCAN",
        flags: c"readonly",
        arity: -3,
        keys: Keys::First(Access::READ),
        summary: c"Iterates over the messages of a queue in push order, with a cursor",
        complexity: c"O(M + log N) for each call, where M is the number of messages looked at and N the number of \
                      messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"cursor")],
        options: &[ScanOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = scan;
}

options! {
    enum ScanOption {
        State => STATES.after(c"STATE"),
        Count => Arg::token_int(c"COUNT", c"count"),
        Recurring => Arg::token(c"recurring", c"RECURRING"),
        Sequence => Arg::token(c"sequence", c"SEQUENCE"),
    }
}

/// How many messages a call looks at if `COUNT` is absent.
const COUNT: usize = 10;

fn scan(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let Session { ctx, now, .. } = session;
    let (after, count, filter, extra) = parse(call)?;
    let found = session.look(|held| {
        let (page, next) = held.queue.scan(now, after, count, filter);
        ctx.array(2);
        ctx.bulk(next.map_or(0, |last| last.0).to_string().as_bytes());
        reply_all(&session, &held.queue, page, extra);
    })?;
    if found.is_none() {
        ctx.array(2);
        ctx.bulk(b"0");
        ctx.array(0);
    }
    Ok(())
}

/// Parses the last message of the page before, how many messages to look at, which of them to return, and what to add.
pub(super) fn parse(call: &mut Call<'_>) -> Result<(Option<Sequence>, usize, ScanFilter, Extra), Error> {
    let after = options::cursor(word(call))?.map(Sequence);
    let (mut count, mut filter, mut extra) = (COUNT, ScanFilter::default(), Extra::Nothing);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            ScanOption::State => filter.kind = Some(state(options.value()?)?),
            ScanOption::Count => count = options.count()?,
            ScanOption::Recurring => filter.recurring = true,
            ScanOption::Sequence => extra = Extra::Sequence,
        }
    }
    Ok((after, count, filter, extra))
}

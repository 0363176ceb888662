//! `DQ.PEEK key [state] [COUNT n] [GROUP name]`

use super::get::{reply_all, Extra};
use super::len::{state, STATES};
use super::{options, Access, Arg, Call, Command, Error, Handler, Keys, OptionSet, Options, Row, Session};
use dq_queue::StateKind;

pub struct Peek;

impl Command for Peek {
    const ROW: Row = Row {
        name: c"DQ.PEEK",
        flags: c"readonly",
        arity: -2,
        keys: Keys::First(Access::READ),
        summary: c"Returns the first messages of a state in the order in which they will leave it. Dead and done \
                   messages are returned newest first",
        complexity: c"O(M * log N) where M is the number of messages returned and N the number of messages in the \
                      queue",
        args: &[Arg::key(c"key"), STATES.optional()],
        options: &[PeekOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = peek;
}

options! {
    enum PeekOption {
        Count => Arg::token_int(c"COUNT", c"count"),
        Group => Arg::token_string(c"GROUP", c"group"),
    }
}

fn peek(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let now = session.now;
    let (kind, count, group) = parse(call)?;
    let shown = session.look_caught_up(|held| {
        let next = match group {
            None => held.queue.peek(now, kind, count),
            Some(group) => held.queue.peek_group(now, group, kind, count),
        };
        reply_all(&session, &held.queue, next, Extra::Nothing);
    })?;
    if shown.is_none() {
        session.ctx.array(0);
    }
    Ok(())
}

pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(StateKind, usize, Option<&'a [u8]>), Error> {
    let (mut kind, mut count, mut group) = (StateKind::Ready, 1, None);
    if let Some(word) = call.args.peek().filter(|word| PeekOption::find(word).is_none()) {
        kind = state(word)?;
        call.args.next();
    }
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            PeekOption::Count => count = options.count()?,
            PeekOption::Group => group = Some(options.group()?),
        }
    }
    Ok((kind, count, group))
}

//! `DQ.LEN key [state] [GROUP name]`

use super::{options, Access, Arg, Call, Command, Error, Handler, Keys, OptionSet, Options, Row, Session};
use dq_queue::StateKind;

pub struct Len;

/// The states as an argument.
pub const STATES: Arg = Arg::oneof(
    c"state",
    &[
        Arg::token(c"delayed", c"DELAYED"),
        Arg::token(c"ready", c"READY"),
        Arg::token(c"inflight", c"INFLIGHT"),
        Arg::token(c"dead", c"DEAD"),
        Arg::token(c"done", c"DONE"),
    ],
);

impl Command for Len {
    const ROW: Row = Row {
        name: c"DQ.LEN",
        flags: c"readonly fast",
        arity: -2,
        keys: Keys::First(Access::PEEK),
        summary: c"Returns the number of messages in one state, or of all messages that are to be completed. \
                   Optionally of one group",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), STATES.optional()],
        options: &[LenOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = len;
}

options! {
    enum LenOption {
        Group => Arg::token_string(c"GROUP", c"group"),
    }
}

/// Parses the name of a state.
pub fn state(word: &[u8]) -> Result<StateKind, Error> {
    StateKind::parse(word).ok_or_else(|| Error::UnknownState(Error::shown(word)))
}

fn len(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (wanted, group) = parse(call)?;
    let counts = session.look_caught_up(|held| match group {
        None => held.queue.counts_at(session.now),
        Some(group) => held.queue.counts_of_group(session.now, group),
    })?;
    let counts = counts.unwrap_or_default();
    let is_wanted = |kind: &StateKind| wanted.map_or(kind.is_open(), |wanted| wanted == *kind);
    let len: u64 = StateKind::ALL.into_iter().filter(is_wanted).map(|kind| counts.count(kind)).sum();
    session.ctx.integer(len as i64);
    Ok(())
}

/// Parses the state and the group to count; each may be absent.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(Option<StateKind>, Option<&'a [u8]>), Error> {
    let (mut wanted, mut group) = (None, None);
    if let Some(word) = call.args.peek().filter(|word| LenOption::find(word).is_none()) {
        wanted = Some(state(word)?);
        call.args.next();
    }
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            LenOption::Group => group = Some(options.group()?),
        }
    }
    Ok((wanted, group))
}

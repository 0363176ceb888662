//! `DQ.PURGE key [state ...] [COUNT n] [GROUP name] [RECURRING] [OLDER ms]`

use super::len::{state, STATES};
use super::{options, Access, Arg, Call, Command, Error, Event, Handler, Keys, OptionSet, Options, Row, Session};
use dq_queue::{Effect, Spare, States, ToPurge};

pub struct Purge;

impl Command for Purge {
    const ROW: Row = Row {
        name: c"DQ.PURGE",
        flags: c"write",
        arity: -2,
        keys: Keys::First(Access::DELETE),
        summary:
            c"Removes the messages of a queue: all of them, those in some states, of one group or of some age, or \
              the first ones. Returns the number of messages removed",
        complexity: c"O(M * log N) where M is the number of messages removed and N the number of messages in the \
                      queue. With OLDER M is the number of messages in the states",
        args: &[Arg::key(c"key"), STATES.optional().multiple()],
        options: &[PurgeOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = purge;
}

options! {
    enum PurgeOption {
        Count => Arg::token_int(c"COUNT", c"count"),
        Group => Arg::token_string(c"GROUP", c"group"),
        Recurring => Arg::token(c"recurring", c"RECURRING"),
        Older => Arg::token_int(c"OLDER", c"older-ms"),
    }
}

fn purge(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (which, group) = parse(call)?;
    session.change(
        |queue| {
            let purged = match group {
                Some(group) => queue.purge_group(session.now, group, &which),
                None => queue.purge(session.now, &which),
            };
            let effect = move || Effect::Purge { messages: purged.messages, done: purged.done };
            (purged.count > 0).then_some((purged.count, effect))
        },
        |count| session.reply_count(count, &[Event::Purge]),
    )
}

/// Parses which messages to remove, and of which group.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(ToPurge, Option<&'a [u8]>), Error> {
    let mut named: Option<States> = None;
    while let Some(word) = call.args.peek().filter(|word| PurgeOption::find(word).is_none()) {
        let state = States::only(state(word)?);
        named = Some(named.map_or(state, |named| named.and(state)));
        call.args.next();
    }
    let (mut which, mut group) = (ToPurge::all(named.unwrap_or(States::ALL)), None);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            PurgeOption::Count => which.count = Some(options.count()?),
            PurgeOption::Group => group = Some(options.group()?),
            PurgeOption::Recurring => which.spare = Spare::Nothing,
            PurgeOption::Older => which.older = Some(options.duration()?),
        }
    }
    Ok((which, group))
}

//! `DQ.EXTEND key id|receipt [LEASE ms] [CHECKPOINT bytes]`

use super::{options, word, Access, Arg, Call, Command, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::id::Target;
use dq_queue::Effect;

pub struct Extend;

impl Command for Extend {
    const ROW: Row = Row {
        name: c"DQ.EXTEND",
        flags: c"write fast",
        arity: -3,
        keys: Keys::First(Access::UPDATE),
        summary: c"Restarts the lease of a message in flight. Returns the new deadline",
        complexity: c"O(log N) where N is the number of messages in the queue",
        tips: c"nondeterministic_output",
        args: &[Arg::key(c"key"), Arg::string(c"id-or-receipt")],
        options: &[ExtendOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = extend;
}

options! {
    enum ExtendOption {
        Lease => Arg::token_int(c"LEASE", c"lease-ms"),
        Checkpoint => Arg::token_string(c"CHECKPOINT", c"checkpoint"),
    }
}

fn extend(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let target = Target::parse(word(call));
    let (mut lease, mut checkpoint) = (None, None);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            ExtendOption::Lease => lease = Some(options.positive_duration()?),
            ExtendOption::Checkpoint => checkpoint = Some(options.checkpoint()?),
        }
    }
    session.change(
        |queue| {
            let (sequence, deadline) = queue.extend(session.now, &target?, lease, checkpoint)?;
            Some((deadline, move || Effect::Extend { those: [(sequence, deadline)].into(), checkpoint }))
        },
        |deadline| {
            session.ctx.integer_or_null(deadline.map(|deadline| deadline.as_ms() as i64));
            &[Event::Extend]
        },
    )
}

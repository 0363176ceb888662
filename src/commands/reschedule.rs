//! `DQ.RESCHEDULE key id [DELAY ms | AT unix-ms] [PRIORITY n]`, at least one of them

use super::options::DUE;
use super::{id, options, word, Access, Arg, Call, Command, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::{Effect, Reschedule as To};

pub struct Reschedule;

impl Command for Reschedule {
    const ROW: Row = Row {
        name: c"DQ.RESCHEDULE",
        flags: c"write fast",
        arity: -4,
        keys: Keys::First(Access::UPDATE),
        summary: c"Changes the due time, the priority, or both, of a delayed or ready message",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id")],
        options: &[RescheduleOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = reschedule;
}

options! {
    enum RescheduleOption {
        Delay | At => DUE,
        Priority => Arg::token_int(c"PRIORITY", c"priority"),
    }
}

fn reschedule(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let id = id(word(call))?;
    let to = parse(call)?;
    session.change(
        |queue| {
            let moved = queue.reschedule(session.now, &id?, &to)?;
            let (sequence, due, priority) = (moved.sequence, moved.due, moved.priority);
            Some(((), move || Effect::Reschedule { sequence, due, priority }))
        },
        |moved| {
            session.ctx.integer(moved.is_some().into());
            &[Event::Reschedule]
        },
    )
}

pub(super) fn parse(call: &mut Call<'_>) -> Result<To, Error> {
    let mut to = To::default();
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            RescheduleOption::Delay => options.delay(&mut to.due)?,
            RescheduleOption::At => options.at(&mut to.due)?,
            RescheduleOption::Priority => to.priority = Some(options.priority()?),
        }
    }
    // The arity guarantees at least one more word, and every option has a value, so at least one option was given.
    Ok(to)
}

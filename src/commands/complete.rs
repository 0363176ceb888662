//! `DQ.COMPLETE key id|receipt [RESULT bytes] [RETAIN ms]`

use super::{options, word, Access, Arg, Call, Command, Death, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::id::Target;
use dq_queue::{Completion, Effect, RESULT_MAX};

pub struct Complete;

impl Command for Complete {
    const ROW: Row = Row {
        name: c"DQ.COMPLETE",
        flags: c"write fast",
        arity: -3,
        keys: Keys::First(Access::UPDATE),
        summary:
            c"Acknowledges a delivered message with a result, which is kept for a time. Returns whether it was removed",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id-or-receipt")],
        options: &[CompleteOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = complete;
}

options! {
    enum CompleteOption {
        Result => Arg::token_string(c"RESULT", c"result"),
        Retain => Arg::token_int(c"RETAIN", c"retain-ms"),
    }
}

fn complete(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (target, how) = parse(call)?;
    session.change(
        |queue| {
            let completed = queue.complete(session.now, &target?, &how)?;
            let result = how.result;
            let effect = move || Effect::Complete { sequence: completed.sequence, until: completed.until, result };
            Some((Death::from_state(completed.next), effect))
        },
        |death| {
            session.ctx.integer(death.is_some().into());
            Event::after_completion(death.unwrap_or(Death::None))
        },
    )
}

/// Parses the message, `None` if no message can have this id, and how it is completed.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(Option<Target<'a>>, Completion<'a>), Error> {
    let target = Target::parse(word(call));
    let mut how = Completion::default();
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            CompleteOption::Result => how.result = Some(options.value()?),
            CompleteOption::Retain => how.retain = Some(options.duration()?),
        }
    }
    match how.result {
        Some(result) if result.len() > RESULT_MAX => Err(Error::ResultTooLarge),
        _ => Ok((target, how)),
    }
}

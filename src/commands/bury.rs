//! `DQ.BURY key id [ERROR text]`

use super::{id, options, word, Access, Arg, Call, Command, Death, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::Effect;

pub struct Bury;

impl Command for Bury {
    const ROW: Row = Row {
        name: c"DQ.BURY",
        flags: c"write fast",
        arity: -3,
        keys: Keys::First(Access::UPDATE),
        summary: c"Makes a message dead, whether or not it was delivered. Returns its previous state",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id")],
        options: &[BuryOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = bury;
}

options! {
    enum BuryOption {
        Error => Arg::token_string(c"ERROR", c"error"),
    }
}

fn bury(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let id = id(word(call))?;
    let error = parse(call)?;
    session.change(
        |queue| {
            let buried = queue.bury(session.now, &id?, error)?;
            let (outcome, sequence) = ((buried.was, buried.died), buried.sequence);
            Some((outcome, move || Effect::Bury(sequence, buried.error)))
        },
        |buried| {
            session.ctx.bulk_or_null(buried.map(|(was, _)| was.as_str().as_bytes()));
            Event::after_burial(Death::if_any(buried.is_some_and(|(_, died)| died)))
        },
    )
}

pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<Option<&'a [u8]>, Error> {
    let mut error = None;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            BuryOption::Error => error = Some(options.value()?),
        }
    }
    Ok(error)
}

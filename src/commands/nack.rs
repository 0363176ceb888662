//! `DQ.NACK key id|receipt [DELAY ms] [ERROR text] [DEAD | NOCOUNT] [CHECKPOINT bytes]`

use super::{options, word, Access, Arg, Call, Command, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::id::Target;
use dq_queue::{Effect, Nack as Wanted, Verdict};

pub struct Nack;

impl Command for Nack {
    const ROW: Row = Row {
        name: c"DQ.NACK",
        flags: c"write fast",
        arity: -3,
        keys: Keys::First(Access::UPDATE),
        summary: c"Gives back a message in flight, to be delivered again or to become dead",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id-or-receipt")],
        options: &[NackOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = nack;
}

options! {
    enum NackOption {
        Delay => Arg::token_int(c"DELAY", c"ms"),
        Error => Arg::token_string(c"ERROR", c"error"),
        Dead | NoCount => Arg::oneof(c"verdict", &[Arg::token(c"dead", c"DEAD"), Arg::token(c"nocount", c"NOCOUNT")]),
        Checkpoint => Arg::token_string(c"CHECKPOINT", c"checkpoint"),
    }
}

fn nack(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let target = Target::parse(word(call));
    let wanted = parse(call)?;
    session.change(
        |queue| {
            let nacked = queue.nack(session.now, &target?, &wanted)?;
            let effect = move || Effect::Nack {
                sequence: nacked.sequence,
                fate: nacked.fate,
                attempts: nacked.attempts,
                error: nacked.error,
                checkpoint: nacked.checkpoint,
            };
            Some(((nacked.state, nacked.fate), effect))
        },
        |nacked| {
            session.ctx.bulk_or_null(nacked.map(|(state, _)| state.as_str().as_bytes()));
            nacked.map_or(&[], |(_, fate)| Event::after_nack(fate))
        },
    )
}

pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<Wanted<'a>, Error> {
    let mut wanted = Wanted::default();
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            NackOption::Delay => wanted.delay = Some(options.duration()?),
            NackOption::Error => wanted.error = Some(options.value()?),
            NackOption::Dead => set_verdict(&mut wanted, Verdict::Rejected)?,
            NackOption::Checkpoint => wanted.checkpoint = Some(options.checkpoint()?),
            NackOption::NoCount => set_verdict(&mut wanted, Verdict::NotCounted)?,
        }
    }
    Ok(wanted)
}

fn set_verdict(wanted: &mut Wanted<'_>, verdict: Verdict) -> Result<(), Error> {
    if wanted.verdict != Verdict::Failed {
        return Err(Error::Exclusive("DEAD", "NOCOUNT"));
    }
    wanted.verdict = verdict;
    Ok(())
}

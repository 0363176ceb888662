//! `DQ.NACK key id|receipt [DELAY ms] [ERROR text] [DEAD]`

use super::error::Error;
use super::options::Options;
use super::{change_queue, key_name, now, serve, word};
use crate::queue::id::Target;
use crate::queue::{Effect, Nack as Terms};
use crate::server::register::{Access, Arg, Call, Command, Keys, Row};
use crate::server::write;
use serde_bytes::Bytes;

/// The command.
pub struct Nack;

impl Command for Nack {
    const ROW: Row = Row {
        name: c"DQ.NACK",
        flags: c"write fast",
        arity: -3,
        keys: Keys::First(Access::UPDATE),
        acl: c"write fast",
        summary: c"Gives a message in flight back, to be delivered again after a delay or to be dead",
        complexity: c"O(log N) with N the messages in the queue",
        since: c"0.1.0",
        tips: c"",
        args: &[
            Arg::key(c"key"),
            Arg::string(c"id-or-receipt"),
            Arg::token_int(c"DELAY", c"ms").optional(),
            Arg::token_string(c"ERROR", c"error").optional(),
            Arg::token(c"dead", c"DEAD").optional(),
        ],
    };

    fn run(call: Call<'_>) {
        serve(call, nack);
    }
}

const OPTIONS: &[&str] = &["DELAY", "ERROR", "DEAD"];

fn nack(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let target = Target::parse(word(call));
    let terms = parse(call)?;
    let now = now(ctx);
    let outcome = change_queue(ctx, name, now, |queue| {
        let nacked = queue.nack(now, &target?, &terms)?;
        Some((nacked.state, Effect::Nack(nacked.sequence, nacked.fate, nacked.error.map(Bytes::new))))
    })?;
    match outcome {
        Some((state, announcement)) => {
            ctx.bulk(state.as_str().as_bytes());
            write::announce(ctx, name, announcement, c"dq.nack");
        }
        None => ctx.null(),
    }
    Ok(())
}

pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<Terms<'a>, Error> {
    let mut terms = Terms::default();
    let mut options = Options::new(&mut call.args, OPTIONS);
    while let Some(option) = options.next()? {
        match option {
            "DELAY" => terms.delay = Some(options.duration(option)?),
            "ERROR" => terms.error = Some(options.value(option)?),
            _ => terms.reject = true,
        }
    }
    Ok(terms)
}

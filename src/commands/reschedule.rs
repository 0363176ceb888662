//! `DQ.RESCHEDULE key id DELAY ms | AT unix-ms`

use super::error::Error;
use super::options::{Options, DUE};
use super::{change_queue, key_name, now, serve, word};
use crate::queue::id::Id;
use crate::queue::{Due, Effect};
use crate::server::register::{Access, Arg, Call, Command, Keys, Row};
use crate::server::write;

/// The command.
pub struct Reschedule;

impl Command for Reschedule {
    const ROW: Row = Row {
        name: c"DQ.RESCHEDULE",
        flags: c"write fast",
        arity: -4,
        keys: Keys::First(Access::UPDATE),
        acl: c"write fast",
        summary: c"Moves a delayed or ready message to another due time",
        complexity: c"O(log N) with N the messages in the queue",
        since: c"0.1.0",
        tips: c"",
        args: &[Arg::key(c"key"), Arg::string(c"id"), DUE],
    };

    fn run(call: Call<'_>) {
        serve(call, reschedule);
    }
}

const OPTIONS: &[&str] = &["DELAY", "AT"];

fn reschedule(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let id = Id::parse(word(call));
    let due = parse(call)?;
    let now = now(ctx);
    let outcome = change_queue(ctx, name, now, |queue| {
        let (sequence, due) = queue.reschedule(now, &id?, due)?;
        Some(((), Effect::Reschedule(sequence, due)))
    })?;
    match outcome {
        Some(((), announcement)) => {
            ctx.integer(1);
            write::announce(ctx, name, announcement, c"dq.reschedule");
        }
        None => ctx.integer(0),
    }
    Ok(())
}

pub(super) fn parse(call: &mut Call<'_>) -> Result<Due, Error> {
    let mut due = None;
    let mut options = Options::new(&mut call.args, OPTIONS);
    while let Some(option) = options.next()? {
        options.due(option, &mut due)?;
    }
    // The arity promises a word, so this is never missing.
    due.ok_or(Error::NoValue("DELAY or AT"))
}

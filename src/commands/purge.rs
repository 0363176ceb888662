//! `DQ.PURGE key [state ...]`

use super::error::Error;
use super::len::{state, STATES};
use super::{change_queue, key_name, now, serve};
use crate::queue::{Effect, States};
use crate::server::register::{Access, Arg, Call, Command, Keys, Row};
use crate::server::write;

/// The command.
pub struct Purge;

impl Command for Purge {
    const ROW: Row = Row {
        name: c"DQ.PURGE",
        flags: c"write",
        arity: -2,
        keys: Keys::First(Access::DELETE),
        acl: c"write slow",
        summary: c"Removes all messages that are in one of the states named, or all there are, and answers how many",
        complexity: c"O(M * log N) with M the messages removed and N the messages in the queue",
        since: c"0.1.0",
        tips: c"",
        args: &[Arg::key(c"key"), STATES.optional().multiple()],
    };

    fn run(call: Call<'_>) {
        serve(call, purge);
    }
}

fn purge(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let mut named: Option<States> = None;
    while let Some(word) = call.args.next() {
        let state = States::only(state(word)?);
        named = Some(named.map_or(state, |named| named.and(state)));
    }
    let states = named.unwrap_or(States::ALL);
    let now = now(ctx);
    let outcome = change_queue(ctx, name, now, |queue| {
        let purged = queue.purge(now, states);
        (purged > 0).then_some((purged, Effect::Purge(states)))
    })?;
    match outcome {
        Some((purged, announcement)) => {
            ctx.integer(purged as i64);
            write::announce(ctx, name, announcement, c"dq.purge");
        }
        None => ctx.integer(0),
    }
    Ok(())
}

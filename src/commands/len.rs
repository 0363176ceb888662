//! `DQ.LEN key [state]`

use super::error::Error;
use super::{key_name, look_at, now, serve};
use crate::queue::Counts;
use crate::server::register::{Access, Arg, Call, Command, Keys, Row};

/// The command.
pub struct Len;

/// The states, as arguments.
pub const STATES: Arg = Arg::oneof(
    c"state",
    &[
        Arg::token(c"delayed", c"DELAYED"),
        Arg::token(c"ready", c"READY"),
        Arg::token(c"inflight", c"INFLIGHT"),
        Arg::token(c"dead", c"DEAD"),
    ],
);

impl Command for Len {
    const ROW: Row = Row {
        name: c"DQ.LEN",
        flags: c"readonly fast",
        arity: -2,
        keys: Keys::First(Access::PEEK),
        acl: c"read fast",
        summary: c"Counts the messages in one state, or all that are still to be completed",
        complexity: c"O(log N) with N the messages in the queue",
        since: c"0.1.0",
        tips: c"",
        args: &[Arg::key(c"key"), STATES.optional()],
    };

    fn run(call: Call<'_>) {
        serve(call, len);
    }
}

/// The counts, each with the word for its state.
fn by_state(counts: &Counts) -> [(&'static str, u64); 4] {
    [("delayed", counts.delayed), ("ready", counts.ready), ("inflight", counts.inflight), ("dead", counts.dead)]
}

fn len(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let state = match call.args.next() {
        None => None,
        Some(word) => {
            let known = by_state(&Counts::default()).into_iter().map(|(state, _)| state);
            let state = known.into_iter().find(|state| state.as_bytes().eq_ignore_ascii_case(word));
            Some(state.ok_or_else(|| Error::UnknownState(Error::shown(word)))?)
        }
    };
    if let Some(word) = call.args.next() {
        return Err(Error::UnknownOption(Error::shown(word)));
    }
    let now = now(ctx);
    let counts = look_at(ctx, name, |held| held.queue.counts_at(now))?.unwrap_or_default();
    let wanted = |of: &str| state.map_or(of != "dead", |state| state == of);
    let len: u64 = by_state(&counts).into_iter().filter(|(of, _)| wanted(of)).map(|(_, count)| count).sum();
    ctx.integer(len as i64);
    Ok(())
}

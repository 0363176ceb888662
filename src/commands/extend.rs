//! `DQ.EXTEND key id|receipt [LEASE ms]`

use super::error::Error;
use super::options::Options;
use super::{key_name, now, serve, with_queue, word};
use crate::queue::id::Target;
use crate::queue::Effect;
use crate::server::register::{Access, Arg, Call, Command, Keys, Row};
use crate::server::write;

/// The command.
pub struct Extend;

impl Command for Extend {
    const ROW: Row = Row {
        name: c"DQ.EXTEND",
        flags: c"write fast",
        arity: -3,
        keys: Keys::First(Access::UPDATE),
        acl: c"write fast",
        summary: c"Starts the lease of a message in flight anew, and answers its new deadline",
        complexity: c"O(log N) with N the messages in the queue",
        since: c"0.1.0",
        tips: c"nondeterministic_output",
        args: &[Arg::key(c"key"), Arg::string(c"id-or-receipt"), Arg::token_int(c"LEASE", c"lease-ms").optional()],
    };

    fn run(call: Call<'_>) {
        serve(call, extend);
    }
}

const OPTIONS: &[&str] = &["LEASE"];

fn extend(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let target = Target::parse(word(call));
    let mut lease = None;
    let mut options = Options::new(&mut call.args, OPTIONS);
    while let Some(option) = options.next()? {
        lease = Some(options.lease(option)?);
    }
    let now = now(ctx);
    let outcome = with_queue(ctx, name, |held| {
        let extended = target.and_then(|target| held.queue.extend(now, &target, lease));
        let Some((sequence, deadline)) = extended else {
            let _ = write::settle(ctx, name, held, now, false);
            return None;
        };
        let effect = || Effect::Extend(sequence, deadline);
        Some((deadline, write::record(ctx, name, held, now, false, effect)))
    })?;
    match outcome.flatten() {
        Some((deadline, announcement)) => {
            ctx.integer(deadline.as_ms() as i64);
            write::announce(ctx, name, announcement, c"dq.extend");
        }
        None => ctx.null(),
    }
    Ok(())
}

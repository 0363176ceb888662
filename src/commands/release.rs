//! `DQ.RELEASE key consumer [COUNT n] [NOCOUNT]`

use super::error::Error;
use super::options::{options, Options};
use super::{change_queue, key_name, now, word, Command, Handler};
use crate::host::event::{Death, Event};
use crate::host::write;
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::{Effect, Verdict};

/// The command.
pub struct Release;

impl Command for Release {
    const ROW: Row = Row {
        name: c"DQ.RELEASE",
        flags: c"write",
        arity: -3,
        keys: Keys::First(Access::UPDATE),
        summary: c"Takes from a consumer that is gone the messages that it holds, as if their leases had ended. Returns how many",
        complexity: c"O(M * log N) where M is the number of messages released and N the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"consumer")],
        options: &[ReleaseOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = release;
}

options! {
    /// The options of `DQ.RELEASE`.
    enum ReleaseOption {
        Count => Arg::token_int(c"COUNT", c"count"),
        NoCount => Arg::token(c"nocount", c"NOCOUNT"),
    }
}

fn release(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let consumer = word(call);
    let (count, verdict) = parse(call)?;
    let now = now(ctx);
    let outcome = change_queue(ctx, name, now, |queue| {
        let released = queue.release(now, consumer, count, verdict);
        let death = if released.died { Death::Some } else { Death::None };
        let effect = move || Effect::Release { ended: released.ended, given_back: released.given_back };
        (released.count > 0).then_some(((released.count, death), effect))
    })?;
    match outcome {
        Some(((count, death), announcement)) => {
            ctx.integer(count as i64);
            write::announce(ctx, name, announcement, Event::of_release(death));
        }
        None => ctx.integer(0),
    }
    Ok(())
}

/// Parses how many messages are released at most, and how these deliveries count.
pub(super) fn parse(call: &mut Call<'_>) -> Result<(Option<usize>, Verdict), Error> {
    let (mut count, mut verdict) = (None, Verdict::Failed);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            ReleaseOption::Count => count = Some(options.count()?),
            ReleaseOption::NoCount => verdict = Verdict::NotCounted,
        }
    }
    Ok((count, verdict))
}

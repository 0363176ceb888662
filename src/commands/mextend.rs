//! `DQ.MEXTEND key count id|receipt [id|receipt ...] [LEASE ms]`

use super::error::Error;
use super::options::{counted_receipts, options, Options};
use super::{change_queue, key_name, now, Command, Handler};
use crate::host::event::Event;
use crate::host::write;
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::id::Target;
use dq_queue::time::DurationMs;
use dq_queue::{Deadlines, Effect};

/// The command.
pub struct MExtend;

impl Command for MExtend {
    const ROW: Row = Row {
        name: c"DQ.MEXTEND",
        flags: c"write",
        arity: -4,
        keys: Keys::First(Access::UPDATE),
        summary: c"Restarts the leases of several messages in flight. Returns their new deadlines",
        complexity: c"O(M * log N) where M is the number of ids and receipts and N the number of messages in the queue",
        tips: c"nondeterministic_output",
        args: &[Arg::key(c"key"), Arg::int(c"count"), Arg::string(c"id-or-receipt").multiple()],
        options: &[MExtendOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = mextend;
}

options! {
    /// The options of `DQ.MEXTEND`.
    enum MExtendOption {
        Lease => Arg::token_int(c"LEASE", c"lease-ms"),
    }
}

fn mextend(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let (targets, lease) = parse(call)?;
    let now = now(ctx);
    let mut deadlines = vec![None; targets.len()];
    let outcome = change_queue(ctx, name, now, |queue| {
        let extended = targets.iter().map(|target| queue.extend(now, target.as_ref()?, lease, None));
        let mut those = Deadlines::with_capacity(targets.len());
        for (deadline, extended) in deadlines.iter_mut().zip(extended) {
            *deadline = extended.map(|(_, deadline)| deadline);
            those.extend(extended);
        }
        (!those.is_empty()).then_some(((), move || Effect::Extend { those, checkpoint: None }))
    })?;
    ctx.array(deadlines.len());
    for deadline in deadlines {
        match deadline {
            Some(deadline) => ctx.integer(deadline.as_ms() as i64),
            None => ctx.null(),
        }
    }
    if let Some(((), announcement)) = outcome {
        write::announce(ctx, name, announcement, &[Event::Extend]);
    }
    Ok(())
}

/// Parses the deliveries, `None` for a word that names none, and the lease.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(Vec<Option<Target<'a>>>, Option<DurationMs>), Error> {
    let targets = counted_receipts(&mut call.args)?.map(Target::parse).collect();
    let mut lease = None;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            MExtendOption::Lease => lease = Some(options.positive_duration()?),
        }
    }
    Ok((targets, lease))
}

//! `DQ.MEXTEND key count id|receipt [id|receipt ...] [LEASE ms]`

use super::options::counted_receipts;
use super::{options, Access, Arg, Call, Command, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::id::Target;
use dq_queue::time::DurationMs;
use dq_queue::{Deadlines, Effect, Queue};

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
    enum MExtendOption {
        Lease => Arg::token_int(c"LEASE", c"lease-ms"),
    }
}

fn mextend(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let Session { ctx, now, .. } = session;
    let (targets, lease) = parse(call)?;
    let extend = |queue: &mut Queue| {
        let mut those = Deadlines::with_capacity(targets.len());
        let mut deadlines = Vec::with_capacity(targets.len());
        for target in &targets {
            let extended = target.as_ref().and_then(|target| queue.extend(now, target, lease, None));
            deadlines.push(extended.map(|(_, deadline)| deadline));
            those.extend(extended);
        }
        (!those.is_empty()).then_some((deadlines, move || Effect::Extend { those, checkpoint: None }))
    };
    session.change(extend, |deadlines| {
        let deadlines = deadlines.unwrap_or_else(|| vec![None; targets.len()]);
        ctx.array(deadlines.len());
        for deadline in deadlines {
            ctx.integer_or_null(deadline.map(|deadline| deadline.as_ms() as i64));
        }
        &[Event::Extend]
    })
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

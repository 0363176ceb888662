//! `DQ.STATS key`

use super::{Access, Arg, Call, Command, Ctx, Error, Handler, Keys, Row, Session};
use crate::host::waiting;
use dq_queue::time::UnixMs;
use dq_queue::{Histogram, Stats as Measured};

pub struct Stats;

impl Command for Stats {
    const ROW: Row = Row {
        name: c"DQ.STATS",
        flags: c"readonly fast",
        arity: 2,
        keys: Keys::First(Access::PEEK),
        summary:
            c"Returns how late a queue delivers its messages and how long its consumers take, as measured by this \
              server",
        complexity: c"O(1)",
        tips: c"nondeterministic_output",
        args: &[Arg::key(c"key")],
        ..Row::BASE
    };
    const HANDLER: Handler = stats;
}

fn stats(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let waiting = waiting::clients_at(&session);
    let nothing = Measured::default();
    let found = session.look(|held| {
        let now = held.queue.own_time(session.now);
        reply_stats(session.ctx, held.queue.stats().unwrap_or(&nothing), waiting, now);
    })?;
    if found.is_none() {
        session.ctx.null_array();
    }
    Ok(())
}

fn reply_stats(ctx: Ctx, stats: &Measured, waiting_clients: u64, now: UnixMs) {
    let histograms = [("lateness", "lateness-sum-ms", &stats.lateness), ("runtime", "runtime-sum-ms", &stats.runtime)];
    let numbers = [
        ("pops-empty", stats.pops_empty),
        ("waiting-clients", waiting_clients),
        ("rate-limited-ms", stats.rate_limited_ms(now)),
    ];
    ctx.map(2 * histograms.len() + numbers.len());
    for (field, sum, histogram) in histograms {
        ctx.bulk(field.as_bytes());
        reply_histogram(ctx, histogram);
        ctx.bulk(sum.as_bytes());
        reply_number(ctx, histogram.sum_ms());
    }
    for (field, number) in numbers {
        ctx.bulk(field.as_bytes());
        reply_number(ctx, number);
    }
}

/// Replies with an array of `[upper-bound-ms, count]`; the bound of the last one is null.
fn reply_histogram(ctx: Ctx, histogram: &Histogram) {
    ctx.array(Histogram::BUCKETS);
    for (bound, count) in histogram.cumulative() {
        ctx.array(2);
        ctx.integer_or_null(bound.map(|bound| i64::try_from(bound).unwrap_or(i64::MAX)));
        reply_number(ctx, count);
    }
}

fn reply_number(ctx: Ctx, number: u64) {
    ctx.integer(i64::try_from(number).unwrap_or(i64::MAX));
}

//! `DQ.ACKPOP key count id|receipt [id|receipt ...] [COUNT n] [LEASE ms] [BLOCK ms]`

use super::ack::Acks;
use super::error::Error;
use super::options::count_of_words;
use super::pop::{correct_clock, parse_leased, refuse_forwarding, serve_after, Head, PopOption, Request};
use super::{key_name, now, with_queue, Command, Handler};
use crate::host::blocked::{self, Request as _};
use crate::host::event::{Death, Event};
use crate::host::held::Held;
use crate::host::write::{self, Announcement};
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::time::{DurationMs, UnixMs};

/// The command.
pub struct AckPop;

impl Command for AckPop {
    const ROW: Row = Row {
        name: c"DQ.ACKPOP",
        flags: c"write blocking",
        arity: -4,
        keys: Keys::First(Access::READ.and(Access::UPDATE)),
        summary: c"Acknowledges delivered messages, and delivers the next ready ones under a lease. Optionally blocks until one is due",
        complexity: c"O(M * log N) where M is the number of messages acknowledged and delivered and N the number of messages in the queue",
        tips: c"nondeterministic_output",
        args: &[Arg::key(c"key"), Arg::int(c"count"), Arg::string(c"id-or-receipt").multiple()],
        options: &[PopOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = ackpop;
}

/// What was done at once.
enum Outcome {
    /// Messages were delivered, and these acks, if any, were made.
    Delivered(Option<Death>, Announcement),
    /// No message was delivered, and this many acks were made.
    Acked(i64, Death, Announcement),
}

fn ackpop(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let (targets, mut request, block) = parse(call)?;
    let now = now(ctx);
    let outcome = with_queue(ctx, name, |held| {
        refuse_forwarding(held)?;
        let outcome = serve(ctx, name, held, now, &mut request, targets);
        if block.is_none() && matches!(outcome, Outcome::Acked(..)) {
            held.queue.count_empty_pop();
        }
        Ok::<_, Error>(outcome)
    })?;
    let acked = match outcome.transpose()? {
        Some(Outcome::Delivered(acks, announcement)) => {
            write::announce(ctx, name, announcement, Event::of_delivery(acks));
            return Ok(());
        }
        Some(Outcome::Acked(count, death, announcement)) => (count > 0).then_some((death, announcement)),
        None => None,
    };
    match block {
        Some(timeout) => blocked::block(ctx, &[name], Box::new(request), timeout),
        None => request.reply_none(ctx),
    }
    // The acks hold, whatever becomes of a client that is blocked now.
    if let Some((death, announcement)) = acked {
        write::announce(ctx, name, announcement, Event::of_acks(death));
    }
    Ok(())
}

/// Acks the deliveries that `targets` name, delivers the messages that can be delivered then, and replies if there are
/// any. `request` learns how many were acked.
fn serve<'a>(
    ctx: Ctx,
    name: Name<'_>,
    held: &mut Held,
    now: UnixMs,
    request: &mut Request,
    targets: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Outcome {
    correct_clock(ctx, name, held, now);
    let acks = Acks::of(ctx, name, held, now, targets);
    let (count, death) = (acks.count, acks.death);
    request.head = Head::Acked(count);
    match serve_after(ctx, name, held, now, request, acks) {
        Ok(announcement) => Outcome::Delivered((count > 0).then_some(death), announcement),
        Err(acks) if count > 0 => Outcome::Acked(count, death, acks.record(ctx, name, held, now)),
        Err(_) => Outcome::Acked(0, Death::None, Announcement::default()),
    }
}

/// Parses the arguments after the key. Returns the timeout too, if the client asked to block and may be blocked.
#[allow(clippy::type_complexity, reason = "the words are an iterator over the arguments of the call")]
pub(super) fn parse<'a>(
    call: &mut Call<'a>,
) -> Result<(impl ExactSizeIterator<Item = &'a [u8]> + use<'a>, Request, Option<DurationMs>), Error> {
    let count = count_of_words(&mut call.args, "count")?;
    let given = call.args.remaining();
    let too_few = Error::TooFew { count: "count", wanted: count, given, of: "receipts" };
    let targets = call.args.take(count).ok_or(too_few)?;
    let (mut request, block) = parse_leased(call)?;
    request.head = Head::Acked(0);
    Ok((targets, request, block))
}

//! `DQ.ACKPOP key count id|receipt [id|receipt ...] [COUNT n] [MIN n LINGER ms] [LEASE ms] [BLOCK ms] [META]
//! [AS name]`

use super::ack::Acks;
use super::options::counted_receipts;
use super::pop::{correct_clock, parse_leased, refuse_forwarding, serve_after, Head, PopOption, Request};
use super::{Access, Arg, Call, Command, Error, Event, Handler, Keys, Row, Session};
use crate::host::waiting::delivery::{self, Request as _};
use dq_queue::time::DurationMs;

pub struct AckPop;

impl Command for AckPop {
    const ROW: Row = Row {
        name: c"DQ.ACKPOP",
        flags: c"write blocking",
        arity: -4,
        keys: Keys::First(Access::READ.and(Access::UPDATE)),
        summary: c"Acknowledges delivered messages, and delivers the next ready ones under a lease. Optionally blocks \
                   until one is due",
        complexity: c"O(M * log N) where M is the number of messages acknowledged and delivered and N the number of \
                      messages in the queue",
        tips: c"nondeterministic_output",
        args: &[Arg::key(c"key"), Arg::int(c"count"), Arg::string(c"id-or-receipt").multiple()],
        options: &[PopOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = ackpop;
}

fn ackpop(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (targets, mut request, block) = parse(call)?;
    let mut acks = Acks::NONE;
    let served = session.with_queue(|held| {
        refuse_forwarding(held)?;
        correct_clock(&session, held);
        acks.make(&session, held, targets);
        // What follows a batch that the acks have ended can be delivered by this call.
        held.queue.settle(held.queue.own_time(session.now));
        request.head = Head::Acked(acks.count);
        let served = serve_after(&session, held, &request, &mut acks);
        Ok::<_, Error>(served.ok_or_else(|| {
            if block.is_none() {
                held.queue.count_empty_pop();
            }
            acks.record(&session, held)
        }))
    })?;
    let acked = (acks.count > 0).then_some(acks.death);
    match served.transpose()? {
        Some(Ok(announcement)) => session.announce(announcement, Event::after_delivery(acked)),
        none => {
            match block {
                Some(timeout) => delivery::block(session.ctx, &[session.name], Box::new(request), timeout),
                None => request.reply_none(session.ctx),
            }
            // The acks are final, even if the client is blocked now and never gets a message.
            if let Some(Err(Some(announcement))) = none {
                session.announce(announcement, Event::after_acks(acks.death));
            }
        }
    }
    Ok(())
}

/// Parses the arguments after the key. Also returns the timeout if the client asked to block and may be blocked.
pub(super) fn parse<'a>(
    call: &mut Call<'a>,
) -> Result<(impl ExactSizeIterator<Item = &'a [u8]> + use<'a>, Request, Option<DurationMs>), Error> {
    let targets = counted_receipts(&mut call.args)?;
    let (mut request, block) = parse_leased(call)?;
    request.head = Head::Acked(0);
    Ok((targets, request, block))
}

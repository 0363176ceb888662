//! `DQ.ACK key id|receipt [id|receipt ...]`

use super::error::Error;
use super::{key_name, now, with_queue, Command, Handler};
use crate::host::event::{Death, Event};
use crate::host::write::{self, Wake};
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::id::Target;
use dq_queue::{Effect, State};

/// The command.
pub struct Ack;

impl Command for Ack {
    const ROW: Row = Row {
        name: c"DQ.ACK",
        flags: c"write fast",
        arity: -3,
        keys: Keys::First(Access::DELETE),
        summary: c"Acknowledges delivered messages, which removes them. Returns the number of messages removed",
        complexity: c"O(M * log N) where M is the number of ids and receipts and N the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id-or-receipt").multiple()],
        ..Row::BASE
    };
    const HANDLER: Handler = ack;
}

fn ack(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let now = now(ctx);
    let outcome = with_queue(ctx, name, |held| {
        let heard = write::is_heard(ctx, name);
        let mut done = Vec::with_capacity(if heard { call.args.remaining() } else { 0 });
        let mut count = 0;
        let (mut made_ready, mut death) = (false, Death::None);
        while let Some(text) = call.args.next() {
            if let Some(acked) = Target::parse(text).and_then(|target| held.queue.ack(now, &target)) {
                count += 1;
                made_ready |= acked.next == Some(State::Ready);
                death = death.max(Death::of_next(acked.next));
                if heard {
                    done.push(acked.sequence);
                }
            }
        }
        // If the number of leases is limited, in the queue or in a group, each lease that ends makes room for another
        // one. A message that was kept during a delivery may have become ready.
        let limited = held.queue.settings().maxinflight != 0 || held.queue.groups() > 0;
        let wake = if limited || made_ready { Wake::IfDeliverable } else { Wake::Nobody };
        let announcement = if count == 0 {
            write::rearm(ctx, name, held, now, Wake::Nobody)
        } else {
            write::record(ctx, name, held, now, wake, || Effect::Ack(done))
        };
        (count, death, announcement)
    })?;
    match outcome {
        Some((count, death, announcement)) if count > 0 => {
            ctx.integer(count);
            write::announce(ctx, name, announcement, Event::of_acks(death));
        }
        _ => ctx.integer(0),
    }
    Ok(())
}

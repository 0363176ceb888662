//! `DQ.ACK key id|receipt [id|receipt ...]`

use super::error::Error;
use super::{key_name, now, with_queue, Command, Handler};
use crate::host::event::{Death, Event};
use crate::host::held::Held;
use crate::host::write::{self, Announcement, Wake};
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::id::{Sequence, Target};
use dq_queue::time::UnixMs;
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

/// What the acks of a command did.
pub struct Acks {
    /// How many messages were completed.
    pub count: i64,
    /// Whether one that took the place of a completed message is dead.
    pub death: Death,
    made_ready: bool,
    /// The messages that were completed, if anybody has to be told.
    pub sequences: Vec<Sequence>,
}

impl Acks {
    /// No ack.
    pub const NONE: Acks = Acks { count: 0, death: Death::None, made_ready: false, sequences: Vec::new() };

    /// Acks the deliveries that `targets` name.
    #[inline]
    pub fn of<'a>(
        ctx: Ctx,
        name: Name<'_>,
        held: &mut Held,
        now: UnixMs,
        targets: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Acks {
        let heard = write::is_heard(ctx, name);
        let mut acks = Acks::NONE;
        if heard {
            acks.sequences.reserve_exact(targets.len());
        }
        for text in targets {
            if let Some(acked) = Target::parse(text).and_then(|target| held.queue.ack(now, &target)) {
                acks.count += 1;
                acks.made_ready |= acked.next == Some(State::Ready);
                acks.death = acks.death.max(Death::of_next(acked.next));
                if heard {
                    acks.sequences.push(acked.sequence);
                }
            }
        }
        acks
    }

    /// Whether the acks may have made a message deliverable. If the number of leases is limited, in the queue or in a
    /// group, each lease that ends makes room for another one. A message that was kept during a delivery may have become
    /// ready.
    #[inline]
    pub fn wake(&self, held: &Held) -> Wake {
        let makes_room = || held.queue.settings().maxinflight != 0 || held.queue.groups() > 0;
        if self.count > 0 && (self.made_ready || makes_room()) {
            Wake::IfDeliverable
        } else {
            Wake::Nobody
        }
    }

    /// Records the acks if they are all that a command did.
    #[inline]
    pub fn record(self, ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs) -> Announcement {
        if self.count == 0 {
            write::rearm(ctx, name, held, now, Wake::Nobody)
        } else {
            let wake = self.wake(held);
            write::record(ctx, name, held, now, wake, || Effect::Ack(self.sequences))
        }
    }
}

fn ack(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let now = now(ctx);
    let targets = call.args.rest();
    let outcome = with_queue(ctx, name, |held| {
        let acks = Acks::of(ctx, name, held, now, targets);
        (acks.count, acks.death, acks.record(ctx, name, held, now))
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

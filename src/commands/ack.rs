//! `DQ.ACK key id|receipt [id|receipt ...]`

use super::{
    Access, Announcement, Arg, Call, Command, Death, Error, Event, Handler, Keys, QueueValue, Row, Session, Wake,
};
use dq_queue::id::{Sequence, Target};
use dq_queue::{Effect, State};

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
    /// Whether a successor that took the place of a completed message is dead.
    pub death: Death,
    made_ready: bool,
    /// The messages that were completed; empty if nothing is replicated or awaited.
    pub sequences: Vec<Sequence>,
}

impl Acks {
    /// The value before the first ack.
    pub const NONE: Acks = Acks { count: 0, death: Death::None, made_ready: false, sequences: Vec::new() };

    /// Acks the deliveries that `targets` refer to.
    #[inline(always)]
    pub fn make<'a>(
        &mut self,
        session: &Session<'_>,
        held: &mut QueueValue,
        targets: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        let heard = session.is_heard();
        if heard {
            self.sequences = Vec::with_capacity(targets.len());
        }
        let mut count = 0;
        for text in targets {
            if let Some(acked) = Target::parse(text).and_then(|target| held.queue.ack(session.now, &target)) {
                count += 1;
                if acked.next.is_some() {
                    self.made_ready |= acked.next == Some(State::Ready);
                    self.death = self.death.max(Death::from_state(acked.next));
                }
                if heard {
                    self.sequences.push(acked.sequence);
                }
            }
        }
        self.count = count;
    }

    /// Which clients the acks wake, if there were any. If the number of leases is limited, in the queue or in a group,
    /// each lease that ends makes room for another one. A successor may have become ready.
    #[inline(always)]
    pub fn wake(&self, held: &QueueValue) -> Wake {
        let limited = held.queue.settings().maxinflight != 0 || held.queue.groups() > 0;
        if limited || self.made_ready {
            Wake::IfDeliverable
        } else {
            Wake::Nobody
        }
    }

    /// Records the acks, if they are all that a command did. Returns `None` if there were none.
    #[inline(always)]
    pub fn record(&mut self, session: &Session<'_>, held: &mut QueueValue) -> Option<Announcement> {
        if self.count == 0 {
            session.rearm(held);
            return None;
        }
        let wake = self.wake(held);
        Some(session.record(held, wake, || Effect::Ack(std::mem::take(&mut self.sequences))))
    }
}

fn ack(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let targets = call.args.rest();
    let mut acks = Acks::NONE;
    let announcement = session.with_queue(|held| {
        acks.make(&session, held, targets);
        acks.record(&session, held)
    })?;
    session.ctx.integer(acks.count);
    if let Some(announcement) = announcement.flatten() {
        session.announce(announcement, Event::after_acks(acks.death));
    }
    Ok(())
}

//! The path of every change out of a queue, from the outcome of a command to everything that must learn of it.
//!
//! A command opens its key, asks the queue, and passes the outcome's [`Effect`] to [`Session::record`], which
//! replicates it and calls [`Session::rearm`]. A command that changed nothing calls only that. Once the key is closed,
//! [`Session::announce`] notifies watchers, then blocked clients, then subscribers to keyspace events. Subscribers come
//! last because other modules may run inside their callbacks.

use std::cell::Cell;
use std::mem::ManuallyDrop;

use super::event::Event;
use super::floor::raise_floor;
use super::origin::EFFECT_COMMAND;
use super::queue_value::QueueValue;
use super::session::Session;
use super::{listeners, waiting};
use crate::module_api::call::Word;
use crate::module_api::log::{log, Level};
use dq_queue::{Effect, Losses, Lost, Stamped};

/// The largest buffer that is kept for the bytes of the next effect.
const BLOB_KEPT: usize = 16 * 1024;

thread_local! {
    /// The buffer for the bytes of an effect, since the allocation of another one would cost more than most effects do.
    /// It is not freed at the exit.
    static BLOB: ManuallyDrop<Cell<Vec<u8>>> = const { ManuallyDrop::new(Cell::new(Vec::new())) };
}

/// What [`Session::announce`] has to do once the key is closed.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// Whether blocked clients are woken: for a message that can be delivered, or one that is done, dead or gone.
    wakes: bool,
    /// Whether a batch has ended, so that what follows it was pushed.
    ends_batch: bool,
    /// The deliveries that consumers have lost by the change.
    lost: Option<Box<Losses>>,
}

/// Whether a call wakes the clients that are blocked on its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The call may have made a message deliverable. Clients are woken if the queue has such a message.
    IfDeliverable,
    /// The call has made no message deliverable. If time has, the timer signals the key.
    Nobody,
}

impl Session<'_> {
    /// Sends an effect that was decided in this call to the replicas and the AOF. The queue stamps it with its own
    /// time.
    pub fn replicate(&self, held: &mut QueueValue, effect: Effect<'_>) {
        let now = held.queue.stamp(self.now);
        let mut blob = BLOB.with(|blob| blob.take());
        blob.clear();
        match (Stamped { now, effect }).encode(&mut blob) {
            Ok(()) => {
                if !self.ctx.replicate_effect(EFFECT_COMMAND, self.name, &blob) {
                    let text = "the server did not take an effect for replication: replicas and AOF are behind";
                    log(Level::Warning, text);
                }
            }
            Err(refused) => log(Level::Warning, &refused.to_string()),
        }
        if blob.capacity() <= BLOB_KEPT {
            BLOB.with(|kept| kept.set(blob));
        }
    }

    /// Records a change that was just made to the queue: replicates its effect, drops dead messages that exceed the
    /// queue's limit and replicates that too, and calls [`rearm`](Self::rearm).
    pub fn record<'e>(&self, held: &mut QueueValue, wake: Wake, effect: impl FnOnce() -> Effect<'e>) -> Announcement {
        let (heard, is_awaited) = (listeners::any(self.ctx), waiting::is_awaited(self));
        let mut answers = false;
        if heard || is_awaited {
            answers = self.propagate(held, effect());
        } else {
            held.queue.take_ends();
        }
        let lost = held.queue.take_lost();
        if !heard {
            held.queue.stamp(self.now);
            // There is no AOF and no replica: this only marks the dataset as changed, for the next save.
            self.ctx.replicate_verbatim();
        }
        self.keep_limits(held);
        let ends_batch = self.take_batch_end(held);
        let wakes = self.rearm_and_look(held, wake);
        Announcement { wakes: wakes || answers || ends_batch, ends_batch, lost }
    }

    /// Records a change that may have made messages deliverable, or made room under `MAXINFLIGHT`. If there was none,
    /// only calls [`rearm`](Self::rearm).
    pub fn record_if<'e>(
        &self,
        held: &mut QueueValue,
        effect: Option<impl FnOnce() -> Effect<'e>>,
    ) -> Option<Announcement> {
        match effect {
            Some(effect) => Some(self.record(held, Wake::IfDeliverable, effect)),
            None => {
                self.rearm(held);
                None
            }
        }
    }

    /// Replicates an effect, and the ends of runs that belong to it, if there are listeners. Returns whether a client
    /// waits for one of its messages.
    #[inline(never)]
    fn propagate(&self, held: &mut QueueValue, effect: Effect<'_>) -> bool {
        let heard = listeners::any(self.ctx);
        let ends = held.queue.take_ends();
        let (first, second) = if ends.is_empty() { (effect, None) } else { effect.with_ends(ends) };
        let mut answers = false;
        for effect in std::iter::once(first).chain(second) {
            answers |= waiting::note(self, &effect);
            if heard {
                self.replicate(held, effect);
            }
        }
        answers
    }

    /// Whether a batch of the queue has ended since the last call. What follows it was pushed then: with an id of its
    /// own, or with one for which a client of `DQ.AWAIT` waits, so all of them look again.
    #[inline]
    pub fn take_batch_end(&self, held: &mut QueueValue) -> bool {
        let ended = held.queue.take_batch_end();
        if ended {
            raise_floor(held.queue.last_given());
            waiting::look_again(self);
        }
        ended
    }

    /// Takes note of an effect that was applied to the queue, and calls [`rearm`](Self::rearm).
    pub fn applied(&self, held: &mut QueueValue, effect: &Effect<'_>) -> Announcement {
        let answers = waiting::note(self, effect);
        let ends_batch = self.take_batch_end(held);
        let wakes = self.rearm_and_look(held, Wake::IfDeliverable);
        Announcement { wakes: wakes || answers || ends_batch, ends_batch, lost: None }
    }

    /// Whether anybody needs to know what a command does to the queue: a replica, the AOF, or a client that waits for
    /// a message.
    #[inline]
    pub fn is_heard(&self) -> bool {
        listeners::any(self.ctx) || waiting::is_awaited(self)
    }

    /// Raises the floor of ids and re-arms the timer for the queue. Every call that may have moved the view of a queue
    /// and changed nothing else ends with this.
    pub fn rearm(&self, held: &mut QueueValue) {
        raise_floor(held.queue.last_given());
        held.queue.note_rate_limit(self.now);
        self.arm(held);
    }

    /// [`rearm`](Self::rearm) after a change. Returns whether blocked clients are woken.
    fn rearm_and_look(&self, held: &mut QueueValue, wake: Wake) -> bool {
        self.rearm(held);
        match wake {
            Wake::IfDeliverable => self.serves(held),
            Wake::Nobody => false,
        }
    }

    /// Returns whether a client that is blocked on the queue and waits for a delivery could be served. A queue that
    /// forwards serves nobody.
    #[inline]
    pub fn serves(&self, held: &QueueValue) -> bool {
        waiting::may_wait_for_delivery(self) && held.queue.forward().is_none() && held.queue.has_deliverable(self.now)
    }

    /// Notifies watchers, blocked clients and subscribers of a change. No key may be open.
    #[inline(always)]
    pub fn announce(&self, announcement: Announcement, events: &[Event]) {
        let Session { ctx, name, .. } = *self;
        ctx.signal_modified(name);
        let Announcement { wakes, ends_batch, lost } = announcement;
        if let Some(lost) = lost {
            self.publish_losses(&lost.0);
        }
        if wakes {
            ctx.signal_ready(name);
        }
        for event in events {
            ctx.notify(event.name(), name);
        }
        if ends_batch && !events.contains(&Event::Batch) {
            ctx.notify(Event::Batch.name(), name);
        }
    }

    /// Publishes the deliveries that consumers have lost, on the channel `__dq@<db>__:<key>`.
    #[cold]
    fn publish_losses(&self, lost: &[Lost]) {
        let mut channel = format!("__dq@{}__:", self.db).into_bytes();
        channel.extend_from_slice(self.name.bytes());
        let channel = Word::new(&channel);
        for Lost { how, receipt } in lost {
            let mut message = how.as_str().as_bytes().to_vec();
            if let Some(receipt) = receipt {
                message.push(b' ');
                message.extend_from_slice(receipt);
            }
            self.ctx.publish(&channel, &Word::new(&message));
        }
    }
}

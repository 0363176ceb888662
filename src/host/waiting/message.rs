//! Clients that wait for a message, with `DQ.AWAIT … BLOCK`: each until it is done, dead or gone.
//!
//! Awaiting is a read: it is served on replicas and while writes are refused, and it never replicates. A client is
//! answered in the step of the effect that ends its message. See [`awaited`](super::awaited) for how it is found.

use std::cell::Cell;
use std::rc::Rc;

use super::awaited::{Awaited, Seen};
use super::client::{self, Waiter};
use crate::host::admission::{self, Admission};
use crate::host::session::Session;
use crate::module_api::args::Args;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::key::{Content, Touch};
use dq_queue::id::{Id, Sequence};
use dq_queue::time::DurationMs;
use dq_queue::Shown;

/// Replies with a message that is done or dead.
pub type Reply = fn(Ctx, &Shown<'_>);

struct Observer {
    db: i32,
    key: Box<[u8]>,
    awaited: Rc<Awaited>,
    seen: Cell<Seen>,
    reply: Reply,
}

/// Blocks the client until the message with the id `id`, which has this sequence at present, is done, dead or gone, for
/// at most `timeout`; zero means for ever. No key may be open.
pub fn block(session: &Session<'_>, id: &[u8], sequence: Sequence, reply: Reply, timeout: DurationMs) {
    let Session { ctx, db, name, .. } = *session;
    let Some(awaited) = super::enter_for_message(session, id, sequence) else { return ctx.null_array() };
    let seen = Cell::new(awaited.seen_now());
    client::block(ctx, &[name], Observer { db, key: name.bytes().into(), awaited, seen, reply }, timeout);
}

impl Drop for Observer {
    fn drop(&mut self) {
        super::leave_for_message(self.db, &self.key, &self.awaited);
    }
}

impl Waiter for Observer {
    fn serve(&self, ctx: Ctx, name: Name<'_>, words: &Args<'_>) -> bool {
        // Usually the key was signalled for another client: a thousand clients may wait on one key.
        if !self.awaited.has_news(self.seen.get()) {
            return false;
        }
        let session = Session::at(ctx, name);
        if self.waits_on(&session) {
            return false;
        }
        match admission::ask_reader(ctx, words) {
            Admission::Granted => {}
            Admission::Refused => {
                super::postpone(&session);
                super::retry(&session);
                return false;
            }
            Admission::Denied(denial) => {
                denial.reply(ctx);
                return true;
            }
        }
        let mut key = session.open_read(Touch::Yes);
        let Content::Holds(held) = key.content() else { return false };
        match Id::parse(self.awaited.id()).and_then(|id| held.queue.find(session.now, &id)) {
            Some(shown) => (self.reply)(ctx, &shown),
            None => ctx.null_array(),
        }
        true
    }

    fn give_up(&self, ctx: Ctx) {
        ctx.null_array();
    }
}

impl Observer {
    /// Whether the message is still to be completed, or the key holds no queue at present. Re-arms the timer for the
    /// queue.
    fn waits_on(&self, session: &Session<'_>) -> bool {
        let mut key = session.open_read(Touch::No);
        let Content::Holds(held) = key.content() else { return true };
        held.queue.notice(session.now);
        let Some(id) = Id::parse(self.awaited.id()) else { return false };
        let Some(shown) = held.queue.find(session.now, &id).filter(|shown| !shown.is_over()) else { return false };
        let sequence = shown.sequence();
        self.seen.set(self.awaited.seen_now());
        super::bind(session, &self.awaited, sequence);
        session.arm(held);
        true
    }
}

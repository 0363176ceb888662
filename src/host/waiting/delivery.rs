//! Clients that wait for a delivery: `DQ.POP … BLOCK`, `DQ.MPOP … BLOCK` and `DQ.ACKPOP … BLOCK`.
//!
//! The server keeps them in the order in which they blocked, and so serves first the one that has waited longest. It
//! retries each of them whenever one of its keys is signalled: by a command that made a message deliverable, by the
//! timer, or by the server itself when a value is stored at the key. A client for which there is no message stays
//! blocked, and re-arms the timer for the queue at this key.
//!
//! A delivery is a write. While the server would refuse the client's command ([`admission`]), the client stays blocked
//! and keeps its place, and the timer signals the key again until writes are accepted. A client that gathers several
//! messages is not served while there are too few; those behind it are, and the timer signals the key when the first
//! message has waited for long enough. So nothing polls unless a client waits and there is a message for it.

use super::barren::{self, Need};
use super::client::{self, Waiter};
use super::Names;
use crate::host::admission::{self, Admission};
use crate::host::event::Event;
use crate::host::queue_value::QueueValue;
use crate::host::session::Session;
use crate::host::write::Announcement;
use crate::module_api::args::Args;
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::guard::plant;
use crate::module_api::key::{Content, Touch};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::Gathered;

/// The request of a client that waits.
pub trait Request {
    /// Returns whether the queue has messages for the request at `now`.
    fn finds(&self, held: &mut QueueValue, now: UnixMs) -> Gathered;

    /// Whether the client waits for several messages at once.
    fn gathers(&self) -> bool;

    /// What the client needs to be served.
    fn need(&self) -> Need;

    /// Delivers the messages and sends the reply. Returns `None`, and sends no reply, if there is no message.
    fn deliver(&self, session: &Session<'_>, held: &mut QueueValue) -> Option<Announcement>;

    /// Sends the reply to a client that has received no message.
    fn reply_none(&self, ctx: Ctx);
}

struct Consumer {
    request: Box<dyn Request>,
    keys: Names,
    /// Its number among those that were blocked.
    number: u64,
}

/// Blocks the client until one of `names` can serve `request`, for at most `timeout`; zero means for ever.
pub fn block(ctx: Ctx, names: &[Name<'_>], request: Box<dyn Request>, timeout: DurationMs) {
    let keys = Names::new(ctx.selected_db(), names.iter().map(|name| name.bytes()));
    super::enter(&keys);
    if request.gathers() {
        // There may be messages, but not enough. Nothing else says when they have waited for long enough.
        for name in names {
            let session = Session::at(ctx, *name);
            if find(&session, &*request) == Supply::Enough {
                // That has just come.
                super::linger(&session, session.now);
            }
        }
    }
    client::block(ctx, names, Consumer { request, keys, number: barren::number() }, timeout);
}

impl Drop for Consumer {
    fn drop(&mut self) {
        barren::forget();
        super::leave(&self.keys);
    }
}

impl Waiter for Consumer {
    fn serve(&self, ctx: Ctx, name: Name<'_>, words: &Args<'_>) -> bool {
        let need = self.request.need();
        if barren::holds_for(self.number, need, self.keys.db, name.bytes()) {
            return false;
        }
        let session = Session::at(ctx, name);
        let retry = || {
            super::retry(&session);
            false
        };
        if ctx.avoid_replication_traffic() {
            // A delivery must be replicated, and to replicate while writes are paused would abort the server.
            return retry();
        }
        match find(&session, &*self.request) {
            Supply::Enough => {}
            Supply::TooFew => {
                barren::note(self.number, Some(need), self.keys.db, name.bytes());
                return false;
            }
            Supply::NothingForAnybody => {
                barren::note(self.number, None, self.keys.db, name.bytes());
                return false;
            }
        }
        plant("blocked client");
        match admission::ask(ctx, words, name) {
            Admission::Granted => {}
            Admission::Refused => return retry(),
            Admission::Denied(denial) => {
                denial.reply(ctx);
                return true;
            }
        }
        let mut key = session.open_write();
        let Content::Holds(held) = key.content() else { return false };
        let Some(announcement) = self.request.deliver(&session, held) else { return false };
        drop(key);
        session.announce(announcement, &[Event::Pop]);
        true
    }

    fn give_up(&self, ctx: Ctx) {
        self.request.reply_none(ctx);
        count_empty_pops(ctx, &self.keys);
    }
}

/// Counts a pop on several queues that was answered with null at each queue that exists; a name that is given twice
/// counts once.
pub fn count_empty_pop(ctx: Ctx, names: &[Name<'_>]) {
    count_empty_pops(ctx, &Names::new(ctx.selected_db(), names.iter().map(|name| name.bytes())));
}

fn count_empty_pops(ctx: Ctx, keys: &Names) {
    for name in keys.iter() {
        ctx.with_name(name, |name| {
            let mut key = Session::at(ctx, name).open_read(Touch::No);
            if let Content::Holds(held) = key.content() {
                held.queue.count_empty_pop();
            }
        });
    }
}

/// What a client finds at a key that was signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    /// As many messages as it asked for.
    Enough,
    /// Too few messages.
    TooFew,
    /// No message that the queue could deliver to anybody.
    NothingForAnybody,
}

/// Looks for messages for the request. Re-arms the timer for this queue.
fn find(session: &Session<'_>, request: &dyn Request) -> Supply {
    let mut key = session.open_write();
    // The key is missing or holds another type. A queue may still be created there.
    let Content::Holds(held) = key.content() else { return Supply::NothingForAnybody };
    // Usually the clients before this one have taken all messages that a pop could deliver, and the timer will signal
    // the key when more become ready.
    if held.queue.has_nothing_open() {
        session.arm(held);
        return Supply::NothingForAnybody;
    }
    let found = request.finds(held, session.now);
    // Nobody is woken, because this call already serves a blocked client.
    session.rearm(held);
    match found {
        Gathered::Enough => Supply::Enough,
        Gathered::Nothing => Supply::TooFew,
        Gathered::Until(end) => {
            super::linger(session, end);
            Supply::TooFew
        }
    }
}

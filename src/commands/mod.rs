//! The commands of clients: one file for each command, and the same sequence of steps in each.
//!
//! A handler parses its arguments, opens its key, reads the clock once, asks the queue, and passes the outcome to
//! [`crate::host::write`], which replicates it. Then it replies. The command's row, with its syntax and documentation,
//! stands next to the handler.

mod ack;
mod ackpop;
mod alter;
mod r#await;
mod batch;
mod bury;
mod cancel;
mod complete;
mod consumers;
mod create;
mod effect;
mod error;
mod extend;
mod forward;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod get;
mod groups;
mod info;
mod len;
mod listing;
mod mextend;
mod mpop;
mod mpush;
mod nack;
mod options;
mod pause;
mod peek;
mod pop;
mod promote;
mod purge;
mod push;
mod redrive;
mod release;
mod reschedule;
mod scan;
mod schedule;
mod settings;
mod stats;

// The files of the commands import from here what most of them need.
use crate::host::event::{Death, Event};
use crate::host::origin::OnlyClients;
use crate::host::queue_value::QueueValue;
use crate::host::session::Session;
use crate::host::write::{Announcement, Wake};
use crate::module_api::ctx::Ctx;
use crate::module_api::guard::plant;
use crate::module_api::key::{Content, Touch};
use crate::module_api::register::{self, add_acl_category, Access, Arg, Call, Keys, Row};
use dq_queue::id::{Id, IdBuffer, Sequence};
use dq_queue::{Effect, Queue};
use error::Error;
use options::{options, OptionSet, Options};

/// Declares the commands of the module from lines `file::Type`. A line ends in `(parse)` if the file has a function of
/// this name that reads the arguments after the key; the fuzzer then calls it.
macro_rules! commands {
    ($($file:ident::$command:ident $(($parse:ident))?,)+) => {
        /// Registers every command.
        pub fn register_all(ctx: Ctx) -> Result<(), String> {
            add_acl_category(ctx);
            // The check of a call's origin is the same for all commands.
            $(register::register::<$file::$command, OnlyClients>(ctx)?;)+
            Ok(())
        }

        /// The parsers of arguments.
        #[cfg(any(test, feature = "fuzzing"))]
        const PARSERS: &[fn(&mut Call<'_>) -> Result<(), Error>] = &[$($(|call| $file::$parse(call).map(drop),)?)+];
    };
}

commands! {
    // Produce.
    push::Push (parse),
    mpush::MPush (parse),
    schedule::Schedule (parse),
    // Consume.
    pop::Pop (parse),
    mpop::MPop,
    ack::Ack,
    ackpop::AckPop (parse),
    complete::Complete (parse),
    nack::Nack (parse),
    extend::Extend,
    mextend::MExtend (parse),
    // Change or remove messages.
    cancel::Cancel,
    reschedule::Reschedule (parse),
    promote::Promote (parse),
    bury::Bury (parse),
    redrive::Redrive (parse),
    purge::Purge (parse),
    release::Release (parse),
    batch::Batch (parse),
    // Read.
    len::Len (parse),
    get::Get,
    peek::Peek (parse),
    scan::Scan (parse),
    r#await::Await (parse),
    groups::Groups (parse),
    consumers::Consumers (parse),
    batch::BatchInfo,
    info::Info,
    stats::Stats,
    // Manage queues.
    create::Create (parse),
    alter::Alter (parse),
    pause::Pause (parse),
    pause::Resume (parse_resumed),
    // Sent only by servers, for replication and persistence.
    effect::Effect,
}

/// Serves one call, and sends the reply unless it returns an error.
type Handler = fn(&mut Call<'_>) -> Result<(), Error>;

/// A command of clients.
trait Command {
    /// What the server knows about the command.
    const ROW: Row;
    /// The function that serves it.
    const HANDLER: Handler;
}

impl<C: Command> register::Command for C {
    const ROW: Row = <C as Command>::ROW;

    fn run(mut call: Call<'_>) {
        if let Err(error) = C::HANDLER(&mut call) {
            call.ctx.error(&error.in_reply_to(const { &<C as Command>::ROW }));
        }
    }
}

/// Reads the next word, which the arity guarantees to exist.
fn word<'a>(call: &mut Call<'a>) -> &'a [u8] {
    call.args.next().unwrap_or_default()
}

/// Parses an id; `None` if no message can have it. A receipt is refused: a client that confuses the two would only ever
/// hear that there is no such message.
fn id(word: &[u8]) -> Result<Option<Id<'_>>, Error> {
    match Id::parse(word) {
        None if word.contains(&b'#') => Err(Error::ReceiptAsId),
        id => Ok(id),
    }
}

impl<'a> Session<'a> {
    /// Begins a command at the key, which is its next word.
    fn begin(call: &mut Call<'a>) -> Result<Session<'a>, Error> {
        call.args.next_name().map(|name| Session::at(call.ctx, name)).ok_or(Error::WrongType)
    }

    /// Calls `change` with the queue. Returns `None` if it does not exist.
    fn with_queue<R>(&self, change: impl FnOnce(&mut QueueValue) -> R) -> Result<Option<R>, Error> {
        existing(self.open_write().content(), change)
    }

    /// Changes the queue. `change` returns the outcome and what makes its effect, or `None` if it changed nothing.
    /// `reply` sends the reply, and returns the events to announce if there was a change.
    fn change<'e, R, E: FnOnce() -> Effect<'e>>(
        &self,
        change: impl FnOnce(&mut Queue) -> Option<(R, E)>,
        reply: impl FnOnce(Option<R>) -> &'static [Event],
    ) -> Result<(), Error> {
        let changed = self.with_queue(|held| {
            let (outcome, effect) = change(&mut held.queue).inspect(|_| plant("a change")).unzip();
            (outcome, self.record_if(held, effect))
        })?;
        let (outcome, announcement) = changed.unwrap_or((None, None));
        let events = reply(outcome);
        announcement.into_iter().for_each(|announcement| self.announce(announcement, events));
        Ok(())
    }

    /// Replies with the number of messages that a change concerned, zero if there was none. Returns its events.
    fn reply_count(&self, count: Option<usize>, events: &'static [Event]) -> &'static [Event] {
        self.ctx.integer(count.unwrap_or(0) as i64);
        events
    }

    /// Reads the queue. Returns `None` if it does not exist.
    fn look<R>(&self, look: impl FnOnce(&QueueValue) -> R) -> Result<Option<R>, Error> {
        existing(self.open_read(Touch::Yes).content(), |held| {
            // The queue remembers the latest time it has seen, so that what was visible once stays visible if the clock
            // steps back.
            held.queue.notice(self.now);
            look(held)
        })
    }

    /// Reads the queue after its view was brought up to now, for answers that depend on the whole view.
    fn look_caught_up<R>(&self, look: impl FnOnce(&QueueValue) -> R) -> Result<Option<R>, Error> {
        existing(self.open_read(Touch::Yes).content(), |held| {
            held.queue.notice(self.now);
            held.queue.catch_up(self.now);
            look(held)
        })
    }
}

/// Calls `visit` with the queue that a key holds. Returns `None` if the key does not exist.
#[inline(always)]
fn existing<R>(
    content: Content<'_, '_, QueueValue>,
    visit: impl FnOnce(&mut QueueValue) -> R,
) -> Result<Option<R>, Error> {
    match content {
        Content::Missing(_) => Ok(None),
        Content::Holds(held) => Ok(Some(visit(held))),
        Content::Refused(why) => Err(why.into()),
    }
}

/// Replies with the id of a message: its name, or its sequence as text.
fn reply_id(ctx: Ctx, sequence: Sequence, name: Option<&[u8]>) {
    match name {
        Some(name) => ctx.bulk(name),
        None => ctx.bulk(sequence.write(&mut IdBuffer::new())),
    }
}

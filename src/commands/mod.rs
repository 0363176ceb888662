//! What clients can say: one file a command, and the same way for each command.
//!
//! A handler reads its words, opens its key, looks once at the clock, asks the queue, and hands the outcome to
//! [`crate::host::write`], which replicates it; then it replies. Its row, with the syntax and the documentation,
//! stands beside it.

mod ack;
mod alter;
mod bury;
mod cancel;
mod create;
mod effect;
mod error;
mod extend;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod get;
mod info;
mod len;
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
mod reschedule;
mod scan;
mod settings;

use crate::host::datatype::{self, Held};
use crate::host::origin::OnlyClients;
use crate::host::write::{self, Announcement};
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::key::{OpenKey, Slot, Touch};
use crate::module_api::register::{self, add_acl_category, Call, Command};
use crate::queue::id::{IdBuffer, Sequence};
use crate::queue::time::UnixMs;
use crate::queue::{Effect, Queue};
use error::Error;

/// Registers a command behind the wall that all of them have.
fn register<C: Command>(ctx: Ctx) -> Result<(), String> {
    register::register::<C, OnlyClients>(ctx)
}

/// Registers every command.
pub fn register_all(ctx: Ctx) -> Result<(), String> {
    add_acl_category(ctx);
    // Producing.
    register::<push::Push>(ctx)?;
    register::<mpush::MPush>(ctx)?;
    // Consuming.
    register::<pop::Pop>(ctx)?;
    register::<mpop::MPop>(ctx)?;
    register::<ack::Ack>(ctx)?;
    register::<nack::Nack>(ctx)?;
    register::<extend::Extend>(ctx)?;
    // Cancel and reschedule.
    register::<cancel::Cancel>(ctx)?;
    register::<reschedule::Reschedule>(ctx)?;
    register::<promote::Promote>(ctx)?;
    register::<bury::Bury>(ctx)?;
    register::<redrive::Redrive>(ctx)?;
    register::<purge::Purge>(ctx)?;
    // Looking.
    register::<len::Len>(ctx)?;
    register::<get::Get>(ctx)?;
    register::<peek::Peek>(ctx)?;
    register::<scan::Scan>(ctx)?;
    register::<info::Info>(ctx)?;
    // Settings.
    register::<create::Create>(ctx)?;
    register::<alter::Alter>(ctx)?;
    register::<pause::Pause>(ctx)?;
    register::<pause::Resume>(ctx)?;
    // What the server says to itself.
    register::<effect::Effect>(ctx)
}

/// Serves a call, and answers its error where it fails.
fn serve(mut call: Call<'_>, handler: fn(&mut Call<'_>) -> Result<(), Error>) {
    if let Err(error) = handler(&mut call) {
        call.ctx.error(&error.to_string());
    }
}

/// The one look at the clock.
fn now(ctx: Ctx) -> UnixMs {
    UnixMs::new(ctx.now_ms())
}

/// A word that the arity promises.
fn word<'a>(call: &mut Call<'a>) -> &'a [u8] {
    call.args.next().unwrap_or_default()
}

/// The key, which is the next word.
fn key_name<'a>(call: &mut Call<'a>) -> Result<Name<'a>, Error> {
    call.args.next_name().ok_or(Error::WrongType)
}

/// Asks `change` of the queue at `name`; none where there is none.
fn with_queue<R>(ctx: Ctx, name: Name<'_>, change: impl FnOnce(&mut Held) -> R) -> Result<Option<R>, Error> {
    let mut key = OpenKey::open_write(ctx, name, datatype::handle());
    match key.slot() {
        Slot::Missing => Ok(None),
        Slot::Holds(held) => Ok(Some(change(held))),
        Slot::WrongType => Err(Error::WrongType),
    }
}

/// Changes the queue at `name`: `change` answers what came of it and its effect, or none where nothing changed. What
/// became deliverable by it, or found room by it, wakes who waits.
fn change_queue<'e, R>(
    ctx: Ctx,
    name: Name<'_>,
    now: UnixMs,
    change: impl FnOnce(&mut Queue) -> Option<(R, Effect<'e>)>,
) -> Result<Option<(R, Announcement)>, Error> {
    let outcome = with_queue(ctx, name, |held| match change(&mut held.queue) {
        Some((outcome, effect)) => Some((outcome, write::record(ctx, name, held, now, true, || effect))),
        None => {
            let _ = write::settle(ctx, name, held, now, false);
            None
        }
    })?;
    Ok(outcome.flatten())
}

/// Looks at the queue at `name` as it is at `now`; `None` if there is none.
fn look_at<R>(ctx: Ctx, name: Name<'_>, now: UnixMs, look: impl FnOnce(&Held) -> R) -> Result<Option<R>, Error> {
    // What was seen once stays so, should the clock step back.
    look_after(ctx, name, |held| held.queue.notice(now), look)
}

/// Looks at the queue at `name` once its view was brought to `now`, for an answer that leans on all of it.
fn look_caught_up<R>(ctx: Ctx, name: Name<'_>, now: UnixMs, look: impl FnOnce(&Held) -> R) -> Result<Option<R>, Error> {
    look_after(
        ctx,
        name,
        |held| {
            held.queue.notice(now);
            held.queue.catch_up(now);
        },
        look,
    )
}

fn look_after<R>(
    ctx: Ctx,
    name: Name<'_>,
    prepare: impl FnOnce(&mut Held),
    look: impl FnOnce(&Held) -> R,
) -> Result<Option<R>, Error> {
    let mut key = OpenKey::open_read(ctx, name, datatype::handle(), Touch::Yes);
    match key.slot() {
        Slot::Missing => Ok(None),
        Slot::Holds(held) => {
            prepare(held);
            Ok(Some(look(held)))
        }
        Slot::WrongType => Err(Error::WrongType),
    }
}

/// Replies a message's id: its name, or its sequence printed.
fn reply_id(ctx: Ctx, sequence: Sequence, name: Option<&[u8]>) {
    match name {
        Some(name) => ctx.bulk(name),
        None => ctx.bulk(sequence.write(&mut IdBuffer::new())),
    }
}

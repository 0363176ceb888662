//! `DQ.PAUSE key [FOR ms]`, `DQ.RESUME key`

use super::error::Error;
use super::options::{options, Options};
use super::{key_name, now, with_queue, Command, Handler};
use crate::host::event::Event;
use crate::host::write::{self, Wake};
use crate::module_api::ctx::Name;
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Effect, Pause as Suspended, Queue};

/// The command that suspends delivery from a queue.
pub struct Pause;

/// The command that resumes delivery from a queue.
pub struct Resume;

const ROW: Row = Row {
    name: c"DQ.PAUSE",
    flags: c"write fast",
    arity: -2,
    keys: Keys::First(Access::UPDATE),
    summary: c"Suspends delivery from a queue, for a given time or until it is resumed",
    complexity: c"O(1)",
    args: &[Arg::key(c"key")],
    options: &[PauseOption::ARGS],
    ..Row::BASE
};

impl Command for Pause {
    const ROW: Row = ROW;
    const HANDLER: Handler = pause;
}

impl Command for Resume {
    const ROW: Row =
        Row { name: c"DQ.RESUME", arity: 2, summary: c"Resumes delivery from a paused queue", options: &[], ..ROW };
    const HANDLER: Handler = resume;
}

options! {
    /// The options of `DQ.PAUSE`.
    enum PauseOption {
        For => Arg::token_int(c"FOR", c"ms"),
    }
}

fn pause(call: &mut Call<'_>) -> Result<(), Error> {
    let name = key_name(call)?;
    let length = parse(call)?;
    let now = now(call.ctx);
    set(call, name, now, Event::Pause, |queue| queue.suspend(now, length))
}

fn resume(call: &mut Call<'_>) -> Result<(), Error> {
    let name = key_name(call)?;
    let now = now(call.ctx);
    set(call, name, now, Event::Resume, |queue| queue.resume(now).then_some(Suspended::Off))
}

/// Calls `change`, which returns the new pause, or `None` if it changed nothing.
fn set(
    call: &Call<'_>,
    name: Name<'_>,
    now: UnixMs,
    event: Event,
    change: impl FnOnce(&mut Queue) -> Option<Suspended>,
) -> Result<(), Error> {
    let ctx = call.ctx;
    let announcement = with_queue(ctx, name, |held| match change(&mut held.queue) {
        Some(pause) => Some(write::record(ctx, name, held, now, Wake::IfDeliverable, || Effect::Pause(pause))),
        None => {
            let _ = write::rearm(ctx, name, held, now, Wake::Nobody);
            None
        }
    })?;
    let announcement = announcement.ok_or(Error::NoSuchKey)?;
    ctx.ok();
    if let Some(announcement) = announcement {
        write::announce(ctx, name, announcement, &[event]);
    }
    Ok(())
}

/// Parses the duration of the pause. Returns `None`, which is a pause without end, if `FOR` is absent.
pub(super) fn parse(call: &mut Call<'_>) -> Result<Option<DurationMs>, Error> {
    let mut length = None;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            PauseOption::For => length = Some(options.positive_duration()?),
        }
    }
    Ok(length)
}

//! `DQ.PAUSE key`, `DQ.RESUME key`

use std::ffi::CStr;

use super::error::Error;
use super::{key_name, now, serve, with_queue};
use crate::queue::Effect;
use crate::server::register::{Access, Arg, Call, Command, Keys, Row};
use crate::server::write;

/// The command that suspends delivery.
pub struct Pause;

/// The command that takes it up again.
pub struct Resume;

impl Command for Pause {
    const ROW: Row = row(c"DQ.PAUSE", c"Suspends the delivery of a queue; all else goes on");

    fn run(call: Call<'_>) {
        serve(call, |call| set_paused(call, true, c"dq.pause"));
    }
}

impl Command for Resume {
    const ROW: Row = row(c"DQ.RESUME", c"Takes up the delivery of a queue that was paused");

    fn run(call: Call<'_>) {
        serve(call, |call| set_paused(call, false, c"dq.resume"));
    }
}

const ARGS: &[Arg] = &[Arg::key(c"key")];

const fn row(name: &'static CStr, summary: &'static CStr) -> Row {
    Row {
        name,
        flags: c"write fast",
        arity: 2,
        keys: Keys::First(Access::UPDATE),
        acl: c"write fast",
        summary,
        complexity: c"O(1)",
        since: c"0.1.0",
        tips: c"",
        args: ARGS,
    }
}

fn set_paused(call: &mut Call<'_>, paused: bool, event: &CStr) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let now = now(ctx);
    let announcement = with_queue(ctx, name, |held| {
        if held.queue.is_paused() == paused {
            return None;
        }
        let settings = *held.queue.settings();
        held.queue.alter(settings, paused);
        Some(write::record(ctx, name, held, now, true, || Effect::Alter(settings, paused)))
    })?;
    let announcement = announcement.ok_or(Error::NoSuchKey)?;
    ctx.ok();
    if let Some(announcement) = announcement {
        write::announce(ctx, name, announcement, event);
    }
    Ok(())
}

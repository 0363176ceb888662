//! `DQ.ALTER key [settings]`

use super::error::Error;
use super::settings::{Change, KEY_AND_SETTINGS};
use super::{key_name, now, serve, with_queue};
use crate::queue::Effect;
use crate::server::register::{Access, Call, Command, Keys, Row};
use crate::server::write;

/// The command.
pub struct Alter;

impl Command for Alter {
    const ROW: Row = Row {
        name: c"DQ.ALTER",
        flags: c"write",
        arity: -2,
        keys: Keys::First(Access::UPDATE),
        acl: c"write slow",
        summary: c"Changes the settings of a queue that are named, for what happens from then on",
        complexity:
            c"O(1), and O(M * log N) with M the dead messages that a lower DEADLEN drops and N those in the queue",
        since: c"0.1.0",
        tips: c"",
        args: KEY_AND_SETTINGS,
    };

    fn run(call: Call<'_>) {
        serve(call, alter);
    }
}

fn alter(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let change = Change::parse(call)?;
    let now = now(ctx);
    let announcement = with_queue(ctx, name, |held| {
        let (before, paused) = (*held.queue.settings(), held.queue.is_paused());
        let settings = change.of(&before);
        if settings == before {
            let _ = write::settle(ctx, name, held, now, false);
            return None;
        }
        held.queue.alter(settings, paused);
        write::drop_excess_dead(ctx, name, held, now);
        Some(write::record(ctx, name, held, now, true, || Effect::Alter(settings, paused)))
    })?;
    let announcement = announcement.ok_or(Error::NoSuchKey)?;
    ctx.ok();
    if let Some(announcement) = announcement {
        write::announce(ctx, name, announcement, c"dq.alter");
    }
    Ok(())
}

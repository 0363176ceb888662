//! `DQ.ALTER key [MKQUEUE] [settings]`

use super::create::{make, Wanted};
use super::error::Error;
use super::forward::{self, QueueSetting};
use super::options::{options, Options};
use super::settings::Setting;
use super::{key_name, now, Command, Handler};
use crate::host::config;
use crate::host::datatype;
use crate::host::event::Event;
use crate::host::held::Held;
use crate::host::write::{self, Announcement, Wake};
use crate::module_api::ctx::{Ctx, Name};
use crate::module_api::key::{Content, OpenKey};
use crate::module_api::register::{Access, Arg, Call, Row};
use dq_queue::forward::Targets;
use dq_queue::time::UnixMs;
use dq_queue::Effect;

/// The command.
pub struct Alter;

impl Command for Alter {
    const ROW: Row = Row {
        name: c"DQ.ALTER",
        flags: c"write",
        arity: -2,
        keys: forward::keys(Access::UPDATE),
        summary: c"Changes the settings of a queue. With MKQUEUE it creates the queue if it does not exist",
        complexity:
            c"O(1), and O(M * log N) if M of N messages of groups are blocked or admitted, or M dead messages dropped; the timer drops what would take long",
        args: &[Arg::key(c"key")],
        options: &[AlterOption::ARGS, Setting::ARGS, QueueSetting::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = alter;
}

options! {
    /// The options of `DQ.ALTER`.
    enum AlterOption {
        MkQueue => Arg::token(c"mkqueue", c"MKQUEUE"),
        ..QueueSetting,
    }
}

/// The arguments of a call.
#[derive(Default)]
pub(super) struct Arguments {
    wanted: Wanted,
    /// Whether the queue is created if it does not exist.
    makes_queue: bool,
}

fn alter(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let Arguments { wanted, makes_queue } = parse(call)?;
    forward::refuse_itself(name, &wanted.targets)?;
    forward::refuse_moved(ctx, name)?;
    let now = now(ctx);
    let mut key = OpenKey::open_write(ctx, name, datatype::handle());
    let done = match key.content() {
        Content::Refused(why) => return Err(why.into()),
        Content::Holds(held) => change(ctx, name, held, now, wanted).map(|done| (done, Event::Alter)),
        Content::Missing if !makes_queue => return Err(Error::NoSuchKey),
        // The command itself is allowed when memory is low, since it may free some. A new queue needs memory.
        Content::Missing if ctx.flags().out_of_memory() => return Err(Error::OutOfMemory),
        Content::Missing => {
            let settings = wanted.numbers.of(&config::defaults());
            Some((make(ctx, name, &mut key, now, settings, wanted.targets.of(Targets::default()))?, Event::Create))
        }
    };
    drop(key);
    ctx.ok();
    if let Some((announcement, event)) = done {
        write::announce(ctx, name, announcement, &[event]);
    }
    Ok(())
}

/// Changes the settings of a queue. Returns `None` if they are the same as before.
fn change(ctx: Ctx, name: Name<'_>, held: &mut Held, now: UnixMs, wanted: Wanted) -> Option<Announcement> {
    let settings = wanted.numbers.of(held.queue.settings());
    let before = held.queue.targets();
    let targets = wanted.targets.of(before.clone());
    if settings == *held.queue.settings() && targets == before {
        let _ = write::rearm(ctx, name, held, now, Wake::Nobody);
        return None;
    }
    held.queue.alter(now, settings);
    forward::set(&mut held.queue, now, &targets);
    // The effect of the new settings comes first: they decide which ids of the dropped messages stay known.
    let announcement = write::record(ctx, name, held, now, Wake::IfDeliverable, || Effect::Alter(settings, targets));
    write::trim(ctx, name, held, now);
    Some(announcement)
}

pub(super) fn parse(call: &mut Call<'_>) -> Result<Arguments, Error> {
    let mut arguments = Arguments::default();
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            AlterOption::MkQueue => arguments.makes_queue = true,
            AlterOption::QueueSetting(setting) => arguments.wanted.read(setting, &mut options)?,
        }
    }
    Ok(arguments)
}

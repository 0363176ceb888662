//! `DQ.ALTER key [MKQUEUE] [settings]`

use super::create::{make, Wanted};
use super::forward::{self, QueueSetting};
use super::settings::Setting;
use super::{
    options, Access, Announcement, Arg, Call, Command, Error, Event, Handler, Options, QueueValue, Row, Session, Wake,
};
use crate::host::config;
use crate::module_api::key::Content;
use dq_queue::forward::Targets;
use dq_queue::Effect;

pub struct Alter;

impl Command for Alter {
    const ROW: Row = Row {
        name: c"DQ.ALTER",
        flags: c"write",
        arity: -2,
        keys: forward::keys(Access::UPDATE),
        summary: c"Changes the settings of a queue. With MKQUEUE it creates the queue if it does not exist",
        complexity:
            c"O(1), and O(M * log N) if M of N messages of groups are blocked or admitted, or M dead messages dropped; \
              the timer drops what would take long",
        args: &[Arg::key(c"key")],
        options: &[AlterOption::ARGS, Setting::ARGS, QueueSetting::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = alter;
}

options! {
    enum AlterOption {
        MkQueue => Arg::token(c"mkqueue", c"MKQUEUE"),
        ..QueueSetting,
    }
}

fn alter(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let Session { ctx, name, .. } = session;
    let (wanted, makes_queue) = parse(call)?;
    forward::refuse_itself(name, &wanted.targets)?;
    forward::refuse_moved(ctx, name)?;
    let mut key = session.open_write();
    let done = match key.content() {
        Content::Refused(why) => return Err(why.into()),
        Content::Holds(held) => change(&session, held, wanted).map(|done| (done, Event::Alter)),
        Content::Missing(_) if !makes_queue => return Err(Error::NoSuchKey),
        // The command itself is allowed when memory is low, since it may free some. A new queue needs memory.
        Content::Missing(_) if ctx.flags().out_of_memory() => return Err(Error::OutOfMemory),
        Content::Missing(vacant) => {
            let settings = wanted.numbers.applied_to(&config::defaults());
            let targets = wanted.targets.applied_to(Targets::default());
            Some((make(&session, vacant, settings, targets)?, Event::Create))
        }
    };
    drop(key);
    ctx.ok();
    if let Some((announcement, event)) = done {
        session.announce(announcement, &[event]);
    }
    Ok(())
}

/// Changes the settings of a queue. Returns `None` if they are the same as before.
fn change(session: &Session<'_>, held: &mut QueueValue, wanted: Wanted) -> Option<Announcement> {
    let settings = wanted.numbers.applied_to(held.queue.settings());
    let before = held.queue.targets();
    let targets = wanted.targets.applied_to(before.clone());
    if settings == *held.queue.settings() && targets == before {
        session.rearm(held);
        return None;
    }
    held.queue.alter(session.now, settings);
    forward::set(&mut held.queue, session.now, &targets);
    // The effect of the new settings comes first: they decide which ids of the dropped messages stay known.
    let announcement = session.record(held, Wake::IfDeliverable, || Effect::Alter(settings, targets));
    session.trim(held);
    Some(announcement)
}

/// Parses the settings, and whether the queue is created if it does not exist.
pub(super) fn parse(call: &mut Call<'_>) -> Result<(Wanted, bool), Error> {
    let (mut wanted, mut makes_queue) = (Wanted::default(), false);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            AlterOption::MkQueue => makes_queue = true,
            AlterOption::QueueSetting(setting) => wanted.read(setting, &mut options)?,
        }
    }
    Ok((wanted, makes_queue))
}

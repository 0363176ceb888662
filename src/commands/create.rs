//! `DQ.CREATE key [settings]`

use super::forward::{self, QueueSetting, WantedTargets};
use super::settings::{Change, Setting};
use super::{Access, Announcement, Arg, Call, Command, Error, Event, Handler, Options, QueueValue, Row, Session, Wake};
use crate::host::config;
use crate::module_api::key::{Content, Vacant};
use dq_queue::forward::{Source, Targets};
use dq_queue::settings::Settings;
use dq_queue::{Effect, Queue};

pub struct Create;

impl Command for Create {
    const ROW: Row = Row {
        name: c"DQ.CREATE",
        flags: c"write fast",
        arity: -2,
        keys: forward::keys(Access::INSERT),
        summary: c"Creates an empty queue with its own settings. Succeeds too if the queue exists with exactly these \
                   settings",
        complexity: c"O(1)",
        args: &[Arg::key(c"key")],
        options: &[Setting::ARGS, QueueSetting::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = create;
}

fn create(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let Session { ctx, name, .. } = session;
    let wanted = parse(call)?;
    let settings = wanted.numbers.applied_to(&config::defaults());
    forward::refuse_itself(name, &wanted.targets)?;
    forward::refuse_moved(ctx, name)?;
    let targets = wanted.targets.applied_to(Targets::default());
    let mut key = session.open_write();
    let announcement = match key.content() {
        // Declaring a queue that exists is never refused because memory is low; a new queue needs some.
        Content::Missing(_) if ctx.flags().out_of_memory() => return Err(Error::OutOfMemory),
        Content::Missing(vacant) => make(&session, vacant, settings, targets)?,
        // The queue exists with exactly these settings, so nothing changes.
        Content::Holds(held) if *held.queue.settings() == settings && held.queue.targets() == targets => {
            ctx.ok();
            return Ok(());
        }
        Content::Holds(_) => return Err(Error::QueueExists),
        Content::Refused(why) => return Err(why.into()),
    };
    drop(key);
    ctx.ok();
    session.announce(announcement, &[Event::Create]);
    Ok(())
}

/// Stores an empty queue in a key that holds nothing.
pub(super) fn make(
    session: &Session<'_>,
    vacant: Vacant<'_, '_, QueueValue>,
    settings: Settings,
    targets: Targets,
) -> Result<Announcement, Error> {
    let mut queue = Queue::new(settings);
    forward::set(&mut queue, session.now, &targets);
    let held = vacant.create(QueueValue::new(queue))?;
    Ok(session.record(held, Wake::Nobody, || Effect::Create(settings, targets)))
}

/// The settings that a command names. The others keep their values.
#[derive(Default)]
pub(super) struct Wanted {
    /// The numbers.
    pub numbers: Change,
    /// The targets.
    pub targets: WantedTargets,
}

impl Wanted {
    /// Reads the values of a setting.
    pub fn read(&mut self, setting: QueueSetting, options: &mut Options<'_, '_>) -> Result<(), Error> {
        match setting {
            QueueSetting::Forward => self.targets.read(Source::Due, options)?,
            QueueSetting::DeadForward => self.targets.read(Source::Dead, options)?,
            QueueSetting::Setting(setting) => self.numbers.read(setting, options)?,
        }
        Ok(())
    }
}

pub(super) fn parse(call: &mut Call<'_>) -> Result<Wanted, Error> {
    let mut wanted = Wanted::default();
    let mut options = Options::new(&mut call.args);
    while let Some(setting) = options.next()? {
        wanted.read(setting, &mut options)?;
    }
    Ok(wanted)
}

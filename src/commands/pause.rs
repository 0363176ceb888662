//! `DQ.PAUSE key [IN | OUT | ALL] [FOR ms]`, `DQ.RESUME key [IN | OUT | ALL]`

use super::error::Error;
use super::options::{options, Options};
use super::{key_name, now, with_queue, Command, Handler};
use crate::host::event::Event;
use crate::host::write::{self, Wake};
use crate::module_api::ctx::Name;
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::time::{DurationMs, UnixMs};
use dq_queue::{Effect, Flow, Pause as Suspended, Queue};

/// The command that suspends what a queue delivers, what it accepts, or both.
pub struct Pause;

/// The command that resumes it.
pub struct Resume;

const ROW: Row = Row {
    name: c"DQ.PAUSE",
    flags: c"write fast",
    arity: -2,
    keys: Keys::First(Access::UPDATE),
    summary: c"Suspends what a queue delivers, what it accepts, or both, for a given time or until it is resumed",
    complexity: c"O(1)",
    args: &[Arg::key(c"key")],
    options: &[FlowOption::ARGS, PauseOption::ARGS],
    ..Row::BASE
};

impl Command for Pause {
    const ROW: Row = ROW;
    const HANDLER: Handler = pause;
}

impl Command for Resume {
    const ROW: Row = Row {
        name: c"DQ.RESUME",
        summary: c"Resumes what a queue delivers, what it accepts, or both",
        options: &[FlowOption::ARGS],
        ..ROW
    };
    const HANDLER: Handler = resume;
}

options! {
    /// The options of `DQ.PAUSE`.
    enum PauseOption {
        For => Arg::token_int(c"FOR", c"ms"),
        ..FlowOption,
    }
}

options! {
    /// What a pause suspends.
    pub enum FlowOption {
        In | Out | All => Arg::oneof(
            c"flow",
            &[Arg::token(c"in", c"IN"), Arg::token(c"out", c"OUT"), Arg::token(c"all", c"ALL")],
        ),
    }
}

impl FlowOption {
    const fn word(self) -> &'static str {
        match self {
            FlowOption::In => "IN",
            FlowOption::Out => "OUT",
            FlowOption::All => "ALL",
        }
    }

    const fn flow(self) -> Flow {
        match self {
            FlowOption::In => Flow::In,
            FlowOption::Out => Flow::Out,
            FlowOption::All => Flow::Both,
        }
    }

    /// Notes that this option is given. Fails if another one was.
    fn read(self, given: &mut Option<FlowOption>) -> Result<(), Error> {
        match given.replace(self) {
            None => Ok(()),
            Some(other) => Err(Error::Exclusive(other.word(), self.word())),
        }
    }
}

fn pause(call: &mut Call<'_>) -> Result<(), Error> {
    let name = key_name(call)?;
    let (flow, length) = parse(call)?;
    let now = now(call.ctx);
    set(call, name, now, Event::Pause, |queue| queue.suspend(now, flow, length))
}

fn resume(call: &mut Call<'_>) -> Result<(), Error> {
    let name = key_name(call)?;
    let flow = parse_flow(call)?;
    let now = now(call.ctx);
    set(call, name, now, Event::Resume, |queue| Some((Suspended::Off, queue.resume(now, flow)?)))
}

/// Calls `change`, which returns the new pause and what it concerns, or `None` if it changed nothing.
fn set(
    call: &Call<'_>,
    name: Name<'_>,
    now: UnixMs,
    event: Event,
    change: impl FnOnce(&mut Queue) -> Option<(Suspended, Flow)>,
) -> Result<(), Error> {
    let ctx = call.ctx;
    let announcement = with_queue(ctx, name, |held| match change(&mut held.queue) {
        Some((pause, flow)) => {
            Some(write::record(ctx, name, held, now, Wake::IfDeliverable, || Effect::Pause { pause, flow }))
        }
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

/// Parses what to suspend, which is the delivery by default, and for how long. `None` is a pause without an end.
pub(super) fn parse(call: &mut Call<'_>) -> Result<(Flow, Option<DurationMs>), Error> {
    let (mut given, mut length) = (None, None);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            PauseOption::For => length = Some(options.positive_duration()?),
            PauseOption::FlowOption(flow) => flow.read(&mut given)?,
        }
    }
    Ok((given.map_or(Flow::Out, FlowOption::flow), length))
}

/// Parses what to resume, which is all by default.
pub(super) fn parse_flow(call: &mut Call<'_>) -> Result<Flow, Error> {
    let mut given: Option<FlowOption> = None;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next::<FlowOption>()? {
        option.read(&mut given)?;
    }
    Ok(given.map_or(Flow::Both, FlowOption::flow))
}

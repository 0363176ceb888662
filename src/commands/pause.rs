//! `DQ.PAUSE key [IN | OUT | ALL | GROUP name] [FOR ms]`, `DQ.RESUME key [IN | OUT | ALL | GROUP name]`

use super::{options, Access, Arg, Call, Command, Error, Event, Handler, Keys, Options, Row, Session};
use dq_queue::time::DurationMs;
use dq_queue::{Effect, Flow, Pause as Suspended, Queue};

/// The command that suspends what a queue delivers, what it accepts, or both, or what it delivers of one group.
pub struct Pause;

/// The command that resumes it.
pub struct Resume;

const ROW: Row = Row {
    name: c"DQ.PAUSE",
    flags: c"write fast",
    arity: -2,
    keys: Keys::First(Access::UPDATE),
    summary:
        c"Suspends what a queue delivers, what it accepts, or both, or one group, for a given time or until it is \
          resumed",
    complexity:
        c"O(1). With GROUP O(log N) where N is the number of messages in the queue, and O(M * log N) if GROUPINFLIGHT \
          is 0 and M messages of the group wait",
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
        summary: c"Resumes what a queue delivers, what it accepts, or both, or one group",
        options: &[FlowOption::ARGS],
        ..ROW
    };
    const HANDLER: Handler = resume;
}

options! {
    enum PauseOption {
        For => Arg::token_int(c"FOR", c"ms"),
        ..FlowOption,
    }
}

options! {
    /// What a pause suspends.
    pub enum FlowOption {
        In | Out | All | Group => Arg::oneof(
            c"flow",
            &[
                Arg::token(c"in", c"IN"),
                Arg::token(c"out", c"OUT"),
                Arg::token(c"all", c"ALL"),
                Arg::token_string(c"GROUP", c"group"),
            ],
        ),
    }
}

impl FlowOption {
    const fn word(self) -> &'static str {
        match self {
            FlowOption::In => "IN",
            FlowOption::Out => "OUT",
            FlowOption::All => "ALL",
            FlowOption::Group => "GROUP",
        }
    }
}

/// What a client wants to suspend or resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concerned<'a> {
    /// What the queue delivers, what it accepts, or both.
    Queue(Flow),
    /// What it delivers of the group with this name.
    Group(&'a [u8]),
}

/// What the options say about it so far.
#[derive(Default)]
struct Given<'a>(Option<(FlowOption, Concerned<'a>)>);

impl<'a> Given<'a> {
    /// Reads the value of an option. Fails if another one was given.
    fn read(&mut self, option: FlowOption, options: &mut Options<'a, '_>) -> Result<(), Error> {
        if let Some((other, _)) = self.0 {
            return Err(Error::Exclusive(other.word(), option.word()));
        }
        let concerned = match option {
            FlowOption::In => Concerned::Queue(Flow::In),
            FlowOption::Out => Concerned::Queue(Flow::Out),
            FlowOption::All => Concerned::Queue(Flow::Both),
            FlowOption::Group => Concerned::Group(options.group()?),
        };
        self.0 = Some((option, concerned));
        Ok(())
    }

    fn or(self, default: Flow) -> Concerned<'a> {
        self.0.map_or(Concerned::Queue(default), |(_, concerned)| concerned)
    }
}

fn pause(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let now = session.now;
    let (concerned, length) = parse(call)?;
    set(&session, Event::Pause, |queue| match concerned {
        Concerned::Queue(flow) => {
            queue.suspend(now, flow, length).map(|(pause, flow)| Effect::Pause { pause, flow, group: None })
        }
        Concerned::Group(name) => queue.suspend_group(now, name, length).map(|pause| group_pause(pause, name)),
    })
}

fn resume(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let now = session.now;
    let concerned = parse_resumed(call)?;
    set(&session, Event::Resume, |queue| match concerned {
        Concerned::Queue(flow) => {
            queue.resume(now, flow).map(|flow| Effect::Pause { pause: Suspended::Off, flow, group: None })
        }
        Concerned::Group(name) => queue.resume_group(now, name).then(|| group_pause(Suspended::Off, name)),
    })
}

fn group_pause(pause: Suspended, name: &[u8]) -> Effect<'_> {
    Effect::Pause { pause, flow: Flow::Out, group: Some(name) }
}

/// Calls `change`, which returns the effect of the change, or `None` if it changed nothing.
fn set<'a>(
    session: &Session<'_>,
    event: Event,
    change: impl FnOnce(&mut Queue) -> Option<Effect<'a>>,
) -> Result<(), Error> {
    let announcement = session.with_queue(|held| {
        let effect = change(&mut held.queue);
        session.record_if(held, effect.map(|effect| || effect))
    })?;
    let announcement = announcement.ok_or(Error::NoSuchKey)?;
    session.ctx.ok();
    announcement.into_iter().for_each(|announcement| session.announce(announcement, &[event]));
    Ok(())
}

/// Parses what to suspend, which is the delivery by default, and for how long. `None` is a pause without an end.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(Concerned<'a>, Option<DurationMs>), Error> {
    let (mut given, mut length) = (Given::default(), None);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            PauseOption::For => length = Some(options.positive_duration()?),
            PauseOption::FlowOption(option) => given.read(option, &mut options)?,
        }
    }
    Ok((given.or(Flow::Out), length))
}

/// Parses what to resume, which is all by default.
pub(super) fn parse_resumed<'a>(call: &mut Call<'a>) -> Result<Concerned<'a>, Error> {
    let mut given = Given::default();
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next::<FlowOption>()? {
        given.read(option, &mut options)?;
    }
    Ok(given.or(Flow::Both))
}

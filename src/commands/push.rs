//! `DQ.PUSH key payload [ID id] [DELAY ms | AT unix-ms] [PRIORITY n] [RETRIES n] [LEASE ms] [TTL ms] [REPLACE]
//! [MAXWAIT ms] [LATER] [RETAIN ms] [GROUP name] [BATCH name] [HEADERS n name value [name value ...]] [ATTEMPT n]
//! [ERROR text] [CHECKPOINT bytes] [DEAD] [REASON retries | rejected | expired]`

use super::options::{DUE, HEADERS, REASON};
use super::{
    options, reply_id, word, Access, Arg, Call, Command, Ctx, Death, Error, Event, Handler, Keys, Options, Row,
    Session, Wake,
};
use crate::host::floor::floor;
use crate::host::open::{change_or_make, Changed};
use dq_queue::{Effect, HeaderBlock, NewMessage, OnDuplicate, Past, Pushed, Queue, Reason};

pub struct Push;

impl Command for Push {
    const ROW: Row = Row {
        name: c"DQ.PUSH",
        flags: c"write deny-oom fast",
        arity: -3,
        keys: Keys::First(Access::INSERT),
        summary: c"Adds a message to a queue, to be delivered at its due time. Creates the queue if it does not exist",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"payload")],
        options: &[PushOption::ARGS, MessageOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = push;
}

options! {
    enum PushOption {
        Id => Arg::token_string(c"ID", c"id"),
        ..MessageOption,
    }
}

options! {
    /// The options that `DQ.PUSH` and `DQ.MPUSH` have in common.
    pub enum MessageOption {
        Delay | At => DUE,
        Priority => Arg::token_int(c"PRIORITY", c"priority"),
        Retries => Arg::token_int(c"RETRIES", c"retries"),
        Lease => Arg::token_int(c"LEASE", c"lease-ms"),
        Ttl => Arg::token_int(c"TTL", c"ttl-ms"),
        Replace => Arg::token(c"replace", c"REPLACE"),
        MaxWait => Arg::token_int(c"MAXWAIT", c"maxwait-ms"),
        Later => Arg::token(c"later", c"LATER"),
        Retain => Arg::token_int(c"RETAIN", c"retain-ms"),
        Group => Arg::token_string(c"GROUP", c"group"),
        Batch => Arg::token_string(c"BATCH", c"batch"),
        Headers => HEADERS,
        Attempt => Arg::token_int(c"ATTEMPT", c"attempt"),
        Error => Arg::token_string(c"ERROR", c"error"),
        Checkpoint => Arg::token_string(c"CHECKPOINT", c"checkpoint"),
        Dead => Arg::token(c"dead", c"DEAD"),
        Reason => REASON,
    }
}

fn push(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (mut message, shared) = parse(call)?;
    shared.give_to(std::slice::from_mut(&mut message));

    let mut key = session.open_write();
    let push = |queue: &mut Queue| queue.push(session.now, &mut floor(), &message);
    let is_added = |pushed: &Pushed<'_>| matches!(pushed, Pushed::Added { .. });
    let Changed { mut outcome, mut held, made_with } = change_or_make(key.content(), push, is_added)?;
    if let (Pushed::HeldDead, Some(held), Some(id)) = (&outcome, &mut held, message.name) {
        // A dead message that the settings no longer keep does not hold its id.
        if session.drop_excess(held, id) {
            outcome = push(&mut held.queue);
        }
    }
    let (image, replaced) = match &outcome {
        Pushed::Added { image, replaced } => (image, *replaced),
        refused => {
            held.into_iter().for_each(|held| session.rearm(held));
            return refuse(session.ctx, &message, refused);
        }
    };
    // The image is copied only if somebody listens.
    let effect = || Effect::Push(made_with, vec![image.clone()]);
    let announcement = held.map(|held| session.record(held, Wake::IfDeliverable, effect));
    drop(key);
    reply_id(session.ctx, image.record.sequence, message.name);
    if let Some(announcement) = announcement {
        session.announce(announcement, Event::after_push(replaced, Death::from_record(&image.record)));
    }
    Ok(())
}

/// Replies to a push that changed nothing.
fn refuse(ctx: Ctx, message: &NewMessage<'_>, why: &Pushed<'_>) -> Result<(), Error> {
    match why {
        Pushed::Closed => Err(Error::Closed),
        Pushed::Full { held } => Err(Error::Full(*held)),
        Pushed::TooLarge => Err(Error::TooLarge(message.payload.len())),
        Pushed::Exhausted => Err(Error::Exhausted),
        Pushed::HeldDead => Err(dead_id(message)),
        Pushed::Duplicate | Pushed::Added { .. } => {
            ctx.null();
            Ok(())
        }
    }
}

/// The error for an id that a dead message has.
pub(super) fn dead_id(message: &NewMessage<'_>) -> Error {
    Error::DeadId(String::from_utf8_lossy(message.name.unwrap_or_default()).into_owned())
}

/// Parses the arguments. What is put together here comes apart from the message.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(NewMessage<'a>, Shared<'a>), Error> {
    let payload = word(call);
    let (mut template, mut name) = (Template::default(), None);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            PushOption::Id => name = Some(options.message_name()?),
            PushOption::MessageOption(option) => template.read(option, &mut options)?,
        }
    }
    template.check("ID", name.as_ref())?;
    Ok((template.message(payload, name), template.shared))
}

/// A message without its payload and its name: the values of the options that `DQ.PUSH` and `DQ.MPUSH` have in common.
#[derive(Clone, Debug, Default)]
pub struct Template<'a> {
    message: NewMessage<'a>,
    replace: bool,
    later: bool,
    reason: Option<Reason>,
    /// What messages borrow.
    pub shared: Shared<'a>,
}

/// What all messages of a call borrow.
#[derive(Clone, Debug, Default)]
pub struct Shared<'a> {
    headers: Option<HeaderBlock>,
    past: Option<Box<Past<'a>>>,
}

impl Shared<'_> {
    /// Completes messages of [`Template::message`].
    pub fn give_to<'t>(&'t self, messages: &mut [NewMessage<'t>]) {
        if self.headers.is_some() || self.past.is_some() {
            for message in messages {
                message.headers = self.headers.as_ref().map(HeaderBlock::headers);
                message.past = self.past.as_deref();
            }
        }
    }
}

impl<'a> Template<'a> {
    /// Checks which options are given together, once all are read; `ids` is the option that names the messages, and
    /// `names` is its value.
    pub fn check<N>(&mut self, ids: &'static str, names: Option<&N>) -> Result<(), Error> {
        for (option, given) in [("MAXWAIT", self.message.maxwait.is_some()), ("LATER", self.later)] {
            if given && !self.replace {
                return Err(Error::Needs(option, "REPLACE"));
            }
        }
        if self.replace && names.is_none() {
            return Err(Error::Needs("REPLACE", ids));
        }
        match &mut self.shared.past {
            Some(_) if self.later => Err(Error::LaterWithPast),
            Some(past) if self.reason.is_some() => match past.dead {
                Some(_) => {
                    past.dead = self.reason;
                    Ok(())
                }
                None => Err(Error::Needs("REASON", "DEAD")),
            },
            Some(_) | None => Ok(()),
        }
    }

    /// Reads the value of an option.
    pub fn read(&mut self, option: MessageOption, options: &mut Options<'a, '_>) -> Result<(), Error> {
        match option {
            MessageOption::Delay => options.delay(&mut self.message.due)?,
            MessageOption::At => options.at(&mut self.message.due)?,
            MessageOption::Priority => self.message.priority = options.priority()?,
            MessageOption::Retries => self.message.retries = Some(options.retries()?),
            MessageOption::Lease => self.message.lease = Some(options.positive_duration()?),
            MessageOption::Ttl => self.message.ttl = Some(options.duration()?),
            MessageOption::Replace => self.replace = true,
            MessageOption::Later => self.later = true,
            MessageOption::MaxWait => self.message.maxwait = Some(options.duration()?),
            MessageOption::Retain => self.message.retain = Some(options.duration()?),
            MessageOption::Group => self.message.group = Some(options.group()?),
            MessageOption::Batch => self.message.batch = Some(options.batch()?),
            MessageOption::Headers => self.shared.headers = Some(options.headers()?),
            MessageOption::Attempt => self.past().attempts = options.attempts()?,
            MessageOption::Error => self.past().error = Some(options.value()?),
            MessageOption::Checkpoint => {
                self.past().checkpoint = Some(options.checkpoint()?).filter(|it| !it.is_empty())
            }
            MessageOption::Dead => self.past().dead = Some(Reason::Rejected),
            MessageOption::Reason => {
                self.reason = options.reason()?;
                self.past();
            }
        }
        Ok(())
    }

    fn past(&mut self) -> &mut Past<'a> {
        self.shared.past.get_or_insert_default()
    }

    /// Makes a message with these values, but without what it shares with others.
    pub fn message(&self, payload: &'a [u8], name: Option<&'a [u8]>) -> NewMessage<'a> {
        NewMessage {
            payload,
            name,
            on_duplicate: match (self.replace, self.later) {
                (false, _) => OnDuplicate::Refuse,
                (true, false) => OnDuplicate::Replace,
                (true, true) => OnDuplicate::ReplaceLater,
            },
            ..self.message
        }
    }
}

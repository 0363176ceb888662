//! `DQ.MPUSH key count payload [payload ...] [IDS id [id ...]] [the options of DQ.PUSH except ID]`

use super::options::count_of_words;
use super::push::{dead_id, MessageOption, Shared, Template};
use super::{
    options, reply_id, Access, Arg, Call, Command, Ctx, Death, Error, Event, Handler, Keys, Options, Row, Session,
};
use crate::host::floor::floor;
use crate::host::open::{change_or_make, Changed};
use crate::module_api::key::Content;
use dq_queue::id::{Id, Sequence};
use dq_queue::{Effect, Image, NewMessage, NotPushed, OnDuplicate, Pushed, Queue};

pub struct MPush;

impl Command for MPush {
    const ROW: Row = Row {
        name: c"DQ.MPUSH",
        flags: c"write deny-oom",
        arity: -4,
        keys: Keys::First(Access::INSERT),
        summary: c"Adds several messages to a queue in one step. Creates the queue if it does not exist",
        complexity: c"O(M * log N) where M is the number of messages pushed and N the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::int(c"count"), Arg::string(c"payload").multiple()],
        options: &[MPushOption::ARGS, MessageOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = mpush;
}

options! {
    enum MPushOption {
        Ids => Arg::token_string(c"IDS", c"id").multiple(),
        ..MessageOption,
    }
}

fn mpush(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (mut messages, shared) = parse(call)?;
    shared.give_to(&mut messages);

    let mut key = session.open_write();
    if let Content::Holds(held) = key.content() {
        // A dead message that the settings no longer keep does not hold its id.
        for message in messages.iter().filter(|message| message.on_duplicate == OnDuplicate::Refuse) {
            message.name.map(|id| session.drop_excess(held, id));
        }
    }
    let mut pushed = AllPushed::with_capacity(messages.len());
    pushed.images = session.is_heard().then(|| Vec::with_capacity(messages.len()));
    let push = |queue: &mut Queue| queue.push_all(session.now, &mut floor(), &messages, |outcome| pushed.note(outcome));
    let Changed { outcome, held, made_with } = change_or_make(key.content(), push, Result::is_ok)?;
    let images = pushed.images.take().unwrap_or_default();
    let effect = pushed.only_replaced.map(|_| || Effect::Push(made_with, images));
    let announcement = held.and_then(|held| session.record_if(held, effect));
    drop(key);
    outcome.map_err(refusal)?;
    reply(session.ctx, &messages, &pushed.outcomes);
    if let (Some(announcement), Some(only_replaced)) = (announcement, pushed.only_replaced) {
        let is_dead = messages.first().is_some_and(NewMessage::is_dead);
        session.announce(announcement, Event::after_push(only_replaced, Death::if_any(is_dead)));
    }
    Ok(())
}

/// The outcome for one message of a batch.
#[derive(Clone, Copy)]
enum One {
    Pushed(Sequence),
    Duplicate,
    HeldDead,
}

/// The outcome of a batch.
struct AllPushed<'a> {
    /// The outcome for each message, in order.
    outcomes: Vec<One>,
    /// The messages to replicate, if there is a listener.
    images: Option<Vec<Image<'a>>>,
    /// Whether each message that was pushed replaced another; `None` if none was pushed.
    only_replaced: Option<bool>,
}

impl<'a> AllPushed<'a> {
    fn with_capacity(count: usize) -> Self {
        AllPushed { outcomes: Vec::with_capacity(count), images: None, only_replaced: None }
    }

    fn note(&mut self, outcome: Pushed<'a>) {
        let (image, replaced) = match outcome {
            Pushed::Added { image, replaced } => (image, replaced),
            Pushed::HeldDead => return self.outcomes.push(One::HeldDead),
            Pushed::Duplicate | Pushed::Closed | Pushed::TooLarge | Pushed::Full { .. } | Pushed::Exhausted => {
                return self.outcomes.push(One::Duplicate);
            }
        };
        self.outcomes.push(One::Pushed(image.record.sequence));
        self.only_replaced = Some(replaced && self.only_replaced.unwrap_or(true));
        if let Some(images) = &mut self.images {
            images.push(image);
        }
    }
}

fn refusal(why: NotPushed) -> Error {
    match why {
        NotPushed::Closed => Error::Closed,
        NotPushed::Full(held) => Error::Full(held),
        NotPushed::TooLarge(size) => Error::TooLarge(size),
        NotPushed::Exhausted => Error::Exhausted,
    }
}

fn reply(ctx: Ctx, messages: &[NewMessage<'_>], outcomes: &[One]) {
    ctx.array(messages.len());
    for (message, outcome) in messages.iter().zip(outcomes) {
        match outcome {
            One::Pushed(sequence) => reply_id(ctx, *sequence, message.name),
            One::Duplicate => ctx.null(),
            One::HeldDead => ctx.error(&dead_id(message).to_string()),
        }
    }
}

/// Parses the arguments. What is put together here comes apart from the messages, as for `DQ.PUSH`.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(Vec<NewMessage<'a>>, Shared<'a>), Error> {
    let count = count_of_words(&mut call.args, "count")?;
    let given = call.args.remaining();
    let too_few = Error::TooFew { count: "count", wanted: count, given, of: "payloads" };
    let payloads = call.args.take(count).ok_or(too_few)?;
    let (mut template, mut names) = (Template::default(), None);
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            MPushOption::Ids => names = Some(options.rest().take(count).ok_or(Error::IdsMissing(count))?),
            MPushOption::MessageOption(option) => template.read(option, &mut options)?,
        }
    }
    template.check("IDS", names.as_ref())?;
    let Some(names) = names else {
        return Ok((payloads.map(|payload| template.message(payload, None)).collect(), template.shared));
    };
    let messages = payloads
        .zip(names)
        .map(|(payload, name)| match Id::is_name(name) {
            true => Ok(template.message(payload, Some(name))),
            false => Err(Error::BadId),
        })
        .collect::<Result<_, _>>()?;
    Ok((messages, template.shared))
}

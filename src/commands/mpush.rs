//! `DQ.MPUSH key count payload [payload ...] [IDS id [id ...]] [the options of DQ.PUSH except ID]`

use super::error::Error;
use super::options::{count_of_words, options, Options};
use super::push::{dead_id, MessageOption, Shared, Template};
use super::{key_name, now, reply_id, Command, Handler};
use crate::host::config;
use crate::host::datatype;
use crate::host::event::{Death, Event};
use crate::host::floor::floor;
use crate::host::held::Held;
use crate::host::write::{self, Wake};
use crate::module_api::ctx::Ctx;
use crate::module_api::key::{Content, OpenKey};
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::id::{Id, Sequence};
use dq_queue::{Effect, Image, NewMessage, NotPushed, OnDuplicate, Pushed, Queue};

/// The command.
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
    /// The options of `DQ.MPUSH`.
    enum MPushOption {
        Ids => Arg::token_string(c"IDS", c"id").multiple(),
        ..MessageOption,
    }
}

fn mpush(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let key_name = key_name(call)?;
    let (mut messages, shared) = parse(call)?;
    shared.give_to(&mut messages);
    let now = now(ctx);

    let mut key = OpenKey::open_write(ctx, key_name, datatype::handle());
    let mut pushed = AllPushed::of(messages.len());
    pushed.images = write::is_heard(ctx, key_name).then(|| Vec::with_capacity(messages.len()));
    let mut push_to = |queue: &mut Queue| queue.push_all(now, &mut floor(), &messages, |outcome| pushed.note(outcome));
    let mut made_with = None;
    let outcome = match key.content() {
        Content::Refused(why) => return Err(why.into()),
        Content::Holds(held) => {
            // A dead message that the settings no longer keep does not hold its id.
            for id in messages
                .iter()
                .filter(|message| message.on_duplicate == OnDuplicate::Refuse)
                .filter_map(|message| message.name)
            {
                write::drop_excess(ctx, key_name, held, now, id);
            }
            push_to(&mut held.queue)
        }
        Content::Missing => {
            // A push that is refused does not create a queue.
            let settings = config::defaults();
            let mut queue = Queue::new(settings);
            push_to(&mut queue).map_err(refusal)?;
            key.create(Held::made(queue)).map_err(|_| Error::WrongType)?;
            made_with = Some(settings);
            Ok(())
        }
    };
    let Content::Holds(held) = key.content() else { return Err(Error::WrongType) };
    let images = pushed.images.take().unwrap_or_default();
    let announcement = if pushed.only_replaced.is_some() {
        write::record(ctx, key_name, held, now, Wake::IfDeliverable, || Effect::Push(made_with, images))
    } else {
        write::rearm(ctx, key_name, held, now, Wake::Nobody)
    };
    drop(key);
    if let Err(why) = outcome {
        write::wake(ctx, key_name, announcement);
        return Err(refusal(why));
    }
    reply(ctx, &messages, &pushed.outcomes);
    match pushed.only_replaced {
        Some(only_replaced) => {
            let is_dead = messages.first().is_some_and(NewMessage::is_dead);
            let death = if is_dead { Death::Some } else { Death::None };
            write::announce(ctx, key_name, announcement, Event::of_push(only_replaced, death));
        }
        None => write::wake(ctx, key_name, announcement),
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
    fn of(count: usize) -> Self {
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

//! `DQ.PUSH key payload [ID id] [DELAY ms | AT unix-ms] [PRIORITY n] [RETRIES n] [LEASE ms] [TTL ms] [REPLACE]`

use super::error::Error;
use super::options::Options;
use super::{key_name, now, reply_id, serve, word};
use crate::queue::{Due, Effect, NewMessage, Pushed, Queue};
use crate::server::config;
use crate::server::datatype::{self, Held};
use crate::server::key::{OpenKey, Slot};
use crate::server::register::{Access, Arg, Call, Command, Keys, Row};
use crate::server::state::floor;
use crate::server::write;

/// The command.
pub struct Push;

impl Command for Push {
    const ROW: Row = Row {
        name: c"DQ.PUSH",
        flags: c"write deny-oom fast",
        arity: -3,
        keys: Keys::First(Access::INSERT),
        acl: c"write fast",
        summary: c"Adds a message to a queue, to be delivered at its due time, and creates the queue if there is none",
        complexity: c"O(log N) with N the messages in the queue",
        since: c"0.1.0",
        tips: c"",
        args: &[
            Arg::key(c"key"),
            Arg::string(c"payload"),
            Arg::token_string(c"ID", c"id").optional(),
            Arg::oneof(c"due", &[Arg::token_int(c"DELAY", c"ms"), Arg::token_time(c"AT", c"unix-ms")]).optional(),
            Arg::token_int(c"PRIORITY", c"priority").optional(),
            Arg::token_int(c"RETRIES", c"retries").optional(),
            Arg::token_int(c"LEASE", c"lease-ms").optional(),
            Arg::token_int(c"TTL", c"ttl-ms").optional(),
            Arg::token(c"replace", c"REPLACE").optional(),
        ],
    };

    fn run(call: Call<'_>) {
        serve(call, push);
    }
}

const OPTIONS: &[&str] = &["DELAY", "ID", "PRIORITY", "AT", "RETRIES", "LEASE", "TTL", "REPLACE"];

fn push(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let key_name = key_name(call)?;
    let message = parse(call)?;
    let now = now(ctx);

    let mut key = OpenKey::open_write(ctx, key_name, datatype::handle());
    let mut made_with = None;
    if let Slot::Missing = key.slot() {
        let settings = config::defaults().settings();
        // Its first push cannot be refused: the name is free, and a limit is at least one.
        key.create(Held::new(Queue::new(settings))).map_err(|_| Error::WrongType)?;
        made_with = Some(settings);
    }
    let Slot::Holds(held) = key.slot() else { return Err(Error::WrongType) };
    match held.queue.push(now, &mut floor(), &message) {
        Pushed::Added { image, replaced } => {
            let effect = || Effect::Push(made_with, vec![image]);
            let announcement = write::record(ctx, key_name, held, now, true, effect);
            drop(key);
            reply_id(ctx, image.record.sequence, message.name);
            write::announce(ctx, key_name, announcement, if replaced { c"dq.replace" } else { c"dq.push" });
            Ok(())
        }
        refused => {
            let announcement = write::settle(ctx, key_name, held, now, false);
            drop(key);
            write::wake(ctx, key_name, announcement);
            match refused {
                Pushed::Full { held } => Err(Error::Full(held)),
                Pushed::Exhausted => Err(Error::Exhausted),
                Pushed::Duplicate | Pushed::Added { .. } => {
                    ctx.null();
                    Ok(())
                }
            }
        }
    }
}

fn parse<'a>(call: &mut Call<'a>) -> Result<NewMessage<'a>, Error> {
    let mut message = NewMessage { payload: word(call), ..NewMessage::default() };
    let mut due = None;
    let mut options = Options::new(&mut call.args, OPTIONS);
    while let Some(option) = options.next()? {
        match option {
            "ID" => message.name = Some(options.name(option)?),
            "DELAY" | "AT" if due.is_some() => return Err(Error::Exclusive("DELAY", "AT")),
            "DELAY" => due = Some(Due::After(options.duration(option)?)),
            "AT" => due = Some(Due::At(options.instant(option)?)),
            "PRIORITY" => message.priority = options.priority(option)?,
            "RETRIES" => message.retries = Some(options.retries(option)?),
            "LEASE" => message.lease = Some(options.lease(option)?),
            "TTL" => message.ttl = Some(options.duration(option)?),
            _ => message.replace = true,
        }
    }
    message.due = due.unwrap_or_default();
    if message.replace && message.name.is_none() {
        return Err(Error::Needs("REPLACE", "ID"));
    }
    Ok(message)
}

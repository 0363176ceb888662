//! `DQ.PUSH key payload [ID id] [DELAY ms | AT unix-ms] [PRIORITY n] [RETRIES n] [LEASE ms] [TTL ms] [REPLACE]`

use super::error::Error;
use super::options::{Options, DUE};
use super::{key_name, now, reply_id, serve, word};
use crate::queue::settings::Retries;
use crate::queue::time::DurationMs;
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
            DUE.optional(),
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

pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<NewMessage<'a>, Error> {
    let payload = word(call);
    let (mut terms, mut name) = (Terms::default(), None);
    let mut options = Options::new(&mut call.args, OPTIONS);
    while let Some(option) = options.next()? {
        match option {
            "ID" => name = Some(options.name(option)?),
            term => terms.read(term, &mut options)?,
        }
    }
    if terms.replace && name.is_none() {
        return Err(Error::Needs("REPLACE", "ID"));
    }
    Ok(terms.message(payload, name))
}

/// What a producer asks for beside payload and id: the options that `DQ.PUSH` and `DQ.MPUSH` have in common.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    due: Option<Due>,
    priority: i8,
    retries: Option<Retries>,
    lease: Option<DurationMs>,
    ttl: Option<DurationMs>,
    pub replace: bool,
}

impl Terms {
    /// Reads the value of one of the options.
    pub fn read(&mut self, option: &'static str, options: &mut Options<'_, '_>) -> Result<(), Error> {
        match option {
            "DELAY" | "AT" => options.due(option, &mut self.due)?,
            "PRIORITY" => self.priority = options.priority(option)?,
            "RETRIES" => self.retries = Some(options.retries(option)?),
            "LEASE" => self.lease = Some(options.lease(option)?),
            "TTL" => self.ttl = Some(options.duration(option)?),
            _ => self.replace = true,
        }
        Ok(())
    }

    /// A message on these terms.
    pub fn message<'a>(&self, payload: &'a [u8], name: Option<&'a [u8]>) -> NewMessage<'a> {
        NewMessage {
            payload,
            name,
            due: self.due.unwrap_or_default(),
            priority: self.priority,
            retries: self.retries,
            lease: self.lease,
            ttl: self.ttl,
            replace: self.replace,
        }
    }
}

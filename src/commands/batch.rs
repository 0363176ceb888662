//! `DQ.BATCH key name THEN payload [ID id] [DELAY ms] [PRIORITY n] [RETRIES n] [LEASE ms] [GROUP name]
//! [HEADERS n name value [name value ...]] | CANCEL`, `DQ.BATCHINFO key name`

use super::options::{batch_name, HEADERS};
use super::{options, word, Access, Arg, Call, Command, Ctx, Error, Event, Handler, Keys, Options, Row, Session, Wake};
use crate::host::floor::floor;
use crate::host::open::{change_or_make, Changed};
use dq_queue::time::DurationMs;
use dq_queue::{Batch as Shown, Effect, FollowUp, Queue};

/// The command that declares what follows a batch, or removes the batch.
pub struct Batch;

/// The command that returns how far a batch is.
pub struct BatchInfo;

impl Command for Batch {
    const ROW: Row = Row {
        name: c"DQ.BATCH",
        flags: c"write",
        arity: -4,
        keys: Keys::First(Access::UPDATE),
        summary:
            c"Declares which message follows a batch once all its members have ended, or removes a batch with its \
              members",
        complexity: c"O(log N) with THEN, where N is the number of messages in the queue; O(M * log N) with CANCEL, \
                      where M is the number of messages that were pushed from the first to the last member",
        args: &[Arg::key(c"key"), Arg::string(c"name"), WHAT],
        options: &[ThenOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = batch;
}

impl Command for BatchInfo {
    const ROW: Row = Row {
        name: c"DQ.BATCHINFO",
        flags: c"readonly fast",
        arity: 3,
        keys: Keys::First(Access::READ),
        summary: c"Returns how many members a batch has, and how those that have ended did",
        complexity: c"O(log N) where N is the number of batches in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"name")],
        ..Row::BASE
    };
    const HANDLER: Handler = batch_info;
}

/// What the command does. The parser takes it in any order among the options.
const WHAT: Arg = Arg::oneof(c"what", &[Arg::token_string(c"THEN", c"payload"), Arg::token(c"cancel", c"CANCEL")]);

options! {
    /// What the command does.
    enum WhatOption {
        Then => Arg::token_string(c"THEN", c"payload"),
        Cancel => Arg::token(c"cancel", c"CANCEL"),
        ..ThenOption,
    }
}

options! {
    /// The options of the message that follows.
    enum ThenOption {
        Id => Arg::token_string(c"ID", c"id"),
        Delay => Arg::token_int(c"DELAY", c"ms"),
        Priority => Arg::token_int(c"PRIORITY", c"priority"),
        Retries => Arg::token_int(c"RETRIES", c"retries"),
        Lease => Arg::token_int(c"LEASE", c"lease-ms"),
        Group => Arg::token_string(c"GROUP", c"group"),
        Headers => HEADERS,
    }
}

impl ThenOption {
    const fn word(self) -> &'static str {
        match self {
            ThenOption::Id => "ID",
            ThenOption::Delay => "DELAY",
            ThenOption::Priority => "PRIORITY",
            ThenOption::Retries => "RETRIES",
            ThenOption::Lease => "LEASE",
            ThenOption::Group => "GROUP",
            ThenOption::Headers => "HEADERS",
        }
    }
}

fn batch(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    match parse(call)? {
        (batch, Some(then)) => close(&session, batch, then),
        (batch, None) => cancel(&session, batch),
    }
}

/// Declares what follows a batch.
fn close(session: &Session<'_>, batch: &[u8], then: FollowUp) -> Result<(), Error> {
    // The flag of a command would refuse `CANCEL` too, which frees memory.
    if session.ctx.flags().out_of_memory() {
        return Err(Error::OutOfMemory);
    }
    let too_large = Error::TooLarge(then.payload.len());
    let mut key = session.open_write();
    let close = |queue: &mut Queue| queue.close_batch(session.now, &floor(), batch, &then);
    let Changed { outcome, held, made_with } = change_or_make(key.content(), close, Option::is_some)?;
    let Some(held) = held else { return Err(too_large) };
    let Some(closed) = outcome else {
        session.rearm(held);
        return Err(too_large);
    };
    let effect = || Effect::Batch { settings: made_with, name: batch, last: closed.last, then: Some(Box::new(then)) };
    let announcement = session.record(held, Wake::Nobody, effect);
    drop(key);
    session.ctx.integer(i64::try_from(closed.left).unwrap_or(i64::MAX));
    session.announce(announcement, &[Event::Batch]);
    Ok(())
}

/// Removes a batch with its members.
fn cancel(session: &Session<'_>, batch: &[u8]) -> Result<(), Error> {
    session.change(
        |queue| {
            let removed = queue.cancel_batch(session.now, batch)?;
            let last = queue.last_given().0;
            Some((removed, move || Effect::Batch { settings: None, name: batch, last, then: None }))
        },
        |removed| session.reply_count(removed, &[Event::Batch]),
    )
}

fn batch_info(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (ctx, batch) = (session.ctx, word(call));
    let shown = session.look(|held| held.queue.batch(session.now, batch).map(|shown| reply_shown(ctx, &shown)))?;
    if shown.flatten().is_none() {
        ctx.null_array();
    }
    Ok(())
}

/// Replies with a batch as a map.
fn reply_shown(ctx: Ctx, shown: &Shown<'_>) {
    let Shown { total, left, acked, dead, cancelled, then, created } = *shown;
    let fields = [
        ("total", total),
        ("left", left),
        ("acked", acked),
        ("dead", dead),
        ("cancelled", cancelled),
        ("closed", then.is_some().into()),
        ("created", created.as_ms()),
    ];
    let texts = [("then", then.map(|then| &then.payload)), ("then-id", then.and_then(|then| then.name.as_ref()))];
    let texts = texts.into_iter().filter_map(|(field, text)| text.map(|text| (field, text)));
    ctx.map(fields.len() + texts.clone().count());
    for (field, value) in fields {
        ctx.bulk(field.as_bytes());
        ctx.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }
    for (field, text) in texts {
        ctx.bulk(field.as_bytes());
        ctx.bulk(text);
    }
}

/// Parses the name of the batch, and what follows it; `None` if it is cancelled.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(&'a [u8], Option<FollowUp>), Error> {
    let name = batch_name(word(call))?;
    let (mut payload, mut cancels, mut of_then) = (None, false, None);
    let mut then = FollowUp::default();
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            WhatOption::Then => payload = Some(options.value()?),
            WhatOption::Cancel => cancels = true,
            WhatOption::ThenOption(option) => {
                of_then = Some(option.word());
                read(&mut then, option, &mut options)?;
            }
        }
    }
    match (payload, cancels, of_then) {
        (Some(_), true, _) => Err(Error::Exclusive("THEN", "CANCEL")),
        (Some(payload), false, _) => Ok((name, Some(FollowUp { payload: payload.into(), ..then }))),
        (None, _, Some(option)) => Err(Error::Needs(option, "THEN")),
        (None, true, None) => Ok((name, None)),
        (None, false, None) => Err(Error::NoBatchAction),
    }
}

/// Reads the value of an option of the message that follows.
fn read<'a>(then: &mut FollowUp, option: ThenOption, options: &mut Options<'a, '_>) -> Result<(), Error> {
    match option {
        ThenOption::Id => then.name = Some(options.message_name()?.into()),
        ThenOption::Delay => then.delay = Some(options.duration()?).filter(|delay| *delay != DurationMs::ZERO),
        ThenOption::Priority => then.priority = options.priority()?,
        ThenOption::Retries => then.retries = Some(options.retries()?),
        ThenOption::Lease => then.lease = Some(options.positive_duration()?),
        ThenOption::Group => then.group = Some(options.group()?.into()),
        ThenOption::Headers => then.headers = Some(options.headers()?),
    }
    Ok(())
}

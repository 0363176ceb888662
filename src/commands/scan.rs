//! `DQ.SCAN key cursor [STATE state] [COUNT n]`

use super::error::Error;
use super::get::reply_message;
use super::len::{state, STATES};
use super::options::{self, Options};
use super::{key_name, look_at, now, serve, word};
use crate::queue::{Cursor, Queue, StateKind};
use crate::server::ctx::Ctx;
use crate::server::register::{Access, Arg, Call, Command, Keys, Row};

/// The command.
pub struct Scan;

impl Command for Scan {
    const ROW: Row = Row {
        name: c"DQ.SCAN",
        flags: c"readonly",
        arity: -3,
        keys: Keys::First(Access::READ),
        acl: c"read slow",
        summary: c"Shows the messages of a queue bit by bit, behind a cursor",
        complexity: c"O(M + log N) a call with M the messages looked at and N the messages in the queue",
        since: c"0.1.0",
        tips: c"",
        args: &[
            Arg::key(c"key"),
            Arg::string(c"cursor"),
            STATES.after(c"STATE").optional(),
            Arg::token_int(c"COUNT", c"count").optional(),
        ],
    };

    fn run(call: Call<'_>) {
        serve(call, scan);
    }
}

const OPTIONS: &[&str] = &["STATE", "COUNT"];

/// How many messages a call looks at unless it says otherwise.
const COUNT: usize = 10;

fn scan(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let cursor = options::cursor(word(call))?;
    let (mut kind, mut count) = (None, COUNT);
    let mut options = Options::new(&mut call.args, OPTIONS);
    while let Some(option) = options.next()? {
        match option {
            "STATE" => kind = Some(state(options.value(option)?)?),
            _ => count = options.count(option)?,
        }
    }
    if look_at(ctx, name, |held| reply_page(ctx, &held.queue, cursor, count, kind))?.is_none() {
        ctx.array(2);
        ctx.bulk(b"0");
        ctx.array(0);
    }
    Ok(())
}

fn reply_page(ctx: Ctx, queue: &Queue, cursor: Cursor, count: usize, kind: Option<StateKind>) {
    let now = now(ctx);
    let (page, next) = queue.scan(now, cursor, count, kind);
    ctx.array(2);
    ctx.bulk(next.unwrap_or(Cursor::Start).number().to_string().as_bytes());
    ctx.array(page.len());
    for sequence in page {
        match queue.show(now, sequence) {
            Some(message) => reply_message(ctx, &message),
            None => ctx.null_array(),
        }
    }
}

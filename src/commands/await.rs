//! `DQ.AWAIT key id [BLOCK ms]`

use super::error::Error;
use super::get::reply_shown;
use super::options::{options, Options};
use super::{id, key_name, now, word, Command, Handler};
use crate::host::awaiting;
use crate::host::datatype;
use crate::module_api::key::{Content, OpenKey, Touch};
use crate::module_api::register::{Access, Arg, Call, Keys, Row};
use dq_queue::time::DurationMs;

/// The command.
pub struct Await;

impl Command for Await {
    const ROW: Row = Row {
        name: c"DQ.AWAIT",
        flags: c"readonly blocking",
        arity: -3,
        keys: Keys::First(Access::READ),
        summary: c"Returns a message that is done or dead. Optionally blocks until it is",
        complexity: c"O(log N) where N is the number of messages in the queue",
        args: &[Arg::key(c"key"), Arg::string(c"id")],
        options: &[AwaitOption::ARGS],
        ..Row::BASE
    };
    const HANDLER: Handler = wait;
}

options! {
    /// The options of `DQ.AWAIT`.
    enum AwaitOption {
        Block => Arg::token_int(c"BLOCK", c"block-ms"),
    }
}

fn wait(call: &mut Call<'_>) -> Result<(), Error> {
    let ctx = call.ctx;
    let name = key_name(call)?;
    let (word, timeout) = parse(call)?;
    let id = id(word)?;
    let now = now(ctx);
    let mut awaited = None;
    {
        let mut key = OpenKey::open_read(ctx, name, datatype::handle(), Touch::Yes);
        match key.content() {
            Content::Refused(why) => return Err(why.into()),
            Content::Missing => {}
            Content::Holds(held) => {
                held.queue.notice(now);
                match id.and_then(|id| held.queue.find(now, &id)) {
                    Some(shown) if shown.is_over() => {
                        reply_shown(ctx, &shown);
                        return Ok(());
                    }
                    Some(shown) => awaited = Some(shown.sequence()),
                    None => {}
                }
                if awaited.is_some() && timeout.is_some() {
                    held.arm(ctx, ctx.selected_db(), name);
                }
            }
        }
    }
    match (awaited, timeout) {
        (Some(sequence), Some(timeout)) => awaiting::block(ctx, name, word, sequence, reply_shown, timeout),
        // The id is not held, or the client does not wait.
        (None, _) | (_, None) => ctx.null_array(),
    }
    Ok(())
}

/// Parses the id, and the timeout if the client asked to block and may be blocked.
pub(super) fn parse<'a>(call: &mut Call<'a>) -> Result<(&'a [u8], Option<DurationMs>), Error> {
    let id = word(call);
    let mut timeout = None;
    let mut options = Options::new(&mut call.args);
    while let Some(option) = options.next()? {
        match option {
            AwaitOption::Block => timeout = Some(options.duration()?),
        }
    }
    // Inside a transaction or a script a client cannot block.
    Ok((id, timeout.filter(|_| !call.ctx.flags().deny_blocking())))
}

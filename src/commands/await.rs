//! `DQ.AWAIT key id [BLOCK ms]`

use super::get::reply_shown;
use super::{existing, id, options, word, Access, Arg, Call, Command, Error, Handler, Keys, Options, Row, Session};
use crate::host::waiting::message;
use crate::module_api::key::Touch;
use dq_queue::time::DurationMs;

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
    enum AwaitOption {
        Block => Arg::token_int(c"BLOCK", c"block-ms"),
    }
}

fn wait(call: &mut Call<'_>) -> Result<(), Error> {
    let session = Session::begin(call)?;
    let (word, timeout) = parse(call)?;
    let id = id(word)?;
    let found = existing(session.open_read(Touch::Yes).content(), |held| {
        held.queue.notice(session.now);
        let shown = id.and_then(|id| held.queue.find(session.now, &id))?;
        let sequence = shown.sequence();
        if shown.is_over() {
            reply_shown(session.ctx, &shown);
            return Some(None);
        }
        if timeout.is_some() {
            session.arm(held);
        }
        Some(Some(sequence))
    })?;
    match (found.flatten(), timeout) {
        (Some(None), _) => {}
        (Some(Some(sequence)), Some(timeout)) => message::block(&session, word, sequence, reply_shown, timeout),
        // The id is not held, or the client does not wait.
        (None, _) | (_, None) => session.ctx.null_array(),
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
